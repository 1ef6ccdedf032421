#include "kernels/cpu/conv/int8/quant_nhwc_simd.h"

#include <algorithm>
#include <cstring>

#include "base/system/cpu_features.h"
#include "kernels/cpu/simd/target_width.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/int8/quant_nhwc_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/quant/quant_epilogue-inl.h"
#include "kernels/cpu/quant/quant_store-inl.h"
#include "kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

#if SDX_512_BITS
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
#if SDX_512_BITS
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

#if HWY_TARGET == HWY_AVX2

constexpr int kCrossedMr = 4;  // with 4 of weights, 2 of rows and 2 sums on the way there are 16 registers

template <int M>
HWY_NOINLINE void crossed(const QRows& t) {
  const DI d;
  const D16 d16;
  const std::int64_t s = t.stride;
  const std::int16_t* HWY_RESTRICT a = t.a;
  const std::int16_t* HWY_RESTRICT b = t.b;
  std::int32_t* HWY_RESTRICT out = t.sums;
  VI c0 = hn::Zero(d), c1 = c0, c2 = c0, c3 = c0, e0 = c0, e1 = c0, e2 = c0, e3 = c0;
#define SDX_CROSSED(X) X(0) X(1) X(2) X(3)
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
  SDX_CROSSED(SDX_START)
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
    SDX_CROSSED(SDX_STEP)
    a += 4;
    b += 64;
  }
#define SDX_STORE(I)                      \
  if constexpr (M > I) {                  \
    hn::Store(c##I, d, out + 16 * I);     \
    hn::Store(e##I, d, out + 16 * I + 8); \
  }
  SDX_CROSSED(SDX_STORE)
#undef SDX_STORE
#undef SDX_STEP
#undef SDX_START
#undef SDX_CROSSED
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
      // Both pairs of a quad give the product; the lower one is taken.
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

// Positions from `first` on, one row of outputs at a time: fn(position of the first, offset from `first`, count).
template <class F>
void over_lines(const ConvShape& s, std::int64_t first, std::int64_t rows, F&& fn) {
  Position at{};
  at.x = first % s.out[2];
  at.y = first / s.out[2] % s.out[1];
  at.z = first / (s.out[2] * s.out[1]) % s.out[0];
  at.batch = first / (s.out[2] * s.out[1] * s.out[0]);
  for (std::int64_t i = 0; i < rows;) {
    const std::int64_t count = std::min(rows - i, s.out[2] - at.x);
    fn(at, i, count);
    i += count;
    at.x = 0;
    if (++at.y < s.out[1]) continue;
    at.y = 0;
    if (++at.z < s.out[0]) continue;
    at.z = 0;
    ++at.batch;
  }
}

constexpr std::int64_t kLine = 4096;  // int16 of widened image: 8 KB
constexpr std::int64_t kFewChannels = 16;

// Whether windows are runs so short that a line of the image is widened as a whole and windows are copied from there: the first
// convolution of three channels has runs of 9 or 21.
bool copies_windows(const ConvShape& s) {
  const std::int64_t window = s.kernel[2] * s.in_channels;
  return s.groups == 1 && s.dilation[2] == 1 && s.in_channels < kFewChannels && s.kernel[2] > 1 && window <= kLine / 4 &&
         s.stride[2] * s.in_channels <= kLine / 4;
}

// n values from the beginning of each window. Up to 15 behind them are written too: by then nothing lies there yet.
void copy_windows(const std::int16_t* HWY_RESTRICT line, std::int64_t step, std::int64_t count, std::int64_t n,
                  std::int16_t* HWY_RESTRICT out, std::int64_t stride) {
#if HWY_TARGET == HWY_SCALAR
  for (std::int64_t i = 0; i < count; ++i, line += step, out += stride) std::copy(line, line + n, out);
#else
  const hn::CappedTag<std::int16_t, 16> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < count; ++i, line += step, out += stride) {
    for (std::int64_t j = 0; j < n; j += lanes) {
      hn::StoreU(hn::LoadU(d, line + j), d, out + j);
      __asm__("" ::: "memory");  // or GCC makes this loop a call of memcpy, which was a fifth of such a convolution
    }
  }
#endif
}

// `count` neighbouring outputs from `at` on.
void gather_windows(const QSource& q, const Position& at, std::int64_t count, std::int16_t* out, std::int64_t stride) {
  const ConvShape& s = *q.shape;
  const std::int64_t channels = s.in_channels;
  const std::int64_t window = s.kernel[2] * channels;
  const std::int64_t step = s.stride[2] * channels;
  HWY_ALIGN std::int16_t line[kLine + 32];
  const std::int64_t most = (kLine - window) / step + 1;
  for (std::int64_t done = 0; done < count; done += most, out += most * stride) {
    const std::int64_t outputs = std::min(most, count - done);
    const std::int64_t ix = (at.x + done) * s.stride[2] - s.pad[2];
    const std::int64_t pixels = (outputs - 1) * s.stride[2] + s.kernel[2];
    const std::int64_t begin = std::clamp<std::int64_t>(-ix, 0, pixels);
    const std::int64_t stop = std::clamp<std::int64_t>(s.in[2] - ix, begin, pixels);
    std::int16_t* to = out;
    for (std::int64_t kz = 0; kz < s.kernel[0]; ++kz) {
      const std::int64_t iz = at.z * s.stride[0] - s.pad[0] + kz * s.dilation[0];
      for (std::int64_t ky = 0; ky < s.kernel[1]; ++ky, to += window) {
        const std::int64_t iy = at.y * s.stride[1] - s.pad[1] + ky * s.dilation[1];
        const bool inside = iz >= 0 && iz < s.in[0] && iy >= 0 && iy < s.in[1];
        std::fill(line, line + (inside ? begin : pixels) * channels, std::int16_t{0});
        if (inside) {
          const std::uint8_t* x = q.x + (((at.batch * s.in[0] + iz) * s.in[1] + iy) * s.in[2] + ix + begin) * channels;
          if (stop > begin) widen(x, q.end, q.is_signed, q.zero, (stop - begin) * channels, line + begin * channels);
          std::fill(line + stop * channels, line + pixels * channels, std::int16_t{0});
        }
        copy_windows(line, step, outputs, window, to, stride);
      }
    }
  }
}

void gather(const QSource& q, std::int64_t first, std::int64_t rows, std::int16_t* out, std::int64_t stride) {
  // The rest of the last quad; four values more do not matter, and a fixed size is no call.
  const bool whole = q.k % 4 == 0;
  const auto fill_up = [&](std::int16_t* row) {
    if (!whole) std::memset(row + q.k, 0, 4 * sizeof(std::int16_t));
  };
  if (q.shape == nullptr) {
    for (std::int64_t i = 0; i < rows; ++i, out += stride) {
      widen(q.x + (first + i) * q.lda, q.end, q.is_signed, q.zeros != nullptr ? q.zeros[first + i] : q.zero, q.k, out);
      fill_up(out);
    }
    return;
  }
  const ConvShape& s = *q.shape;
  const bool windows = copies_windows(s);
  over_lines(s, first, rows, [&](Position at, std::int64_t i, std::int64_t count) {
    std::int16_t* to = out + i * stride;
    if (windows) gather_windows(q, at, count, to, stride);
    if (windows && whole) return;
    for (std::int64_t j = 0; j < count; ++j, ++at.x, to += stride) {
      if (!windows) gather_pixel(q, at, to);
      fill_up(to);
    }
  });
}

// --- epilogue ---

#if HWY_TARGET == HWY_AVX2

template <bool kPlain, bool kSigned>
void finish_bytes(const Columns& k, const std::int32_t* sums, std::int64_t step, std::int64_t m, std::uint8_t* y,
                  std::int64_t ldc) {
  const auto words = [&](const std::int32_t* p) HWY_ATTR {
    const auto at = [&](int i) HWY_ATTR { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + i)); };
    return words_of<kPlain>(k, _mm256_add_epi32(at(0), k.bias0), _mm256_add_epi32(at(8), k.bias1));
  };
  std::int64_t i = 0;
  for (; i + 2 <= m; i += 2, sums += 2 * step, y += 2 * ldc) store_two<kSigned>(words(sums), words(sums + step), y, y + ldc);
  if (i < m) store_one<kSigned>(words(sums), y);
}

