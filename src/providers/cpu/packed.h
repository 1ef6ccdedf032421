#pragma once
// Weights in a kernel's own order.

#include <cstddef>
#include <memory>

#include <sdx/tensor.hpp>

#include "base/mapped_file.h"
#include "base/memory.h"

namespace sdx::cpu {

// Memory for packed weights; lives as long as the kernel that owns it.
class Packed {
 public:
  Packed() = default;
  explicit Packed(std::size_t bytes) : memory_(allocate(bytes)) {}
  float* data() { return static_cast<float*>(memory_.get()); }
  const float* data() const { return static_cast<const float*>(memory_.get()); }
  explicit operator bool() const { return memory_ != nullptr; }

 private:
  std::shared_ptr<void> memory_;
};

// The file pages behind weights that have just been packed are not needed for now; without this, loading would hold every weight
// twice. (Anonymous memory is left alone: its content would be lost.)
inline void release_source(const Tensor& weights) {
  if (!weights.writable() && weights.owner() != nullptr) release_mapped_pages(weights.data(), weights.bytes());
}

}  // namespace sdx::cpu
