#pragma once
// Axes with steps, as shaders get them.

#include <array>
#include <vector>

#include "providers/vulkan/emitter.h"

namespace sdx::vulkan {

// One axis of a copy: its extent, and the elements from one position to the next in both places.
struct StridedAxis {
  std::int64_t extent = 1;
  std::array<std::int64_t, 2> step{};
};

// Without axes of extent 1; neighbours that both places step alike are one. Never empty.
std::vector<StridedAxis> merged(const std::vector<StridedAxis>& axes);

// The steps of an operand of `shape` along the axes of `out`: 0 where it repeats.
std::vector<std::int64_t> broadcast_steps(const Shape& shape, const Shape& out);

// 32-bit words of an element; 0: shaders do not move it.
std::int64_t words_of(DataType type);

// Copies elements of `words` words; offsets are in elements.
void emit_copy(Emitter& e, Operand from, std::int64_t from_offset, Operand to, std::int64_t to_offset, std::int64_t words,
               std::vector<StridedAxis> axes);

}  // namespace sdx::vulkan
