#pragma once
// Tensors in .safetensors files: one, or the shards that an index names.

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "base/tools_api.h"
#include "tensor/gguf/tensor_files.h"
#include "tensor/safetensors.h"

namespace sdx::text {

// The file that says where the weights are; nothing: there is none.
SDX_TOOLS_API std::optional<std::filesystem::path> find_safetensors(const std::filesystem::path& folder);

// `file`: the tensor's in `to`.
using TakeTensor = std::function<void(const std::string& name, const Tensor& tensor, std::size_t file)>;
// Adds the files that `listing` is or names to `to`, and calls `take` for their tensors. Throws Error(io | invalid_model) naming
// the file.
SDX_TOOLS_API void each_safetensor(const std::filesystem::path& listing, TensorFiles& to, const TakeTensor& take);

// A tensor as it lies in file number `file`, without a name. Throws Error(not_implemented) where it does not hold floats.
SDX_TOOLS_API StoredTensor stored_tensor(const std::string& name, const Tensor& tensor, const TensorFiles& files,
                                         std::size_t file);

}  // namespace sdx::text