#endif

void finish_rows(const QEpilogue& e, const std::int32_t* sums, std::int64_t step, std::int64_t m, std::int64_t n,
                 std::int64_t column, void* c, std::int64_t ldc) {
  const bool bytes = e.output == QEpilogue::Output::u8 || e.output == QEpilogue::Output::s8;
  std::int64_t done = 0;
#if HWY_TARGET == HWY_AVX2
  if (bytes) {
    for (; n - done >= 16; done += 16) {
      const Columns k = columns_of(e, column + done);
      by_kind(k, [&](auto plain, auto is_signed) HWY_ATTR {
        finish_bytes<plain, is_signed>(k, sums + done, step, m, static_cast<std::uint8_t*>(c) + done, ldc);
      });
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
void depthwise_pixel(const QDepthwiseRow& r, const std::uint8_t* const* taps, std::int64_t first) {
  const std::int16_t* w = r.weights + first * r.taps_count;  // blocks of 2 channels
  std::fill(r.sums + first, r.sums + r.channels, 0);
  for (std::int64_t c = first; c < r.channels; c += 2) {
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
void depthwise_pixel(const QDepthwiseRow& r, const std::uint8_t* const* taps, std::int64_t first) {
  const std::int64_t block = 2 * lanes_f32();
  const std::int64_t step = block * r.taps_count;
  const std::int16_t* w = r.weights + first * r.taps_count;
  std::int64_t c = first;
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

#if HWY_TARGET == HWY_AVX2

// 16 channels of a whole row to bytes: weights, scales and biases stay where they are while pixels pass. kTaps: their number when
// it is known (unrolled, weights in registers), else 0.
template <bool kSigned, std::int64_t kTaps, bool kPlain, bool kSignedOut>
void depthwise_columns(const QDepthwiseRow& r, const Columns& k, std::int64_t c) {
  using T = typename ByteOf<kSigned>::type;
  const D16 d16;
  const hn::FixedTag<T, 16> d8;
  const std::int64_t count = kTaps > 0 ? kTaps : r.taps_count;
  const std::int16_t* HWY_RESTRICT w = r.weights + c * count;
  const std::uint8_t* const* taps = r.taps;
  auto* y = reinterpret_cast<std::uint8_t*>(r.y) + c;
  VI c0;
  VI c1;
  const auto step = [&](std::int64_t t, V16 w0, V16 w1) HWY_ATTR {
    const auto x0 = hn::LoadU(d8, reinterpret_cast<const T*>(taps[t] + c));
    const auto x1 = hn::LoadU(d8, reinterpret_cast<const T*>(taps[t + 1] + c));
    c0 = pair_add(c0, hn::PromoteTo(d16, hn::InterleaveLower(d8, x0, x1)), w0);
    c1 = pair_add(c1, hn::PromoteTo(d16, hn::InterleaveUpper(d8, x0, x1)), w1);
  };
  if constexpr (kTaps == 10) {
    const V16 w00 = hn::LoadU(d16, w), w01 = hn::LoadU(d16, w + 16), w10 = hn::LoadU(d16, w + 32), w11 = hn::LoadU(d16, w + 48);
    const V16 w20 = hn::LoadU(d16, w + 64), w21 = hn::LoadU(d16, w + 80), w30 = hn::LoadU(d16, w + 96);
    const V16 w31 = hn::LoadU(d16, w + 112), w40 = hn::LoadU(d16, w + 128), w41 = hn::LoadU(d16, w + 144);
    for (std::int64_t i = 0; i < r.width; ++i, taps += 10, y += r.channels) {
      c0 = VI{k.bias0};
      c1 = VI{k.bias1};
      step(0, w00, w01);
      step(2, w10, w11);
      step(4, w20, w21);
      step(6, w30, w31);
      step(8, w40, w41);
      store_one<kSignedOut>(words_of<kPlain>(k, c0.raw, c1.raw), y);
    }
  } else {
    for (std::int64_t i = 0; i < r.width; ++i, taps += count, y += r.channels) {
      c0 = VI{k.bias0};
      c1 = VI{k.bias1};
      for (std::int64_t t = 0; t < count; t += 2) step(t, hn::LoadU(d16, w + 16 * t), hn::LoadU(d16, w + 16 * t + 16));
      store_one<kSignedOut>(words_of<kPlain>(k, c0.raw, c1.raw), y);
    }
  }
}

template <bool kSigned>
void depthwise_sixteen(const QDepthwiseRow& r, std::int64_t c) {
  const Columns k = columns_of(*r.epilogue, c);
  by_kind(k, [&](auto plain, auto is_signed) HWY_ATTR {
    r.taps_count == 10 ? depthwise_columns<kSigned, 10, plain, is_signed>(r, k, c)
                       : depthwise_columns<kSigned, 0, plain, is_signed>(r, k, c);
  });
}

// How many channels that did.
std::int64_t depthwise_fast(const QDepthwiseRow& r) {
  if (!gives_bytes(*r.epilogue)) return 0;
  std::int64_t c = 0;
  for (; c + 16 <= r.channels; c += 16) r.is_signed ? depthwise_sixteen<true>(r, c) : depthwise_sixteen<false>(r, c);
  return c;
}

#else

std::int64_t depthwise_fast(const QDepthwiseRow&) { return 0; }

#endif

void depthwise(const QDepthwiseRow& r) {
  const std::int64_t bytes = r.epilogue->output == QEpilogue::Output::u8 || r.epilogue->output == QEpilogue::Output::s8 ? 1 : 4;
  const std::int64_t done = depthwise_fast(r);
  if (done == r.channels) return;
  for (std::int64_t i = 0; i < r.width; ++i) {
    const std::uint8_t* const* taps = r.taps + i * r.taps_count;
    r.is_signed ? depthwise_pixel<true>(r, taps, done) : depthwise_pixel<false>(r, taps, done);
    finish_rows(*r.epilogue, r.sums + done, 0, 1, r.channels - done, done, r.y + (i * r.channels + done) * bytes, 0);
  }
}

#if SDX_512_BITS
bool has_quads() { return use_vnni(Isa::avx512) && vnni_quads_product(1) != nullptr; }
#else
bool has_quads() { return false; }
#endif

void quads_of(const QRows& t) { vnni_quads_product(t.m)(t); }

}  // namespace

const QNhwcKernels* qnhwc_table() {
  static const QNhwcKernels table{
      kMr,       static_cast<int>(2 * lanes_f32()), product_of, kCrossedMr, crossed_of, cross_rows, widen_panel, gather, finish,
      depthwise, has_quads() ? quads_of : nullptr};
  return &table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

namespace sdx::cpu {

const QNhwcKernels& qnhwc_kernels() { return *SDX_CPU_PICK(qnhwc_table)(); }

}  // namespace sdx::cpu
#endif
