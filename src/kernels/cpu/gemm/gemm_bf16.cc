#include "kernels/cpu/gemm/gemm_bf16.h"

#include <algorithm>
#include <cstring>

#include "base/system/cpu_bf16.h"
#include "base/thread_pool.h"
#include "kernels/cpu/gemm/gemm_bf16_simd.h"
#include "kernels/cpu/gemm/gemm_block.h"
#include "kernels/cpu/gemm/gemm_simd.h"
#include "kernels/cpu/simd/cuts.h"
#include "kernels/cpu/simd/scratch.h"

namespace sdx::cpu {
namespace {

// A block of a panel has as many bytes as gemm_f32 keeps in the first-level cache.
constexpr std::int64_t kBlockPairs = kGemmKBlock;
// Rows to multiply by all columns of a task before the next rows: at most 0.8 MB, in the second-level cache.
constexpr std::int64_t kMostRows = 120;
constexpr std::int64_t kMostValues = 384 * 1024;
constexpr std::int64_t kLine = 32;  // values in a cache line

std::int64_t pairs_of(std::int64_t k) { return (k + 1) / 2; }

// An odd number of cache lines, so that neighbouring rows map to different cache sets.
std::int64_t row_stride(std::int64_t k) { return ((k + kLine - 1) / kLine | 1) * kLine; }

struct Rows {
  std::int64_t first;
  std::int64_t count;
  const std::uint16_t* values;
  std::int64_t stride;
};

Rows rounded(const Bf16Kernels& kernels, const GemmArgs& a, std::int64_t first, std::int64_t count) {
  const std::int64_t stride = row_stride(a.k);
  auto* values = reinterpret_cast<std::uint16_t*>(thread_scratch(0, static_cast<std::size_t>(count * stride / 2)));
  for (std::int64_t i = 0; i < count; ++i) kernels.round(a.a + (first + i) * a.lda, a.k, values + i * stride);
  return {first, count, values, stride};
}

// Multiplies all of K for some rows and one panel.
void panel_product(const Bf16Kernels& kernels, const GemmKernels& gemm, const GemmArgs& a, const Rows& rows,
                   const std::uint16_t* panel, std::int64_t column, float* sums) {
  const std::int64_t pairs = pairs_of(a.k), nr = kernels.nr;
  const Cuts tiles(rows.count, kernels.mr);
  for (std::int64_t p = 0; p == 0 || p < pairs; p += kBlockPairs) {
    for (std::int64_t i = 0; i < tiles.parts; ++i) {
      const std::int64_t row = tiles.begin(i);
      Bf16Tile t;
      t.a = rows.values + row * rows.stride + 2 * p;
      t.stride = rows.stride;
      t.b = panel + 2 * p * nr;
      t.pairs = std::min(kBlockPairs, pairs - p);
      t.sums = sums + row * nr;
      t.add = p > 0;
      kernels.tile(t, tiles.size(i));
      if (p + kBlockPairs >= pairs) {
        gemm_finish(gemm, a, {rows.first + row, tiles.size(i), column, std::min(nr, a.n - column)}, t.sums, nr);
      }
    }
  }
}

void block(const Bf16Kernels& kernels, const GemmArgs& a, const std::uint16_t* panels, std::int64_t m0, std::int64_t m1,
           std::int64_t p0, std::int64_t p1) {
  const GemmKernels& gemm = gemm_kernels();
  const std::int64_t nr = kernels.nr, size = 2 * pairs_of(a.k) * nr;
  const std::int64_t tiles = std::clamp<std::int64_t>(kMostValues / row_stride(a.k) / kernels.mr, 1, kMostRows / kernels.mr);
  const Cuts parts(m1 - m0, tiles * kernels.mr);
  float* sums = thread_scratch(1, static_cast<std::size_t>(kMostRows * nr));
  for (std::int64_t i = 0; i < parts.parts; ++i) {
    const Rows rows = rounded(kernels, a, m0 + parts.begin(i), parts.size(i));
    for (std::int64_t p = p0; p < p1; ++p) panel_product(kernels, gemm, a, rows, panels + p * size, p * nr, sums);
  }
}

}  // namespace

bool has_bf16_dots() { return bf16_kernels() != nullptr && use_bf16(cpu_isa()); }

std::size_t bf16_packed_bytes(std::int64_t k, std::int64_t n) {
  const std::int64_t nr = bf16_kernels()->nr;
  return static_cast<std::size_t>((n + nr - 1) / nr * nr * 2 * pairs_of(k)) * sizeof(std::uint16_t);
}

void bf16_pack(const void* w, std::int64_t ld, bool trans, std::int64_t k, std::int64_t n, void* packed) {
  const std::int64_t nr = bf16_kernels()->nr, size = 2 * pairs_of(k) * nr;
  const auto* from = static_cast<const char*>(w);
  parallel_for((n + nr - 1) / nr, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      std::uint16_t* out = static_cast<std::uint16_t*>(packed) + p * size;
      const std::int64_t columns = std::min(nr, n - p * nr);
      if (columns < nr || k % 2 != 0) std::fill_n(out, size, std::uint16_t{0});
      const auto put = [&](std::int64_t i, std::int64_t j, const char* value) {
        std::memcpy(out + (i / 2 * nr + j) * 2 + i % 2, value, 2);
      };
      if (!trans) {
        for (std::int64_t i = 0; i < k; ++i) {
          for (std::int64_t j = 0; j < columns; ++j) put(i, j, from + 2 * (i * ld + p * nr + j));
        }
        continue;
      }
      // Packs blocks of rows that stay in the first-level cache over all columns.
      constexpr std::int64_t kRows = 64;
      for (std::int64_t i0 = 0; i0 < k; i0 += kRows) {
        for (std::int64_t j = 0; j < columns; ++j) {
          for (std::int64_t i = i0; i < std::min(k, i0 + kRows); ++i) put(i, j, from + 2 * ((p * nr + j) * ld + i));
        }
      }
    }
  });
}

