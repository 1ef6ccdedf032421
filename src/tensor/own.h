#pragma once
// Ownership of values' memory, including that of tensors within sequences and maps.

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include <sdx/tensor.hpp>

namespace sdx {

// The type of every sequence in a Value.
struct HeldSequence final : Sequence, std::enable_shared_from_this<HeldSequence> {
  explicit HeldSequence(Sequence sequence) : Sequence(std::move(sequence)) {}

  // True: owns_memory() has found that all items own their memory. It stays true, because new items own theirs (see
  // sole_sequence()).
  mutable std::atomic<bool> owns_memory{false};
};

// Whether holding the value keeps all of its memory alive. False if a tensor has no owner, and so is a view of memory that may be
// freed.
bool owns_memory(const Value& v);

// Returns `v` itself if owns_memory(), else a value with copies of the tensors that have no owner.
Value owned(const Value& v);

// The sequence for changing it, where `v` alone holds it; else null. Tensors that are put into it must own their memory.
Sequence* sole_sequence(Value& v);

// Copies tensors that have other holders, so that only the caller sees `results`. Kernels may hand on an input, a constant, or
// one tensor as two outputs, alone or within a sequence. `given`: the run's inputs.
void unshare(std::vector<Value>& results, const std::vector<Value>& given);

}  // namespace sdx
