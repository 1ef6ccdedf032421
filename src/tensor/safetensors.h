#pragma once
// Hugging Face's safetensors files: a JSON header, then the tensors' bytes, little-endian and without gaps
// (github.com/huggingface/safetensors, "Format").

#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sdx/tensor.hpp>

#include "base/tools_api.h"

namespace sdx {

struct SafeTensors {
  std::map<std::string, Tensor, std::less<>> tensors;
  std::map<std::string, std::string> metadata;
};

// The tensors are views that keep `owner` alive (with a null owner the caller keeps `bytes` alive); they may be unaligned. Throws
// Error(invalid_argument) for anything malformed: a header longer than the file or 100 MB, unknown element types, sizes that do
// not match, overlaps and gaps.
SDX_TOOLS_API SafeTensors parse_safetensors(std::span<const std::byte> bytes, const std::shared_ptr<const void>& owner = nullptr);
// The same over a mapped file; errors name it. Throws Error(io) when it cannot be read.
SDX_TOOLS_API SafeTensors read_safetensors(const std::filesystem::path& path);

// Writes them in the order of `tensors`; the file appears whole or not at all. Throws Error(invalid_argument) for element types
// that the format lacks (strings, 4- and 2-bit types) and for a name twice, Error(io).
SDX_TOOLS_API void write_safetensors(const std::filesystem::path& path,
                                     const std::vector<std::pair<std::string, Tensor>>& tensors,
                                     const std::map<std::string, std::string>& metadata = {});

}  // namespace sdx
