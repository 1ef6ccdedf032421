#pragma once
// The shape of tensors that are joined along an axis. Those without elements add nothing where their extent on the axis is 0:
// then their other extents may differ, as ONNX Runtime permits, and a tensor of shape [0] may also have another rank, as PyTorch
// permits.

#include <vector>

#include "graph/dim.h"
#include "ops/tensor/axes.h"

namespace sdx::ops {

struct Joined {
  Shape shape;
  std::size_t axis = 0;
};

// `axis` may count from the end. Throws Error(invalid_model) if the shapes do not fit. There must be at least one.
Joined joined(const std::vector<const Shape*>& shapes, std::int64_t axis);

// The same of shapes that are partly known; unknown extents where the result depends on which inputs are empty.
struct JoinedSym {
  SymShape shape;
  std::size_t axis = 0;
};
JoinedSym joined(const std::vector<const SymShape*>& shapes, std::int64_t axis);

}  // namespace sdx::ops
