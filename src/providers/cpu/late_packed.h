#pragma once
// Weights in a kernel's own order that are put into it by a run that needs them.

#include <functional>
#include <initializer_list>
#include <memory>

#include "kernels/cpu/gemm/gemm.h"
#include "providers/cpu/kernel_table.h"
#include "providers/cpu/packed.h"

namespace sdx::cpu {

// For weights that take longer to pack than all other work of opening a model. Memory is charged when the kernel is made, and
// touched when it is filled.
class LatePacked {
 public:
  LatePacked() = default;
  // Works like LowerContext::pack(), but `fill` is called by the first data(), or here if the compilation is recorded. It is
  // called once for all kernels that share the memory, and not at all if a compiled model has the weights. The sources are held
  // until then.
  LatePacked(LowerContext& c, std::initializer_list<const Tensor*> sources, std::size_t bytes, const cache::PackKey& key,
             std::function<void(float*)> fill);

  // Thread-safe. Throws what `fill` throws, and Error(io) if the file of the sources has been written to; the next call tries
  // again.
  const float* data() const;
  explicit operator bool() const { return static_cast<bool>(packed_); }

  // The only source, at the first call, of this object or of all that share its memory. Later, or if the weights are packed
  // already, an empty tensor. Throws as data() does.
  Tensor first_source() const;

 private:
  struct Pending;
  Packed packed_;
  std::shared_ptr<Pending> pending_;  // null: filled from the beginning
};

// A constant right operand of float products. Packing all matrices of a large model takes longer than a run with packed ones,
// most of it to get memory from the system. Therefore the first run multiplies them as the file has them, with results of the
// same bits. The second run packs them. If the compilation is recorded, they are packed at once.
class LateMatrix {
 public:
  LateMatrix() = default;
  // op(W) * scale: the elements of `w` are [k, n], or [n, k] if trans.
  LateMatrix(LowerContext& c, const Tensor& w, std::int64_t k, std::int64_t n, bool trans, float scale = 1.0F);
  explicit operator bool() const { return static_cast<bool>(packed_); }

  // Sets the right operand of `g` and calls `product`. Pages of the file that a first product has read are released then.
  void multiply(GemmArgs& g, const std::function<void()>& product) const;

 private:
  LatePacked packed_;
  std::int64_t ld_ = 0;
  bool trans_ = false;
};

}  // namespace sdx::cpu
