#include "kernels/cpu/conv/plain/conv_depthwise_simd.h"

#include <limits>

#include "kernels/cpu/simd/target_width.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/plain/conv_depthwise_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

template <int I>
HWY_INLINE VF select(VF v0, VF v1, VF v2, VF v3, VF v4, VF v5, VF v6) {
  if constexpr (I == 0) return v0;
  if constexpr (I == 1) return v1;
  if constexpr (I == 2) return v2;
  if constexpr (I == 3) return v3;
  if constexpr (I == 4) return v4;
  if constexpr (I == 5) return v5;
  return v6;
}

// Arguments of a block of depthwise rows other than its position.
struct Depthwise {
  const float* const* slices;
  int depth;
  std::int64_t at, row_step;
  const std::int64_t* offset;
  const float* w;  // [kz][kx][ky], each filling a vector
  VF bias, lo, hi;
  std::int64_t width, y_step;
  bool add;
  std::int64_t first_row, row_gap, in_rows, in_columns;
};

// Rows computed at once. 4 rows of 5x5 taps need 4 + 5 + 1 registers, of 7x7 taps 4 + 7 + 1. With 512 bits there are 32
// registers, and every unaligned load touches two cache lines: more rows need fewer loads per product. All products of a row are
// added one after the other, 4 cycles each at 2 per cycle, so more than 8 rows keep both units busy. With 14 instead of 8, 56
// rows of 56 pixels by 7x7 taps take 0.9 of the time.
#if SDX_512_BITS
constexpr int kRowsAtOnce = 14, kStridedRowsAtOnce = 8;
#else
constexpr int kRowsAtOnce = 4, kStridedRowsAtOnce = 4;
#endif

HWY_INLINE void put(const Depthwise& c, VF v, float* to, std::int64_t left) {
  if (c.add) v = hn::Add(v, load_floats(to, left));
  store_floats(clip(hn::Add(v, c.bias), c.lo, c.hi), to, left);
}

// The weights of a column of taps, from `from` on.
#define SDX_WEIGHTS(W, from)                                                                                     \
  const VF W##0 = hn::Load(d, from), W##1 = hn::Load(d, (from) + lanes), W##2 = hn::Load(d, (from) + 2 * lanes); \
  const VF W##3 = K > 3 ? hn::Load(d, (from) + (K > 3 ? 3 : 0) * lanes) : W##2;                                  \
  const VF W##4 = K > 4 ? hn::Load(d, (from) + (K > 4 ? 4 : 0) * lanes) : W##2;                                  \
  const VF W##5 = K > 5 ? hn::Load(d, (from) + (K > 5 ? 5 : 0) * lanes) : W##2;                                  \
  const VF W##6 = K > 6 ? hn::Load(d, (from) + (K > 6 ? 6 : 0) * lanes) : W##2;
// A row of inputs to the outputs that it is a tap of. Named accumulators: GCC 12 spills arrays of vectors.
#define SDX_TO(O, ROW, W, v)                                  \
  if constexpr (R > O && ROW - O * S >= 0 && ROW - O * S < K) \
    a##O = hn::MulAdd(select<ROW - O * S>(W##0, W##1, W##2, W##3, W##4, W##5, W##6), v, a##O);
#define SDX_TO_ALL(ROW, W, v) \
  SDX_TO(0, ROW, W, v)        \
  SDX_TO(1, ROW, W, v)        \
  SDX_TO(2, ROW, W, v)        \
  SDX_TO(3, ROW, W, v)        \
  SDX_TO(4, ROW, W, v)        \
  SDX_TO(5, ROW, W, v)        \
  SDX_TO(6, ROW, W, v)        \
  SDX_TO(7, ROW, W, v)        \
  SDX_TO(8, ROW, W, v)        \
  SDX_TO(9, ROW, W, v)        \
  SDX_TO(10, ROW, W, v)       \
  SDX_TO(11, ROW, W, v)       \
  SDX_TO(12, ROW, W, v)       \
  SDX_TO(13, ROW, W, v)
