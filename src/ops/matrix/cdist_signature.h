#pragma once
// com.microsoft CDist: attributes.

#include "ops/signature.h"

namespace sdx::ops {

struct CDistAttrs {
  std::string_view metric = "sqeuclidean";

  void fields(auto& f) { f("metric", metric); }
};

}  // namespace sdx::ops
