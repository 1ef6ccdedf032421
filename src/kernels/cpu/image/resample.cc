#include "kernels/cpu/image/resample.h"

#include <algorithm>

#include "base/thread_pool.h"
#include "kernels/cpu/image/resample_simd.h"
#include "kernels/cpu/simd/scratch.h"

namespace sdx::cpu {
namespace {

template <class W>
std::int64_t rows_per_task(const AxisWeights<W>& rows, const AxisWeights<W>& columns) {
  constexpr std::int64_t kProducts = 32768;
  return std::max<std::int64_t>(1, kProducts / (columns.in * rows.count + columns.out * columns.count));
}

// Rows of results [begin, end) of all planes: down first, so that each row is needed once.
void shrink_rows(const float* x, float* y, const AxisWeights<float>& rows, const AxisWeights<float>& columns, std::int64_t begin,
                 std::int64_t end) {
  const ResampleKernels& k = resample_kernels();
  float* sums = thread_scratch(2, static_cast<std::size_t>(columns.in));
  for (std::int64_t r = begin; r < end; ++r) {
    const std::int64_t i = r % rows.out;
    k.down_f32(x + (r / rows.out * rows.in + rows.first[i]) * columns.in, columns.in, rows.weights + i * rows.count, rows.count,
               sums, columns.in);
    k.across_f32(sums, columns, y + r * columns.out);
  }
}

// Across first: rows are stretched once and kept while results need them, in a ring. The weights turn with it.
void enlarge_rows(const float* x, float* y, const AxisWeights<float>& rows, const AxisWeights<float>& columns, std::int64_t begin,
                  std::int64_t end) {
  const ResampleKernels& k = resample_kernels();
  float* ring = thread_scratch(2, static_cast<std::size_t>(rows.count * columns.out));
  float* turned = thread_scratch(3, static_cast<std::size_t>(rows.count));
  std::int64_t stretched = 0;  // rows of all planes before it are in the ring, or no longer needed
  for (std::int64_t r = begin; r < end; ++r) {
    const std::int64_t i = r % rows.out;
    const std::int64_t first = r / rows.out * rows.in + rows.first[i];
    for (std::int64_t j = 0; j < rows.count; ++j) {
      const std::int64_t row = first + j, place = row % rows.count;
      turned[place] = rows.weights[i * rows.count + j];
      if (row < stretched) continue;
      k.across_f32(x + row * columns.in, columns, ring + place * columns.out);
      stretched = row + 1;
    }
    k.down_f32(ring, columns.out, turned, rows.count, y + r * columns.out, columns.out);
  }
}

}  // namespace

void resample_f32(const float* x, float* y, std::int64_t planes, const AxisWeights<float>& rows,
                  const AxisWeights<float>& columns) {
  const auto task = rows.in < rows.out ? enlarge_rows : shrink_rows;
  parallel_for(planes * rows.out, rows_per_task(rows, columns),
               [&](std::int64_t begin, std::int64_t end) { task(x, y, rows, columns, begin, end); });
}

void resample_u8(const std::uint8_t* x, std::uint8_t* y, std::int64_t planes, const AxisWeights<double>& rows,
                 const AxisWeights<double>& columns) {
  const ResampleKernels& k = resample_kernels();
  parallel_for(planes * rows.out, rows_per_task(rows, columns), [&](std::int64_t begin, std::int64_t end) {
    auto* sums = reinterpret_cast<double*>(thread_scratch(2, static_cast<std::size_t>(2 * columns.in)));
    for (std::int64_t r = begin; r < end; ++r) {
      const std::int64_t i = r % rows.out;
      k.down_u8(x + (r / rows.out * rows.in + rows.first[i]) * columns.in, columns.in, rows.weights + i * rows.count, rows.count,
                sums, columns.in);
      k.across_u8(sums, columns, y + r * columns.out);
    }
  });
}

}  // namespace sdx::cpu