#define SDX_ROWS \
  SDX_ROW(0)     \
  SDX_ROW(1)     \
  SDX_ROW(2)     \
  SDX_ROW(3)     \
  SDX_ROW(4)     \
  SDX_ROW(5)     \
  SDX_ROW(6)     \
  SDX_ROW(7)     \
  SDX_ROW(8)     \
  SDX_ROW(9)     \
  SDX_ROW(10)    \
  SDX_ROW(11)    \
  SDX_ROW(12)    \
  SDX_ROW(13)    \
  SDX_ROW(14)    \
  SDX_ROW(15)    \
  SDX_ROW(16)    \
  SDX_ROW(17)    \
  SDX_ROW(18)    \
  SDX_ROW(19)    \
  SDX_ROW(20)
#define SDX_SUMS                                                                                                           \
  VF a0 = hn::Zero(d);                                                                                                     \
  [[maybe_unused]] VF a1 = a0, a2 = a0, a3 = a0, a4 = a0, a5 = a0, a6 = a0, a7 = a0, a8 = a0, a9 = a0, a10 = a0, a11 = a0, \
                      a12 = a0, a13 = a0;
#define SDX_PUT(O) \
  if constexpr (R > O) put(c, a##O, y + O * c.y_step + i, c.width - i);
#define SDX_PUT_ALL \
  SDX_PUT(0)        \
  SDX_PUT(1)        \
  SDX_PUT(2)        \
  SDX_PUT(3)        \
  SDX_PUT(4)        \
  SDX_PUT(5)        \
  SDX_PUT(6)        \
  SDX_PUT(7)        \
  SDX_PUT(8)        \
  SDX_PUT(9)        \
  SDX_PUT(10)       \
  SDX_PUT(11)       \
  SDX_PUT(12)       \
  SDX_PUT(13)

// R output rows at once: an input row is read once for all outputs that use it, and a weight once for all rows.
template <int K, int S, int R>
HWY_NOINLINE void depthwise_block(const Depthwise& c, std::int64_t at, float* y) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  for (std::int64_t i = 0; i < c.width; i += lanes) {
    SDX_SUMS
    const float* from = c.w;
    for (int kz = 0; kz < c.depth; ++kz) {
      const float* const slice = c.slices[kz] + at + i;
      for (int kx = 0; kx < K; ++kx, from += K * lanes) {
        const float* p = slice + c.offset[kx];
        SDX_WEIGHTS(w, from)
#define SDX_ROW(ROW)                                 \
  if constexpr (ROW < (R - 1) * S + K) {             \
    const VF v = hn::LoadU(d, p + ROW * c.row_step); \
    SDX_TO_ALL(ROW, w, v)                            \
  }
        SDX_ROWS
#undef SDX_ROW
      }
    }
    SDX_PUT_ALL
  }
}

#if SDX_512_BITS
// Rows in place: masks leave out what is outside the input.

// The columns of the input that a vector from column `start` on covers.
HWY_INLINE hn::Mask<DF> columns_inside(std::int64_t start, std::int64_t columns) {
  const DF d;
  const auto within = [](std::int64_t n) { return static_cast<std::size_t>(n < 0 ? 0 : (n < 16 ? n : 16)); };
  return hn::AndNot(hn::FirstN(d, within(-start)), hn::FirstN(d, within(columns - start)));
}

// One bit for each of `rows` rows of taps: whether it is in the input.
std::uint32_t rows_inside(const Depthwise& c, std::int64_t first, int rows) {
  std::uint32_t bits = 0;
  for (int i = 0; i < rows; ++i) {
    const std::int64_t row = first + i * c.row_gap;
    bits |= static_cast<std::uint32_t>(row >= 0 && row < c.in_rows) << i;
  }
  return bits;
}

// Fetches the input of this block in the next plane, line by line: a share with each column of taps.
struct Ahead {
  const char* next;
  std::int64_t lines = 0;

  HWY_INLINE Ahead(const Depthwise& c, std::int64_t at, std::int64_t rows, int columns) {
    next = reinterpret_cast<const char*>(c.slices[c.depth - 1] + c.in_rows * c.in_columns + at);
    const std::int64_t shares = (c.width + 15) / 16 * c.depth * columns;
    if (c.row_gap == 1) lines = (rows * c.in_columns / 16 + shares - 1) / shares;
  }
  HWY_INLINE void fetch() {
    for (std::int64_t i = 0; i < lines; ++i, next += 64) __builtin_prefetch(next);
  }
};

