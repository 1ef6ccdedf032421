#pragma once
// Weights of a Hugging Face folder: model.safetensors, or the shards that model.safetensors.index.json names.

#include <filesystem>
#include <memory>

#include "tensor/gguf/tensor_files.h"
#include "text/model/network/hf_config.h"

namespace sdx::text {

// Throws Error(io | invalid_model | not_implemented) naming the file and the tensor.
std::shared_ptr<const TensorFiles> open_safetensors(const std::filesystem::path& listing, const HfNetwork& network);

}  // namespace sdx::text
