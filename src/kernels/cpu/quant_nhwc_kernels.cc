#include "kernels/cpu/quant_nhwc_kernels.h"

#include <algorithm>

#include "base/cpu_features.h"
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/quant_nhwc_kernels.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/quant_epilogue-inl.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
constexpr int kMr = 12;
#elif HWY_TARGET == HWY_NEON
constexpr int kMr = 8;
#else
constexpr int kMr = 6;
#endif

#define SDX_ROWS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)

#if HWY_TARGET == HWY_SCALAR

template <int M>
void product(const QRows& t) {
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < 2; ++j) {
      auto sum = static_cast<std::uint32_t>(t.add ? t.sums[2 * i + j] : 0);
      for (std::int64_t p = 0; p < t.pairs; ++p) {
        const std::int16_t* a = t.a + i * t.stride + 2 * p;
        const std::int16_t* b = t.b + 4 * p + 2 * j;
        sum += static_cast<std::uint32_t>(a[0] * b[0] + a[1] * b[1]);
      }
      t.sums[2 * i + j] = static_cast<std::int32_t>(sum);
    }
  }
}

#else

template <int M>
HWY_NOINLINE void product(const QRows& t) {
  const DI d;
  const D16 d16;
  const std::int64_t lanes = lanes_f32();
  // Every third row has a pointer of its own: 12 would not fit the registers.
  const std::int64_t s = t.stride;
  const std::int16_t* HWY_RESTRICT a[4] = {t.a, t.a + 3 * s, t.a + 6 * s, t.a + 9 * s};
  const std::int16_t* HWY_RESTRICT b = t.b;
  std::int32_t* HWY_RESTRICT out = t.sums;
#define SDX_DECLARE(I)   \
  VI c##I = hn::Zero(d); \
  VI e##I = hn::Zero(d); \
  (void)c##I;            \
  (void)e##I;
  SDX_ROWS(SDX_DECLARE)
#define SDX_LOAD(I)                                  \
  if constexpr (M > I) {                             \
    c##I = hn::Load(d, out + 2 * lanes * I);         \
    e##I = hn::Load(d, out + 2 * lanes * I + lanes); \
  }
  if (t.add) {
    SDX_ROWS(SDX_LOAD)
  }
  for (std::int64_t p = 0; p < t.pairs; ++p) {
    const V16 b0 = hn::LoadU(d16, b);
    const V16 b1 = hn::LoadU(d16, b + 2 * lanes);
#define SDX_STEP(I)                                                                \
  if constexpr (M > I) {                                                           \
    const V16 v = hn::BitCast(d16, hn::Set(d, read_pair(a[I / 3] + (I % 3) * s))); \
    c##I = pair_add(c##I, v, b0);                                                  \
    e##I = pair_add(e##I, v, b1);                                                  \
  }
    SDX_ROWS(SDX_STEP)
    for (int i = 0; i < (M + 2) / 3; ++i) a[i] += 2;
    b += 4 * lanes;
  }
#define SDX_STORE(I)                                 \
  if constexpr (M > I) {                             \
    hn::Store(c##I, d, out + 2 * lanes * I);         \
    hn::Store(e##I, d, out + 2 * lanes * I + lanes); \
  }
  SDX_ROWS(SDX_STORE)
#undef SDX_STORE
#undef SDX_STEP
#undef SDX_LOAD
#undef SDX_DECLARE
}

#endif

void product_of(const QRows& t) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  static const bool vnni = use_vnni(Isa::avx512) && vnni_rows_product(1) != nullptr;
  if (vnni) return vnni_rows_product(t.m)(t);
#endif
  switch (t.m) {
#define SDX_CASE(I)                                                  \
  case I + 1:                                                        \
    if constexpr (I < kMr) return product<(I < kMr ? I + 1 : 1)>(t); \
    break;
    SDX_ROWS(SDX_CASE)
#undef SDX_CASE
    default: break;
  }
}
#undef SDX_ROWS

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

// --- rows of int16 ---

// n bytes as int16 minus the zero point. Up to 15 elements behind them are overwritten, and as many bytes read if they lie
// before `end`.
HWY_INLINE void widen(const std::uint8_t* HWY_RESTRICT x, [[maybe_unused]] const std::uint8_t* end, bool is_signed,
                      std::int32_t zero, std::int64_t n, std::int16_t* HWY_RESTRICT out) {
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::CappedTag<std::int16_t, 16> dc;
  const auto step = static_cast<std::int64_t>(hn::Lanes(dc));
  const auto z = hn::Set(dc, static_cast<std::int16_t>(zero));
  const std::int64_t safe = std::min(n, end - x - (step - 1));
  if (is_signed) {
    const hn::Rebind<std::int8_t, decltype(dc)> d8;
    for (; i < safe; i += step) {
      hn::StoreU(hn::Sub(hn::PromoteTo(dc, hn::LoadU(d8, reinterpret_cast<const std::int8_t*>(x + i))), z), dc, out + i);
    }
  } else {
    const hn::Rebind<std::uint8_t, decltype(dc)> d8;
    for (; i < safe; i += step) hn::StoreU(hn::Sub(hn::PromoteTo(dc, hn::LoadU(d8, x + i)), z), dc, out + i);
  }
#endif
  for (; i < n; ++i) {
    out[i] = static_cast<std::int16_t>((is_signed ? static_cast<std::int8_t>(x[i]) : x[i]) - zero);
  }
}

struct Position {
  std::int64_t batch, z, y, x;
};

void gather_pixel(const QSource& q, const Position& at, std::int16_t* out) {
  const ConvShape& s = *q.shape;
  const std::int64_t channels = s.in_channels / s.groups;
  const std::int64_t row = s.in[2] * s.in_channels;
  const std::int64_t ix = at.x * s.stride[2] - s.pad[2];
  const bool whole = s.dilation[2] == 1 && s.groups == 1;
  for (std::int64_t kz = 0; kz < s.kernel[0]; ++kz) {
    const std::int64_t iz = at.z * s.stride[0] - s.pad[0] + kz * s.dilation[0];
    for (std::int64_t ky = 0; ky < s.kernel[1]; ++ky) {
      const std::int64_t iy = at.y * s.stride[1] - s.pad[1] + ky * s.dilation[1];
      const std::int64_t taps = s.kernel[2] * channels;
      if (iz < 0 || iz >= s.in[0] || iy < 0 || iy >= s.in[1]) {
        std::fill(out, out + taps, std::int16_t{0});
        out += taps;
        continue;
      }
      const std::uint8_t* line = q.x + ((at.batch * s.in[0] + iz) * s.in[1] + iy) * row + q.group * channels;
      if (whole) {
        const std::int64_t begin = std::clamp<std::int64_t>(-ix, 0, s.kernel[2]);
        const std::int64_t stop = std::clamp<std::int64_t>(s.in[2] - ix, begin, s.kernel[2]);
        std::fill(out, out + begin * channels, std::int16_t{0});
        if (stop > begin) {
          widen(line + (ix + begin) * channels, q.end, q.is_signed, q.zero, (stop - begin) * channels, out + begin * channels);
        }
        std::fill(out + stop * channels, out + taps, std::int16_t{0});
        out += taps;
        continue;
      }
      for (std::int64_t kx = 0; kx < s.kernel[2]; ++kx, out += channels) {
        const std::int64_t tx = ix + kx * s.dilation[2];
        if (tx < 0 || tx >= s.in[2]) {
          std::fill(out, out + channels, std::int16_t{0});
        } else {
          widen(line + tx * s.in_channels, q.end, q.is_signed, q.zero, channels, out);
        }
      }
    }
  }
}

void gather(const QSource& q, std::int64_t first, std::int64_t rows, std::int16_t* out, std::int64_t stride) {
  if (q.shape == nullptr) {
    for (std::int64_t i = 0; i < rows; ++i, out += stride) {
      widen(q.x + (first + i) * q.lda, q.end, q.is_signed, q.zeros != nullptr ? q.zeros[first + i] : q.zero, q.k, out);
      out[q.k] = 0;
    }
    return;
  }
  const ConvShape& s = *q.shape;
  Position at{};
  at.x = first % s.out[2];
  at.y = first / s.out[2] % s.out[1];
  at.z = first / (s.out[2] * s.out[1]) % s.out[0];
  at.batch = first / (s.out[2] * s.out[1] * s.out[0]);
  for (std::int64_t i = 0; i < rows; ++i, out += stride) {
    gather_pixel(q, at, out);
    out[q.k] = 0;  // the last pair's second half where k is odd
    if (++at.x < s.out[2]) continue;
    at.x = 0;
    if (++at.y < s.out[1]) continue;
    at.y = 0;
    if (++at.z < s.out[0]) continue;
    at.z = 0;
    ++at.batch;
  }
}

// --- epilogue ---

#if HWY_TARGET == HWY_AVX2

// The common case, 16 columns to bytes: scales and biases stay in registers for all rows.
HWY_INLINE void finish_bytes(const QEpilogue& e, const std::int32_t* sums, std::int64_t step, std::int64_t m, std::int64_t column,
                             std::uint8_t* y, std::int64_t ldc) {
  const DI d;
  const DF df;
  const Narrow c = narrow_of(e, 0, 0);
  const VI bias0 = e.bias != nullptr ? hn::LoadU(d, e.bias + column) : hn::Zero(d);
  const VI bias1 = e.bias != nullptr ? hn::LoadU(d, e.bias + column + 8) : hn::Zero(d);
  const VF scale0 = e.scale_is_array ? hn::LoadU(df, e.scale + column) : c.scale;
  const VF scale1 = e.scale_is_array ? hn::LoadU(df, e.scale + column + 8) : c.scale;
  const __m256i zero = _mm256_set1_epi16(static_cast<std::int16_t>(e.zero_point));
  const bool is_signed = e.output == QEpilogue::Output::s8;
  for (std::int64_t i = 0; i < m; ++i, sums += step, y += ldc) {
    const VF f0 = hn::Mul(hn::ConvertTo(df, hn::Add(hn::LoadU(d, sums), bias0)), scale0);
    const VF f1 = hn::Mul(hn::ConvertTo(df, hn::Add(hn::LoadU(d, sums + 8), bias1)), scale1);
    const VI q0 = hn::NearestInt(hn::Min(hn::Max(f0, c.low), c.high));
    const VI q1 = hn::NearestInt(hn::Min(hn::Max(f1, c.low), c.high));
    const __m256i q = _mm256_add_epi16(_mm256_permute4x64_epi64(_mm256_packs_epi32(q0.raw, q1.raw), 0xD8), zero);
    const __m128i lo = _mm256_castsi256_si128(q);
    const __m128i hi = _mm256_extracti128_si256(q, 1);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y), is_signed ? _mm_packs_epi16(lo, hi) : _mm_packus_epi16(lo, hi));
  }
}