// `done`: the number of outputs above this block.
template <int K, int R>
HWY_NOINLINE void depthwise_in_place(const Depthwise& c, std::int64_t done, float* y) {
  constexpr int S = 1;
  const DF d;
  const std::int64_t lanes = lanes_f32(), at = c.at + done * c.row_step;
  const std::uint32_t inside = rows_inside(c, c.first_row + done * c.row_gap, R - 1 + K);
  Ahead ahead(c, at, R, K);
  for (std::int64_t i = 0; i < c.width; i += lanes) {
    SDX_SUMS
    const float* from = c.w;
    for (int kz = 0; kz < c.depth; ++kz) {
      for (int kx = 0; kx < K; ++kx, from += K * lanes) {
        const std::int64_t start = i + c.offset[kx];
        const float* p = c.slices[kz] + at + start;
        const auto mask = columns_inside(start, c.in_columns);
        ahead.fetch();
        SDX_WEIGHTS(w, from)
#define SDX_ROW(ROW)                                              \
  if constexpr (ROW < R - 1 + K) {                                \
    if ((inside & (1U << ROW)) != 0) {                            \
      const VF v = hn::MaskedLoad(mask, d, p + ROW * c.row_step); \
      SDX_TO_ALL(ROW, w, v)                                       \
    }                                                             \
  }
        SDX_ROWS
#undef SDX_ROW
      }
    }
    SDX_PUT_ALL
  }
}

// With stride 2, the even columns of two vectors are those of one tap, and the odd ones those of the next.
// kEdge: not all rows are inside.
template <int K, int R, bool kEdge>
HWY_NOINLINE void strided_rows(const Depthwise& c, std::uint32_t inside, std::int64_t at, float* y) {
  constexpr int S = 2;
  const DF d;
  const std::int64_t lanes = lanes_f32();
  Ahead ahead(c, at, R * S, (K + 1) / 2);
  for (std::int64_t i = 0; i < c.width; i += lanes) {
    SDX_SUMS
    const float* from = c.w;
    for (int kz = 0; kz < c.depth; ++kz) {
      std::int64_t start = i * S + c.offset[0];
      for (int kx = 0; kx < K; kx += 2, start += 2) {
        const float* p = c.slices[kz] + at + start;
        const auto m0 = columns_inside(start, c.in_columns), m1 = columns_inside(start + lanes, c.in_columns);
        ahead.fetch();
        SDX_WEIGHTS(w, from)
        from += K * lanes;
        if (kx + 1 == K) {
#define SDX_ROW(ROW)                                                                                 \
  if constexpr (ROW < (R - 1) * S + K) {                                                             \
    if (!kEdge || (inside & (1U << ROW)) != 0) {                                                     \
      const float* r = p + ROW * c.row_step;                                                         \
      const VF even = hn::ConcatEven(d, hn::MaskedLoad(m1, d, r + lanes), hn::MaskedLoad(m0, d, r)); \
      SDX_TO_ALL(ROW, w, even)                                                                       \
    }                                                                                                \
  }
          SDX_ROWS
#undef SDX_ROW
          break;
        }
        SDX_WEIGHTS(u, from)
        from += K * lanes;
#define SDX_ROW(ROW)                                                                    \
  if constexpr (ROW < (R - 1) * S + K) {                                                \
    if (!kEdge || (inside & (1U << ROW)) != 0) {                                        \
      const float* r = p + ROW * c.row_step;                                            \
      const VF low = hn::MaskedLoad(m0, d, r), high = hn::MaskedLoad(m1, d, r + lanes); \
      const VF even = hn::ConcatEven(d, high, low), odd = hn::ConcatOdd(d, high, low);  \
      SDX_TO_ALL(ROW, w, even)                                                          \
      SDX_TO_ALL(ROW, u, odd)                                                           \
    }                                                                                   \
  }
        SDX_ROWS
#undef SDX_ROW
      }
    }
    SDX_PUT_ALL
  }
}

