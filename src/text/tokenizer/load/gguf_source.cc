#include "text/tokenizer/load/gguf_source.h"

#include <algorithm>

#include "base/error.h"
#include "base/text/utf8.h"
#include "base/words.h"

namespace sdx::text {
namespace {

// Nothing but chats has such marks.
constexpr std::string_view kTurnEnds =
    "<|eot_id|> <|eom_id|> <|eot|> <|eom|> <|im_end|> <|end|> <|end_of_turn|> <end_of_turn> <turn|> <end_of_utterance> "
    "<|endofturn|> [|endofturn|] <|END_OF_TURN_TOKEN|> <|role_end|> <|message_end|> <|return|> <|call|> <|endoftext|> "
    "<|end_of_text|> <｜end▁of▁sentence｜> <seed:eos>";
// Ends where they are control tokens; a piece of source code or markup may read the same.
constexpr std::string_view kTextEnds =
    "</s> <eos> [EOS] <EOT> _<EOT> [EOT] <eot> <|EOT|> <|eos|> <|im_end> <|endofsentence|> [e~[";

}  // namespace

PieceType GgufSource::type(std::size_t i) const {
  const double t = i < types.size() ? types[i] : 1;
  const PieceType given = t >= 1 && t <= 6 ? static_cast<PieceType>(static_cast<int>(t)) : PieceType::normal;
  const bool text = given == PieceType::normal || given == PieceType::user_defined;
  return text && has_word(kTurnEnds, tokens[i]) ? PieceType::control : given;
}

std::optional<std::uint32_t> GgufSource::id(const char* key) const {
  const auto value = file.whole(key);
  return value && *value < tokens.size() ? std::optional(static_cast<std::uint32_t>(*value)) : std::nullopt;
}

std::optional<std::string> GgufSource::token(const char* key) const {
  const auto i = id(key);
  return i ? std::optional(std::string(tokens[*i])) : std::nullopt;
}

SpecialTokens GgufSource::special() const {
  SpecialTokens s;
  s.bos = token("tokenizer.ggml.bos_token_id");
  s.eos = token("tokenizer.ggml.eos_token_id");
  s.unk = token("tokenizer.ggml.unknown_token_id");
  s.sep = token("tokenizer.ggml.seperator_token_id");
  s.pad = token("tokenizer.ggml.padding_token_id");
  s.cls = token("tokenizer.ggml.cls_token_id");
  s.mask = token("tokenizer.ggml.mask_token_id");
  return s;
}

GgufSource read_gguf_source(const GgufFile& file) {
  GgufSource s{file, {}, {}};
  auto tokens = file.texts("tokenizer.ggml.tokens");
  if (!tokens || tokens->empty())
    fail(ErrorCode::invalid_model, "the GGUF file has no vocabulary: 'tokenizer.ggml.tokens' is missing or empty");
  s.tokens = std::move(*tokens);
  for (std::size_t i = 0; i < s.tokens.size(); ++i) {
    if (!is_utf8(s.tokens[i])) fail(ErrorCode::invalid_model, "token {} of the GGUF file is not UTF-8", i);
  }
  if (auto types = file.numbers("tokenizer.ggml.token_type")) s.types = std::move(*types);
  return s;
}

std::vector<std::uint32_t> end_tokens_of(const GgufSource& s) {
  std::vector<std::uint32_t> ends;
  bool returns = false, calls = false;
  for (std::size_t i = 0; i < s.tokens.size(); ++i) {
    const std::string_view token = s.tokens[i];
    const bool bracket = !token.empty() && (token[0] == '<' || token[0] == '[' || token[0] == '_');
    if (!bracket || s.type(i) != PieceType::control || !(has_word(kTurnEnds, token) || has_word(kTextEnds, token))) continue;
    returns |= token == "<|return|>";
    calls |= token == "<|call|>";
    ends.push_back(static_cast<std::uint32_t>(i));
  }
  // Harmony's answers have several messages: <|end|> is between them.
  if (returns && calls) std::erase_if(ends, [&](std::uint32_t id) { return s.tokens[id] == "<|end|>"; });
  return ends;
}

PieceVocabulary pieces_of(const GgufSource& s, bool unigram) {
  PieceVocabulary v;
  v.unigram = unigram;
  const auto scores = s.file.numbers("tokenizer.ggml.scores");
  for (std::size_t i = 0; i < s.tokens.size(); ++i) {
    const double score = scores && i < scores->size() ? (*scores)[i] : 0;
    v.pieces.push_back({s.tokens[i], static_cast<float>(score), s.type(i)});
  }
  v.byte_fallback = std::any_of(v.pieces.begin(), v.pieces.end(), [](const ScoredPiece& p) { return p.type == PieceType::byte; });
  v.rules.add_dummy_prefix = s.file.truth("tokenizer.ggml.add_space_prefix").value_or(true);
  v.rules.remove_extra_whitespaces = s.file.truth("tokenizer.ggml.remove_extra_whitespaces").value_or(false);
  if (const auto charsmap = s.file.bytes("tokenizer.ggml.precompiled_charsmap")) v.charsmap = std::string(*charsmap);
  v.unk = s.id("tokenizer.ggml.unknown_token_id");
  v.bos = s.id("tokenizer.ggml.bos_token_id");
  v.eos = s.id("tokenizer.ggml.eos_token_id");
  v.add_bos = s.file.truth("tokenizer.ggml.add_bos_token").value_or(!unigram);
  v.add_eos = s.file.truth("tokenizer.ggml.add_eos_token").value_or(unigram);
  return v;
}

ByteLevelSource byte_level_of(const GgufSource& s) {
  ByteLevelSource out;
  const auto lines = s.file.texts("tokenizer.ggml.merges");
  if (!lines) fail(ErrorCode::invalid_model, "the GGUF file has no merges: 'tokenizer.ggml.merges' is missing");
  for (const std::string_view line : *lines) {
    const std::size_t space = line.find(' ', 1);
    if (space == std::string_view::npos)
      fail(ErrorCode::invalid_model, "the merge '{}' of the GGUF file is not two tokens with a space between", line);
    out.merges.push_back({line.substr(0, space), line.substr(space + 1)});
  }
  out.split = &split_expressions(s.file.text("tokenizer.ggml.pre").value_or("default"));
  out.add_prefix_space = s.file.truth("tokenizer.ggml.add_space_prefix").value_or(false);
  if (s.file.truth("tokenizer.ggml.add_bos_token").value_or(out.split->add_bos)) out.bos = s.id("tokenizer.ggml.bos_token_id");
  if (s.file.truth("tokenizer.ggml.add_eos_token").value_or(false)) out.eos = s.id("tokenizer.ggml.eos_token_id");
  return out;
}

std::vector<std::pair<std::uint32_t, AddedToken>> added_tokens_of(const GgufSource& s) {
  std::vector<std::pair<std::uint32_t, AddedToken>> out;
  for (std::size_t i = 0; i < s.tokens.size(); ++i) {
    const PieceType type = s.type(i);
    if (s.tokens[i].empty() || (type != PieceType::control && type != PieceType::user_defined && type != PieceType::unknown))
      continue;
    AddedToken token;
    token.content = std::string(s.tokens[i]);
    token.special = type != PieceType::user_defined;
    token.normalized = false;
    out.emplace_back(static_cast<std::uint32_t>(i), std::move(token));
  }
  return out;
}

}  // namespace sdx::text
