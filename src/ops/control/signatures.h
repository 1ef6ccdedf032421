#pragma once
// Gradient of ai.onnx.preview.training: attributes.

#include "ops/signature.h"

namespace sdx::ops {

struct GradientAttrs {
  StringList xs;       // names of what is differentiated by
  StringList zs;       // of what else is fed
  std::string_view y;  // of what is differentiated

  void fields(auto& f) {
    f.required("xs", xs);
    f("zs", zs);
    f.required("y", y);
  }
};

}  // namespace sdx::ops
