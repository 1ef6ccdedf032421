// vocab.txt, and vocab.json with merges.txt.

#include "base/error.h"
#include "base/text/utf8.h"
#include "text/tokenizer/load/components.h"
#include "text/tokenizer/load/load.h"
#include "text/tokenizer/model/bpe.h"
#include "text/tokenizer/model/word_models.h"
#include "text/unicode/unicode.h"

namespace sdx::text {
namespace {

// f(line) without its end.
template <class F>
void each_line(std::string_view text, const F& f) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    f(line);
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

std::string_view without_space_at_end(std::string_view line) {
  while (!line.empty()) {
    std::size_t before = line.size() - 1;
    while (before > 0 && continues_char(line[before])) --before;
    std::size_t at = before;
    if (!is_white_space(next_char(line, at))) break;
    line = line.substr(0, before);
  }
  return line;
}

void add_special_tokens(TokenizerPipeline& pipeline, std::initializer_list<std::string> tokens) {
  std::vector<AddedToken> added;
  for (const std::string& content : tokens) {
    if (!pipeline.model->vocabulary().contains(content)) continue;
    AddedToken token;
    token.content = content;
    token.special = true;
    token.normalized = false;
    added.push_back(std::move(token));
  }
  pipeline.added.add(added, pipeline.model->vocabulary(), pipeline.normalizer);
}

}  // namespace

std::shared_ptr<TokenizerPipeline> pipeline_of_wordpiece(Vocabulary vocabulary, const WordPieceSettings& settings) {
  auto pipeline = std::make_shared<TokenizerPipeline>();
  pipeline->model = std::make_unique<WordPiece>(std::move(vocabulary), settings.unk, "##", 100);
  NormalizerStep normalizer;
  normalizer.kind = NormalizerStep::Kind::bert;
  normalizer.chinese_chars = settings.chinese_chars;
  normalizer.lowercase = settings.lowercase;
  normalizer.accents = settings.accents.value_or(settings.lowercase);
  pipeline->normalizer = {normalizer};
  pipeline->pre_tokenizer.resize(1);
  pipeline->decoder.resize(1);
  pipeline->decoder[0].kind = DecoderStep::Kind::wordpiece;
  pipeline->decoder[0].text = "##";
  pipeline->has_decoder = true;
  add_special_tokens(*pipeline, {settings.unk, settings.cls, settings.sep, "[PAD]", "[MASK]"});
  const auto& tokens = pipeline->model->vocabulary();
  const auto cls = tokens.id(settings.cls), sep = tokens.id(settings.sep);
  if (cls && sep) {
    PostProcessorStep step;
    step.kind = PostProcessorStep::Kind::bert;
    step.cls = {settings.cls, *cls};
    step.sep = {settings.sep, *sep};
    pipeline->post_processor = {step};
    pipeline->has_post_processor = true;
    pipeline->special.cls = settings.cls;
    pipeline->special.sep = settings.sep;
  }
  pipeline->special.unk = settings.unk;
  if (tokens.contains("[PAD]")) pipeline->special.pad = "[PAD]";
  if (tokens.contains("[MASK]")) pipeline->special.mask = "[MASK]";
  pipeline->finish();
  return pipeline;
}

std::shared_ptr<TokenizerPipeline> pipeline_of_vocab_txt(std::string_view text, const WordPieceSettings& settings) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  if (const std::size_t valid = valid_utf8(text); valid != text.size())
    fail(ErrorCode::invalid_model, "vocab.txt is not UTF-8: byte {}", valid);
  Vocabulary vocabulary;
  std::uint32_t line_number = 0;
  each_line(text, [&](std::string_view line) { vocabulary.add(without_space_at_end(line), line_number++); });
  vocabulary.finish();
  if (!vocabulary.contains(settings.unk)) {
    fail(ErrorCode::invalid_model, "vocab.txt has {} lines, and none is the unknown token '{}': not a WordPiece vocabulary",
         line_number, settings.unk);
  }
  return pipeline_of_wordpiece(std::move(vocabulary), settings);
}

std::shared_ptr<TokenizerPipeline> pipeline_of_vocab_and_merges(std::string vocab_json, std::string_view merges_txt,
                                                                const ByteLevelSettings& settings) {
  const JsonDocument document(std::move(vocab_json));
  Vocabulary vocabulary = parse_vocabulary(Part(document.root(), "vocab.json"));
  if (const std::size_t valid = valid_utf8(merges_txt); valid != merges_txt.size())
    fail(ErrorCode::invalid_model, "merges.txt is not UTF-8: byte {}", valid);
  std::vector<Bpe::TextPair> merges;
  std::size_t number = 0;
  each_line(merges_txt, [&](std::string_view line) {
    ++number;
    if (line.empty() || (number == 1 && line.starts_with("#version"))) return;
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos) {
      fail(ErrorCode::invalid_model, "merges.txt, line {}: expected two tokens with a space between, not '{}'", number, line);
    }
    merges.push_back({line.substr(0, space), line.substr(space + 1)});
  });
  auto pipeline = std::make_shared<TokenizerPipeline>();
  BpeOptions options;
  if (settings.unk && vocabulary.contains(*settings.unk)) options.unk_token = settings.unk;
  pipeline->model = std::make_unique<Bpe>(std::move(vocabulary), merges, std::move(options));
  PreTokenizerStep step;
  step.kind = PreTokenizerStep::Kind::byte_level;
  step.add_prefix_space = settings.add_prefix_space;
  pipeline->pre_tokenizer = {step};
  pipeline->decoder.resize(1);
  pipeline->decoder[0].kind = DecoderStep::Kind::byte_level;
  pipeline->has_decoder = true;
  pipeline->special.unk = settings.unk;
  pipeline->added.build({});
  pipeline->finish();
  return pipeline;
}

}  // namespace sdx::text
