#pragma once
// Everything: #include <sdx/sdx.hpp>

#include <sdx/compare.hpp>
#include <sdx/convert.hpp>
#include <sdx/dtype.hpp>
#include <sdx/error.hpp>
#include <sdx/image.hpp>
#include <sdx/project.hpp>
#include <sdx/provider.hpp>
#include <sdx/registry.hpp>
#include <sdx/runner.hpp>
#include <sdx/session.hpp>
#include <sdx/tensor.hpp>
