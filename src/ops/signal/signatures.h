#pragma once
// DFT and STFT: attributes.

#include "ops/signature.h"

namespace sdx::ops {

struct DftAttrs {
  bool inverse = false, onesided = false;
  std::int64_t axis = 1;  // before opset 20; an input since, -2 where it is left out

  void fields(auto& f, const OpId& op) {
    f("inverse", inverse);
    f("onesided", onesided);
    if (op.version < 20) {
      f("axis", axis);
    } else {
      axis = -2;
    }
  }
};

struct StftAttrs {
  bool onesided = true;

  void fields(auto& f) { f("onesided", onesided); }
};

}  // namespace sdx::ops
