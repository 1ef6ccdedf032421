#include "kernels/cpu/gemm/gemm_half.h"

#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"
#include "kernels/cpu/gemm/gemm_simd.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm/gemm_half.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/simd/simd-inl.h"

#ifndef SDX_KERNELS_CPU_GEMM_HALF_CC_
#define SDX_KERNELS_CPU_GEMM_HALF_CC_
namespace sdx::cpu {

struct HalfKernels {
  // out[i * nr + j] for m in [1, 4] rows of x and one panel of nr columns, [k][nr].
  void (*panel)(HalfType type, const std::uint16_t* panel, std::int64_t k, const float* x, std::int64_t ldx, std::int64_t m,
                float* out);
  // n elements, a multiple of nr.
  void (*widen)(HalfType type, const std::uint16_t* x, std::int64_t n, float* y);
};

}  // namespace sdx::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

template <HalfType kType>
HWY_INLINE VF widened(const std::uint16_t* p) {
  if constexpr (kType == HalfType::bfloat16) return widened_bfloat(p);
#if HWY_TARGET <= HWY_AVX2
  const hn::Rebind<std::uint16_t, DF> d16;
  const hn::Rebind<hwy::float16_t, DF> dh;
  return hn::PromoteTo(DF(), hn::BitCast(dh, hn::LoadU(d16, p)));
#else
  return widened_half(p);
#endif
}

// M rows; one row has four sets of sums, for the latency of multiply-adds. The stream is read once, and the hardware's own
// prefetch stops at page borders: four kilobytes ahead.
template <HalfType kType, int M>
void panel_rows(const std::uint16_t* w, std::int64_t k, const float* x, std::int64_t ldx, float* out) {
  const DF d;
  const std::int64_t lanes = lanes_f32(), nr = 2 * lanes;
  constexpr int kSets = M == 1 ? 4 : M == 2 ? 2 : 1;
  VF s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0, t0 = s0, t1 = s0, t2 = s0, t3 = s0;
  const auto step = [&](std::int64_t i, VF& a, VF& b, const float* row) HWY_ATTR {
    const VF v = hn::Set(d, row[i]);
    a = hn::MulAdd(v, widened<kType>(w + i * nr), a);
    b = hn::MulAdd(v, widened<kType>(w + i * nr + lanes), b);
  };
  std::int64_t i = 0;
  for (; i + kSets <= k; i += kSets) {
    const auto ahead = reinterpret_cast<std::uintptr_t>(w + i * nr) + 4096;
    __builtin_prefetch(reinterpret_cast<const void*>(ahead));
    if (kSets * nr * 2 > 64) __builtin_prefetch(reinterpret_cast<const void*>(ahead + 64));
    if (kSets * nr * 2 > 128) {
      __builtin_prefetch(reinterpret_cast<const void*>(ahead + 128));
      __builtin_prefetch(reinterpret_cast<const void*>(ahead + 192));
    }
    step(i, s0, t0, x);
    if constexpr (M == 1) {
      step(i + 1, s1, t1, x);
      step(i + 2, s2, t2, x);
      step(i + 3, s3, t3, x);
    } else if constexpr (M == 2) {
      step(i, s1, t1, x + ldx);
      step(i + 1, s2, t2, x);
      step(i + 1, s3, t3, x + ldx);
    } else {
      step(i, s1, t1, x + ldx);
      step(i, s2, t2, x + 2 * ldx);
      if constexpr (M == 4) step(i, s3, t3, x + 3 * ldx);
    }
  }
  for (; i < k; ++i) {
    step(i, s0, t0, x);
    if constexpr (M > 1) step(i, s1, t1, x + ldx);
    if constexpr (M > 2) step(i, s2, t2, x + 2 * ldx);
    if constexpr (M > 3) step(i, s3, t3, x + 3 * ldx);
  }
  if constexpr (M == 1) {
    s0 = hn::Add(hn::Add(s0, s1), hn::Add(s2, s3));
    t0 = hn::Add(hn::Add(t0, t1), hn::Add(t2, t3));
  } else if constexpr (M == 2) {
    s0 = hn::Add(s0, s2), t0 = hn::Add(t0, t2);
    s1 = hn::Add(s1, s3), t1 = hn::Add(t1, t3);
  }
  const auto put = [&](int row, VF a, VF b) HWY_ATTR {
    hn::StoreU(a, d, out + row * nr);
    hn::StoreU(b, d, out + row * nr + lanes);
  };
  put(0, s0, t0);
  if constexpr (M > 1) put(1, s1, t1);
  if constexpr (M > 2) put(2, s2, t2);
  if constexpr (M > 3) put(3, s3, t3);
}

template <HalfType kType>
void panel_of(const std::uint16_t* w, std::int64_t k, const float* x, std::int64_t ldx, std::int64_t m, float* out) {
  switch (m) {
    case 1: return panel_rows<kType, 1>(w, k, x, ldx, out);
    case 2: return panel_rows<kType, 2>(w, k, x, ldx, out);
    case 3: return panel_rows<kType, 3>(w, k, x, ldx, out);
    default: return panel_rows<kType, 4>(w, k, x, ldx, out);
  }
}

void panel(HalfType type, const std::uint16_t* w, std::int64_t k, const float* x, std::int64_t ldx, std::int64_t m, float* out) {
  if (type == HalfType::float16) return panel_of<HalfType::float16>(w, k, x, ldx, m, out);
  panel_of<HalfType::bfloat16>(w, k, x, ldx, m, out);
}

template <HalfType kType>
void widen_all(const std::uint16_t* x, std::int64_t n, float* y) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  for (std::int64_t i = 0; i < n; i += lanes) hn::StoreU(widened<kType>(x + i), d, y + i);
}

void widen(HalfType type, const std::uint16_t* x, std::int64_t n, float* y) {
  if (type == HalfType::float16) return widen_all<HalfType::float16>(x, n, y);
  widen_all<HalfType::bfloat16>(x, n, y);
}

}  // namespace

const HalfKernels* half_table() {
  static const HalfKernels table{panel, widen};
  return &table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

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
        gemm_finish(gemm, a, i, rows, p * w.nr, std::min(w.nr, a.n - p * w.nr), out, w.nr);
      }
    }
  });
}

// Panels are as gemm_f32 has them, but for the type: rows [k0, k0 + kc) of one are contiguous.
void widen_panels(const void* context, std::int64_t k0, std::int64_t kc, std::int64_t n0, std::int64_t nb, float* out) {
  const auto& w = *static_cast<const Weights*>(context);
  for (std::int64_t j = 0; j < nb; j += w.nr) {
    // The next panel's part begins elsewhere, where the hardware's prefetch starts anew.
    const auto next = reinterpret_cast<std::uintptr_t>(w.panels + (n0 + j + w.nr) * w.k + k0 * w.nr);
    for (std::uintptr_t b = 0; b < 1024; b += 64) __builtin_prefetch(reinterpret_cast<const void*>(next + b));
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
        // In blocks of rows that stay in the first-level cache while the columns go by.
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
  const Weights w{SDX_CPU_PICK(half_table)(), a.type, static_cast<const std::uint16_t*>(a.packed), a.k, gemm_kernels().nr};
  if (a.m <= kDirectRows) {
    few_rows(float_args(a), w);
  } else {
    gemm_unpacking(float_args(a), {&w, widen_panels});
  }
}

}  // namespace sdx::cpu
#endif
