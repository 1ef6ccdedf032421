#include "kernels/cpu/gemm/gemm_simd.h"

#include <limits>

#include "kernels/cpu/elementwise/elementwise_simd.h"
#include "kernels/cpu/simd/prefetch.h"
#include "kernels/cpu/simd/repeat.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm/gemm_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/simd/columns-inl.h"
#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

constexpr int kMr = kTileRows;
// With this many rows the right operand streams by, and a second set of sums fits the registers.
constexpr int kFewRows = kMr > 8 ? 6 : 3;

HWY_INLINE float read_f32(const char* p) {
  float v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}
HWY_INLINE const float* at(const char* p, std::int64_t index) { return reinterpret_cast<const float*>(p + index * 4); }

// The steps that store() applies to whole vectors on their way to C. Activation functions other than bounds are left to the
// caller.
struct Finish {
  bool on;   // false: stores plain products
  bool all;  // false: only adds what C holds
  VF col0, col1, lo, hi;
  const float* row_bias;
};

HWY_INLINE VF finished(const GemmTile& t, const Finish& f, VF v, VF row, VF col, const float* c, const float* r) {
  const DF d;
  v = hn::Add(hn::Add(v, row), col);
  if (t.accumulate) v = hn::Add(v, hn::LoadU(d, c));
  if (r != nullptr) v = hn::Add(v, hn::LoadU(d, r));
  return clip(v, f.lo, f.hi);
}

template <bool kWide>
HWY_INLINE void store(const GemmTile& t, const Finish& f, int i, VF v0, VF v1, float* out, std::int64_t ldo) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  float* c = out + ldo * i;
  if (f.on && !f.all) {
    v0 = hn::Add(v0, hn::LoadU(d, c));
    if constexpr (kWide) v1 = hn::Add(v1, hn::LoadU(d, c + lanes));
  } else if (f.on) {
    const VF row = hn::Set(d, f.row_bias[i]);
    const float* r = t.residual != nullptr ? t.residual + t.ld_residual * i : nullptr;
    v0 = finished(t, f, v0, row, f.col0, c, r);
    if constexpr (kWide) v1 = finished(t, f, v1, row, f.col1, c + lanes, r != nullptr ? r + lanes : nullptr);
  }
  hn::StoreU(v0, d, c);
  if (kWide || !f.on) hn::StoreU(v1, d, c + lanes);
}

HWY_INLINE Finish finish_of(const GemmTile& t, bool on, bool wide) {
  static constexpr float kZeros[kMr] = {};
  const DF d;
  const float inf = std::numeric_limits<float>::infinity();
  const bool col = t.last && t.bias_col != nullptr;
  const bool is_relu = t.last && t.act.op == Unary::relu;
  const bool is_clip = t.last && t.act.op == Unary::clip;
  Finish f;
  f.on = on;
  f.all = !t.accumulate || t.residual != nullptr || col || (t.last && t.bias_row != nullptr) || is_relu || is_clip;
  f.col0 = on && col ? hn::LoadU(d, t.bias_col) : hn::Zero(d);
  f.col1 = on && col && wide ? hn::LoadU(d, t.bias_col + lanes_f32()) : hn::Zero(d);
  f.lo = hn::Set(d, is_relu ? 0.0F : (is_clip ? t.act.a : -inf));
  f.hi = hn::Set(d, is_clip ? t.act.b : inf);
  f.row_bias = t.last && t.bias_row != nullptr ? t.bias_row : kZeros;
  return f;
}

