#pragma once
// com.microsoft BiasSoftmax: attributes.

#include "ops/signature.h"

namespace sdx::ops {

struct BiasSoftmaxAttrs {
  std::int64_t axis = 1;
  std::int64_t is_inner_broadcast;

  void fields(auto& f) {
    f("axis", axis);
    f.required("is_inner_broadcast", is_inner_broadcast);
  }
};

}  // namespace sdx::ops
