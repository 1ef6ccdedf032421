#include "kernels/cpu/attention/attention_tiles_simd.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention/attention_tiles_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/simd/simd-inl.h"
#include "tensor/types.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

// Queries of a register tile: four vectors of sums for each, four of rows and one more must fit the register file.
#if SDX_512_BITS || HWY_TARGET == HWY_NEON
constexpr int kQueries = 4;
#else
constexpr int kQueries = 2;
#endif
constexpr std::int64_t kVectors = 4;

template <class E>
HWY_INLINE VF load_padded(const typename E::T* p, std::int64_t n) {
  HWY_ALIGN typename E::T buffer[kMaxF32Lanes] = {};
  std::copy_n(p, n, buffer);
  return E::load(buffer);
}

// Load and widen row elements: whole vectors, or the first n elements of one and zeros.
struct Floats {
  using T = float;
  static HWY_INLINE VF load(const T* p) { return hn::LoadU(DF(), p); }
  static HWY_INLINE VF load(const T* p, std::int64_t n) { return load_tail(DF(), p, n); }
};
struct Halves {
  using T = std::uint16_t;
  static HWY_INLINE VF load(const T* p) {
    // AVX2 implies F16C (base/system/cpu_features.h).
#if SDX_512_BITS
    return VF{_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
#elif HWY_TARGET == HWY_AVX2 && !defined(HWY_DISABLE_F16C)
    return VF{_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
#elif HWY_TARGET == HWY_SCALAR
    return hn::Set(DF(), half_to_float(*p));
#else
    return widened_half(p);
#endif
  }
  static HWY_INLINE VF load(const T* p, std::int64_t n) { return load_padded<Halves>(p, n); }
};
struct Bfloats {
  using T = std::uint16_t;
  static HWY_INLINE VF load(const T* p) { return widened_bfloat(p); }
  static HWY_INLINE VF load(const T* p, std::int64_t n) { return load_padded<Bfloats>(p, n); }
};
struct Bytes {
  using T = std::int8_t;
  static HWY_INLINE VF load(const T* p) {
    const DF d;
    const hn::Rebind<std::int8_t, DF> d8;
    const hn::Rebind<std::int32_t, DF> d32;
    return hn::ConvertTo(d, hn::PromoteTo(d32, hn::LoadU(d8, p)));
  }
  static HWY_INLINE VF load(const T* p, std::int64_t n) { return load_padded<Bytes>(p, n); }
};

HWY_INLINE void fetch(const char* at, std::int64_t bytes) {
  for (std::int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(at + i);
}

// The sums of a, b, c and e; stores the first n of them.
#if HWY_TARGET == HWY_SCALAR
HWY_INLINE void store_sums(VF a, VF b, VF c, VF e, float* y, std::int64_t n) {
  const float sums[4] = {hn::GetLane(a), hn::GetLane(b), hn::GetLane(c), hn::GetLane(e)};
  std::copy_n(sums, n, y);
}
#else
template <class D>
HWY_INLINE hn::Vec<hn::Full128<float> > sum_of_blocks(D d, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(D()) > 4) {
    const hn::Half<D> half;
    return sum_of_blocks(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  } else {
    (void)d;
    return v;
  }
}
HWY_INLINE void store_sums(VF a, VF b, VF c, VF e, float* y, std::int64_t n) {
  const DF d;
  const hn::Repartition<double, DF> dd;
  // Each block of four becomes a0 + a2, b0 + b2, a1 + a3, b1 + b3.
  const auto ab = hn::BitCast(dd, hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
  const auto ce = hn::BitCast(dd, hn::Add(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e)));
  const VF sums = hn::Add(hn::BitCast(d, hn::InterleaveLower(dd, ab, ce)), hn::BitCast(d, hn::InterleaveUpper(dd, ab, ce)));
  const hn::Full128<float> four;
  const auto whole = sum_of_blocks(d, sums);
  if (n == 4) return hn::StoreU(whole, four, y);
  HWY_ALIGN float buffer[4];
  hn::Store(whole, four, buffer);
  std::copy_n(buffer, n, y);
}
#endif

// Multiplies four rows and stores n of the products. The last rows may be the same.
template <class E, int Q>
HWY_INLINE void dots_of_four(const float* q, std::int64_t ld_q, const typename E::T* r0, std::int64_t s1, std::int64_t s2,
                             std::int64_t s3, std::int64_t size, float* scores, std::int64_t ld_scores, std::int64_t n) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  VF a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0, b0 = a0, b1 = a0, b2 = a0, b3 = a0;
  VF c0 = a0, c1 = a0, c2 = a0, c3 = a0, e0 = a0, e1 = a0, e2 = a0, e3 = a0;
  const auto add = [&](VF k0, VF k1, VF k2, VF k3, const auto& query) HWY_ATTR {
    VF x = query(0);
    a0 = hn::MulAdd(x, k0, a0), a1 = hn::MulAdd(x, k1, a1), a2 = hn::MulAdd(x, k2, a2), a3 = hn::MulAdd(x, k3, a3);
    if constexpr (Q > 1) {
      x = query(1);
      b0 = hn::MulAdd(x, k0, b0), b1 = hn::MulAdd(x, k1, b1), b2 = hn::MulAdd(x, k2, b2), b3 = hn::MulAdd(x, k3, b3);
    }
    if constexpr (Q > 2) {
      x = query(2);
      c0 = hn::MulAdd(x, k0, c0), c1 = hn::MulAdd(x, k1, c1), c2 = hn::MulAdd(x, k2, c2), c3 = hn::MulAdd(x, k3, c3);
    }
    if constexpr (Q > 3) {
      x = query(3);
      e0 = hn::MulAdd(x, k0, e0), e1 = hn::MulAdd(x, k1, e1), e2 = hn::MulAdd(x, k2, e2), e3 = hn::MulAdd(x, k3, e3);
    }
  };
  std::int64_t i = 0;
  for (; i + lanes <= size; i += lanes) {
    const typename E::T* r = r0 + i;
    add(E::load(r), E::load(r + s1), E::load(r + s2), E::load(r + s3),
        [&](std::int64_t query) HWY_ATTR { return hn::LoadU(d, q + query * ld_q + i); });
  }
  if (i < size) {
    const typename E::T* r = r0 + i;
    const std::int64_t rest = size - i;
    add(E::load(r, rest), E::load(r + s1, rest), E::load(r + s2, rest), E::load(r + s3, rest),
        [&](std::int64_t query) HWY_ATTR { return load_tail(d, q + query * ld_q + i, rest); });
  }
  store_sums(a0, a1, a2, a3, scores, n);
  if constexpr (Q > 1) store_sums(b0, b1, b2, b3, scores + ld_scores, n);
  if constexpr (Q > 2) store_sums(c0, c1, c2, c3, scores + 2 * ld_scores, n);
  if constexpr (Q > 3) store_sums(e0, e1, e2, e3, scores + 3 * ld_scores, n);
}

template <class E, int Q>
void dots_of(const float* q, std::int64_t ld_q, const typename E::T* rows, std::int64_t ld_rows, std::int64_t n,
             std::int64_t size, float* scores, std::int64_t ld_scores, const char* ahead) {
  std::int64_t j = 0;
  const std::int64_t bytes = ld_rows * static_cast<std::int64_t>(sizeof(typename E::T));
  for (; j + 4 <= n; j += 4) {
    if (ahead != nullptr) fetch(ahead + j * bytes, 4 * bytes);
    dots_of_four<E, Q>(q, ld_q, rows + j * ld_rows, ld_rows, 2 * ld_rows, 3 * ld_rows, size, scores + j, ld_scores, 4);
  }
  if (j == n) return;
  const std::int64_t last = n - 1 - j;
  dots_of_four<E, Q>(q, ld_q, rows + j * ld_rows, std::min<std::int64_t>(1, last) * ld_rows, last * ld_rows, last * ld_rows, size,
                     scores + j, ld_scores, n - j);
}

template <class E>
void dots(const float* q, std::int64_t ld_q, std::int64_t queries, const void* from_rows, std::int64_t ld_rows, std::int64_t n,
          std::int64_t size, float* scores, std::int64_t ld_scores, const void* ahead) {
  const auto* rows = static_cast<const typename E::T*>(from_rows);
  for (std::int64_t i = 0; i < queries; i += kQueries) {
    const float* from = q + i * ld_q;
    float* to = scores + i * ld_scores;
    const char* next = i == 0 ? static_cast<const char*>(ahead) : nullptr;
    switch (std::min<std::int64_t>(kQueries, queries - i)) {
      case 1: dots_of<E, 1>(from, ld_q, rows, ld_rows, n, size, to, ld_scores, next); break;
      case 2: dots_of<E, 2>(from, ld_q, rows, ld_rows, n, size, to, ld_scores, next); break;
#if SDX_512_BITS || HWY_TARGET == HWY_NEON
      case 3: dots_of<E, 3>(from, ld_q, rows, ld_rows, n, size, to, ld_scores, next); break;
      default: dots_of<E, 4>(from, ld_q, rows, ld_rows, n, size, to, ld_scores, next); break;
#endif
    }
  }
}

// Four vectors of columns.
template <class E, int Q>
HWY_INLINE void mix_wide(const float* p, std::int64_t ld_p, const typename E::T* rows, std::int64_t ld_rows, std::int64_t n,
                         float* sums, std::int64_t ld_sums, const char* ahead) {
  const DF d;
  const std::int64_t w = lanes_f32();
  const float *p1 = p + ld_p, *p2 = p + 2 * ld_p, *p3 = p + 3 * ld_p;
  float *y1 = sums + ld_sums, *y2 = sums + 2 * ld_sums, *y3 = sums + 3 * ld_sums;
  VF a0 = hn::LoadU(d, sums), a1 = hn::LoadU(d, sums + w), a2 = hn::LoadU(d, sums + 2 * w), a3 = hn::LoadU(d, sums + 3 * w);
  VF b0 = a0, b1 = a0, b2 = a0, b3 = a0, c0 = a0, c1 = a0, c2 = a0, c3 = a0, e0 = a0, e1 = a0, e2 = a0, e3 = a0;
  if constexpr (Q > 1)
    b0 = hn::LoadU(d, y1), b1 = hn::LoadU(d, y1 + w), b2 = hn::LoadU(d, y1 + 2 * w), b3 = hn::LoadU(d, y1 + 3 * w);
  if constexpr (Q > 2)
    c0 = hn::LoadU(d, y2), c1 = hn::LoadU(d, y2 + w), c2 = hn::LoadU(d, y2 + 2 * w), c3 = hn::LoadU(d, y2 + 3 * w);
  if constexpr (Q > 3)
    e0 = hn::LoadU(d, y3), e1 = hn::LoadU(d, y3 + w), e2 = hn::LoadU(d, y3 + 2 * w), e3 = hn::LoadU(d, y3 + 3 * w);
  const std::int64_t bytes = ld_rows * static_cast<std::int64_t>(sizeof(typename E::T));
  for (std::int64_t j = 0; j < n; ++j, rows += ld_rows) {
    if (ahead != nullptr) fetch(ahead + j * bytes, bytes);
    const VF v0 = E::load(rows), v1 = E::load(rows + w);
    const VF v2 = E::load(rows + 2 * w), v3 = E::load(rows + 3 * w);
    VF x = hn::Set(d, p[j]);
    a0 = hn::MulAdd(x, v0, a0), a1 = hn::MulAdd(x, v1, a1), a2 = hn::MulAdd(x, v2, a2), a3 = hn::MulAdd(x, v3, a3);
    if constexpr (Q > 1) {
      x = hn::Set(d, p1[j]);
      b0 = hn::MulAdd(x, v0, b0), b1 = hn::MulAdd(x, v1, b1), b2 = hn::MulAdd(x, v2, b2), b3 = hn::MulAdd(x, v3, b3);
    }
    if constexpr (Q > 2) {
      x = hn::Set(d, p2[j]);
      c0 = hn::MulAdd(x, v0, c0), c1 = hn::MulAdd(x, v1, c1), c2 = hn::MulAdd(x, v2, c2), c3 = hn::MulAdd(x, v3, c3);
    }
    if constexpr (Q > 3) {
      x = hn::Set(d, p3[j]);
      e0 = hn::MulAdd(x, v0, e0), e1 = hn::MulAdd(x, v1, e1), e2 = hn::MulAdd(x, v2, e2), e3 = hn::MulAdd(x, v3, e3);
    }
  }
  const auto store = [&](float* y, VF v0, VF v1, VF v2, VF v3) HWY_ATTR {
    hn::StoreU(v0, d, y), hn::StoreU(v1, d, y + w), hn::StoreU(v2, d, y + 2 * w), hn::StoreU(v3, d, y + 3 * w);
  };
  store(sums, a0, a1, a2, a3);
  if constexpr (Q > 1) store(y1, b0, b1, b2, b3);
  if constexpr (Q > 2) store(y2, c0, c1, c2, c3);
  if constexpr (Q > 3) store(y3, e0, e1, e2, e3);
}

// One vector of columns, or with kPart only the first `columns` of one.
template <class E, bool kPart>
HWY_INLINE void mix_narrow(const float* p, const typename E::T* rows, std::int64_t ld_rows, std::int64_t n, float* sums,
                           std::int64_t columns) {
  const DF d;
  const auto row = [&](std::int64_t j) HWY_ATTR {
    if constexpr (kPart) return E::load(rows + j * ld_rows, columns);
    return E::load(rows + j * ld_rows);
  };
  VF a = load_floats(sums, columns), b = hn::Zero(d);
  std::int64_t j = 0;
  for (; j + 2 <= n; j += 2) {
    a = hn::MulAdd(hn::Set(d, p[j]), row(j), a);
    b = hn::MulAdd(hn::Set(d, p[j + 1]), row(j + 1), b);
  }
  if (j < n) a = hn::MulAdd(hn::Set(d, p[j]), row(j), a);
  store_floats(hn::Add(a, b), sums, columns);
}

template <class E>
void mix(const float* p, std::int64_t ld_p, std::int64_t queries, const void* from_rows, std::int64_t ld_rows, std::int64_t n,
         std::int64_t size, float* sums, std::int64_t ld_sums, const void* ahead) {
  const auto* rows = static_cast<const typename E::T*>(from_rows);
  const std::int64_t wide = kVectors * lanes_f32(), whole = size / wide * wide;
  for (std::int64_t i = 0; i < queries; i += kQueries) {
    const std::int64_t some = std::min<std::int64_t>(kQueries, queries - i);
    const float* x = p + i * ld_p;
    for (std::int64_t c = 0; c < whole; c += wide) {
      float* y = sums + i * ld_sums + c;
      const char* next = i + c == 0 ? static_cast<const char*>(ahead) : nullptr;
      switch (some) {
        case 1: mix_wide<E, 1>(x, ld_p, rows + c, ld_rows, n, y, ld_sums, next); break;
        case 2: mix_wide<E, 2>(x, ld_p, rows + c, ld_rows, n, y, ld_sums, next); break;
#if SDX_512_BITS || HWY_TARGET == HWY_NEON
        case 3: mix_wide<E, 3>(x, ld_p, rows + c, ld_rows, n, y, ld_sums, next); break;
        default: mix_wide<E, 4>(x, ld_p, rows + c, ld_rows, n, y, ld_sums, next); break;
#endif
      }
    }
    for (std::int64_t g = 0; g < some; ++g) {
      const float* weights = x + g * ld_p;
      float* y = sums + (i + g) * ld_sums;
      std::int64_t c = whole;
      for (; c + lanes_f32() <= size; c += lanes_f32()) {
        mix_narrow<E, false>(weights, rows + c, ld_rows, n, y + c, lanes_f32());
      }
      if (c < size) mix_narrow<E, true>(weights, rows + c, ld_rows, n, y + c, size - c);
    }
  }
}

void widen_bytes(const std::int8_t* x, float scale, float* y, std::int64_t n) {
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const DF d;
  const hn::Rebind<std::int32_t, DF> d32;
  const hn::Rebind<std::int8_t, DF> d8;
  const VF factor = hn::Set(d, scale);
  for (; i + lanes_f32() <= n; i += lanes_f32()) {
    hn::StoreU(hn::Mul(hn::ConvertTo(d, hn::PromoteTo(d32, hn::LoadU(d8, x + i))), factor), d, y + i);
  }
#endif
  for (; i < n; ++i) y[i] = static_cast<float>(x[i]) * scale;
}

float quantize(const float* x, std::int8_t* y, std::int64_t n) {
  const DF d;
  VF most = hn::Zero(d);
  for (std::int64_t i = 0; i < n; i += lanes_f32()) most = max_nan(most, hn::Abs(load_floats(x + i, n - i)));
  HWY_ALIGN float lanes[kMaxF32Lanes];
  hn::Store(most, d, lanes);
  float largest = 0.0F;
  bool numbers = true;
  for (std::int64_t i = 0; i < lanes_f32(); ++i) {
    numbers = numbers && std::isfinite(lanes[i]);
    largest = std::max(largest, lanes[i]);
  }
  if (!numbers) {
    std::fill_n(y, n, std::int8_t{0});
    return std::numeric_limits<float>::quiet_NaN();
  }
  const float scale = largest / 127.0F;
  const float factor = scale > 0.0F ? 1.0F / scale : 0.0F;
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::Rebind<std::int8_t, DF> d8;
  const VF f = hn::Set(d, factor);
  for (; std::isfinite(factor) && i + lanes_f32() <= n; i += lanes_f32()) {
    hn::StoreU(hn::DemoteTo(d8, hn::NearestInt(hn::Mul(hn::LoadU(d, x + i), f))), d8, y + i);
  }
#endif
  for (; i < n; ++i) {
    // The inverse of a subnormal scale may be infinite.
    const float q = std::isfinite(factor) ? x[i] * factor : x[i] / scale;
    y[i] = static_cast<std::int8_t>(std::clamp(std::nearbyint(q), -127.0F, 127.0F));
  }
  return scale;
}

}  // namespace

const AttentionTileKernels& attention_tile_table() {
  static constexpr AttentionTileKernels kTable{{dots<Floats>, mix<Floats>},
                                               {dots<Halves>, mix<Halves>},
                                               {dots<Bfloats>, mix<Bfloats>},
                                               {dots<Bytes>, mix<Bytes>},
                                               widen_bytes,
                                               quantize};
  return kTable;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const AttentionTileKernels&, attention_tile_kernels, attention_tile_table)
#endif
