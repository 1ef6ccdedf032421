#include "kernels/cpu/conv/int8/quant_nhwc_simd.h"

#include "base/system/cpu_features.h"
#include "kernels/cpu/conv/int8/neon/quant_quads_neon.h"
#include "kernels/cpu/conv/int8/quant_bounded.h"
#include "kernels/cpu/conv/int8/quant_nhwc_vnni.h"
#include "kernels/cpu/quant/two_sums.h"
#include "kernels/cpu/simd/repeat.h"
#include "kernels/cpu/simd/target_width.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/int8/quant_nhwc_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/conv/int8/quant_finish-inl.h"
#include "kernels/cpu/quant/quant_epilogue-inl.h"
#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

constexpr int kMr = kPairTileRows;

#if HWY_TARGET == HWY_SCALAR

// Computes rows [first, first + R). Values are bytes less a zero point, so 512 products fit int32.
template <int R>
void few_rows(const QRows& t, int first) {
  std::uint64_t sums[R] = {};
  const std::int16_t* a = t.a + first * t.stride;
  const std::int16_t* b = t.b;
  for (std::int64_t p = 0; p < t.pairs; ++p, a += 2, b += 4) {
    std::uint64_t b0 = two_values(b[0], b[2]), b1 = two_values(b[1], b[3]);
    keep_whole(b0, b1);
    for (int i = 0; i < R; ++i) sums[i] += times(b0, a[i * t.stride]) + times(b1, a[i * t.stride + 1]);
  }
  for (int i = 0; i < R; ++i) {
    std::int32_t* out = t.sums + 2 * (first + i);
    out[0] = static_cast<std::int32_t>((t.add ? static_cast<std::uint32_t>(out[0]) : 0) + low_sum(sums[i]));
    out[1] = static_cast<std::int32_t>((t.add ? static_cast<std::uint32_t>(out[1]) : 0) + high_sum(sums[i]));
  }
}

template <int M, bool kHalf>
void product(const QRows& t) {
  for (int i = 0; i + 4 <= M; i += 4) few_rows<4>(t, i);
  if constexpr (M % 4 != 0) few_rows<M % 4>(t, M / 4 * 4);
}

#else

