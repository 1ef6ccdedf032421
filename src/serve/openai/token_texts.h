#pragma once
// The names of tokens in log probabilities: their text, and their bytes.

#include <string>
#include <string_view>
#include <vector>

#include <sdx/text.hpp>

namespace sdx::serve::openai {

// Does not change once it is made; shared by all requests of a model.
class TokenTexts {
 public:
  explicit TokenTexts(const Tokenizer& tokenizer);

  // The text that the token adds; nothing for special tokens.
  std::string_view bytes(TokenId id) const;
  // The form in OpenAI's interface: tokens that are not whole characters as \xe2\x80; special ones by their name.
  std::string shown(TokenId id) const;

  // {"token": "…", "logprob": -0.5, "bytes": [226, 128]}, without the closing brace.
  void append_logprob(std::string& out, const TokenLogprob& token) const;
  // The same with "top_logprobs", whole.
  void append_logprobs(std::string& out, const TokenLogprob& token, const std::vector<TokenLogprob>& top) const;

 private:
  std::string_view name(TokenId id) const;

  std::vector<std::string> bytes_;
  std::vector<std::string> names_;  // of tokens without bytes
};

// A natural logarithm as JSON; a probability of 0 gets OpenAI's -9999.
void append_logarithm(std::string& out, float value);

}  // namespace sdx::serve::openai
