#pragma once
// Reads parts of an array, or changes them by other elements: of all types that arrays have, aligned to their size. Split over
// current_pool(). Several changes to one place are applied in order; sums and products of 16-bit floats are rounded once.

#include <cstdint>
#include <vector>

#include <sdx/dtype.hpp>

namespace sdx::cpu {

// The effect of an update on the existing element.
enum class UpdateFn : std::uint8_t { set, add, multiply, maximum, minimum };

// The beginnings of blocks in the array, and their layout: rows of `run` elements that are contiguous both in the array and in
// the block.
struct Blocks {
  std::vector<std::int64_t> offsets;  // of each block in the array
  std::vector<std::int64_t> rows;     // of each row within a block of the array
  std::int64_t run = 1;
  std::int64_t size() const { return run * static_cast<std::int64_t>(rows.size()); }
};

// Copies the blocks of x to y, one after the other. Elements are of 1, 2, 4, 8 or 16 bytes.
void gather_blocks(int bytes, const Blocks& b, const void* x, void* y);
// The reverse: changes y by the blocks of x.
void scatter_blocks(UpdateFn fn, DataType type, const Blocks& b, const void* x, void* y);

// Lines along an axis: y is [outer, extent, inner], x and the places are [outer, picks, inner].
struct PickedLines {
  std::int64_t outer = 1, picks = 0, extent = 0, inner = 1;
};
// Changes y at places in [-extent, extent) by x.
void scatter_lines(UpdateFn fn, DataType type, const PickedLines& lines, const std::int64_t* places, const void* x, void* y);

// y[sum i * strides] += x (dense, extents dims), on one thread. Sums of 16-bit floats are rounded each time.
void add_strided_to(DataType type, const void* x, void* y, const std::vector<std::int64_t>& dims,
                    const std::vector<std::int64_t>& y_strides);

}  // namespace sdx::cpu
