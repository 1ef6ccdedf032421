#pragma once
// Col2Im: attributes.

#include "ops/signature.h"

namespace sdx::ops {

struct Col2ImAttrs {
  std::optional<IntList> strides, dilations, pads;

  void fields(auto& f) {
    f("strides", strides);
    f("dilations", dilations);
    f("pads", pads);
  }
};

}  // namespace sdx::ops