#endif

void finish_rows(const QEpilogue& e, const std::int32_t* sums, std::int64_t step, std::int64_t m, std::int64_t n,
                 std::int64_t column, void* c, std::int64_t ldc) {
  const bool bytes = e.output == QEpilogue::Output::u8 || e.output == QEpilogue::Output::s8;
  std::int64_t done = 0;
#if HWY_TARGET == HWY_AVX2
  if (bytes) {
    for (; n - done >= 16; done += 16) {
      finish_bytes(e, sums + done, step, m, column + done, static_cast<std::uint8_t*>(c) + done, ldc);
    }
  }
#endif
  if (done == n) return;
  const DI d;
  const std::int64_t lanes = lanes_f32();
  const Narrow r = narrow_of(e, 0, column);
  for (std::int64_t i = 0; i < m; ++i) {
    void* y = static_cast<char*>(c) + i * ldc * (bytes ? 1 : 4);
    for (std::int64_t j = done; j < n; j += lanes) put(r, hn::LoadU(d, sums + i * step + j), j, n - j, y);
  }
}

void finish(const QEpilogue& e, const std::int32_t* sums, std::int64_t m, std::int64_t n, std::int64_t column, void* c,
            std::int64_t ldc) {
  finish_rows(e, sums, 2 * lanes_f32(), m, n, column, c, ldc);
}