// The left operand of a register tile. Rows read in place need no packing, which always takes 3 to 5 % of a product's time, and
// more if several threads need the same rows. One pointer serves three rows: x86 scales an index by 1 and 2.
template <int M, bool kRows>
struct Left {
  HWY_INLINE explicit Left(const GemmTile& t)
      : p0(t.a),
        p1(t.a + 3 * t.lda),
        p2(t.a + 6 * t.lda),
        p3(t.a + 9 * t.lda),
        p4(t.a + 12 * t.lda),
        lda(kRows ? t.lda : (t.a_step != 0 ? t.a_step : M)) {}
  template <int I>
  HWY_INLINE float at(std::int64_t k) const {
    if constexpr (!kRows) {
      return p0[k * lda + I];
    } else {
      return row<I>()[k];
    }
  }
  HWY_INLINE void advance(std::int64_t k) {
    if constexpr (!kRows) {
      p0 += k * lda;
    } else {
      p0 += k;
      if constexpr (M > 3) p1 += k;
      if constexpr (M > 6) p2 += k;
      if constexpr (M > 9) p3 += k;
      if constexpr (M > 12) p4 += k;
    }
  }
  // Prefetches, with `left` steps to go. Packed tiles follow each other in memory: weights that stream by are fetched 4 KB ahead,
  // across page borders, where hardware prefetchers stop. For rows in place, fetches those of the next tile, one cache line of
  // each row every 16 steps.
  HWY_INLINE void fetch(std::int64_t left) const {
    if constexpr (!kRows) {
      __builtin_prefetch(p0 + 1024);
    } else if ((left & 14) == 0) {
#define SDX_FETCH(I) \
  if constexpr (M > I) __builtin_prefetch(row<I>() + M * lda);
      SDX_REPEAT_14(SDX_FETCH)
#undef SDX_FETCH
    }
  }
  HWY_INLINE void fetch_line(int line) const { __builtin_prefetch(p0 + 1024 + 16 * line); }
  // A packed operand of many rows streams by twice as fast under one vector of columns as under two.
  HWY_INLINE void fetch_streaming() const {
    if constexpr (kRows || M <= 7) return;
    fetch_line(0);
    fetch_line(1);
  }
  // fetch() for eight steps.
  HWY_INLINE void fetch8(std::int64_t left) const {
    if constexpr (!kRows) {
      for (int line = 0; line < M / 2; ++line) __builtin_prefetch(p0 + 1024 + 16 * line);
    } else if ((left & 8) == 0) {
      fetch(0);
    }
  }

 private:
  template <int I>
  HWY_INLINE const float* row() const {
    const float* p = I < 3 ? p0 : (I < 6 ? p1 : (I < 9 ? p2 : (I < 12 ? p3 : p4)));
    return p + (I % 3) * lda;
  }
  const float* HWY_RESTRICT p0;
  const float* HWY_RESTRICT p1;
  const float* HWY_RESTRICT p2;
  const float* HWY_RESTRICT p3;
  const float* HWY_RESTRICT p4;
  std::int64_t lda;  // for packed tiles: from one step of K to the next
};

// Prefetches every line of the next `bytes` into the second-level cache, once or more often.
HWY_INLINE void fetch_lines(const char* from, std::int64_t bytes) {
  if (bytes == 0) return;
  __builtin_prefetch(from, 0, 2);
  if (bytes <= 64) return;
  __builtin_prefetch(from + 64, 0, 2);
  if (bytes <= 128) return;
  __builtin_prefetch(from + 128, 0, 2);
  __builtin_prefetch(from + 192, 0, 2);
}

HWY_INLINE void fetch_rows(const float* b, std::int64_t ldb) {
  __builtin_prefetch(b);
  __builtin_prefetch(b + ldb);
}

#define SDX_ZERO(A, B) \
  VF A = hn::Zero(d);  \
  VF B = hn::Zero(d);  \
  (void)A;             \
  (void)B;
#define SDX_MULTIPLY(I, K, A, B, B0, B1)           \
  if constexpr (M > I) {                           \
    const VF v = hn::Set(d, a.template at<I>(K));  \
    A = hn::MulAdd(v, B0, A);                      \
    if constexpr (kWide) B = hn::MulAdd(v, B1, B); \
  }
#define SDX_DECLARE(I) SDX_ZERO(c##I, e##I)
#define SDX_DECLARE2(I) SDX_ZERO(f##I, g##I)
#define SDX_STEP(I) SDX_MULTIPLY(I, 0, c##I, e##I, b0, b1)
#define SDX_STEP2(I) SDX_MULTIPLY(I, 1, f##I, g##I, b2, b3)
#define SDX_JOIN(I)             \
  if constexpr (M > I) {        \
    c##I = hn::Add(c##I, f##I); \
    e##I = hn::Add(e##I, g##I); \
  }
