#include <algorithm>

#include "base/error.h"
#include "text/tokenizer/load/load.h"
#include "text/tokenizer/load/pieces.h"
#include "text/tokenizer/load/split_expressions.h"
#include "text/tokenizer/model/bpe.h"
#include "text/utf8.h"

namespace sdx::text {
namespace {

struct Source {
  const GgufFile& file;
  std::vector<std::string_view> tokens;
  std::vector<double> types;

  PieceType type(std::size_t i) const {
    const double t = i < types.size() ? types[i] : 1;
    return t >= 1 && t <= 6 ? static_cast<PieceType>(static_cast<int>(t)) : PieceType::normal;
  }
  std::optional<std::uint32_t> id(const char* key) const {
    const auto value = file.whole(key);
    return value && *value < tokens.size() ? std::optional(static_cast<std::uint32_t>(*value)) : std::nullopt;
  }
  std::optional<std::string> token(const char* key) const {
    const auto i = id(key);
    return i ? std::optional(std::string(tokens[*i])) : std::nullopt;
  }
};

Source read_source(const GgufFile& file) {
  Source s{file, {}, {}};
  auto tokens = file.texts("tokenizer.ggml.tokens");
  if (!tokens || tokens->empty())
    fail(ErrorCode::invalid_model, "the GGUF file has no vocabulary: 'tokenizer.ggml.tokens' is missing or empty");
  s.tokens = std::move(*tokens);
  for (std::size_t i = 0; i < s.tokens.size(); ++i) {
    if (valid_utf8(s.tokens[i]) != s.tokens[i].size())
      fail(ErrorCode::invalid_model, "token {} of the GGUF file is not UTF-8", i);
  }
  if (auto types = file.numbers("tokenizer.ggml.token_type")) s.types = std::move(*types);
  return s;
}

void set_special(const Source& s, Core& core) {
  core.special.bos = s.token("tokenizer.ggml.bos_token_id");
  core.special.eos = s.token("tokenizer.ggml.eos_token_id");
  core.special.unk = s.token("tokenizer.ggml.unknown_token_id");
  core.special.sep = s.token("tokenizer.ggml.seperator_token_id");
  core.special.pad = s.token("tokenizer.ggml.padding_token_id");
  core.special.cls = s.token("tokenizer.ggml.cls_token_id");
  core.special.mask = s.token("tokenizer.ggml.mask_token_id");
}

std::shared_ptr<Core> pieces(const Source& s, bool unigram) {
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
  auto core = core_of_pieces(std::move(v));
  set_special(s, *core);
  return core;
}

void add_tokens(const Source& s, Core& core) {
  for (std::size_t i = 0; i < s.tokens.size(); ++i) {
    const PieceType type = s.type(i);
    if (s.tokens[i].empty() || (type != PieceType::control && type != PieceType::user_defined && type != PieceType::unknown))
      continue;
    AddedToken token;
    token.content = std::string(s.tokens[i]);
    token.special = type != PieceType::user_defined;
    token.normalized = false;
    core.added.put(static_cast<std::uint32_t>(i), std::move(token));
  }
  core.added.build({});
}

std::shared_ptr<Core> byte_level(const Source& s) {
  Vocabulary vocabulary;
  for (std::size_t i = 0; i < s.tokens.size(); ++i) vocabulary.add(s.tokens[i], static_cast<std::uint32_t>(i));
  vocabulary.finish();
  const auto lines = s.file.texts("tokenizer.ggml.merges");
  if (!lines) fail(ErrorCode::invalid_model, "the GGUF file has no merges: 'tokenizer.ggml.merges' is missing");
  std::vector<Bpe::TextPair> merges;
  for (const std::string_view line : *lines) {
    const std::size_t space = line.find(' ', 1);
    if (space == std::string_view::npos)
      fail(ErrorCode::invalid_model, "the merge '{}' of the GGUF file is not two tokens with a space between", line);
    merges.push_back({line.substr(0, space), line.substr(space + 1)});
  }
  const SplitExpressions& split = split_expressions(s.file.text("tokenizer.ggml.pre").value_or("default"));
  BpeOptions options;
  options.ignore_merges = split.ignore_merges;
  auto core = std::make_shared<Core>();
  core->model = std::make_unique<Bpe>(std::move(vocabulary), merges, std::move(options));
  for (const std::string& expression : split.expressions) {
    PreTokenizerStep step;
    step.kind = PreTokenizerStep::Kind::split;
    step.pattern = Pattern::regex(expression);
    core->pre_tokenizer.push_back(std::move(step));
  }
  PreTokenizerStep bytes;
  bytes.kind = PreTokenizerStep::Kind::byte_level;
  bytes.add_prefix_space = s.file.truth("tokenizer.ggml.add_space_prefix").value_or(false);
  bytes.use_regex = false;
  core->pre_tokenizer.push_back(bytes);
  core->decoder.resize(1);
  core->decoder[0].kind = DecoderStep::Kind::byte_level;
  core->has_decoder = true;
  add_tokens(s, *core);
  set_special(s, *core);
  const bool bos = s.file.truth("tokenizer.ggml.add_bos_token").value_or(split.add_bos);
  const bool eos = s.file.truth("tokenizer.ggml.add_eos_token").value_or(false);
  add_begin_and_end(*core, bos ? s.id("tokenizer.ggml.bos_token_id") : std::nullopt,
                    eos ? s.id("tokenizer.ggml.eos_token_id") : std::nullopt);
  core->finish();
  return core;
}

// GGUF marks the beginnings of words where vocab.txt marks what continues them.
std::shared_ptr<Core> wordpiece(const Source& s) {
  Vocabulary vocabulary;
  constexpr std::string_view mark = "▁";
  for (std::size_t i = 0; i < s.tokens.size(); ++i) {
    const std::string_view token = s.tokens[i];
    std::string text = token.starts_with(mark)          ? std::string(token.substr(mark.size()))
                       : s.type(i) == PieceType::normal ? "##" + std::string(token)
                                                        : std::string(token);
    vocabulary.add(text, static_cast<std::uint32_t>(i));
  }
  vocabulary.finish();
  WordPieceSettings settings;
  settings.unk = s.token("tokenizer.ggml.unknown_token_id").value_or("[UNK]");
  settings.cls = s.token("tokenizer.ggml.cls_token_id").value_or(s.token("tokenizer.ggml.bos_token_id").value_or("[CLS]"));
  settings.sep = s.token("tokenizer.ggml.seperator_token_id").value_or(s.token("tokenizer.ggml.eos_token_id").value_or("[SEP]"));
  auto core = core_of_wordpiece(std::move(vocabulary), settings);
  set_special(s, *core);
  return core;
}

}  // namespace

std::shared_ptr<Core> core_of_gguf(const GgufFile& file) {
  const auto model = file.text("tokenizer.ggml.model");
  if (!model) fail(ErrorCode::invalid_model, "the GGUF file has no tokenizer: 'tokenizer.ggml.model' is missing");
  const Source source = read_source(file);
  if (*model == "llama") return pieces(source, false);
  if (*model == "t5") return pieces(source, true);
  if (*model == "gpt2") return byte_level(source);
  if (*model == "bert") return wordpiece(source);
  fail(ErrorCode::not_implemented, "the GGUF file's tokenizer is of the kind '{}'; known are llama, gpt2, bert and t5", *model);
}

}  // namespace sdx::text