template <int M, bool kHalf>
HWY_NOINLINE void product(const QRows& t) {
  const DI d;
  const D16 d16;
  const std::int64_t lanes = lanes_f32();
  // One pointer for every three rows: a pointer for each of 12 rows would not fit the registers.
  const std::int64_t s = t.stride;
  const std::int16_t* HWY_RESTRICT a[4] = {t.a, t.a + 3 * s, t.a + 6 * s, t.a + 9 * s};
  const std::int16_t* HWY_RESTRICT b = t.b;
  std::int32_t* HWY_RESTRICT out = t.sums;
#define SDX_DECLARE(I)   \
  VI c##I = hn::Zero(d); \
  VI e##I = hn::Zero(d); \
  (void)c##I;            \
  (void)e##I;
  SDX_REPEAT_12(SDX_DECLARE)
#define SDX_LOAD(I)                                                        \
  if constexpr (M > I) {                                                   \
    c##I = hn::Load(d, out + 2 * lanes * I);                               \
    if constexpr (!kHalf) e##I = hn::Load(d, out + 2 * lanes * I + lanes); \
  }
  if (t.add) {
    SDX_REPEAT_12(SDX_LOAD)
  }
  for (std::int64_t p = 0; p < t.pairs; ++p) {
    const V16 b0 = hn::LoadU(d16, b);
    const V16 b1 = kHalf ? b0 : hn::LoadU(d16, b + 2 * lanes);
#define SDX_STEP(I)                                                                \
  if constexpr (M > I) {                                                           \
    const V16 v = hn::BitCast(d16, hn::Set(d, read_pair(a[I / 3] + (I % 3) * s))); \
    c##I = pair_add(c##I, v, b0);                                                  \
    if constexpr (!kHalf) e##I = pair_add(e##I, v, b1);                            \
  }
    SDX_REPEAT_12(SDX_STEP)
    for (int i = 0; i < (M + 2) / 3; ++i) a[i] += 2;
    b += 4 * lanes;
  }
#define SDX_STORE(I)                                                       \
  if constexpr (M > I) {                                                   \
    hn::Store(c##I, d, out + 2 * lanes * I);                               \
    if constexpr (!kHalf) hn::Store(e##I, d, out + 2 * lanes * I + lanes); \
  }
  SDX_REPEAT_12(SDX_STORE)
#undef SDX_STORE
#undef SDX_STEP
#undef SDX_LOAD
#undef SDX_DECLARE
}

#endif

template <bool kHalf>
void product_rows(const QRows& t) {
  switch (t.m) {
#define SDX_CASE(I)                                                         \
  case I + 1:                                                               \
    if constexpr (I < kMr) return product<(I < kMr ? I + 1 : 1), kHalf>(t); \
    break;
    SDX_REPEAT_12(SDX_CASE)
#undef SDX_CASE
    default: break;
  }
}

void product_of(const QRows& t) {
#if SDX_512_BITS
  static const bool vnni = use_vnni(Isa::avx512) && qnhwc_vnni_product(1) != nullptr;
  if (vnni) return qnhwc_vnni_product(t.m)(t);
#endif
  t.half ? product_rows<true>(t) : product_rows<false>(t);
}

#if HWY_TARGET == HWY_AVX2

constexpr int kCrossedMr = 4;  // with 4 registers for weights, 2 for rows and 2 for intermediate sums, all 16 are used

template <int M>
HWY_NOINLINE void crossed(const QRows& t) {
  const DI d;
  const D16 d16;
  const std::int64_t s = t.stride;
  const std::int16_t* HWY_RESTRICT a = t.a;
  const std::int16_t* HWY_RESTRICT b = t.b;
  std::int32_t* HWY_RESTRICT out = t.sums;
  VI c0 = hn::Zero(d), c1 = c0, c2 = c0, c3 = c0, e0 = c0, e1 = c0, e2 = c0, e3 = c0;
#define SDX_START(I)                                                               \
  if constexpr (M > I) {                                                           \
    if (t.add) {                                                                   \
      c##I = hn::Load(d, out + 16 * I);                                            \
      e##I = hn::Load(d, out + 16 * I + 8);                                        \
    } else {                                                                       \
      const VI row = hn::Set(d, t.row_cross[I]);                                   \
      c##I = hn::Sub(hn::Sub(hn::Zero(d), row), hn::LoadU(d, t.column_cross));     \
      e##I = hn::Sub(hn::Sub(hn::Zero(d), row), hn::LoadU(d, t.column_cross + 8)); \
    }                                                                              \
  }
  SDX_REPEAT_4(SDX_START)
  const std::int64_t pairs = t.pairs;
  for (std::int64_t p = 0; p < pairs; p += 2) {
    const V16 b00 = hn::LoadU(d16, b);
    const V16 b01 = hn::LoadU(d16, b + 16);
    const V16 b10 = hn::LoadU(d16, b + 32);
    const V16 b11 = hn::LoadU(d16, b + 48);
#define SDX_STEP(I)                                                       \
  if constexpr (M > I) {                                                  \
    const V16 x = hn::BitCast(d16, hn::Set(d, read_pair(a + I * s)));     \
    const V16 y = hn::BitCast(d16, hn::Set(d, read_pair(a + I * s + 2))); \
    c##I = pair_add(c##I, hn::Add(x, b10), hn::Add(y, b00));              \
    e##I = pair_add(e##I, hn::Add(x, b11), hn::Add(y, b01));              \
  }
    SDX_REPEAT_4(SDX_STEP)
    a += 4;
    b += 64;
  }
#define SDX_STORE(I)                      \
  if constexpr (M > I) {                  \
    hn::Store(c##I, d, out + 16 * I);     \
    hn::Store(e##I, d, out + 16 * I + 8); \
  }
  SDX_REPEAT_4(SDX_STORE)
#undef SDX_STORE
#undef SDX_STEP
#undef SDX_START
}

void crossed_of(const QRows& t) {
  switch (t.m) {
    case 1: return crossed<1>(t);
    case 2: return crossed<2>(t);
    case 3: return crossed<3>(t);
    default: return crossed<4>(t);
  }
}

void cross_rows(const std::int16_t* rows, std::int64_t count, std::int64_t stride, std::int64_t pairs, std::int32_t* out) {
  const DI d;
  const D16 d16;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int16_t* a = rows + i * stride;
    VI sum = hn::Zero(d);
    std::int64_t k = 0;
    for (; k + 16 <= 2 * pairs; k += 16) {
      const V16 v = hn::LoadU(d16, a + k);
      // Both pairs of a quad would give the same product, so the upper one is zeroed.
      const V16 swapped = V16{_mm256_shuffle_epi32(v.raw, 0xB1)};
      sum = pair_add(sum, V16{_mm256_blend_epi32(_mm256_setzero_si256(), v.raw, 0x55)}, swapped);
    }
    auto total = static_cast<std::uint32_t>(hn::GetLane(hn::SumOfLanes(d, sum)));
    for (; k < 2 * pairs; k += 4) total += static_cast<std::uint32_t>(a[k] * a[k + 2] + a[k + 1] * a[k + 3]);
    out[i] = static_cast<std::int32_t>(total);
  }
}

#else

constexpr int kCrossedMr = 0;
constexpr void (*crossed_of)(const QRows&) = nullptr;
void cross_rows(const std::int16_t*, std::int64_t, std::int64_t, std::int64_t, std::int32_t*) {}

#endif

void widen_panel(const std::int8_t* b, std::int64_t n, std::int16_t* out) {
#if HWY_TARGET == HWY_SCALAR
  for (std::int64_t i = 0; i < n; ++i) out[i] = b[i];
#else
  const D16 d16;
  const hn::Rebind<std::int8_t, D16> d8;
  const std::int64_t step = 2 * lanes_f32();
  for (std::int64_t i = 0; i < n; i += step) hn::Store(hn::PromoteTo(d16, hn::LoadU(d8, b + i)), d16, out + i);
#endif
}

void finish(const QEpilogue& e, const std::int32_t* sums, std::int64_t m, std::int64_t n, std::int64_t column, void* c,
            std::int64_t ldc) {
  finish_rows(e, sums, 2 * lanes_f32(), m, n, column, c, ldc);
}

#if SDX_512_BITS
QRowsProduct bounded() { return nullptr; }
bool has_quads() { return use_vnni(Isa::avx512) && qnhwc_vnni_quads(1) != nullptr; }
void quads_of(const QRows& t) { qnhwc_vnni_quads(t.m)(t); }
#elif HWY_TARGET == HWY_AVX2
QRowsProduct bounded() { return qbounded_avx2(); }
bool has_quads() { return use_vnni(Isa::avx2) && qnhwc_avx_vnni_quads(1) != nullptr; }
void quads_of(const QRows& t) { qnhwc_avx_vnni_quads(t.m)(t); }
#elif HWY_TARGET == HWY_NEON
QRowsProduct bounded() { return nullptr; }
bool has_quads() { return use_vnni(Isa::neon) && qnhwc_neon_quads() != nullptr; }
void quads_of(const QRows& t) { qnhwc_neon_quads()(t); }
#else
QRowsProduct bounded() { return nullptr; }
bool has_quads() { return false; }
void quads_of(const QRows&) {}
#endif

}  // namespace

const QNhwcKernels& qnhwc_table() {
  static const QNhwcKernels table{kMr,
                                  static_cast<int>(2 * lanes_f32()),
                                  product_of,
                                  kCrossedMr,
                                  crossed_of,
                                  cross_rows,
                                  widen_panel,
                                  finish,
                                  has_quads() ? quads_of : nullptr,
                                  has_quads() ? nullptr : bounded()};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const QNhwcKernels&, qnhwc_kernels, qnhwc_table)
#endif
