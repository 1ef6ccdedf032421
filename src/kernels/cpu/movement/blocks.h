#pragma once
// Parts of an array that are read, or changed by other elements: of all types that arrays have, aligned to their size. Split over
// current_pool(). Where several changes go to one place they come in order; of 16-bit floats sums and products are rounded once.

#include <cstdint>
#include <vector>

#include <sdx/dtype.hpp>

namespace sdx::cpu {

// What becomes of the element that is there.
enum class UpdateFn : std::uint8_t { set, add, multiply, maximum, minimum };

// Where blocks begin in the array, and how they lie: rows of `run` elements that are contiguous in array and block alike.
struct Blocks {
  std::vector<std::int64_t> offsets;  // of each block in the array
  std::vector<std::int64_t> rows;     // of each row within a block of the array
  std::int64_t run = 1;
  std::int64_t size() const { return run * static_cast<std::int64_t>(rows.size()); }
};

// y: the blocks of x, one after the other. Elements are of 1, 2, 4, 8 or 16 bytes.
void gather_blocks(int bytes, const Blocks& b, const void* x, void* y);
// The reverse: changes y by x.
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