#define SDX_STORE(I) \
  if constexpr (M > I) store<kWide>(t, f, I, c##I, e##I, out, ldo);

// The arrangement of the operands: A tiles packed, or as rows in place; with packed ones, B as a panel or as a list of rows.
enum class Lie : std::uint8_t { packed, rows, listed };

#define SDX_ROW(I) (kLie == Lie::listed ? b + rows[I] : b + (I)*ldb)
#define SDX_NEXT_ROWS(N)               \
  if constexpr (kLie == Lie::listed) { \
    rows += N;                         \
  } else {                             \
    b += (N)*ldb;                      \
  }
#define SDX_STEP_OF_K(B)                                                            \
  {                                                                                 \
    const VF b0 = hn::LoadU(d, B);                                                  \
    [[maybe_unused]] const VF b1 = kWide ? hn::LoadU(d, (B) + lanes) : hn::Zero(d); \
    SDX_REPEAT_14(SDX_STEP)                                                         \
  }                                                                                 \
  a.advance(1);
// GCC would move loads of the next steps ahead, and spill sums for them.
#define SDX_STEP_APART(I)    \
  SDX_STEP_OF_K(b + rows[I]) \
  __asm__("" ::: "memory");

// Accumulators are named, because GCC 12 spills arrays of vectors. The products go to rows of `out`, 2 lanes wide, or through the
// epilogue to C (then `out` is C and has as many columns as the tile has vectors).
template <int M, bool kWide, Lie kLie>
HWY_NOINLINE void product(const GemmTile& t, bool to_c, float* out, std::int64_t ldo) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  Left<M, kLie == Lie::rows> a(t);
  const float* HWY_RESTRICT b = t.b;
  const std::int64_t ldb = t.ldb;
  const std::int64_t* rows = t.b_rows;
  SDX_REPEAT_14(SDX_DECLARE)
  std::int64_t k = t.k;
  if constexpr (M <= kFewRows || !kWide) {
    // A second set of sums: few rows or a single vector give too few independent chains to hide the latency of an FMA (4 cycles,
    // 2 per cycle). 4 to 6 rows gain by the prefetch: 4 x 768 x 3072 takes 0.098 instead of 0.129 ms.
    SDX_REPEAT_14(SDX_DECLARE2)
    for (; k >= 2; k -= 2) {
      // With few rows the right operand streams by, with a single vector the left one: prefetched 4 KB ahead where packed.
      if constexpr (kLie != Lie::listed) {
        fetch_rows(b + 64 * ldb, ldb);
        a.fetch_streaming();
      }
      const float *const row0 = SDX_ROW(0), *const row1 = SDX_ROW(1);
      const VF b0 = hn::LoadU(d, row0);
      [[maybe_unused]] const VF b1 = kWide ? hn::LoadU(d, row0 + lanes) : hn::Zero(d);
      const VF b2 = hn::LoadU(d, row1);
      [[maybe_unused]] const VF b3 = kWide ? hn::LoadU(d, row1 + lanes) : hn::Zero(d);
      SDX_REPEAT_14(SDX_STEP)
      SDX_REPEAT_14(SDX_STEP2)
      a.advance(2);
      SDX_NEXT_ROWS(2)
    }
    SDX_REPEAT_14(SDX_JOIN)
  } else {
    const char* ahead = t.ahead;
    const std::int64_t step = t.ahead_step;
    // Panels: eight steps with fixed distances. Counters, pointers and moves between registers are 30 % of the instructions of
    // two steps, 8 % of those of eight; where another thread shares the core, it is instructions that count.
    if constexpr (kLie == Lie::listed) {
      for (; k >= 4; k -= 4, rows += 4) {
        for (int line = 0; line < (M + 3) / 4; ++line) a.fetch_line(line);
        SDX_STEP_APART(0)
        SDX_STEP_APART(1)
        SDX_STEP_APART(2)
        SDX_STEP_APART(3)
      }
    } else if (ldb == 2 * lanes) {
      for (; k >= 8; k -= 8) {
        a.fetch8(k);
        if (step != 0) {
          for (int i = 0; i < 4; ++i) fetch_lines(ahead + i * step, step);
          ahead += 4 * step;
        }
        SDX_STEP_OF_K(b)
        SDX_STEP_OF_K(b + 2 * lanes)
        SDX_STEP_OF_K(b + 4 * lanes)
        SDX_STEP_OF_K(b + 6 * lanes)
        SDX_STEP_OF_K(b + 8 * lanes)
        SDX_STEP_OF_K(b + 10 * lanes)
        SDX_STEP_OF_K(b + 12 * lanes)
        SDX_STEP_OF_K(b + 14 * lanes)
        b += 16 * lanes;
      }
    }
    for (; k >= 2; k -= 2, ahead += step) {
      a.fetch(k);
      fetch_lines(ahead, step);
      SDX_STEP_OF_K(SDX_ROW(0))
      SDX_STEP_OF_K(SDX_ROW(1))
      SDX_NEXT_ROWS(2)
    }
  }
  for (; k > 0; --k) {
    const float* const row = SDX_ROW(0);
    const VF b0 = hn::LoadU(d, row);
    [[maybe_unused]] const VF b1 = kWide ? hn::LoadU(d, row + lanes) : hn::Zero(d);
    SDX_REPEAT_14(SDX_STEP)
    a.advance(1);
    SDX_NEXT_ROWS(1)
  }
  const Finish f = finish_of(t, to_c, kWide);
  SDX_REPEAT_14(SDX_STORE)
}
#undef SDX_STEP_APART
#undef SDX_STEP_OF_K
#undef SDX_NEXT_ROWS
#undef SDX_ROW
#undef SDX_STORE
#undef SDX_JOIN
#undef SDX_STEP2
#undef SDX_STEP
#undef SDX_DECLARE2
#undef SDX_DECLARE
#undef SDX_MULTIPLY
#undef SDX_ZERO

