#pragma once
// Dropout: attributes.

#include "ops/signature.h"

namespace sdx::ops {

// Dropout, com.microsoft BiasDropout.
struct DropoutAttrs {
  float ratio = 0.5F;                   // before opset 12; an input since
  std::optional<std::int64_t> is_test;  // before opset 7

  // Whether the node says that it trains. Files of opset 1 often omit that, meaning inference.
  bool says_training() const { return is_test && *is_test == 0; }
  void fields(auto& f, const OpId& op) {
    if (op.microsoft() || op.version >= 12) return f.unread("seed", AttrKind::i);
    f("ratio", ratio);
    f("is_test", is_test);
    f.unread("consumed_inputs", AttrKind::ints);
  }
};

}  // namespace sdx::ops
