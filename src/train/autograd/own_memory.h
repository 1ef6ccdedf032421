#pragma once
// Finds tensors that share memory.

#include <span>
#include <vector>

#include <sdx/tensor.hpp>

namespace sdx::train {

// Copies those of `tensors` whose memory belongs to one of `others`, or to another of `tensors`, because the receiver may change
// them. Passes join values that are equal, and results may be views of inputs.
void own_memory(std::vector<Tensor>& tensors, std::span<const std::span<const Tensor>> others);

// The numbers in `known`, then those of `tensors` that share memory with one of `kept`.
std::vector<std::size_t> with_shared(std::vector<std::size_t> known, std::span<const Tensor> tensors,
                                     std::span<const Tensor> kept);

}  // namespace sdx::train
