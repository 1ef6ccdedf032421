#pragma once
// Sequences from and to tensors: attributes.

#include "ops/signature.h"

namespace sdx::ops {

struct ConcatFromSequenceAttrs {
  std::int64_t axis = 0;
  bool new_axis = false;

  void fields(auto& f) {
    f.required("axis", axis);
    f("new_axis", new_axis);
  }
};

struct SplitToSequenceAttrs {
  std::int64_t axis = 0;
  bool keepdims = true;

  void fields(auto& f) {
    f("axis", axis);
    f("keepdims", keepdims);
  }
};

}  // namespace sdx::ops