// --- depthwise ---

#if HWY_TARGET == HWY_SCALAR

template <bool kSigned>
void depthwise_pixel(const QDepthwiseRow& r, const std::uint8_t* const* taps) {
  const std::int16_t* w = r.weights;  // blocks of 2 channels
  std::fill(r.sums, r.sums + r.channels, 0);
  for (std::int64_t c = 0; c < r.channels; c += 2) {
    const std::int64_t left = std::min<std::int64_t>(2, r.channels - c);
    for (std::int64_t t = 0; t < r.taps_count; t += 2, w += 4) {
      for (std::int64_t i = 0; i < 2 * left; ++i) {
        const std::uint8_t v = taps[t + i % 2][c + i / 2];
        r.sums[c + i / 2] += (kSigned ? static_cast<std::int8_t>(v) : v) * w[i];
      }
    }
  }
}

#else

template <bool kSigned>
struct ByteOf {
  using type = std::conditional_t<kSigned, std::int8_t, std::uint8_t>;
};

// 2 lanes channels, from p[0..] of each tap on.
template <bool kSigned>
HWY_INLINE void depthwise_block(const std::uint8_t* const* taps, std::int64_t count, std::int64_t at, const std::int16_t* w,
                                std::int32_t* sums) {
  using T = typename ByteOf<kSigned>::type;
  const DI d;
  const D16 d16;
  const std::int64_t lanes = lanes_f32();
  VI c0 = hn::Zero(d);
  VI c1 = hn::Zero(d);
  for (std::int64_t t = 0; t < count; t += 2, w += 4 * lanes) {
#if HWY_TARGET == HWY_AVX2
    const hn::FixedTag<T, 16> d8;
    const auto x0 = hn::LoadU(d8, reinterpret_cast<const T*>(taps[t] + at));
    const auto x1 = hn::LoadU(d8, reinterpret_cast<const T*>(taps[t + 1] + at));
    c0 = pair_add(c0, hn::PromoteTo(d16, hn::InterleaveLower(d8, x0, x1)), hn::LoadU(d16, w));
    c1 = pair_add(c1, hn::PromoteTo(d16, hn::InterleaveUpper(d8, x0, x1)), hn::LoadU(d16, w + 2 * lanes));
#else
    const hn::Rebind<T, DI> d8;
    const VI low = hn::Set(d, 0xFFFF);
    const auto pair = [&](std::int64_t i) {
      const VI x0 = hn::PromoteTo(d, hn::LoadU(d8, reinterpret_cast<const T*>(taps[t] + at + i)));
      const VI x1 = hn::PromoteTo(d, hn::LoadU(d8, reinterpret_cast<const T*>(taps[t + 1] + at + i)));
      return hn::BitCast(d16, hn::Or(hn::And(x0, low), hn::ShiftLeft<16>(x1)));
    };
    c0 = pair_add(c0, pair(0), hn::LoadU(d16, w));
    c1 = pair_add(c1, pair(lanes), hn::LoadU(d16, w + 2 * lanes));
#endif
  }
  hn::StoreU(c0, d, sums);
  hn::StoreU(c1, d, sums + lanes);
}

