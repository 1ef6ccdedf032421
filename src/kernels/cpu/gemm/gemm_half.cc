#include "kernels/cpu/gemm/gemm_half.h"

#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"
#include "kernels/cpu/gemm/gemm_block.h"
#include "kernels/cpu/gemm/gemm_half_simd.h"
#include "kernels/cpu/gemm/gemm_simd.h"
#include "kernels/cpu/simd/prefetch.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kDirectRows = 8;

struct Weights {
  const HalfKernels* kernels;
  HalfType type;
  const std::uint16_t* panels;
  std::int64_t k, nr;
};

void few_rows(const GemmArgs& a, const Weights& w) {
  const GemmKernels& gemm = gemm_kernels();
  const std::int64_t panels = (a.n + w.nr - 1) / w.nr;
  const std::int64_t grain = std::max<std::int64_t>(1, 100000 / std::max<std::int64_t>(1, a.k * w.nr * a.m));
  parallel_for(panels, grain, [&](std::int64_t begin, std::int64_t end) {
    float out[4 * 64];
    for (std::int64_t p = begin; p < end; ++p) {
      for (std::int64_t i = 0; i < a.m; i += 4) {
        const std::int64_t rows = std::min<std::int64_t>(4, a.m - i);
        w.kernels->panel(w.type, w.panels + p * w.k * w.nr, w.k, a.a + i * a.lda, a.lda, rows, out);
        gemm_finish(gemm, a, {i, rows, p * w.nr, std::min(w.nr, a.n - p * w.nr)}, out, w.nr);
      }
    }
  });
}

// Panels are laid out as in gemm_f32, but in 16 bits: rows [k0, k0 + kc) of a panel are contiguous.
void widen_panels(const void* context, std::int64_t k0, std::int64_t kc, std::int64_t n0, std::int64_t nb, float* out) {
  const auto& w = *static_cast<const Weights*>(context);
  for (std::int64_t j = 0; j < nb; j += w.nr) {
    // The next panel's part is elsewhere in memory, where the hardware's prefetch has to start again.
    const std::int64_t next = ((n0 + j + w.nr) * w.k + k0 * w.nr) * static_cast<std::int64_t>(sizeof(*w.panels));
    for (std::int64_t b = 0; b < 1024; b += 64) prefetch_after(w.panels, next + b);
    w.kernels->widen(w.type, w.panels + (n0 + j) * w.k + k0 * w.nr, kc * w.nr, out + j * kc);
  }
}

}  // namespace

GemmArgs float_args(const HalfGemmArgs& a) {
  GemmArgs g;
  g.m = a.m, g.n = a.n, g.k = a.k;
  g.a = a.a, g.lda = a.lda;
  g.c = a.c, g.ldc = a.ldc;
  g.epilogue.bias = a.bias;
  g.epilogue.residual = a.residual;
  g.epilogue.ld_residual = a.ld_residual;
  g.epilogue.act = a.act;
  return g;
}

std::size_t half_packed_bytes(std::int64_t k, std::int64_t n) {
  const std::int64_t nr = gemm_kernels().nr;
  return static_cast<std::size_t>((n + nr - 1) / nr * nr * k) * sizeof(std::uint16_t);
}

void half_pack(const void* w, std::int64_t ld, bool trans, std::int64_t k, std::int64_t n, void* packed) {
  const std::int64_t nr = gemm_kernels().nr;
  const auto* from = static_cast<const char*>(w);
  auto* panels = static_cast<std::uint16_t*>(packed);
  parallel_for((n + nr - 1) / nr, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      std::uint16_t* out = panels + p * k * nr;
      const std::int64_t columns = std::min(nr, n - p * nr);
      if (columns < nr) std::fill_n(out, k * nr, std::uint16_t{0});
      if (trans) {
        // Packs blocks of rows that stay in the first-level cache over all columns.
        constexpr std::int64_t kRows = 64;
        for (std::int64_t i0 = 0; i0 < k; i0 += kRows) {
          for (std::int64_t j = 0; j < columns; ++j) {
            const char* column = from + 2 * (p * nr + j) * ld;
            for (std::int64_t i = i0; i < std::min(k, i0 + kRows); ++i) std::memcpy(out + i * nr + j, column + 2 * i, 2);
          }
        }
      } else {
        for (std::int64_t i = 0; i < k; ++i) {
          std::memcpy(out + i * nr, from + 2 * (i * ld + p * nr), static_cast<std::size_t>(columns) * 2);
        }
      }
    }
  });
}

void half_gemm(const HalfGemmArgs& a) {
  if (a.m <= 0 || a.n <= 0) return;
  const Weights w{&half_kernels(), a.type, static_cast<const std::uint16_t*>(a.packed), a.k, gemm_kernels().nr};
  if (a.m <= kDirectRows) {
    few_rows(float_args(a), w);
  } else {
    gemm_unpacking(float_args(a), {&w, widen_panels});
  }
}

}  // namespace sdx::cpu
