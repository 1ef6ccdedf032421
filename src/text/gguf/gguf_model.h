#pragma once
// GGUF files with their tensors, which lie in the mapped file.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tensor/ggml.h"
#include "text/gguf/gguf.h"

namespace sdx::text {

struct GgufTensor {
  std::string name;
  std::uint32_t type = 0;           // find_ggml() gives the format, or null
  std::vector<std::int64_t> shape;  // outermost first: rows of blocks lie along the last axis
  std::uint64_t offset = 0;         // in its file
  std::span<const std::byte> data;  // empty where the type cannot be read
  std::size_t file = 0;             // index into GgufModel::paths()

  std::int64_t elements() const;
};

// A file, or all parts of a split one, opened and checked: every length, count, offset and alignment fits the file. Immutable, so
// safe to share between threads; views end with it.
class GgufModel {
 public:
  // Throws Error(io) and Error(invalid_model | not_implemented) naming the file and the place. Parts of a split model
  // (NAME-00001-of-00003.gguf) are opened with the first one; any other part is refused.
  static std::shared_ptr<const GgufModel> open(const std::filesystem::path& path);
  // The same from memory, which `owner` keeps alive; null: the caller does.
  static std::shared_ptr<const GgufModel> read(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                               const std::string& shown);

  // Of the first part.
  const GgufFile& metadata() const { return files_.front(); }
  const std::vector<GgufTensor>& tensors() const noexcept { return tensors_; }
  const GgufTensor* find_tensor(std::string_view name) const;

  const std::vector<std::filesystem::path>& paths() const noexcept { return paths_; }
  // All bytes of file number `i`, and who keeps them.
  std::span<const std::byte> bytes(std::size_t i) const { return bytes_.at(i); }
  const std::shared_ptr<const void>& owner(std::size_t i) const { return owners_.at(i); }

 private:
  void add_part(const std::filesystem::path& path, std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                const std::string& shown);

  std::vector<GgufFile> files_;
  std::vector<std::filesystem::path> paths_;
  std::vector<std::shared_ptr<const void>> owners_;
  std::vector<std::span<const std::byte>> bytes_;
  std::vector<GgufTensor> tensors_;
  std::unordered_map<std::string, std::size_t> names_;
};

}  // namespace sdx::text
