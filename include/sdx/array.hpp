#pragma once
// Arrays: immutable, lazy, computed by the engine. Names are those of MLX 0.32 (`mlx.core`). See docs/arrays.md.

#include <sdx/array/array.hpp>
#include <sdx/array/backend.hpp>
#include <sdx/array/convolve.hpp>
#include <sdx/array/create.hpp>
#include <sdx/array/elementwise.hpp>
#include <sdx/array/fast.hpp>
#include <sdx/array/fft.hpp>
#include <sdx/array/index.hpp>
#include <sdx/array/io.hpp>
#include <sdx/array/linalg.hpp>
#include <sdx/array/matrix.hpp>
#include <sdx/array/memory.hpp>
#include <sdx/array/quantize.hpp>
#include <sdx/array/random.hpp>
#include <sdx/array/reduce.hpp>
#include <sdx/array/shape.hpp>
#include <sdx/array/sort.hpp>
#include <sdx/array/transforms.hpp>
