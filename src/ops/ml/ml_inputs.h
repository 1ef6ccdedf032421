#pragma once
// Inputs of the classical models of ai.onnx.ml as numbers.

#include <cstdint>

#include <sdx/tensor.hpp>

#include "ops/op.h"
#include "tensor/dispatch.h"

namespace sdx::ops {

inline constexpr const char* kMlDomain = "ai.onnx.ml";
inline constexpr TypeSet kMlNumbers = set_of(DataType::float32, DataType::float64, DataType::int64, DataType::int32);
using MlNumbers = TypeList<float, double, std::int64_t, std::int32_t>;

// Extent of the last axis; 1 for a scalar.
inline std::int64_t last_extent(const Tensor& x) { return x.rank() == 0 ? 1 : x.shape().back(); }

}  // namespace sdx::ops
