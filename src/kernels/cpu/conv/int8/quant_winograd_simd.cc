#include "kernels/cpu/conv/int8/quant_winograd_simd.h"

#include <algorithm>

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/int8/quant_winograd_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/quant/quant_epilogue-inl.h"
#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

#if HWY_TARGET != HWY_SCALAR

// Lavin & Gray 2016, F(4x4, 3x3) at 0, 1, -1, 2, -2 and infinity. Rows 1 and 2 are negated, here and for the weights.
template <class V>
HWY_INLINE void input_rows(const V (&d)[6], V (&t)[6]) {
  const V a = hn::Sub(d[4], d[2]);
  const V b = hn::Sub(d[3], d[1]);
  const V b2 = hn::Add(b, b);
  t[0] = hn::Add(hn::ShiftLeft<2>(hn::Sub(d[0], d[2])), a);
  t[1] = hn::Sub(hn::ShiftLeft<2>(hn::Add(d[1], d[2])), hn::Add(d[3], d[4]));
  t[2] = hn::Sub(hn::ShiftLeft<2>(hn::Sub(d[2], d[1])), hn::Sub(d[4], d[3]));
  t[3] = hn::Add(a, b2);
  t[4] = hn::Sub(a, b2);
  t[5] = hn::Sub(hn::Sub(d[5], d[3]), hn::ShiftLeft<2>(b));
}

template <class T>
void input_of(const std::uint8_t* const* pixels, std::int32_t zero, std::int64_t channels, std::int16_t* v, std::int64_t step) {
  const hn::CappedTag<std::int16_t, 16> d;
  const hn::Rebind<T, decltype(d)> d8;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  // Only the coefficients of element (1, 1) do not add up to 0, but to 36.
  const V shift = hn::Set(d, static_cast<std::int16_t>(36 * zero));
  HWY_ALIGN std::int16_t columns[36 * 16];  // [6 of x][6 of y]
  for (std::int64_t c = 0; c < channels; c += lanes) {
    V in[6];
    V out[6];
    for (int x = 0; x < 6; ++x) {
      for (int y = 0; y < 6; ++y) {
        in[y] = hn::PromoteTo(d, hn::LoadU(d8, reinterpret_cast<const T*>(pixels[y * 6 + x] + c)));
      }
      input_rows(in, out);
      for (int y = 0; y < 6; ++y) hn::Store(out[y], d, columns + (x * 6 + y) * 16);
    }
    for (int y = 0; y < 6; ++y) {
      for (int x = 0; x < 6; ++x) in[x] = hn::Load(d, columns + (x * 6 + y) * 16);
      input_rows(in, out);
      if (y == 1) out[1] = hn::Sub(out[1], shift);
      for (int x = 0; x < 6; ++x) hn::StoreU(out[x], d, v + (y * 6 + x) * step + c);
    }
  }
}

void input(const std::uint8_t* const* pixels, bool is_signed, std::int32_t zero, std::int64_t channels, std::int16_t* v,
           std::int64_t step) {
  is_signed ? input_of<std::int8_t>(pixels, zero, channels, v, step) : input_of<std::uint8_t>(pixels, zero, channels, v, step);
}

// 24 G, except for the last row, which is 12 G: 24 * 24 * 128 would not fit int16.
HWY_INLINE void weight_rows(const V16 (&g)[3], V16 (&r)[6]) {
  const D16 d;
  const V16 t = hn::Add(g[0], g[2]);
  const V16 u = hn::Add(g[0], hn::ShiftLeft<2>(g[2]));
  const V16 v = hn::Add(g[1], g[1]);
  r[0] = hn::Mul(g[0], hn::Set(d, 6));
  r[1] = hn::ShiftLeft<2>(hn::Add(t, g[1]));
  r[2] = hn::ShiftLeft<2>(hn::Sub(t, g[1]));
  r[3] = hn::Add(u, v);
  r[4] = hn::Sub(u, v);
  r[5] = hn::Mul(g[2], hn::Set(d, 12));
}

