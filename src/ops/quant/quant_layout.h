#pragma once
// The scale and zero point of each element: per tensor, per axis, or in blocks along an axis. Source: ONNX QuantizeLinear-21 and
// DequantizeLinear-21.

#include <cstdint>

#include <sdx/tensor.hpp>

#include "ops/context.h"

namespace sdx::ops {

// The elements in runs: run r covers [r * run, r * run + run) of the flat data, within `count`.
struct QuantLayout {
  std::int64_t count = 0;
  std::int64_t run = 1;  // elements of one run (the last of a per-tensor layout, or of a blocked axis, may be shorter)
  std::int64_t runs = 0;
  bool steps = false;  // the scale index advances with each element of a run; else it is one for the run
  enum class Kind : std::uint8_t { tensor, axis, block } kind = Kind::tensor;
  std::int64_t axis_extent = 1, inner = 1, block = 1, blocks = 1;

  struct Run {
    std::int64_t begin, count, scale;
  };
  Run at(std::int64_t r) const;
};

// Checks the scale's (and the zero point's) shape against x's. Throws Error(invalid_model).
QuantLayout quant_layout(const Shape& x, const Shape& scale, const Shape* zero_point, std::int64_t axis, std::int64_t block_size);

}  // namespace sdx::ops
