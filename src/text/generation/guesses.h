#pragma once
// Guesses the next tokens, which a model then checks all at once.

#include <memory>
#include <sdx/text.hpp>
#include <span>
#include <unordered_map>
#include <vector>

namespace sdx::text {

class Guesser {
 public:
  virtual ~Guesser() = default;
  // At most `most` tokens that may follow `text`. The text continues that of the previous call, or a rewound part of it.
  virtual std::vector<TokenId> guess(std::span<const TokenId> text, std::size_t most) = 0;
};

// Guesses the tokens that followed the previous occurrence of the last three tokens, or of the last two.
class LookupGuesser final : public Guesser {
 public:
  explicit LookupGuesser(std::size_t tokens) : tokens_(tokens) {}
  std::vector<TokenId> guess(std::span<const TokenId> text, std::size_t most) override;

 private:
  std::size_t tokens_;
  std::vector<TokenId> known_;                             // the text whose places are in the tables
  std::unordered_map<std::uint64_t, std::size_t> places_;  // of three and of two tokens: what comes behind them
};

// Null: the settings ask for no guesses. Throws Error(invalid_argument) for a draft model with another vocabulary.
std::unique_ptr<Guesser> make_guesser(const GenerationSettings& settings, const LanguageModel& model);

}  // namespace sdx::text
