#pragma once
// NumPy's .npz files: zip archives of .npy files.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sdx/tensor.hpp>

#include "base/tools_api.h"

namespace sdx {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

struct NpzLimits {
  std::uint64_t unpacked_bytes = std::uint64_t{16} << 30;  // of all compressed members together
  std::size_t members = 1u << 16;
};

// Every member called NAME.npy, in the archive's order, as NAME; other members are skipped. Stored (uncompressed) members
// are views that keep `owner` alive, as parse_npy() makes them. Checksums are verified. Throws Error(invalid_argument) for
// malformed archives, encryption, unknown compression, members that overlap, and archives beyond `limits`.
NamedTensors parse_npz(std::span<const std::byte> bytes, const std::shared_ptr<const void>& owner = nullptr,
                       const NpzLimits& limits = {});

// The same over a mapped file; errors name it.
SDX_TOOLS_API NamedTensors read_npz(const std::filesystem::path& path, const NpzLimits& limits = {});

// An archive that numpy.load reads. Stored members start at multiples of 64 bytes so that they can be mapped.
std::string to_npz(const NamedTensors& tensors, bool compress = false);
SDX_TOOLS_API void write_npz(const std::filesystem::path& path, const NamedTensors& tensors, bool compress = false);

}  // namespace sdx
