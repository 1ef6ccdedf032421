#pragma once
// The weights of encoders under GGUF's names.

#include <filesystem>
#include <memory>

#include "tensor/gguf/tensor_files.h"
#include "text/embed/encoder_network.h"

namespace sdx::text {

std::shared_ptr<const TensorFiles> open_encoder_files(const std::filesystem::path& path, const EncoderConfig& config);

}  // namespace sdx::text
