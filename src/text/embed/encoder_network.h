#pragma once
// Encoders for embeddings as ONNX graphs, from GGUF files and from folders of transformers: BERT, RoBERTa, XLM-RoBERTa,
// NomicBERT, ModernBERT, JinaBERT.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include <sdx/session.hpp>

#include "tensor/gguf/gguf_model.h"
#include "text/embed/pooling.h"

namespace sdx::text {

struct EncoderConfig {
  std::string architecture;  // "bert", "nomic-bert", "modern-bert", "jina-bert-v2"
  std::int64_t context = 0, width = 0, layers = 0, feed_forward = 0, heads = 0;
  std::int64_t first_position = 0;  // row of position_embd for the first token
  float epsilon = 1e-12F;
  bool gated = false;              // NomicBERT, ModernBERT, JinaBERT: what is activated multiplies another product
  bool gelu = true;                // else SiLU
  bool pre_norms = false;          // ModernBERT: norms before attention and before the feed-forward part, not behind
  bool distances = false;          // JinaBERT: scores fall with the distance (ALiBi); positions have neither vectors nor angles
  float rope_base = 0.0F;          // 0: heads are not rotated
  float local_base = 0.0F;         // of layers that see a window
  std::int64_t window = 0;         // tokens that those see to each side; 0: all layers see everything
  std::int64_t interval = 1;       // every so many layers, from the first on, one sees everything
  std::optional<Pooling> pooling;  // that the file asks for
  bool ranks = false;              // the file is for scores alone
  bool mean_scores = false;        // scores come from the mean of tokens, not from the first one
};

// A GGUF file, or a file model.safetensors or model.safetensors.index.json beside a config.json.
bool is_encoder_weights(const std::filesystem::path& path);
// Throws Error(not_implemented | invalid_model) for what is no such encoder.
EncoderConfig read_encoder_config(const std::filesystem::path& path);

// What a folder or file says about the use of its network.
struct EncoderFacts {
  std::int64_t context = 0;
  std::optional<Pooling> pooling;  // where nothing else says how
  std::vector<Layer> layers;       // for vectors of texts
  std::string pair_template;       // of rerankers: a text with {query} and {document}; empty: they are a pair of texts
};

// What is made of a text: vectors of its tokens, the same in ColBERT's fewer dimensions, scores by the network's head for
// classes, or weights of the vocabulary by its head for words, log(1 + relu(the largest logit of the text's tokens)).
enum class TextOutput { vectors, short_vectors, scores, words };
struct TextHead {
  TextOutput output = TextOutput::vectors;
  std::vector<std::int64_t> answers;  // tokens of a language model without such a head: the score says by how much the second is
                                      // likelier than the first
  int accuracy_level = 0;             // of products with weights in blocks; 0: as the files ask
};
// For encoders, and for language models that make vectors of texts. Throws as read_encoder_config().
EncoderFacts read_encoder_facts(const std::filesystem::path& path);

// A session with inputs input_ids, attention_mask, position_ids and, where the network has types, token_type_ids: int64[batch,
// sequence]; its output last_hidden_state is float32[batch, sequence, width], or its output logits float32[batch, classes], or
// its output sentence_embedding float32[batch, vocabulary].
Session open_encoder(const std::filesystem::path& path, const SessionOptions& options, const TextHead& head);

}  // namespace sdx::text
