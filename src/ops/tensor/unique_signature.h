#pragma once
// Unique: attributes.

#include "ops/signature.h"

namespace sdx::ops {

struct UniqueAttrs {
  std::optional<std::int64_t> axis;
  bool sorted = true;

  void fields(auto& f) {
    f("axis", axis);
    f("sorted", sorted);
  }
};

}  // namespace sdx::ops