// Applies activation functions other than bounds, in place.
void activate(const GemmTile& t) {
  if (!t.last || t.act.op == Unary::none || t.act.op == Unary::relu || t.act.op == Unary::clip) return;
  elementwise_kernels().unary_rows(t.act, t.c, t.ldc, t.m, t.n);
}

void finish(const GemmTile& t, const float* product, std::int64_t ld_product) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const VF alpha = hn::Set(d, t.alpha);
  const VF residual_scale = hn::Set(d, t.residual_scale);
  const VF bias_scale = hn::Set(d, t.bias_scale);
  const VF lo = hn::Set(d, t.act.a);
  const VF hi = hn::Set(d, t.act.b);
  const bool bias_col = t.last && t.bias_col != nullptr;
  const bool do_relu = t.last && t.act.op == Unary::relu;
  const bool do_clip = t.last && t.act.op == Unary::clip;
  for (std::int64_t i = 0; i < t.m; ++i) {
    const VF row_bias = hn::Set(d, t.last && t.bias_row != nullptr ? t.bias_row[i] * t.bias_scale : 0.0F);
    const float* p = product + i * ld_product;
    float* c = t.c + i * t.ldc;
    const float* r = t.residual != nullptr ? t.residual + i * t.ld_residual : nullptr;
    std::int64_t j = 0;
    for (; j + lanes <= t.n; j += lanes) {
      VF v = hn::MulAdd(alpha, hn::LoadU(d, p + j), row_bias);
      if (t.accumulate) v = hn::Add(v, hn::LoadU(d, c + j));
      if (r != nullptr) v = hn::MulAdd(residual_scale, hn::LoadU(d, r + j), v);
      if (bias_col) v = hn::MulAdd(bias_scale, hn::LoadU(d, t.bias_col + j), v);
      if (do_relu) v = relu(v);
      if (do_clip) v = clip(v, lo, hi);
      hn::StoreU(v, d, c + j);
    }
    if (j < t.n) {
      const std::int64_t rest = t.n - j;
      VF v = hn::MulAdd(alpha, load_tail(d, p + j, rest), row_bias);
      if (t.accumulate) v = hn::Add(v, load_tail(d, c + j, rest));
      if (r != nullptr) v = hn::MulAdd(residual_scale, load_tail(d, r + j, rest), v);
      if (bias_col) v = hn::MulAdd(bias_scale, load_tail(d, t.bias_col + j, rest), v);
      if (do_relu) v = relu(v);
      if (do_clip) v = clip(v, lo, hi);
      store_tail(v, d, c + j, rest);
    }
  }
  activate(t);
}

template <int M, Lie kLie>
HWY_INLINE void product_of(const GemmTile& t, bool wide, bool to_c, float* out, std::int64_t ldo) {
  wide ? product<M, true, kLie>(t, to_c, out, ldo) : product<M, false, kLie>(t, to_c, out, ldo);
}

