#include "text/model/constraint.h"

#include "base/error.h"
#include "text/tokenizer/token_bytes.h"

namespace sdx {

TokenMask::~TokenMask() = default;

namespace text {
namespace {

class GrammarMask final : public TokenMask {
 public:
  GrammarMask(const grammar::Grammar& grammar, std::shared_ptr<const grammar::Vocabulary> vocabulary)
      : matcher_(grammar, std::move(vocabulary)) {}
  std::span<const std::uint64_t> allowed() override { return matcher_.mask(); }
  bool accept(TokenId id) override { return matcher_.accept(static_cast<std::int32_t>(id)); }
  bool complete() const override { return matcher_.is_complete(); }

 private:
  grammar::Matcher matcher_;
};

}  // namespace

grammar::Grammar read_grammar(OutputFormat format, std::string_view text) {
  switch (format) {
    case OutputFormat::json_schema: return grammar::Grammar::from_json_schema(text);
    case OutputFormat::gbnf: return grammar::Grammar::from_gbnf(text);
    case OutputFormat::regex: return grammar::Grammar::from_regex(text);
    case OutputFormat::json: return grammar::Grammar::any_json();
    case OutputFormat::json_object: return grammar::Grammar::json_object();
  }
  fail(ErrorCode::invalid_argument, "unknown output format: {}", static_cast<int>(format));
}

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

TokenMaskMaker mask_maker(grammar::Grammar grammar, std::shared_ptr<const grammar::Vocabulary> vocabulary) {
  return [grammar = std::move(grammar), vocabulary = std::move(vocabulary)]() -> std::unique_ptr<TokenMask> {
    return std::make_unique<GrammarMask>(grammar, vocabulary);
  };
}

}  // namespace text
}  // namespace sdx
