#pragma once
// Log probabilities of a prompt's own tokens, which engines do not give.

#include <functional>
#include <mutex>
#include <vector>

#include <sdx/text.hpp>

#include "serve/openai/completion_answer.h"

namespace sdx::serve::openai {

// Fills `tokens` and `top` (the `count` likeliest) of `to`. Computes the prompt in parts on the calling thread, `one_at_a_time`
// for all callers: their logits take `vocabulary` floats for each token. `gone`, asked between parts, ends it with
// Error(cancelled).
void add_prompt_logprobs(Echo& to, const LanguageModel& model, const std::vector<TokenId>& prompt, int count,
                         std::mutex& one_at_a_time, const std::function<bool()>& gone);

}  // namespace sdx::serve::openai