void tile(const GemmTile& t) {
  HWY_ALIGN float buffer[kMr * 2 * kMaxF32Lanes];
  const std::int64_t nr = 2 * lanes_f32();
  // A last panel of at most one vector of columns (49 = 3 x 16 + 1 for a 7x7 image) takes half the time of a whole one.
  const bool wide = t.n > lanes_f32();
  // Whole vectors go from registers through the epilogue to C. A buffer in between would cost a fifth of the time for small K, as
  // in the pointwise convolutions of mobile networks.
  const bool to_c = t.n == (wide ? nr : nr / 2) && t.alpha == 1.0F && (t.residual == nullptr || t.residual_scale == 1.0F) &&
                    (!t.last || (t.bias_col == nullptr && t.bias_row == nullptr) || t.bias_scale == 1.0F);
  // Attention scores and first blocks of K are stored unchanged: with K = 64 the end of a tile is a tenth of its time.
  const bool plain = to_c && wide && !t.accumulate && t.residual == nullptr &&
                     (!t.last || (t.bias_col == nullptr && t.bias_row == nullptr && t.act.op == Unary::none));
  const bool finishes = to_c && !plain;
  float* out = to_c ? t.c : buffer;
  const std::int64_t ldo = to_c ? t.ldc : nr;
  switch (t.m) {
#define SDX_CASE(I)                                               \
  case I + 1:                                                     \
    if constexpr (I < kMr) {                                      \
      constexpr int kM = I < kMr ? I + 1 : 1;                     \
      if (t.b_rows != nullptr) {                                  \
        product_of<kM, Lie::listed>(t, wide, finishes, out, ldo); \
      } else if (t.lda != 0) {                                    \
        product_of<kM, Lie::rows>(t, wide, finishes, out, ldo);   \
      } else {                                                    \
        product_of<kM, Lie::packed>(t, wide, finishes, out, ldo); \
      }                                                           \
    }                                                             \
    break;
    SDX_REPEAT_14(SDX_CASE)
#undef SDX_CASE
    default: return;
  }
  if (!to_c) return finish(t, buffer, nr);
  activate(t);
}

#if HWY_TARGET != HWY_SCALAR
// Copies kRows runs of `n` contiguous floats, `stride` elements apart, to out[i * step + 0 .. kRows - 1]. Prefetches what lies
// `ahead` bytes further, unless that is 0.
template <int kRows>
HWY_INLINE void transpose_runs(const char* src, std::int64_t stride, std::int64_t n, float scale, float* HWY_RESTRICT out,
                               std::int64_t step, std::int64_t ahead) {
  const hn::FixedTag<float, kRows> d;
  const auto factor = hn::Set(d, scale);
  const auto four = [&](std::int64_t i) HWY_ATTR {
    // Each fourth time comes to the same 16 columns, one cache line of each run.
    constexpr std::int64_t kFew = kRows / 4;
    for (std::int64_t r = 0; ahead != 0 && r < kFew; ++r) {
      prefetch_after(src, ((i / 4 % 4 * kFew + r) * stride + i / 16 * 16) * 4 + ahead);
    }
    ColumnOf<kRows> c0, c1, c2, c3;
    four_columns<kRows>([&](int r) HWY_ATTR { return at(src, r * stride + i); }, c0, c1, c2, c3);
    hn::StoreU(hn::Mul(factor, c0), d, out + i * step);
    hn::StoreU(hn::Mul(factor, c1), d, out + (i + 1) * step);
    hn::StoreU(hn::Mul(factor, c2), d, out + (i + 2) * step);
    hn::StoreU(hn::Mul(factor, c3), d, out + (i + 3) * step);
  };
  std::int64_t i = 0;
  for (; i + 4 <= n; i += 4) four(i);
  if (i == n) return;
  if (n >= 4) return four(n - 4);
  for (; i < n; ++i) {
    for (int r = 0; r < kRows; ++r) out[i * step + r] = scale * read_f32(src + (r * stride + i) * 4);
  }
}

// The last group overlaps the one before. Packing the last two rows of a tile of 6 one by one took three times as long.
template <int kRows>
HWY_INLINE void pack_groups(const char* src, std::int64_t stride, std::int64_t n, std::int64_t depth, float scale,
                            float* HWY_RESTRICT out, std::int64_t width, std::int64_t ahead) {
  std::int64_t j = 0;
  for (; j + kRows <= n; j += kRows) transpose_runs<kRows>(src + j * stride * 4, stride, depth, scale, out + j, width, ahead);
  if (j < n) transpose_runs<kRows>(src + (n - kRows) * stride * 4, stride, depth, scale, out + n - kRows, width, 0);
}
#endif

