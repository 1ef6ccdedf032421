#pragma once
// Text embeddings, and documents ranked by how well they answer a query. Link libsdx_text (CMake: sardonyx::text).
//
//   const sdx::TextEmbedder embedder = sdx::TextEmbedder::load("all-MiniLM-L6-v2");
//   const sdx::Tensor vectors = embedder.embed({{"The cat sits on the mat.", "A feline rests."}});  // float32[2, 384]
//
// Models are folders as sentence-transformers and Optimum write them, with a tokenizer: modules.json and the pooling, Dense,
// LayerNorm and Normalize that it names; without it a plain encoder, whose token vectors are averaged and normalised. Or they are
// .gguf files, which say how tokens are pooled. Objects may be used by any number of threads at once. All throw sdx::Error.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sdx/export.hpp>
#include <sdx/session.hpp>
#include <sdx/tensor.hpp>
#include <sdx/tokenizer.hpp>

namespace sdx {

// What is made of a text.
enum class EmbeddingKind {
  vector,  // one vector
  sparse,  // weights of the vocabulary's tokens: SPLADE, BGE-M3
  tokens,  // a vector for each token: ColBERT, BGE-M3
};

struct SparseVector {
  std::vector<std::uint32_t> tokens;  // ascending
  std::vector<float> weights;         // of each, above 0
};

struct EmbedderOptions {
  SessionOptions session;
  std::vector<std::string>
      pooling;  // "cls", "max", "mean", "mean_sqrt_len", "weightedmean", "last", concatenated in this order; empty: the folder's
  std::optional<bool> normalize;  // to length 1; no value: as the folder says
  int max_length = 0;             // tokens per text; longer texts are truncated; 0: the folder's
  int batch = 32;                 // texts per run, 1 to 4096
  // The first so many numbers of each vector, of length 1 again where vectors are normalised; 0: all. Models that are trained for
  // it
  // ("Matryoshka") have the most important ones in front.
  int dimensions = 0;
  EmbeddingKind kind = EmbeddingKind::vector;
  int accuracy_level = 0;  // of networks made from weights: see LanguageModelOptions
};

class SDX_API TextEmbedder {
 public:
  // Throws Error(io), Error(invalid_argument) for a folder without model or tokenizer, modules that are not known, a model whose
  // inputs or outputs are not those of an encoder; and as Session::open does.
  static TextEmbedder load(const std::filesystem::path& model, const EmbedderOptions& options = {});

  // float32[texts, dimensions], in the order of the texts. `prompt`: a name of prompts(), whose text comes before each; "": the
  // folder's default, if it has one. Texts are UTF-8; invalid bytes become U+FFFD.
  Tensor embed(std::span<const std::string> texts, std::string_view prompt = {}) const;
  Tensor embed(std::initializer_list<std::string> texts, std::string_view prompt = {}) const {
    return embed(std::span<const std::string>(texts.begin(), texts.size()), prompt);
  }

  // The same where the options ask for these kinds; the vectors of a text's tokens are float32[tokens, dimensions]. Throw
  // Error(invalid_argument) where they ask for another.
  std::vector<SparseVector> embed_sparse(std::span<const std::string> texts, std::string_view prompt = {}) const;
  std::vector<Tensor> embed_tokens(std::span<const std::string> texts, std::string_view prompt = {}) const;

  const std::map<std::string, std::string>& prompts() const;
  int max_length() const;              // tokens; 0: no limit
  std::size_t tokens() const;          // tokens of all texts so far, special ones included
  const Tokenizer& tokenizer() const;  // truncates at max_length()
  const Session& session() const;      // its report() says what ran where

  TextEmbedder(TextEmbedder&&) noexcept;
  TextEmbedder& operator=(TextEmbedder&&) noexcept;
  ~TextEmbedder();

 private:
  struct Impl;
  explicit TextEmbedder(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// A cross-encoder, which reads query and document together; or a classifier of single texts.
class SDX_API Reranker {
 public:
  // Throws as TextEmbedder::load() does; Error(invalid_argument) for a model without one row of numbers for each text.
  static Reranker load(const std::filesystem::path& model, const EmbedderOptions& options = {});

  // One score for each document, in their order; higher is better. From 0 to 1 (sigmoid of logits()), as sentence-transformers'
  // CrossEncoder has them for models with one label; of two labels, the second's probability. `tokens`, where given, becomes the
  // number of tokens that the model reads: those of the query count with each document.
  std::vector<double> score(std::string_view query, std::span<const std::string> documents, std::size_t* tokens = nullptr) const;
  // What the model itself returns, without bounds: the label's logit; of two labels, by how much the second's is larger. Sort by
  // this: above 37, scores are all 1.
  std::vector<float> logits(std::string_view query, std::span<const std::string> documents, std::size_t* tokens = nullptr) const;
  static double score_of(float logit);
  // float32[texts, classes]: the share of each class, as transformers' pipeline for classification has it: softmax of the
  // model's numbers, the sigmoid of a single one or where config.json says multi_label_classification, the numbers themselves for
  // regression. `tokens` as above.
  Tensor classify(std::span<const std::string> texts, std::size_t* tokens = nullptr) const;
  const std::vector<std::string>& labels() const;  // names of classes in config.json; may be fewer than there are classes
  const Tokenizer& tokenizer() const;              // truncates pairs to what the model takes
  const Session& session() const;

  Reranker(Reranker&&) noexcept;
  Reranker& operator=(Reranker&&) noexcept;
  ~Reranker();

 private:
  struct Impl;
  explicit Reranker(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sdx
