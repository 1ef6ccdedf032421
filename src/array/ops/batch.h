#pragma once
// What rules for batches (vmap) have in common.

#include <cstdint>

#include "array/kind.h"

namespace sdx::array::detail {

// Input i with its batch axis first; as it is where it has none.
array batch_first(const VmapCall& c, std::size_t i);
// The same with an axis of the batch's extent in any case.
array batched(const VmapCall& c, std::size_t i);
bool is_batched(const VmapCall& c, std::size_t i);
// The rank of input i without its batch axis.
std::size_t inner_rank(const VmapCall& c, std::size_t i);
// One result, batched along its first axis.
VmapResult batch_result(array a);

// 0, 1, …, n - 1.
array iota(std::int64_t n);
// Zeros of this shape and element type.
array zeros_of(const Shape& shape, Dtype dtype);

}  // namespace sdx::array::detail