// out[k * width + j] = scale * src[j * sj + k * sk] for j < n, k < depth. `ahead`: as transpose_runs() has it.
HWY_INLINE void pack_columns(const char* src, std::int64_t sj, std::int64_t sk, std::int64_t n, std::int64_t depth, float scale,
                             float* HWY_RESTRICT out, std::int64_t width, [[maybe_unused]] std::int64_t ahead = 0) {
#if HWY_TARGET != HWY_SCALAR
#if HWY_MAX_BYTES >= 64
  if (sk == 1 && n >= 16) return pack_groups<16>(src, sj, n, depth, scale, out, width, ahead);
#endif
#if HWY_MAX_BYTES >= 32
  if (sk == 1 && n >= 8) return pack_groups<8>(src, sj, n, depth, scale, out, width, ahead);
#endif
  if (sk == 1 && n >= 4) return pack_groups<4>(src, sj, n, depth, scale, out, width, ahead);
#endif
  for (std::int64_t j = 0; j < n; ++j) {
    const char* s = src + j * sj * 4;
    for (std::int64_t k = 0; k < depth; ++k) out[k * width + j] = scale * read_f32(s + k * sk * 4);
  }
}

void pack_a_tile(const char* a, std::int64_t rs, std::int64_t cs, std::int64_t m, std::int64_t k, float scale, float* out) {
  if (rs == 1) {
    const DF d;
    const std::int64_t lanes = lanes_f32();
    const VF factor = hn::Set(d, scale);
    // Stores whole vectors, whose excess the next row overwrites. The last rows have no room for excess.
    const std::int64_t spare = k - (lanes + m - 1) / m;
    std::int64_t kk = 0;
    for (; kk < spare; ++kk) {
      for (std::int64_t i = 0; i < m; i += lanes) {
        const float* from = at(a, kk * cs + i);
        hn::StoreU(hn::Mul(factor, m - i >= lanes ? hn::LoadU(d, from) : load_tail(d, from, m - i)), d, out + kk * m + i);
      }
    }
    for (; kk < k; ++kk) {
      for (std::int64_t i = 0; i < m; ++i) out[kk * m + i] = scale * read_f32(a + (kk * cs + i) * 4);
    }
    return;
  }
  pack_columns(a, rs, cs, m, k, scale, out, m);
}

void pack_b_panels(const char* b, std::int64_t rs, std::int64_t cs, std::int64_t k, std::int64_t n, float scale, float* out) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const std::int64_t nr = 2 * lanes;
  const std::int64_t full = n / nr;
  const std::int64_t rest = n - full * nr;
  const VF factor = hn::Set(d, scale);
  if (cs == 1) {
    // Goes along rows, so that the source is read in order and each panel is one write stream.
    for (std::int64_t kk = 0; kk < k; ++kk) {
      const char* src = b + kk * rs * 4;
      float* dst = out + kk * nr;
      for (std::int64_t p = 0; p < full; ++p) {
        hn::Store(hn::Mul(factor, hn::LoadU(d, at(src, p * nr))), d, dst + p * k * nr);
        hn::Store(hn::Mul(factor, hn::LoadU(d, at(src, p * nr + lanes))), d, dst + p * k * nr + lanes);
      }
      if (rest > 0) {
        float* tail = dst + full * k * nr;
        for (std::int64_t j = 0; j < nr; ++j) tail[j] = j < rest ? scale * read_f32(src + (full * nr + j) * 4) : 0.0F;
      }
    }
    return;
  }
  // The next panel is prefetched: 16 runs of 256 bytes are a page, and the hardware follows none of them into the next one.
  const std::int64_t panel = nr * cs * 4;  // bytes
  for (std::int64_t p = 0; p < full; ++p) pack_columns(b + p * panel, cs, rs, nr, k, scale, out + p * k * nr, nr, panel);
  if (rest > 0) {
    float* tail = out + full * k * nr;
    std::memset(tail, 0, static_cast<std::size_t>(k * nr) * sizeof(float));
    pack_columns(b + full * nr * cs * 4, cs, rs, rest, k, scale, tail, nr);
  }
}

