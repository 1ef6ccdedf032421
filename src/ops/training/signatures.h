#pragma once
// Losses: attributes.

#include "ops/signature.h"

namespace sdx::ops {

// NegativeLogLikelihoodLoss, SoftmaxCrossEntropyLoss.
struct LossAttrs {
  std::optional<std::int64_t> ignore_index;  // a label that does not count
  std::string_view reduction = "mean";

  void fields(auto& f) {
    f("ignore_index", ignore_index);
    f("reduction", reduction);
  }
};

}  // namespace sdx::ops
