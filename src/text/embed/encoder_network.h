#pragma once
// Encoders for embeddings as ONNX graphs, from GGUF files and from folders of transformers: BERT, RoBERTa, XLM-RoBERTa,
// NomicBERT.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include <sdx/session.hpp>

#include "tensor/gguf/gguf_model.h"
#include "text/embed/pooling.h"

namespace sdx::text {

struct EncoderConfig {
  std::string architecture;  // "bert", "nomic-bert"
  std::int64_t context = 0, width = 0, layers = 0, feed_forward = 0, heads = 0;
  std::int64_t first_position = 0;  // row of position_embd for the first token
  float epsilon = 1e-12F;
  bool gated = false;              // NomicBERT: SiLU of one product times another; else GELU
  float rope_base = 0.0F;          // 0: positions have vectors
  std::optional<Pooling> pooling;  // that the file asks for
};

// A GGUF file, or a file model.safetensors or model.safetensors.index.json beside a config.json.
bool is_encoder_weights(const std::filesystem::path& path);
// Throws Error(not_implemented | invalid_model) for what is no such encoder.
EncoderConfig read_encoder_config(const std::filesystem::path& path);

// A session with inputs input_ids, attention_mask, position_ids and, where the network has types, token_type_ids: int64[batch,
// sequence]; its output last_hidden_state is float32[batch, sequence, width].
Session open_encoder(const std::filesystem::path& path, const SessionOptions& options);

}  // namespace sdx::text
