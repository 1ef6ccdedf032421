#pragma once
// The content of a TextState: tokens, and the decoder's state for them.

#include <memory>
#include <utility>
#include <vector>

#include "text/model/decoder.h"

namespace sdx::text {

struct TextBody {
  explicit TextBody(std::shared_ptr<const Decoder> decoder) : state(std::move(decoder)) {}
  explicit TextBody(DecoderState from) : state(std::move(from)) {}

  Tensor append(std::span<const TokenId> more, bool all_logits, const RunOptions& options) {
    Tensor logits = state.append(more, all_logits, options);
    tokens.insert(tokens.end(), more.begin(), more.end());
    return logits;
  }
  void rewind(std::size_t count) {
    state.rewind(static_cast<std::int64_t>(count));
    tokens.resize(count);
  }

  DecoderState state;
  std::vector<TokenId> tokens;
};

}  // namespace sdx::text
