#include "kernels/cpu/ggml/ggml.h"

#include <algorithm>
#include <limits>

#include "base/thread_pool.h"
#include "kernels/cpu/gemm/gemm_args.h"
#include "kernels/cpu/gemm/gemm_block.h"
#include "kernels/cpu/ggml/ggml_bytes.h"
#include "kernels/cpu/ggml/ggml_simd.h"
#include "kernels/cpu/simd/scratch.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kDirectRows = 16;
constexpr std::int64_t kColumns = 16;  // rows of weights whose products are finished together
constexpr std::int64_t kLargestBlock = 256;

// Products of m rows of A, from row i on, with the weights of up to kColumns columns. Several rows of A stay in the first-level
// cache, in parts if they are long.
void products_of(const GgmlKernels& kernels, const GgmlArgs& a, std::int64_t i, std::int64_t m, const char* rows,
                 std::int64_t columns, float* products) {
  constexpr std::int64_t kPart = 768;  // whole blocks
  const std::int64_t row_bytes = a.format->row_bytes(a.k), part = m > 4 && a.k > kPart * 4 / 3 ? kPart : a.k;
  const bool pairs = kernels.dots_two != nullptr && m == 8;
  float sums[2 * 8];
  for (std::int64_t k = 0; k < a.k; k += part) {
    const char* at = rows + a.format->row_bytes(k);
    const std::int64_t length = std::min(part, a.k - k);
    const float* x = a.a + i * a.lda + k;
    for (std::int64_t j = 0, count = 0; j < columns; j += count) {
      count = pairs && j + 1 < columns ? 2 : 1;
      if (count == 2) {
        kernels.dots_two(a.format->type, at + j * row_bytes, row_bytes, length, x, a.lda, sums);
      } else {
        kernels.dots(a.format->type, at + j * row_bytes, length, x, a.lda, m, sums);
      }
      for (std::int64_t c = 0; c < count; ++c) {
        for (std::int64_t r = 0; r < m; ++r) {
          float& product = products[r * kColumns + j + c];
          product = k == 0 ? sums[c * m + r] : product + sums[c * m + r];
        }
      }
    }
  }
}

// The products of all rows with columns [first, first + columns), finished.
void few_rows_of(const GgmlKernels& kernels, const GgmlArgs& a, std::int64_t first, std::int64_t columns) {
  float products[kDirectRows * kColumns];
  const char* rows = static_cast<const char*>(a.weights) + first * a.format->row_bytes(a.k);
  for (std::int64_t i = 0, m = 0; i < a.m; i += m) {
    m = a.m - i >= 8 ? 8 : std::min<std::int64_t>(4, a.m - i);
    products_of(kernels, a, i, m, rows, columns, products + i * kColumns);
  }
  gemm_finish(gemm_kernels(), gemm_args_of(a), {0, a.m, first, columns}, products, kColumns);
}

std::int64_t groups_of(const GgmlArgs& a) { return (a.n + kColumns - 1) / kColumns; }
std::int64_t grain_of(const GgmlArgs& a) {
  return std::max<std::int64_t>(1, 100000 / std::max<std::int64_t>(1, a.k * kColumns * a.m));
}

void few_rows(const GgmlArgs& a) {
  const GgmlKernels& kernels = ggml_kernels();
  parallel_for(groups_of(a), grain_of(a), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t group = begin; group < end; ++group)
      few_rows_of(kernels, a, group * kColumns, std::min(kColumns, a.n - group * kColumns));
  });
}

bool is_direct(const GgmlArgs& a) { return a.m > 0 && a.n > 0 && a.m <= kDirectRows; }

// Expands whole blocks that cover [k0, k0 + kc), nr columns at a time, then puts them in the order of panels.
void expand_panels(const void* context, std::int64_t k0, std::int64_t kc, std::int64_t n0, std::int64_t nb, float* out) {
  const auto& a = *static_cast<const GgmlArgs*>(context);
  const GgmlKernels& kernels = ggml_kernels();
  const GemmKernels& gemm = gemm_kernels();
  const std::int64_t block = a.format->block, nr = gemm.nr, row_bytes = a.format->row_bytes(a.k);
  const std::int64_t first = k0 / block * block, last = std::min(a.k, (k0 + kc + block - 1) / block * block);
  const std::int64_t length = last - first;
  float* rows = thread_scratch(2, static_cast<std::size_t>(nr * (kGemmKBlock + 2 * kLargestBlock)));
  for (std::int64_t j = 0; j < nb; j += nr) {
    const std::int64_t columns = std::min(nr, nb - j);
    for (std::int64_t i = 0; i < columns; ++i) {
      const char* row = static_cast<const char*>(a.weights) + (n0 + j + i) * row_bytes + a.format->row_bytes(first);
      kernels.expand(a.format->type, row, length, rows + i * length);
    }
    gemm.pack_b_panels(reinterpret_cast<const char*>(rows + (k0 - first)), 1, length, kc, columns, 1.0F, out + j * kc);
  }
}

void in_floats(const GgmlArgs& a) {
  if (a.m <= 0 || a.n <= 0) return;
  if (is_direct(a)) {
    few_rows(a);
  } else {
    gemm_unpacking(gemm_args_of(a), {&a, expand_panels});
  }
}

// The products of all that are left, by their numbers.
void all_in_floats(std::span<const GgmlArgs> all, std::span<const std::size_t> left) {
  const GgmlKernels& kernels = ggml_kernels();
  std::int64_t groups = 0, grain = std::numeric_limits<std::int64_t>::max();
  for (const std::size_t i : left) {
    if (!is_direct(all[i])) continue;
    groups += groups_of(all[i]);
    grain = std::min(grain, grain_of(all[i]));
  }
  parallel_for(groups, grain, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t before = 0;
    for (const std::size_t i : left) {
      const GgmlArgs& a = all[i];
      if (!is_direct(a)) continue;
      const std::int64_t last = std::min(end - before, groups_of(a));
      for (std::int64_t group = std::max<std::int64_t>(0, begin - before); group < last; ++group)
        few_rows_of(kernels, a, group * kColumns, std::min(kColumns, a.n - group * kColumns));
      before += groups_of(a);
    }
  });
  for (const std::size_t i : left) {
    if (!is_direct(all[i])) in_floats(all[i]);
  }
}

}  // namespace

void ggml_gemm(const GgmlArgs& a) {
  if (!ggml_gemms_of_bytes({&a, 1}).empty()) in_floats(a);
}

void ggml_gemms(std::span<const GgmlArgs> all) { all_in_floats(all, ggml_gemms_of_bytes(all)); }

}  // namespace sdx::cpu
