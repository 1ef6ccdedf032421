#include "text/generation/guesses.h"

#include <algorithm>

#include "base/error.h"
#include "text/generation/generation.h"
#include "text/model/sampler.h"
#include "text/tokenizer/token_bytes.h"

namespace sdx::text {
namespace {

// Different tokens may have the same number: the only effect is a wrong guess.
std::uint64_t number_of(std::span<const TokenId> tokens) {
  std::uint64_t n = tokens.size();
  for (const TokenId id : tokens) n = (n ^ id) * 0x9E3779B97F4A7C15ULL + (n >> 29);
  return n;
}

class DraftGuesser final : public Guesser {
 public:
  DraftGuesser(std::shared_ptr<const LanguageModel> model, std::size_t tokens, RunOptions run)
      : model_(std::move(model)), tokens_(tokens), run_(std::move(run)), state_(model_->new_state()) {}

  std::vector<TokenId> guess(std::span<const TokenId> text, std::size_t most) override {
    std::vector<TokenId> out;
    most = std::min(most, tokens_);
    const auto context = static_cast<std::size_t>(model_->info().context);
    if (most == 0 || text.empty() || (context > 0 && text.size() + most > context)) return out;
    const std::size_t common = keep_common(state_, text);
    Tensor logits = state_.append(text.subspan(common), false, run_);
    while (true) {
      out.push_back(largest(logits.values<float>()));
      if (out.size() == most) return out;
      logits = state_.append(std::span(&out.back(), 1), false, run_);
    }
  }

 private:
  std::shared_ptr<const LanguageModel> model_;
  std::size_t tokens_;
  RunOptions run_;
  TextState state_;
};

// The draft's tokens must mean the same: as many, and the same texts where both have a tokenizer.
void check_draft(const LanguageModel& draft, const LanguageModel& model) {
  if (draft.info().vocabulary != model.info().vocabulary) {
    fail(ErrorCode::invalid_argument, "the draft model has another vocabulary: {} tokens, the model has {}",
         draft.info().vocabulary, model.info().vocabulary);
  }
  if (draft.info().tokenizer == model.info().tokenizer) return;
  const auto words_of = [](const LanguageModel& m) -> const Tokenizer* {
    try {
      return &m.tokenizer();
    } catch (const Error&) {  // a network alone: its user has the tokens
      return nullptr;
    }
  };
  const Tokenizer *theirs = words_of(draft), *own = words_of(model);
  if (theirs == nullptr || own == nullptr) return;
  const std::int64_t vocabulary = model.info().vocabulary;
  const std::uint32_t count = std::max(token_count(*theirs, vocabulary), token_count(*own, vocabulary));
  for (std::uint32_t id = 0; id < count; ++id) {
    const auto a = theirs->id_to_token(id), b = own->id_to_token(id);
    if (a != b) {
      fail(ErrorCode::invalid_argument, "the draft model has another vocabulary: its token {} is '{}', the model's is '{}'", id,
           a.value_or(""), b.value_or(""));
    }
  }
}

}  // namespace

std::vector<TokenId> LookupGuesser::guess(std::span<const TokenId> text, std::size_t most) {
  most = std::min(most, tokens_);
  const bool goes_on = known_.size() <= text.size() && std::equal(known_.begin(), known_.end(), text.begin());
  if (!goes_on) {
    known_.clear();
    places_.clear();
  }
  // The end of the text is no match yet, because nothing follows it.
  for (std::size_t end = std::max<std::size_t>(known_.size(), 2); end < text.size(); ++end) {
    for (const std::size_t size : {std::size_t{2}, std::size_t{3}}) {
      if (end >= size) places_[number_of(text.subspan(end - size, size))] = end;
    }
  }
  known_.insert(known_.end(), text.begin() + static_cast<std::ptrdiff_t>(known_.size()), text.end());
  for (const std::size_t size : {std::size_t{3}, std::size_t{2}}) {
    if (text.size() <= size) continue;
    const auto at = places_.find(number_of(text.last(size)));
    if (at == places_.end()) continue;
    const std::span<const TokenId> after = text.subspan(at->second).first(std::min(most, text.size() - at->second));
    return {after.begin(), after.end()};
  }
  return {};
}

std::unique_ptr<Guesser> make_guesser(const GenerationSettings& settings, const LanguageModel& model) {
  if (settings.lookup > 0) return std::make_unique<LookupGuesser>(static_cast<std::size_t>(settings.lookup));
  if (!settings.draft) return nullptr;
  check_draft(*settings.draft, model);
  return std::make_unique<DraftGuesser>(settings.draft, static_cast<std::size_t>(settings.draft_tokens), settings.run);
}

}  // namespace sdx::text
