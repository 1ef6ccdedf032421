#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <sdx/embedding.hpp>
#include <sdx/tokenizer.hpp>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text/utf8.h"
#include "text/embed/encoder.h"
#include "text/embed/folder.h"

namespace sdx {
namespace {

using text::EmbedFolder;
using text::EncodedBatch;
using text::Encoder;
using text::TokenizedText;
using text::TokenRange;

void check(const EmbedderOptions& options) {
  if (options.batch < 1 || options.batch > 4096)
    fail(ErrorCode::invalid_argument, "batch is 1 to 4096; received {}", options.batch);
  if (options.dimensions < 0) fail(ErrorCode::invalid_argument, "dimensions is 0 or more; received {}", options.dimensions);
  if (options.max_length < 0) fail(ErrorCode::invalid_argument, "max_length is 0 or more; received {}", options.max_length);
}

// The folder's tokenizer, which cuts at `max_length` and leaves padding to the batches.
Tokenizer tokenizer_of(const EmbedFolder& folder, int max_length) {
  std::optional<Truncation> truncation;
  if (max_length > 0) truncation = Truncation{.max_length = static_cast<std::size_t>(max_length)};
  return Tokenizer::load(folder.root).with_padding(std::nullopt).with_truncation(truncation);
}

std::int64_t padding_id(const Tokenizer& tokenizer) {
  const std::optional<std::string>& pad = tokenizer.special_tokens().pad;
  const auto id = tokenizer.token_to_id(pad ? *pad : "[PAD]");
  return id ? static_cast<std::int64_t>(*id) : 0;
}

TokenizedText tokens_of(const Encoding& encoding) {
  TokenizedText out;
  out.ids.assign(encoding.ids.begin(), encoding.ids.end());
  out.types.assign(encoding.type_ids.begin(), encoding.type_ids.end());
  return out;
}

// One row for each text, in the order of the texts.
std::span<const float> row_of(const EncodedBatch& batch, std::size_t row) {
  const std::span<const float> all = batch.values.values<float>();
  const std::size_t size = all.size() / batch.texts.size();
  return all.subspan(row * size, size);
}

}  // namespace

struct TextEmbedder::Impl {
  EmbedderOptions options;
  EmbedFolder folder;
  int max_length;
  Tokenizer tokenizer;
  Encoder encoder;
  bool renormalizes = false;  // what is left of vectors
  mutable std::atomic<std::size_t> tokens{0};

  Impl(EmbedderOptions given, EmbedFolder read)
      : options(std::move(given)),
        folder(std::move(read)),
        max_length(options.max_length > 0 ? options.max_length : folder.max_length),
        tokenizer(tokenizer_of(folder, max_length)),
        encoder(folder.model, options.session, 0, padding_id(tokenizer)) {
    if (!options.pooling.empty()) {
      folder.pooling.clear();
      for (const std::string& word : options.pooling) folder.pooling.push_back(text::parse_pooling(word));
    } else if (folder.pooling.empty()) {
      folder.pooling = {text::Pooling::mean};
    }
    const bool whole = encoder.rank() == 2;  // the graph pools by itself
    if (whole && !options.pooling.empty()) {
      fail(ErrorCode::invalid_argument, "the model returns one vector for each text: pooling cannot be chosen");
    }
    const auto normalizes = [](const text::Layer& layer) { return layer.kind == text::Layer::Kind::normalize; };
    const bool declared = std::any_of(folder.layers.begin(), folder.layers.end(), normalizes);
    if (whole) folder.layers.clear();  // and whatever follows
    std::erase_if(folder.layers, [&](const text::Layer& layer) { return options.normalize == false && normalizes(layer); });
    const bool normalize = options.normalize.value_or(declared || !folder.modules);
    if (normalize && (folder.layers.empty() || !normalizes(folder.layers.back()))) {
      folder.layers.push_back({.kind = text::Layer::Kind::normalize});
    }
    renormalizes = normalize && options.dimensions > 0;
  }

  const std::string& prompt_text(std::string_view name) const {
    static const std::string none;
    const std::string wanted(name.empty() ? std::string_view(folder.default_prompt) : name);
    if (wanted.empty()) return none;
    const auto at = folder.prompts.find(wanted);
    if (at != folder.prompts.end()) return at->second;
    std::vector<std::string> names;
    for (const auto& [key, text] : folder.prompts) names.push_back(key);
    fail(ErrorCode::invalid_argument, "the model has no prompt '{}'; it has {}", wanted, names.empty() ? "none" : join(names));
  }

  // Tokens that the prompt takes at the beginning of each text, where they do not count.
  std::int64_t left_out(const std::string& prompt) const {
    if (prompt.empty() || folder.include_prompt) return 0;
    const Encoding encoding = tokenizer.encode(prompt);
    std::size_t count = encoding.size();
    while (count > 0 && encoding.special_tokens_mask[count - 1] != 0) --count;
    return static_cast<std::int64_t>(count);
  }

  void shorten(std::vector<float>& vector) const {
    const auto wanted = static_cast<std::size_t>(options.dimensions);
    if (wanted > vector.size())
      fail(ErrorCode::invalid_argument, "{} dimensions are requested; the model's vectors have {}", wanted, vector.size());
    vector.resize(wanted);
    if (renormalizes) text::apply_layer({.kind = text::Layer::Kind::normalize}, vector);
  }

