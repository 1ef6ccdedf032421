#pragma once
// How tensors seen as [outer, axis, inner] are split over the current pool; internal to this folder.

#include <algorithm>
#include <cstdint>

#include "base/thread_pool.h"

namespace sdx::cpu {

// Number of items, of `work` elements each, that give a task about `elements` elements.
inline std::int64_t grain(std::int64_t work, std::int64_t elements) {
  return std::max<std::int64_t>(1, elements / std::max<std::int64_t>(1, work));
}

// fn(outer index, first column, end column) over [outer, inner].
template <class F>
void over_columns(std::int64_t outer, std::int64_t axis, std::int64_t inner, std::int64_t elements, F&& fn) {
  // Columns handled together: whole vectors, and enough for runs of 256 bytes and more.
  constexpr std::int64_t kColumns = 64;
  const std::int64_t blocks = (inner + kColumns - 1) / kColumns;
  parallel_for(outer * blocks, grain(axis * std::min(inner, kColumns), elements), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end;) {
      // Adjacent blocks of one slice share a call.
      const std::int64_t slice = i / blocks;
      const std::int64_t stop = std::min(end, (slice + 1) * blocks);
      fn(slice, (i - slice * blocks) * kColumns, std::min(inner, (stop - slice * blocks) * kColumns));
      i = stop;
    }
  });
}

}  // namespace sdx::cpu
