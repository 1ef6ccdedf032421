#include "kernels/cpu/optimizer/update.h"

#include <algorithm>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/optimizer/update_simd.h"

namespace sdx::cpu {
namespace {

// Elements per task: 16 KB and more of each array. Tasks begin at multiples of it, as vectors do.
constexpr std::int64_t kBlock = 4096;

std::int64_t blocks_of(std::int64_t n) { return (n + kBlock - 1) / kBlock; }

// fn(slice, first element, last) over all blocks of `count` slices; slice i has `size(i)` elements.
template <class Size, class F>
void over_blocks(std::size_t count, Size&& size, F&& fn) {
  std::int64_t total = 0;
  for (std::size_t i = 0; i < count; ++i) total += blocks_of(size(i));
  parallel_for(total, 4, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t first = 0;  // block of slice i
    for (std::size_t i = 0; i < count && first < end; ++i) {
      const std::int64_t blocks = blocks_of(size(i));
      const std::int64_t from = std::max(begin, first) - first, to = std::min(end, first + blocks) - first;
      if (from < to) fn(i, from * kBlock, std::min(size(i), to * kBlock), first + from);
      first += blocks;
    }
  });
}

}  // namespace

void update_f32(const UpdateRule& rule, std::span<const UpdateSlice> slices) {
  const UpdateKernels& k = update_kernels();
  over_blocks(
      slices.size(), [&](std::size_t i) { return slices[i].n; },
      [&](std::size_t i, std::int64_t from, std::int64_t to, std::int64_t) { k.update(rule, slices[i], from, to); });
}

void accumulate_f32(const float* from, float* to, std::int64_t n) {
  const UpdateKernels& k = update_kernels();
  over_blocks(
      1, [&](std::size_t) { return n; },
      [&](std::size_t, std::int64_t begin, std::int64_t end, std::int64_t) {
        k.accumulate(from + begin, to + begin, end - begin);
      });
}

double sum_of_squares_f32(std::span<const FloatSpan> spans) {
  const UpdateKernels& k = update_kernels();
  std::int64_t blocks = 0;
  for (const FloatSpan& s : spans) blocks += blocks_of(s.n);
  std::vector<double> sums(static_cast<std::size_t>(blocks), 0);
  over_blocks(
      spans.size(), [&](std::size_t i) { return spans[i].n; },
      [&](std::size_t i, std::int64_t from, std::int64_t to, std::int64_t block) {
        for (; from < to; from += kBlock, ++block) {
          sums[static_cast<std::size_t>(block)] = k.sum_of_squares(spans[i].data + from, std::min(kBlock, to - from));
        }
      });
  double total = 0;
  for (const double s : sums) total += s;
  return total;
}

}  // namespace sdx::cpu
