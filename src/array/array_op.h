#pragma once
// What operators of arrays see when they run: inputs and attributes, of which one has the types of the results: the operation
// knows them, so Emitter::results() states them.

#include "array/emitter.h"
#include "ops/context.h"

namespace sdx::array::detail {

inline constexpr const char* kResultTypes = "results";  // the attribute's name

// Input 0, which may be the same memory, or zeros where it is left out.
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
