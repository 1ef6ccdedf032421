#pragma once
// Operators of arrays, in domain sdx.array: a kernel that sees the node's attributes. The types of the results are an attribute
// too, which Emitter::results() sets.

#include "array/emitter.h"
#include "ops/context.h"

namespace sdx::array::detail {

ArrayOp array_op(const char* name, ops::RunFn run);
// Whose output may overwrite input 0, which `run` has it begin with by start_from_input().
ArrayOp updating_op(const char* name, ops::RunFn run);
void start_from_input(ops::OpContext& c, Tensor& out);

// Element i of a tensor, counted in memory.
inline const std::byte* at_element(const Tensor& t, std::int64_t i) {
  return static_cast<const std::byte*>(t.data()) + i * (bit_width(t.dtype()) / 8);
}
inline std::byte* at_element(Tensor& t, std::int64_t i) {
  return static_cast<std::byte*>(t.mutable_data()) + i * (bit_width(t.dtype()) / 8);
}

// Output i, of the type and shape that the node states, to write into.
Tensor& result_tensor(ops::OpContext& c, std::size_t i = 0);

}  // namespace sdx::array::detail
