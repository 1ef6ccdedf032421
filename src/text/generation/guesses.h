#pragma once
// Which tokens may come next: guesses that a model checks all at once.

#include <memory>
#include <sdx/text.hpp>
#include <span>
#include <unordered_map>
#include <vector>

namespace sdx::text {

class Guesser {
 public:
  virtual ~Guesser() = default;
  // At most `most` tokens behind `text`. It is what it was at the last call and more, or a rewound part of that and more.
  virtual std::vector<TokenId> guess(std::span<const TokenId> text, std::size_t most) = 0;
};

// What followed the last three tokens, or two, where they stood last.
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
