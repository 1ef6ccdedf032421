#pragma once
// Log probabilities of a prompt's own tokens, which engines do not give.

#include <atomic>
#include <functional>
#include <mutex>
#include <vector>

#include <sdx/text.hpp>

#include "serve/openai/completion_answer.h"

namespace sdx::serve::openai {

// A line of requests for log probabilities of a prompt. One computes at a time, since logits take `vocabulary` floats for each
// token.
struct Line {
  std::timed_mutex first;
  std::atomic<int> length{0};
};

// Waits for the first place in the line, and holds it. Throws ApiError (503, overloaded) if too many wait already, and
// Error(cancelled) if `gone`, which is called now and then, returns true. Used by the thread that made it.
class Turn {
 public:
  Turn(Line& line, const std::function<bool()>& gone);
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Line& line_;
};

// Fills `tokens` and `top` (the `count` likeliest) of `to`. Computes the prompt in parts on the calling thread, which should have
// its Turn. `gone`, asked between parts, ends it with Error(cancelled). Throws Error(invalid_argument) for a token that the model
// does not have.
void add_prompt_logprobs(Echo& to, const LanguageModel& model, const std::vector<TokenId>& prompt, int count,
                         const std::function<bool()>& gone);

}  // namespace sdx::serve::openai
