#pragma once
// Files as the inputs of a model.

#include <cstddef>
#include <filesystem>
#include <span>

#include <sdx/preprocessing.hpp>
#include <sdx/session.hpp>

#include "base/tools_api.h"

namespace sdx::media {

// A picture as the value of an input (`spec` may be null): see to_tensor(). Throws Error(io | invalid_argument | out_of_memory).
SDX_TOOLS_API Tensor read_picture(const std::filesystem::path& file, const ValueSpec* spec, const Preprocessing& p);

// Sound, at p.sample_rate samples a second unless that is 0, in as many dimensions as the input has; float32.
SDX_TOOLS_API Tensor read_sound(const std::filesystem::path& file, const ValueSpec* spec, const Preprocessing& p);
// The same from the file's bytes.
SDX_TOOLS_API Tensor decode_sound(std::span<const std::byte> bytes, const ValueSpec* spec, const Preprocessing& p);

}  // namespace sdx::media