namespace {

// For W [n, k]: rounds a panel's rows and then transposes their pairs, 64 pairs at a time, so that what is read with strides
// stays in the first-level cache.
void pack_rounded_rows(const Bf16Kernels& kernels, const float* w, std::int64_t ld, std::int64_t k, std::int64_t n,
                       void* packed) {
  const std::int64_t nr = kernels.nr, pairs = pairs_of(k);
  parallel_for((n + nr - 1) / nr, 1, [&](std::int64_t begin, std::int64_t end) {
    auto* rows = reinterpret_cast<std::uint32_t*>(thread_scratch(0, static_cast<std::size_t>(nr * pairs)));
    for (std::int64_t p = begin; p < end; ++p) {
      const std::int64_t columns = std::min(nr, n - p * nr);
      for (std::int64_t j = 0; j < columns; ++j) {
        kernels.round(w + (p * nr + j) * ld, k, reinterpret_cast<std::uint16_t*>(rows + j * pairs));
      }
      auto* out = static_cast<std::uint32_t*>(packed) + p * pairs * nr;
      if (columns < nr) std::fill_n(out, pairs * nr, 0U);
      for (std::int64_t first = 0; first < pairs; first += 64) {
        const std::int64_t last = std::min(pairs, first + 64);
        for (std::int64_t j = 0; j < columns; ++j) {
          for (std::int64_t i = first; i < last; ++i) out[i * nr + j] = rows[j * pairs + i];
        }
      }
    }
  });
}

}  // namespace

void bf16_pack_rounded(const float* w, std::int64_t ld, bool trans, std::int64_t k, std::int64_t n, void* packed) {
  const Bf16Kernels& kernels = *bf16_kernels();
  if (trans) return pack_rounded_rows(kernels, w, ld, k, n, packed);
  const std::int64_t nr = kernels.nr, pairs = pairs_of(k), panels = (n + nr - 1) / nr;
  parallel_for(pairs, std::max<std::int64_t>(1, 20000 / std::max<std::int64_t>(1, n)), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const float *even = w + 2 * i * ld, *odd = 2 * i + 1 < k ? even + ld : nullptr;
      for (std::int64_t p = 0; p < panels; ++p) {
        std::uint16_t* out = static_cast<std::uint16_t*>(packed) + (p * pairs + i) * 2 * nr;
        const std::int64_t columns = std::min(nr, n - p * nr);
        kernels.interleave(even + p * nr, odd == nullptr ? nullptr : odd + p * nr, columns, out);
        std::fill(out + 2 * columns, out + 2 * nr, std::uint16_t{0});
      }
    }
  });
}

void bf16_gemm(const HalfGemmArgs& args) {
  if (args.m <= 0 || args.n <= 0) return;
  const Bf16Kernels& kernels = *bf16_kernels();
  const GemmArgs a = float_args(args);
  const auto* packed = static_cast<const std::uint16_t*>(args.packed);
  const TaskGrid grid = choose_grid(gemm_kernels(), a.m, a.n, a.k, 1, true);
  const Cuts tiles(a.m, kernels.mr);
  const std::int64_t panels = (a.n + kernels.nr - 1) / kernels.nr;
  const Cuts row_cuts(tiles.parts, (tiles.parts + grid.rows - 1) / grid.rows);
  const Cuts column_cuts(panels, (panels + grid.columns - 1) / grid.columns);
  parallel_for(row_cuts.parts * column_cuts.parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t r = i / column_cuts.parts, c = i % column_cuts.parts;
      block(kernels, a, packed, tiles.begin(row_cuts.begin(r)), tiles.begin(row_cuts.begin(r + 1)), column_cuts.begin(c),
            column_cuts.begin(c + 1));
    }
  });
}

}  // namespace sdx::cpu
