#include "base/error.h"
#include "base/words.h"
#include "tensor/gguf/encoder_names.h"
#include "text/tokenizer/load/gguf_source.h"
#include "text/tokenizer/load/load.h"

namespace sdx::text {
namespace {

// As transformers' classes of these encoders pair texts: ModernBERT's by one token, those of RoBERTa and its kin by two.
PairForm pair_form(const GgufSource& s) {
  const std::string_view architecture = s.file.text("general.architecture").value_or("");
  if (architecture == "modern-bert") return PairForm::one_end;
  return has_word(kEncoderArchitectures, architecture) ? PairForm::two_ends : PairForm::alike;
}

std::shared_ptr<TokenizerPipeline> pieces(const GgufSource& s, bool unigram) {
  PieceVocabulary vocabulary = pieces_of(s, unigram);
  vocabulary.pair = pair_form(s);
  auto pipeline = pipeline_of_pieces(std::move(vocabulary));
  pipeline->special = s.special();
  return pipeline;
}

std::shared_ptr<TokenizerPipeline> byte_level(const GgufSource& s) {
  Vocabulary vocabulary;
  for (std::size_t i = 0; i < s.tokens.size(); ++i) vocabulary.add(s.tokens[i], static_cast<std::uint32_t>(i));
  vocabulary.finish();
  const ByteLevelSource source = byte_level_of(s);
  BpeOptions options;
  options.ignore_merges = source.split->ignore_merges;
  auto pipeline = std::make_shared<TokenizerPipeline>();
  pipeline->model = std::make_unique<Bpe>(std::move(vocabulary), source.merges, std::move(options));
  for (const std::string& expression : source.split->expressions) {
    PreTokenizerStep step;
    step.kind = PreTokenizerStep::Kind::split;
    step.pattern = Pattern::regex(expression);
    pipeline->pre_tokenizer.push_back(std::move(step));
  }
  PreTokenizerStep bytes;
  bytes.kind = PreTokenizerStep::Kind::byte_level;
  bytes.add_prefix_space = source.add_prefix_space;
  bytes.use_regex = false;
  pipeline->pre_tokenizer.push_back(bytes);
  pipeline->decoder.resize(1);
  pipeline->decoder[0].kind = DecoderStep::Kind::byte_level;
  pipeline->has_decoder = true;
  for (auto& [id, token] : added_tokens_of(s)) pipeline->added.put(id, std::move(token));
  pipeline->added.build({});
  pipeline->special = s.special();
  add_begin_and_end(*pipeline, source.bos, source.eos, pair_form(s));
  pipeline->finish();
  return pipeline;
}

// GGUF marks the beginnings of words where vocab.txt marks what continues them.
std::shared_ptr<TokenizerPipeline> wordpiece(const GgufSource& s) {
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
  auto pipeline = pipeline_of_wordpiece(std::move(vocabulary), settings);
  pipeline->special = s.special();
  return pipeline;
}

}  // namespace

std::shared_ptr<TokenizerPipeline> pipeline_of_gguf(const GgufFile& file) {
  const auto model = file.text("tokenizer.ggml.model");
  if (!model) fail(ErrorCode::invalid_model, "the GGUF file has no tokenizer: 'tokenizer.ggml.model' is missing");
  const GgufSource source = read_gguf_source(file);
  if (*model == "llama") return pieces(source, false);
  if (*model == "t5") return pieces(source, true);
  if (*model == "gpt2") return byte_level(source);
  if (*model == "bert") return wordpiece(source);
  fail(ErrorCode::not_implemented, "the GGUF file's tokenizer is of the kind '{}'; known: llama, gpt2, bert, t5", *model);
}

}  // namespace sdx::text
