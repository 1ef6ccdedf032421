#pragma once
// Weights in a kernel's own order.

#include <memory>
#include <utility>

namespace sdx::cpu {

// Packed weights from LowerContext::pack(). Kernels that pack the same tensor alike share them, and they may be a view of a
// compiled model's file, so they are never written again.
class Packed {
 public:
  Packed() = default;
  explicit Packed(std::shared_ptr<const void> memory) : memory_(std::move(memory)) {}
  const float* data() const { return static_cast<const float*>(memory_.get()); }
  explicit operator bool() const { return memory_ != nullptr; }

 private:
  std::shared_ptr<const void> memory_;
};

}  // namespace sdx::cpu