// Takes eight rows of B at a time, over a piece of y that stays in the first-level cache. Rows are read in runs of up to 2 KB,
// which prefetchers follow. Going over all of k for 8 vectors of columns reached only half of the read bandwidth.
void gemv_rows(const float* x, const float* b, std::int64_t ldb, std::int64_t k, std::int64_t n, float* y) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  std::memset(y, 0, static_cast<std::size_t>(n) * sizeof(float));
  const std::int64_t whole = n / lanes * lanes;
  std::int64_t i = 0;
  for (; i + 8 <= k; i += 8) {
    const float* p = b + i * ldb;
    const VF x0 = hn::Set(d, x[i]), x1 = hn::Set(d, x[i + 1]), x2 = hn::Set(d, x[i + 2]), x3 = hn::Set(d, x[i + 3]);
    const VF x4 = hn::Set(d, x[i + 4]), x5 = hn::Set(d, x[i + 5]), x6 = hn::Set(d, x[i + 6]), x7 = hn::Set(d, x[i + 7]);
    for (std::int64_t j = 0; j < whole; j += lanes) {
      const float* q = p + j;
      VF s = hn::MulAdd(x0, hn::LoadU(d, q), hn::LoadU(d, y + j));
      VF t = hn::Mul(x1, hn::LoadU(d, q + ldb));
      s = hn::MulAdd(x2, hn::LoadU(d, q + 2 * ldb), s);
      t = hn::MulAdd(x3, hn::LoadU(d, q + 3 * ldb), t);
      s = hn::MulAdd(x4, hn::LoadU(d, q + 4 * ldb), s);
      t = hn::MulAdd(x5, hn::LoadU(d, q + 5 * ldb), t);
      s = hn::MulAdd(x6, hn::LoadU(d, q + 6 * ldb), s);
      t = hn::MulAdd(x7, hn::LoadU(d, q + 7 * ldb), t);
      hn::StoreU(hn::Add(s, t), d, y + j);
    }
    for (std::int64_t j = whole; j < n; ++j) {
      float s = y[j];
      for (std::int64_t r = 0; r < 8; ++r) s += x[i + r] * p[r * ldb + j];
      y[j] = s;
    }
  }
  for (; i < k; ++i) {
    const float* p = b + i * ldb;
    const VF v = hn::Set(d, x[i]);
    for (std::int64_t j = 0; j < whole; j += lanes) hn::StoreU(hn::MulAdd(v, hn::LoadU(d, p + j), hn::LoadU(d, y + j)), d, y + j);
    for (std::int64_t j = whole; j < n; ++j) y[j] += x[i] * p[j];
  }
}

float dot(const float* x, const float* b, std::int64_t k) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  VF s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  std::int64_t i = 0;
  for (; i + 4 * lanes <= k; i += 4 * lanes) {
    s0 = hn::MulAdd(hn::LoadU(d, x + i), hn::LoadU(d, b + i), s0);
    s1 = hn::MulAdd(hn::LoadU(d, x + i + lanes), hn::LoadU(d, b + i + lanes), s1);
    s2 = hn::MulAdd(hn::LoadU(d, x + i + 2 * lanes), hn::LoadU(d, b + i + 2 * lanes), s2);
    s3 = hn::MulAdd(hn::LoadU(d, x + i + 3 * lanes), hn::LoadU(d, b + i + 3 * lanes), s3);
  }
  for (; i + lanes <= k; i += lanes) s0 = hn::MulAdd(hn::LoadU(d, x + i), hn::LoadU(d, b + i), s0);
  if (i < k) s1 = hn::MulAdd(load_tail(d, x + i, k - i), load_tail(d, b + i, k - i), s1);
  return sum_lanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)));
}

void gemv_dots(const float* x, const float* b, std::int64_t ldb, std::int64_t k, std::int64_t n, float* y, std::int64_t sy) {
  for (std::int64_t j = 0; j < n; ++j) y[j * sy] = dot(x, b + j * ldb, k);
}

}  // namespace

const GemmKernels& gemm_table() {
  static const GemmKernels table{kMr,   static_cast<int>(2 * lanes_f32()), tile, pack_a_tile, pack_b_panels, gemv_rows, gemv_dots,
                                 finish};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const GemmKernels&, gemm_kernels, gemm_table)
#endif
