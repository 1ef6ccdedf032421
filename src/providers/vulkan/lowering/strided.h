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

// The axes of `out` with the steps of two operands that are broadcast to it, merged.
std::vector<StridedAxis> broadcast_axes(const Shape& x, const Shape& y, const Shape& out);

// Appends what shaders read of axes: how many, kMostAxes extents, the steps in the first place, those in the second.
void add_axes(Dispatch& d, std::vector<StridedAxis> axes);

// 32-bit words of an element; 0: shaders do not move it.
std::int64_t words_of(DataType type);

// The number by which shaders know a type that they compare and convert; 4: none.
std::uint32_t type_number(DataType type);

// Copies elements of `words` words; offsets are in elements.
void emit_copy(Emitter& e, Operand from, std::int64_t from_offset, Operand to, std::int64_t to_offset, std::int64_t words,
               std::vector<StridedAxis> axes);

}  // namespace sdx::vulkan
