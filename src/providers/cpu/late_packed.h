#pragma once
// Weights in a kernel's own order that are put into it by the first run that needs them.

#include <functional>
#include <initializer_list>
#include <memory>

#include "providers/cpu/kernel_table.h"
#include "providers/cpu/packed.h"

namespace sdx::cpu {

// For weights that take longer to pack than everything else that opening a model does. Memory is charged when the kernel is made,
// and touched when it is filled.
class LatePacked {
 public:
  LatePacked() = default;
  // As LowerContext::pack(), but `fill` is called by the first data(), or here, where the compilation is recorded; once for all
  // kernels that share the memory, and not at all where a compiled model has the weights. The sources are held until then.
  LatePacked(LowerContext& c, std::initializer_list<const Tensor*> sources, std::size_t bytes, const cache::PackKey& key,
             std::function<void(float*)> fill);

  // Thread-safe. Throws what `fill` throws, and Error(io) where somebody has written to the file that the sources lie in; the
  // next call tries again.
  const float* data() const;

 private:
  struct Pending;
  Packed packed_;
  std::shared_ptr<Pending> pending_;  // null: filled from the beginning
};

}  // namespace sdx::cpu