void weights(const std::int8_t* w, std::int64_t tap_step, std::int64_t pairs, std::int16_t* u, std::int64_t step) {
  const D16 d;
  const hn::Rebind<std::int8_t, D16> d8;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t count = pairs * 2 * lanes;  // nr * 2 is two vectors
  // The nine taps' lines are often a power of two apart and would evict each other from the first-level cache, so each line is
  // copied once.
  constexpr std::int64_t kLine = 64;
  HWY_ALIGN std::int8_t lines[9 * kLine];
  for (std::int64_t i = 0; i < count; i += lanes) {
    const std::int64_t at = i % kLine;
    if (at == 0) {
      const std::int64_t length = std::min(kLine, count - i);
      for (std::int64_t tap = 0; tap < 9; ++tap) {
        const std::int8_t* from = w + tap * tap_step + i;
        if (length == kLine) {
          std::memcpy(lines + tap * kLine, from, kLine);
        } else {
          std::memcpy(lines + tap * kLine, from, static_cast<std::size_t>(length));
        }
        __builtin_prefetch(from + 8 * kLine);
      }
    }
    V16 columns[3][6];
    V16 in[3];
    V16 out[6];
    for (int x = 0; x < 3; ++x) {
      for (int y = 0; y < 3; ++y) in[y] = hn::PromoteTo(d, hn::Load(d8, lines + (y * 3 + x) * kLine + at));
      weight_rows(in, columns[x]);
    }
    for (int y = 0; y < 6; ++y) {
      for (int x = 0; x < 3; ++x) in[x] = columns[x][y];
      weight_rows(in, out);
      for (int x = 0; x < 6; ++x) hn::Store(out[x], d, u + (y * 6 + x) * step + i);
    }
  }
}

HWY_INLINE void output_rows(const VI (&m)[6], VI (&y)[4]) {
  const VI p = hn::Add(m[1], m[2]);
  const VI q = hn::Sub(m[1], m[2]);
  const VI r = hn::Add(m[3], m[4]);
  const VI s = hn::Sub(m[3], m[4]);
  y[0] = hn::Add(hn::Add(m[0], p), r);
  y[1] = hn::Add(q, hn::Add(s, s));
  y[2] = hn::Add(p, hn::ShiftLeft<2>(r));
  const VI last = hn::Add(hn::ShiftLeft<2>(s), m[5]);
  y[3] = hn::Add(q, hn::Add(last, last));
}

void output(const std::int32_t* m, std::int64_t step, std::int32_t* sums) {
  const DI d;
  const std::int64_t lanes = lanes_f32();
  const VI inverse = hn::Set(d, 954437177);           // of 9 modulo 2^32
  HWY_ALIGN std::int32_t columns[24 * kMaxF32Lanes];  // [6 of x][4 of y]
  for (std::int64_t j = 0; j < 2 * lanes; j += lanes) {
    VI in[6];
    VI out[4];
    for (int x = 0; x < 6; ++x) {
      for (int y = 0; y < 6; ++y) in[y] = hn::Load(d, m + (y * 6 + x) * step + j);
      output_rows(in, out);
      for (int y = 0; y < 4; ++y) hn::Store(out[y], d, columns + (x * 4 + y) * lanes);
    }
    for (int y = 0; y < 4; ++y) {
      for (int x = 0; x < 6; ++x) in[x] = hn::Load(d, columns + (x * 4 + y) * lanes);
      output_rows(in, out);
      for (int x = 0; x < 4; ++x) {
        hn::Store(hn::ShiftRight<6>(hn::Mul(out[x], inverse)), d, sums + (y * 4 + x) * 2 * lanes + j);
      }
    }
  }
}

#endif

}  // namespace

const QWinogradKernels* qwinograd_table() {
#if HWY_TARGET == HWY_SCALAR
  return nullptr;
#else
  static const QWinogradKernels table{input, weights, output};
  return &table;
#endif
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const QWinogradKernels*, qwinograd_kernels, qwinograd_table)
#endif
