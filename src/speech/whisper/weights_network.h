#pragma once
// Whisper's networks from weights in .safetensors files, by transformers' names.

#include <filesystem>
#include <memory>

#include "graph/graph.h"
#include "speech/whisper/settings.h"
#include "tensor/gguf/tensor_files.h"

namespace sdx::speech {

// The tensors of the file or the files that `listing` is or names, without "model." before their names. Throws Error(io |
// invalid_model | not_implemented) naming the file.
std::shared_ptr<const TensorFiles> open_whisper_weights(const std::filesystem::path& listing);

// "input_features" float32[batch, bins, frames] to "last_hidden_state", and to the keys and values of the decoder's
// cross-attention: "present.0.encoder.key" float32[batch, heads, positions, size], … Throws Error(invalid_model) naming the
// tensor.
Model whisper_encoder(std::shared_ptr<const TensorFiles> weights, const WhisperSettings& settings);

// "input_ids" int64[batch, length] with all "past_key_values.…", also for a first step, where those of the decoder have no
// length, to "logits" float32[batch, length, vocabulary] and the decoder's presents. Weights stay in the files.
Model whisper_decoder(std::shared_ptr<const TensorFiles> weights, const WhisperSettings& settings);

}  // namespace sdx::speech
