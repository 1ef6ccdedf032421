#pragma once
// com.microsoft GroupNorm, SkipGroupNorm: attributes.

#include "ops/signature.h"

namespace sdx::ops {

struct ImageGroupNormAttrs {
  std::int64_t activation = 0;
  bool channels_last = true;
  float epsilon = 1e-5F;
  std::int64_t groups = 0;

  void fields(auto& f) {
    f("activation", activation);
    f("channels_last", channels_last);
    f("epsilon", epsilon);
    f.required("groups", groups);
  }
};

}  // namespace sdx::ops
