#include "base/arena/arena.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace sdx {

std::size_t assign_offsets(std::vector<BufferRequest>& buffers) {
  std::vector<std::size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return buffers[a].bytes > buffers[b].bytes; });
  std::vector<std::size_t> placed;  // sorted by offset
  std::size_t total = 0;
  for (const std::size_t i : order) {
    BufferRequest& b = buffers[i];
    const std::size_t size = (b.bytes + 63) / 64 * 64;
    std::size_t at = 0;
    for (const std::size_t j : placed) {
      const BufferRequest& p = buffers[j];
      if (p.last < b.first || b.last < p.first) continue;
      if (at + size <= p.offset) break;
      at = std::max(at, p.offset + (p.bytes + 63) / 64 * 64);
    }
    if (at > SIZE_MAX / 4 || size > SIZE_MAX / 4) {
      fail(ErrorCode::out_of_memory, "the intermediate results of this model do not fit in memory");
    }
    b.offset = at;
    total = std::max(total, at + size);
    const auto where = std::lower_bound(placed.begin(), placed.end(), at,
                                        [&](std::size_t j, std::size_t offset) { return buffers[j].offset < offset; });
    placed.insert(where, i);
  }
  return total;
}

}  // namespace sdx