template <bool kSigned>
void depthwise_pixel(const QDepthwiseRow& r, const std::uint8_t* const* taps) {
  const std::int64_t block = 2 * lanes_f32();
  const std::int64_t step = block * r.taps_count;
  const std::int16_t* w = r.weights;
  std::int64_t c = 0;
  for (; c + block <= r.channels; c += block, w += step) depthwise_block<kSigned>(taps, r.taps_count, c, w, r.sums + c);
  if (c == r.channels) return;
  std::uint8_t tails[2][2 * kMaxF32Lanes] = {};
  const std::uint8_t* two[2] = {tails[0], tails[1]};
  std::int32_t part[2 * kMaxF32Lanes];
  std::fill(r.sums + c, r.sums + c + block, 0);
  for (std::int64_t t = 0; t < r.taps_count; t += 2, w += 2 * block) {
    for (int i = 0; i < 2; ++i) std::memcpy(tails[i], taps[t + i] + c, static_cast<std::size_t>(r.channels - c));
    depthwise_block<kSigned>(two, 2, 0, w, part);
    for (std::int64_t i = 0; i < block; ++i) r.sums[c + i] += part[i];
  }
}

#endif

void depthwise(const QDepthwiseRow& r) {
  const std::int64_t bytes = r.epilogue->output == QEpilogue::Output::u8 || r.epilogue->output == QEpilogue::Output::s8 ? 1 : 4;
  for (std::int64_t i = 0; i < r.width; ++i) {
    const std::uint8_t* const* taps = r.taps + i * r.taps_count;
    r.is_signed ? depthwise_pixel<true>(r, taps) : depthwise_pixel<false>(r, taps);
    finish_rows(*r.epilogue, r.sums, 0, 1, r.channels, 0, r.y + i * r.channels * bytes, 0);
  }
}

}  // namespace

const QNhwcKernels* qnhwc_table() {
  static const QNhwcKernels table{kMr, static_cast<int>(2 * lanes_f32()), product_of, widen_panel, gather, finish, depthwise};
  return &table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/dispatch.h"

namespace sdx::cpu {

const QNhwcKernels& qnhwc_kernels() { return *SDX_CPU_PICK(qnhwc_table)(); }

}  // namespace sdx::cpu
#endif
