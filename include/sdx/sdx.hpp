#pragma once
// All of libsdx except <sdx/mapped_files.hpp>, which is about signals. Benchmarking and comparison, <sdx/runner.hpp> and
// <sdx/compare.hpp>, are in a separate library, libsdx_benchmark.

#include <sdx/convert.hpp>
#include <sdx/dtype.hpp>
#include <sdx/error.hpp>
#include <sdx/image.hpp>
#include <sdx/project.hpp>
#include <sdx/provider.hpp>
#include <sdx/registry.hpp>
#include <sdx/session.hpp>
#include <sdx/tensor.hpp>
