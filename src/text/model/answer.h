#pragma once
// One answer of a language model as it grows: from logits to the next token, its text, and whether it is the last.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sdx/text.hpp>

#include "text/model/answer_text.h"
#include "text/model/sampler.h"

namespace sdx::text {

// Throws Error(invalid_argument) naming the setting that is out of range.
void check_settings(const GenerationSettings& settings, const LanguageModelInfo& info);

// Throws Error(invalid_argument) naming a setting that one text alone can have, not one of several that share steps.
void check_alone(const GenerationSettings& settings);

// Not thread-safe, but not bound to a thread either.
class Answer {
 public:
  // `index`: the number of the answer among n. `prompt`: the tokens before it. `most_tokens`: its limit. `settings` and
  // `on_token` must outlive it.
  Answer(const LanguageModelInfo& info, const GenerationSettings& settings, const OnToken& on_token, int index,
         std::span<const TokenId> prompt, std::int64_t most_tokens);

  // Chooses the next token; changes the logits. Touches nothing that answers share: several may choose at once.
  void choose(std::span<float> logits);
  // Takes the chosen token into the answer, and calls on_token, which may end it.
  TokenId tell();
  // Both.
  TokenId next(std::span<float> logits) {
    choose(logits);
    return tell();
  }

  bool ended() const { return !choice_.finish_reason.empty(); }
  // Ends the answer from outside, without calling on_token.
  void end(const std::string& reason);

  int index() const { return index_; }
  const std::vector<TokenId>& tokens() const { return choice_.tokens; }
  Choice take_choice();  // once, when it has ended

 private:
  TokenId sample(std::span<float> logits, std::span<const TokenId> barred);

  const GenerationSettings& settings_;
  const OnToken& on_token_;
  int index_;
  std::int64_t most_tokens_;
  Sampler sampler_;
  std::unique_ptr<TokenMask> mask_;
  AnswerText text_;
  std::vector<TokenId> ends_;
  std::vector<float> original_;
  GeneratedToken token_;
  Choice choice_;
};

}  // namespace sdx::text