template <int K, int R>
HWY_INLINE void strided_in_place(const Depthwise& c, std::int64_t done, float* y) {
  constexpr int S = 2, kRows = (R - 1) * S + K;
  const std::int64_t at = c.at + done * S * c.row_step;
  const std::uint32_t inside = rows_inside(c, c.first_row + done * S * c.row_gap, kRows);
  if constexpr (R >= 7) {
    // Without the question for each row, 5x5 taps take 0.95 of the time.
    if (inside == (1U << kRows) - 1) return strided_rows<K, R, false>(c, inside, at, y);
  }
  strided_rows<K, R, true>(c, inside, at, y);
}
#endif
#undef SDX_WEIGHTS
#undef SDX_TO
#undef SDX_TO_ALL
#undef SDX_ROWS
#undef SDX_SUMS
#undef SDX_PUT
#undef SDX_PUT_ALL

// Computes R rows at a time while there are so many.
template <bool kInPlace, int K, int S, int R>
HWY_INLINE void depthwise_some(const Depthwise& c, float* y, std::int64_t rows, std::int64_t& done) {
  constexpr int kMost = S == 1 ? kRowsAtOnce : kStridedRowsAtOnce;
  if constexpr (R <= kMost) {
    for (; rows - done >= R; done += R) {
#if SDX_512_BITS
      if constexpr (kInPlace) {
        float* const to = y + done * c.y_step;
        S == 1 ? depthwise_in_place<K, R>(c, done, to) : strided_in_place<K, R>(c, done, to);
        continue;
      }
#endif
      depthwise_block<K, S, R>(c, c.at + done * S * c.row_step, y + done * c.y_step);
    }
  }
}

template <bool kInPlace, int K, int S>
void depthwise_all(const Depthwise& c, float* y, std::int64_t rows) {
  std::int64_t done = 0;
  depthwise_some<kInPlace, K, S, 14>(c, y, rows, done);
  // 28 rows are four times 7 rather than 8, 8, 8 and 4.
  if (!kInPlace || rows % 8 == 0 || rows % 7 != 0) depthwise_some<kInPlace, K, S, 8>(c, y, rows, done);
  depthwise_some<kInPlace, K, S, 7>(c, y, rows, done);
  depthwise_some<kInPlace, K, S, 6>(c, y, rows, done);
  depthwise_some<kInPlace, K, S, 4>(c, y, rows, done);
  depthwise_some<kInPlace, K, S, 3>(c, y, rows, done);
  depthwise_some<kInPlace, K, S, 2>(c, y, rows, done);
  depthwise_some<kInPlace, K, S, 1>(c, y, rows, done);
}

template <bool kInPlace>
void depthwise_rows(const DepthwiseRows& of, float* y, std::int64_t rows) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const float inf = std::numeric_limits<float>::infinity();
  HWY_ALIGN float w[kDepthwiseTaps * kMaxF32Lanes];
  const int k = of.k;
  for (int kz = 0; kz < of.depth; ++kz) {
    for (int kx = 0; kx < k; ++kx) {
      for (int ky = 0; ky < k; ++ky) hn::Store(hn::Set(d, of.w[(kz * k + ky) * k + kx]), d, w + ((kz * k + kx) * k + ky) * lanes);
    }
  }
  const bool is_clip = of.act.op == Unary::clip;
  const Depthwise c{of.slices,
                    of.depth,
                    of.at,
                    of.row_step,
                    of.offset,
                    w,
                    hn::Set(d, of.bias),
                    hn::Set(d, of.act.op == Unary::relu ? 0.0F : (is_clip ? of.act.a : -inf)),
                    hn::Set(d, is_clip ? of.act.b : inf),
                    of.width,
                    of.y_step,
                    of.add,
                    of.first_row,
                    of.row_gap,
                    of.in_rows,
                    of.in_columns};
  if (k == 3) return of.stride == 1 ? depthwise_all<kInPlace, 3, 1>(c, y, rows) : depthwise_all<kInPlace, 3, 2>(c, y, rows);
  if (k == 5) return of.stride == 1 ? depthwise_all<kInPlace, 5, 1>(c, y, rows) : depthwise_all<kInPlace, 5, 2>(c, y, rows);
  return of.stride == 1 ? depthwise_all<kInPlace, 7, 1>(c, y, rows) : depthwise_all<kInPlace, 7, 2>(c, y, rows);
}

}  // namespace

const DepthwiseKernels& depthwise_table() {
  static const DepthwiseKernels table{kRowsAtOnce, depthwise_rows<false>, SDX_512_BITS ? depthwise_rows<true> : nullptr};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const DepthwiseKernels&, depthwise_kernels, depthwise_table)
#endif
