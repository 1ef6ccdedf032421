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
};
// For encoders, and for language models that make vectors of texts. Throws as read_encoder_config().
EncoderFacts read_encoder_facts(const std::filesystem::path& path);

// A session with inputs input_ids, attention_mask, position_ids and, where the network has types, token_type_ids: int64[batch,
// sequence]; its output last_hidden_state is float32[batch, sequence, width].
Session open_encoder(const std::filesystem::path& path, const SessionOptions& options);

}  // namespace sdx::text
