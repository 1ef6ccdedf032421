#pragma once
// Weights by name, as they lie in one or more mapped files. Names are those of GGUF files ("blk.0.attn_q.weight"), whatever the
// files call them.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/tools_api.h"
#include "tensor/ggml.h"

namespace sdx {

struct SDX_TOOLS_API StoredTensor {
  std::string name;
  std::uint32_t type = 0;           // find_ggml() gives the format, or null
  std::vector<std::int64_t> shape;  // outermost first: rows of blocks lie along the last axis
  std::uint64_t offset = 0;         // in its file
  std::span<const std::byte> data;  // empty where the type cannot be read; perhaps not aligned
  std::size_t file = 0;             // index into TensorFiles::paths()

  std::int64_t elements() const;
};
using GgufTensor = StoredTensor;

// Immutable once it is filled, so safe to share between threads; views end with it.
class SDX_TOOLS_API TensorFiles {
 public:
  const std::vector<StoredTensor>& tensors() const noexcept { return tensors_; }
  const StoredTensor* find_tensor(std::string_view name) const;

  const std::vector<std::filesystem::path>& paths() const noexcept { return paths_; }
  // All bytes of file number `i`, and who keeps them.
  std::span<const std::byte> bytes(std::size_t i) const { return bytes_.at(i); }
  const std::shared_ptr<const void>& owner(std::size_t i) const { return owners_.at(i); }

  // The name that the files have, for messages.
  std::string shown(const std::string& name) const { return show_ ? show_(name) : name; }
  void show_names_by(std::function<std::string(const std::string&)> show) { show_ = std::move(show); }

  // An empty path: memory that is no file's.
  void add_file(std::filesystem::path path, std::span<const std::byte> bytes, std::shared_ptr<const void> owner);
  // False where there is one of that name.
  bool add_tensor(StoredTensor tensor);

 protected:
  std::vector<StoredTensor> tensors_;

 private:
  std::vector<std::filesystem::path> paths_;
  std::vector<std::shared_ptr<const void>> owners_;
  std::vector<std::span<const std::byte>> bytes_;
  std::unordered_map<std::string, std::size_t> names_;
  std::function<std::string(const std::string&)> show_;
};

}  // namespace sdx
