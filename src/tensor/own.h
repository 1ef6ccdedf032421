#pragma once
// Whose memory values are, also that of tensors within sequences and maps.

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include <sdx/tensor.hpp>

namespace sdx {

// What a Value holds of a sequence, always.
struct HeldSequence final : Sequence, std::enable_shared_from_this<HeldSequence> {
  explicit HeldSequence(Sequence sequence) : Sequence(std::move(sequence)) {}

  // True: owns_memory() has found that all items do. It stays so: what is put in owns its memory (see sole_sequence()).
  mutable std::atomic<bool> owns_memory{false};
};

// Whether whoever holds the value keeps all of its memory alive: false where a tensor has no owner, and so is a view of memory
// that somebody else may take back.
bool owns_memory(const Value& v);

// `v` itself if owns_memory(), else with copies of the tensors that have no owner.
Value owned(const Value& v);

// The sequence for changing it, where `v` alone holds it; else null. Tensors that are put into it must own their memory.
Sequence* sole_sequence(Value& v);

// Copies what others hold as well, so that nobody but the caller sees `results`. Kernels may hand on an input, a constant, or one
// tensor as two outputs, alone or within a sequence. `given`: the run's inputs.
void unshare(std::vector<Value>& results, const std::vector<Value>& given);

}  // namespace sdx
