#include "tensor/gguf/tensor_files.h"

namespace sdx {

std::int64_t StoredTensor::elements() const {
  std::int64_t n = 1;
  for (const std::int64_t extent : shape) n *= extent;
  return n;
}

const StoredTensor* TensorFiles::find_tensor(std::string_view name) const {
  const auto it = names_.find(std::string(name));
  return it == names_.end() ? nullptr : &tensors_[it->second];
}

void TensorFiles::add_file(std::filesystem::path path, std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  paths_.push_back(std::move(path));
  bytes_.push_back(bytes);
  owners_.push_back(std::move(owner));
}

bool TensorFiles::add_tensor(StoredTensor tensor) {
  if (!names_.emplace(tensor.name, tensors_.size()).second) return false;
  tensors_.push_back(std::move(tensor));
  return true;
}

}  // namespace sdx
