#pragma once
// GGUF files with their tensors, which lie in the mapped file.

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tensor/gguf/gguf.h"
#include "tensor/gguf/tensor_files.h"

namespace sdx {

// A file, or all parts of a split one, opened and checked: every length, count, offset and alignment fits the file. Immutable, so
// safe to share between threads; views end with it.
class SDX_TOOLS_API GgufModel : public TensorFiles {
 public:
  // Throws Error(io) and Error(invalid_model | not_implemented) naming the file and the place. Parts of a split model
  // (NAME-00001-of-00003.gguf) are opened with the first one; any other part is refused.
  static std::shared_ptr<const GgufModel> open(const std::filesystem::path& path);
  // The same from memory, which `owner` keeps alive; null: the caller does.
  static std::shared_ptr<const GgufModel> read(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                               const std::string& shown);

  // The metadata of the first part.
  const GgufFile& metadata() const { return files_.front(); }

 private:
  void add_part(const std::filesystem::path& path, std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                const std::string& shown);

  std::vector<GgufFile> files_;
};

}  // namespace sdx
