#pragma once
// One step of a paged decoder: new tokens of several texts at once.

#include <span>

#include "text/model/decoder.h"

namespace sdx::text {

struct StepPart {
  DecoderState* state = nullptr;  // of the same decoder and pool; each once
  std::span<const TokenId> tokens;
  enum class Logits { none, last, all } logits = Logits::last;
};

// float32 logits of all rows that are wanted, in the order of the parts; at least one row. Throws Error(out_of_memory) where the
// pool has no room. After an error all states are as they were.
Tensor run_together(std::span<const StepPart> parts, const RunOptions& options);

}  // namespace sdx::text
