#pragma once
// Which tokens may come next in Whisper's texts.

#include <span>
#include <vector>

#include "speech/whisper/settings.h"

namespace sdx::speech {

// Sets the logits of tokens that may not follow to -infinity: those that the files name, and with `timestamps` those that break
// the order of times: a time first, then text, then pairs of times, none before an earlier one. `answer`: the tokens so far,
// without the prompt.
void apply_rules(const WhisperSettings& settings, bool timestamps, std::span<const TokenId> answer, std::span<float> logits);

// log(sum(exp(logits))).
double log_sum(std::span<const float> logits);

}  // namespace sdx::speech
