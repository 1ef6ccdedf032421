#include "text/model/constraint.h"

#include "base/error.h"
#include "text/tokenizer/token_bytes.h"

namespace sdx {

TokenMask::~TokenMask() = default;

namespace text {
namespace {

class GrammarMask final : public TokenMask {
 public:
  GrammarMask(const grammar::Grammar& grammar, std::shared_ptr<const grammar::Vocabulary> vocabulary, std::string_view begun)
      : matcher_(grammar, std::move(vocabulary)) {
    if (!begun.empty() && !matcher_.accept_text(begun)) {
      fail(ErrorCode::invalid_argument, "the beginning of the answer that was given does not fit what the answer must be");
    }
  }
  std::span<const std::uint64_t> allowed() override { return matcher_.mask(); }
  bool accept(TokenId id) override { return matcher_.accept(static_cast<std::int32_t>(id)); }
  bool complete() const override { return matcher_.is_complete(); }

 private:
  grammar::Matcher matcher_;
};

}  // namespace

std::shared_ptr<const grammar::Vocabulary> grammar_vocabulary(const Tokenizer& tokenizer, std::span<const TokenId> ends,
                                                              std::int64_t vocabulary, const std::unordered_set<TokenId>& marks) {
  std::vector<std::string> bytes = token_bytes(tokenizer, vocabulary);
  for (const TokenId id : marks) {
    if (id < bytes.size()) bytes[id] = tokenizer.id_to_token(id).value_or("");
  }
  if (vocabulary > kMostTokens) {
    fail(ErrorCode::invalid_model, "outputs of a model with {} logits cannot be constrained; at most {} are supported",
         vocabulary, kMostTokens);
  }
  if (vocabulary > 0) bytes.resize(static_cast<std::size_t>(vocabulary));
  std::vector<std::int32_t> known;
  for (const TokenId id : ends) {
    if (id >= bytes.size()) continue;
    bytes[id].clear();
    known.push_back(static_cast<std::int32_t>(id));
  }
  return std::make_shared<const grammar::Vocabulary>(bytes, std::move(known));
}

TokenMaskMaker mask_maker(grammar::Grammar grammar, std::shared_ptr<const grammar::Vocabulary> vocabulary, std::string begun) {
  if (!begun.empty()) GrammarMask(grammar, vocabulary, begun);  // throws where it does not fit
  return [grammar = std::move(grammar), vocabulary = std::move(vocabulary),
          begun = std::move(begun)]() -> std::unique_ptr<TokenMask> {
    return std::make_unique<GrammarMask>(grammar, vocabulary, begun);
  };
}

}  // namespace text
}  // namespace sdx