  std::vector<float> vector_of(const EncodedBatch& batch, std::size_t row, const TokenRange& range) const {
    const std::span<const float> values = row_of(batch, row);
    std::vector<float> out;
    if (encoder.rank() == 2) {
      out.assign(values.begin(), values.end());
    } else {
      const std::int64_t width = batch.values.dim(2);
      out.resize(folder.pooling.size() * static_cast<std::size_t>(width));
      text::pool(folder.pooling, values, width, range, out);
    }
    for (const text::Layer& layer : folder.layers) text::apply_layer(layer, out);
    if (options.dimensions > 0) shorten(out);
    return out;
  }
};

TextEmbedder TextEmbedder::load(const std::filesystem::path& model, const EmbedderOptions& options) {
  check(options);
  return TextEmbedder(std::make_unique<Impl>(options, text::read_embed_folder(model)));
}

Tensor TextEmbedder::embed(std::span<const std::string> texts, std::string_view prompt) const {
  const std::string& before = impl_->prompt_text(prompt);
  const std::int64_t skipped = impl_->left_out(before);
  std::vector<TokenizedText> tokenized;
  tokenized.reserve(texts.size());
  for (const std::string& text : texts) {
    tokenized.push_back(tokens_of(impl_->tokenizer.encode(repair_utf8(before + text))));
    impl_->tokens += tokenized.back().ids.size();
  }
  std::vector<std::vector<float>> vectors(texts.size());
  impl_->encoder.encode(tokenized, impl_->options.batch, [&](const EncodedBatch& batch) {
    for (std::size_t row = 0; row < batch.texts.size(); ++row) {
      const std::size_t text = batch.texts[row];
      const auto length = static_cast<std::int64_t>(tokenized[text].ids.size());
      vectors[text] = impl_->vector_of(batch, row, {std::min(skipped, length), std::max<std::int64_t>(0, length - skipped)});
    }
  });
  const std::size_t width = vectors.empty() ? 0 : vectors.front().size();
  Tensor out(DataType::float32, {static_cast<std::int64_t>(texts.size()), static_cast<std::int64_t>(width)});
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    std::copy(vectors[i].begin(), vectors[i].end(), out.mutable_values<float>().begin() + static_cast<std::ptrdiff_t>(i * width));
  }
  return out;
}

const std::map<std::string, std::string>& TextEmbedder::prompts() const { return impl_->folder.prompts; }
int TextEmbedder::max_length() const { return impl_->max_length; }
std::size_t TextEmbedder::tokens() const { return impl_->tokens; }
const Tokenizer& TextEmbedder::tokenizer() const { return impl_->tokenizer; }
const Session& TextEmbedder::session() const { return impl_->encoder.session(); }
TextEmbedder::TextEmbedder(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TextEmbedder::TextEmbedder(TextEmbedder&&) noexcept = default;
TextEmbedder& TextEmbedder::operator=(TextEmbedder&&) noexcept = default;
TextEmbedder::~TextEmbedder() = default;

struct Reranker::Impl {
  EmbedderOptions options;
  EmbedFolder folder;
  Tokenizer tokenizer;
  Encoder encoder;

  Impl(EmbedderOptions given, EmbedFolder read)
      : options(std::move(given)),
        folder(std::move(read)),
        tokenizer(tokenizer_of(folder, options.max_length > 0 ? options.max_length : folder.max_length)),
        encoder(folder.model, options.session, 2, padding_id(tokenizer)) {}

  float logit(std::span<const float> logits) const {
    if (logits.empty() || logits.size() > 2) {
      fail(ErrorCode::invalid_argument, "the model returns {} numbers for each pair; a reranker returns one or two",
           logits.size());
    }
    const float value = logits.size() == 1 ? logits[0] : logits[1] - logits[0];
    return std::isnan(value) ? -std::numeric_limits<float>::infinity() : value;  // behind all others
  }
};

Reranker Reranker::load(const std::filesystem::path& model, const EmbedderOptions& options) {
  check(options);
  return Reranker(std::make_unique<Impl>(options, text::read_embed_folder(model)));
}

// Computed in float64: float32 has no numbers between the scores of logits above 17.
double Reranker::score_of(float logit) { return 1 / (1 + std::exp(-static_cast<double>(logit))); }

std::vector<double> Reranker::score(std::string_view query, std::span<const std::string> documents, std::size_t* tokens) const {
  const std::vector<float> found = logits(query, documents, tokens);
  std::vector<double> scores(found.size());
  std::transform(found.begin(), found.end(), scores.begin(), score_of);
  return scores;
}

std::vector<float> Reranker::logits(std::string_view query, std::span<const std::string> documents, std::size_t* tokens) const {
  const std::string question = repair_utf8(query);
  std::vector<TokenizedText> tokenized;
  tokenized.reserve(documents.size());
  for (const std::string& document : documents)
    tokenized.push_back(tokens_of(impl_->tokenizer.encode(question, repair_utf8(document))));
  if (tokens != nullptr) {
    *tokens = 0;
    for (const TokenizedText& pair : tokenized) *tokens += pair.ids.size();
  }
  std::vector<float> found(documents.size());
  impl_->encoder.encode(tokenized, impl_->options.batch, [&](const EncodedBatch& batch) {
    for (std::size_t row = 0; row < batch.texts.size(); ++row) found[batch.texts[row]] = impl_->logit(row_of(batch, row));
  });
  return found;
}

const Tokenizer& Reranker::tokenizer() const { return impl_->tokenizer; }
const Session& Reranker::session() const { return impl_->encoder.session(); }
Reranker::Reranker(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Reranker::Reranker(Reranker&&) noexcept = default;
Reranker& Reranker::operator=(Reranker&&) noexcept = default;
Reranker::~Reranker() = default;

}  // namespace sdx
