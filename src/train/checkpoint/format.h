#pragma once
// Reading and writing checkpoint.fbs, apart from where the bytes are.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <sdx/train/checkpoint.hpp>
#include <span>

namespace sdx::train {

// A FlatBuffer ends at 2 GiB. Checkpoints with more bytes than this keep their tensors in a second file.
inline constexpr std::uint64_t kMostInline = 1'900'000'000;

std::filesystem::path external_path(const std::filesystem::path& checkpoint);

// `external`: the contents of "<checkpoint>.data". Throws Error(invalid_model).
CheckpointState decode_checkpoint(std::span<const std::byte> bytes, std::span<const std::byte> external = {});
bool has_external_data(std::span<const std::byte> bytes);

// The part of the second file that this checkpoint takes. Nothing where either is damaged, or none is taken.
struct Extent {
  std::uint64_t begin = 0, end = 0;
};
std::optional<Extent> external_extent(std::span<const std::byte> bytes, std::span<const std::byte> external);

// CheckpointState::save() with another limit than kMostInline.
void save_checkpoint(const CheckpointState& state, const std::filesystem::path& path, bool include_optimizer_state,
                     std::uint64_t most_inline);

// Keeps the checkpoint and its second file under another name too, where they stay complete when the first is rewritten.
// Throws Error(io).
void keep_checkpoint(const std::filesystem::path& path, const std::filesystem::path& as);

}  // namespace sdx::train
