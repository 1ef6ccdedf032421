#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <sdx/embedding.hpp>
#include <sdx/tokenizer.hpp>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text/utf8.h"
#include "text/embed/encoder.h"
#include "text/embed/folder.h"
#include "text/model/accuracy.h"

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
  text::check_accuracy_level(options.accuracy_level);
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

// The tokens with which a language model answers whether a document fits a query: "no", "yes".
std::vector<std::int64_t> answers_of(const EmbedFolder& folder, const Tokenizer& tokenizer) {
  if (!folder.answers.empty()) return folder.answers;
  const auto no = tokenizer.token_to_id("no"), yes = tokenizer.token_to_id("yes");
  if (!no || !yes) return {};
  return {static_cast<std::int64_t>(*no), static_cast<std::int64_t>(*yes)};
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
        encoder(folder.model, options.session, options.kind == EmbeddingKind::tokens ? 3 : 0, padding_id(tokenizer), head()) {
    if (options.kind == EmbeddingKind::sparse) return;
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

  text::TextHead head() const {
    text::TextHead out{.output = text::TextOutput::vectors, .answers = {}, .accuracy_level = options.accuracy_level};
    if (options.kind == EmbeddingKind::tokens) out.output = text::TextOutput::short_vectors;
    if (options.kind == EmbeddingKind::sparse && !folder.weight_layer) out.output = text::TextOutput::words;
    return out;
  }

  void expect(EmbeddingKind kind) const {
    if (options.kind != kind)
      fail(ErrorCode::invalid_argument, "the embedder was loaded for another kind of vectors (EmbedderOptions::kind)");
  }

  // Texts with the prompt before each.
  std::vector<TokenizedText> tokenize(std::span<const std::string> texts, const std::string& before) const {
    std::vector<TokenizedText> out;
    out.reserve(texts.size());
    for (const std::string& text : texts) {
      out.push_back(tokens_of(tokenizer.encode(repair_utf8(before + text))));
      tokens += out.back().ids.size();
    }
    return out;
  }

  // Logits or hidden states of a text become weights of tokens.
  SparseVector weights_of(const EncodedBatch& batch, std::size_t row, const TokenizedText& text,
                          const std::vector<std::int64_t>& left_out) const {
    const std::span<const float> values = row_of(batch, row);
    std::map<std::uint32_t, float> found;
    const auto take = [&](std::int64_t id, float weight) {
      if (!(weight > 0.0F)) return;
      float& most = found[static_cast<std::uint32_t>(id)];
      most = std::max(most, weight);
    };
    if (encoder.rank() == 2) {
      for (std::size_t i = 0; i < values.size(); ++i) take(static_cast<std::int64_t>(i), values[i]);
    } else {
      const auto width = static_cast<std::size_t>(batch.values.dim(2));
      for (std::size_t t = 0; t < text.ids.size(); ++t) {
        std::vector<float> token(values.begin() + static_cast<std::ptrdiff_t>(t * width),
                                 values.begin() + static_cast<std::ptrdiff_t>((t + 1) * width));
        if (!folder.weight_layer) {  // logits, of a network without pooling
          for (std::size_t i = 0; i < width; ++i) take(static_cast<std::int64_t>(i), std::log1p(std::max(token[i], 0.0F)));
          continue;
        }
        if (std::find(left_out.begin(), left_out.end(), text.ids[t]) != left_out.end()) continue;
        text::apply_layer(*folder.weight_layer, token);
        take(text.ids[t], token.empty() ? 0.0F : token[0]);
      }
    }
    SparseVector out;
    for (const auto& [id, weight] : found) {
      out.tokens.push_back(id);
      out.weights.push_back(weight);
    }
    return out;
  }

  // Vectors of single tokens; BGE-M3's leave out the first one.
  Tensor vectors_of(const EncodedBatch& batch, std::size_t row, const TokenizedText& text) const {
    const std::span<const float> values = row_of(batch, row);
    const auto width = static_cast<std::size_t>(batch.values.dim(2));
    std::vector<float> all;
    std::size_t count = 0, size = 0;
    for (std::size_t t = folder.token_layer ? 1 : 0; t < text.ids.size(); ++t, ++count) {
      std::vector<float> token(values.begin() + static_cast<std::ptrdiff_t>(t * width),
                               values.begin() + static_cast<std::ptrdiff_t>((t + 1) * width));
      if (folder.token_layer) text::apply_layer(*folder.token_layer, token);
      for (const text::Layer& layer : folder.layers) text::apply_layer(layer, token);
      if (options.dimensions > 0) shorten(token);
      size = token.size();
      all.insert(all.end(), token.begin(), token.end());
    }
    return Tensor::of<float>({static_cast<std::int64_t>(count), static_cast<std::int64_t>(size)}, std::span<const float>(all));
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
  EmbedFolder folder = text::read_embed_folder(model);
  if (!folder.answers.empty()) {
    fail(ErrorCode::invalid_argument, "'{}' is a model that ranks documents (module LogitScore), not one for embeddings",
         model.string());
  }
  return TextEmbedder(std::make_unique<Impl>(options, std::move(folder)));
}

Tensor TextEmbedder::embed(std::span<const std::string> texts, std::string_view prompt) const {
  impl_->expect(EmbeddingKind::vector);
  const std::string& before = impl_->prompt_text(prompt);
  const std::int64_t skipped = impl_->left_out(before);
  const std::vector<TokenizedText> tokenized = impl_->tokenize(texts, before);
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

std::vector<SparseVector> TextEmbedder::embed_sparse(std::span<const std::string> texts, std::string_view prompt) const {
  impl_->expect(EmbeddingKind::sparse);
  const std::vector<TokenizedText> tokenized = impl_->tokenize(texts, impl_->prompt_text(prompt));
  std::vector<std::int64_t> special;
  const SpecialTokens& named = impl_->tokenizer.special_tokens();
  for (const auto* token : {&named.bos, &named.eos, &named.cls, &named.sep, &named.pad, &named.unk}) {
    const auto id = *token ? impl_->tokenizer.token_to_id(**token) : std::nullopt;
    if (id) special.push_back(static_cast<std::int64_t>(*id));
  }
  std::vector<SparseVector> out(texts.size());
  // Logits of all tokens for all words take as much memory as many layers.
  constexpr std::size_t kTokensTogether = 1024;
  std::size_t longest = 1;
  for (const TokenizedText& text : tokenized) longest = std::max(longest, text.ids.size());
  const int together = static_cast<int>(std::max<std::size_t>(1, kTokensTogether / longest));
  impl_->encoder.encode(tokenized, std::min(impl_->options.batch, together), [&](const EncodedBatch& batch) {
    for (std::size_t row = 0; row < batch.texts.size(); ++row)
      out[batch.texts[row]] = impl_->weights_of(batch, row, tokenized[batch.texts[row]], special);
  });
  return out;
}

std::vector<Tensor> TextEmbedder::embed_tokens(std::span<const std::string> texts, std::string_view prompt) const {
  impl_->expect(EmbeddingKind::tokens);
  const std::vector<TokenizedText> tokenized = impl_->tokenize(texts, impl_->prompt_text(prompt));
  std::vector<Tensor> out(texts.size());
  impl_->encoder.encode(tokenized, impl_->options.batch, [&](const EncodedBatch& batch) {
    for (std::size_t row = 0; row < batch.texts.size(); ++row)
      out[batch.texts[row]] = impl_->vectors_of(batch, row, tokenized[batch.texts[row]]);
  });
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
  text::Classes classes;
  int max_length;
  Tokenizer tokenizer;
  Encoder encoder;

  Impl(EmbedderOptions given, EmbedFolder read)
      : options(std::move(given)),
        folder(std::move(read)),
        classes(text::read_classes(folder.root)),
        max_length(options.max_length > 0 ? options.max_length : folder.max_length),
        tokenizer(tokenizer_of(folder, max_length)),
        encoder(folder.model, options.session, 2, padding_id(tokenizer),
                {.output = text::TextOutput::scores,
                 .answers = answers_of(folder, tokenizer),
                 .accuracy_level = options.accuracy_level}) {}

  TokenizedText pair_of(const std::string& query, const std::string& document) const {
    if (folder.pair_template.empty()) return tokens_of(tokenizer.encode(query, document));
    return question_of(query, document);
  }

  // The template with both texts; what is too long loses the end of the document.
  TokenizedText question_of(const std::string& query, const std::string& document) const {
    constexpr std::string_view kQuery = "{query}", kDocument = "{document}";
    const std::string& form = folder.pair_template;
    const std::size_t q = form.find(kQuery), d = form.find(kDocument);
    if (q == std::string::npos || d == std::string::npos || d < q)
      fail(ErrorCode::invalid_model, "the template of pairs must have {{query}} and, behind it, {{document}}");
    const std::string end = form.substr(d + kDocument.size());
    const std::string whole = form.substr(0, q) + query + form.substr(q + kQuery.size(), d - q - kQuery.size()) + document + end;
    const Tokenizer uncut = tokenizer.with_truncation(std::nullopt);
    TokenizedText out = tokens_of(uncut.encode(whole, false));
    const auto most = static_cast<std::size_t>(max_length);
    if (max_length == 0 || out.ids.size() <= most) return out;
    const TokenizedText last = tokens_of(uncut.encode(end, false));
    out.ids.resize(most - std::min(most, last.ids.size()));
    out.ids.insert(out.ids.end(), last.ids.end() - static_cast<std::ptrdiff_t>(std::min(most, last.ids.size())), last.ids.end());
    out.types.assign(out.ids.size(), 0);
    return out;
  }

  float logit(std::span<const float> logits) const {
    if (logits.empty() || logits.size() > 2) {
      fail(ErrorCode::invalid_argument, "the model returns {} numbers for each pair; a reranker returns one or two",
           logits.size());
    }
    const float value = logits.size() == 1 ? logits[0] : logits[1] - logits[0];
    return std::isnan(value) ? -std::numeric_limits<float>::infinity() : value;  // behind all others
  }

  // The shares of classes, in place of the model's numbers.
  void share(std::span<float> numbers) const {
    if (classes.problem == "regression" || numbers.empty()) return;
    if (classes.problem == "multi_label_classification" || numbers.size() == 1) {
      for (float& x : numbers) x = static_cast<float>(Reranker::score_of(x));
      return;
    }
    const double most = *std::max_element(numbers.begin(), numbers.end());
    double sum = 0;
    for (const float x : numbers) sum += std::exp(static_cast<double>(x) - most);
    for (float& x : numbers) x = static_cast<float>(std::exp(static_cast<double>(x) - most) / sum);
  }

  // Calls `take` with the model's numbers for each text or pair.
  void run(const std::vector<TokenizedText>& texts, const std::function<void(std::span<const float>, std::size_t)>& take,
           std::size_t* tokens) const {
    if (tokens != nullptr) {
      *tokens = 0;
      for (const TokenizedText& text : texts) *tokens += text.ids.size();
    }
    encoder.encode(texts, options.batch, [&](const EncodedBatch& batch) {
      for (std::size_t row = 0; row < batch.texts.size(); ++row) take(row_of(batch, row), batch.texts[row]);
    });
  }
};

Reranker Reranker::load(const std::filesystem::path& model, const EmbedderOptions& options) {
  check(options);
  EmbedFolder folder = text::read_embed_folder(model);
  if (!folder.answers.empty() && folder.pair_template.empty()) {
    fail(ErrorCode::invalid_model,
         "'{}' has no chat template that shows messages of the roles 'query' and 'document': the question for the model is "
         "missing",
         model.string());
  }
  return Reranker(std::make_unique<Impl>(options, std::move(folder)));
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
  for (const std::string& document : documents) tokenized.push_back(impl_->pair_of(question, repair_utf8(document)));
  std::vector<float> found(documents.size());
  impl_->run(
      tokenized, [&](std::span<const float> numbers, std::size_t i) { found[i] = impl_->logit(numbers); }, tokens);
  return found;
}

Tensor Reranker::classify(std::span<const std::string> texts, std::size_t* tokens) const {
  if (!impl_->folder.pair_template.empty())
    fail(ErrorCode::invalid_argument, "the model judges pairs of texts: single texts have no classes");
  std::vector<TokenizedText> tokenized;
  tokenized.reserve(texts.size());
  for (const std::string& text : texts) tokenized.push_back(tokens_of(impl_->tokenizer.encode(repair_utf8(text))));
  Tensor out(DataType::float32, {static_cast<std::int64_t>(texts.size()), 0});
  impl_->run(
      tokenized,
      [&](std::span<const float> numbers, std::size_t i) {
        const auto width = static_cast<std::int64_t>(numbers.size());
        if (out.size() == 0 && width > 0) out = Tensor(DataType::float32, {out.dim(0), width});
        if (out.dim(1) != width) fail(ErrorCode::invalid_model, "the model returns {} and {} numbers", out.dim(1), width);
        const std::span<float> row = out.mutable_values<float>().subspan(i * numbers.size(), numbers.size());
        std::copy(numbers.begin(), numbers.end(), row.begin());
        impl_->share(row);
      },
      tokens);
  return out;
}

const std::vector<std::string>& Reranker::labels() const { return impl_->classes.labels; }

const Tokenizer& Reranker::tokenizer() const { return impl_->tokenizer; }
const Session& Reranker::session() const { return impl_->encoder.session(); }
Reranker::Reranker(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Reranker::Reranker(Reranker&&) noexcept = default;
Reranker& Reranker::operator=(Reranker&&) noexcept = default;
Reranker::~Reranker() = default;

}  // namespace sdx
