#include "kernels/cpu/movement/transpose_simd.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/movement/transpose_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

template <class T>
HWY_INLINE void transpose_plain(const T* x, std::int64_t ldx, T* y, std::int64_t ldy, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t j = 0; j < columns; ++j) {
    for (std::int64_t i = 0; i < rows; ++i) y[j * ldy + i] = x[i * ldx + j];
  }
}

#if HWY_TARGET != HWY_SCALAR
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
inline constexpr int kLanes = static_cast<int>(16 / sizeof(T));  // of 128 bits: the side of a square

constexpr int log2_of(int n) { return n <= 1 ? 0 : 1 + log2_of(n / 2); }

// A square in each 128 bits of kLanes vectors. Interleaving rows i and i + kLanes / 2 rotates the address of an element (equally
// many row and column bits) left by one bit: doing so once per row bit swaps row and column.
template <class D, class V = hn::Vec<D>, class T = hn::TFromD<D>>
HWY_INLINE void exchange(D d, V (&v)[kLanes<T>]) {
  constexpr int kSide = kLanes<T>;
  V w[kSide];
  for (int turn = 0; turn < log2_of(kSide); ++turn) {
    for (int i = 0; i < kSide / 2; ++i) {
      w[2 * i] = hn::InterleaveLower(d, v[i], v[i + kSide / 2]);
      w[2 * i + 1] = hn::InterleaveUpper(d, v[i], v[i + kSide / 2]);
    }
    for (int i = 0; i < kSide; ++i) v[i] = w[i];
  }
}

template <class T>
HWY_INLINE void transpose_square(const T* x, std::int64_t ldx, T* y, std::int64_t ldy) {
  constexpr int kSide = kLanes<T>;
  const hn::FixedTag<T, kSide> d;
  hn::Vec<decltype(d)> v[kSide];
  for (int i = 0; i < kSide; ++i) v[i] = hn::LoadU(d, x + i * ldx);
  exchange(d, v);
  for (int i = 0; i < kSide; ++i) hn::StoreU(v[i], d, y + i * ldy);
}

// Two squares one below the other: stores of twice the width.
#if HWY_MAX_BYTES >= 32
template <class T>
HWY_INLINE void transpose_two_squares(const T* x, std::int64_t ldx, T* y, std::int64_t ldy) {
  constexpr int kSide = kLanes<T>;
  const hn::FixedTag<T, 2 * kSide> d;
  const hn::FixedTag<T, kSide> half;
  hn::Vec<decltype(d)> v[kSide];
  for (int i = 0; i < kSide; ++i) {
    v[i] = hn::Combine(d, hn::LoadU(half, x + (i + kSide) * ldx), hn::LoadU(half, x + i * ldx));
  }
  exchange(d, v);
  for (int i = 0; i < kSide; ++i) hn::StoreU(v[i], d, y + i * ldy);
}
#endif

// 2 to 4 planes of x become interleaved rows of y. Returns the number of columns done.
template <class T>
std::int64_t from_planes(const T* x, std::int64_t ldx, T* y, std::int64_t rows, std::int64_t columns) {
  const hn::FixedTag<T, kLanes<T>> d;
  std::int64_t j = 0;
  for (; j + kLanes<T> <= columns; j += kLanes<T>) {
    const auto a = hn::LoadU(d, x + j);
    const auto b = hn::LoadU(d, x + ldx + j);
    if (rows == 2) {
      hn::StoreInterleaved2(a, b, d, y + 2 * j);
    } else if (rows == 3) {
      hn::StoreInterleaved3(a, b, hn::LoadU(d, x + 2 * ldx + j), d, y + 3 * j);
    } else {
      hn::StoreInterleaved4(a, b, hn::LoadU(d, x + 2 * ldx + j), hn::LoadU(d, x + 3 * ldx + j), d, y + 4 * j);
    }
  }
  return j;
}

// The reverse. Returns the number of rows done.
template <class T>
std::int64_t to_planes(const T* x, T* y, std::int64_t ldy, std::int64_t rows, std::int64_t columns) {
  const hn::FixedTag<T, kLanes<T>> d;
  hn::Vec<decltype(d)> v0, v1, v2, v3;
  std::int64_t i = 0;
  for (; i + kLanes<T> <= rows; i += kLanes<T>) {
    if (columns == 2) {
      hn::LoadInterleaved2(d, x + 2 * i, v0, v1);
    } else if (columns == 3) {
      hn::LoadInterleaved3(d, x + 3 * i, v0, v1, v2);
      hn::StoreU(v2, d, y + 2 * ldy + i);
    } else {
      hn::LoadInterleaved4(d, x + 4 * i, v0, v1, v2, v3);
      hn::StoreU(v2, d, y + 2 * ldy + i);
      hn::StoreU(v3, d, y + 3 * ldy + i);
    }
    hn::StoreU(v0, d, y + i);
    hn::StoreU(v1, d, y + ldy + i);
  }
  return i;
}

// Squares of one cache line a side: each line of x and of y is used completely while in the first-level cache. Lines of larger
// squares evict each other if a row's length is a power of two (all rows fall into the same few sets).
template <class T>
HWY_INLINE void transpose_tile(const T* x, std::int64_t ldx, T* y, std::int64_t ldy, std::int64_t rows, std::int64_t columns) {
  constexpr int kSide = kLanes<T>;
  const std::int64_t whole = columns / kSide * kSide;
  std::int64_t i = 0;
#if HWY_MAX_BYTES >= 32
  for (; i + 2 * kSide <= rows; i += 2 * kSide) {
    for (std::int64_t j = 0; j < whole; j += kSide) transpose_two_squares(x + i * ldx + j, ldx, y + j * ldy + i, ldy);
  }
#endif
  for (; i + kSide <= rows; i += kSide) {
    for (std::int64_t j = 0; j < whole; j += kSide) transpose_square(x + i * ldx + j, ldx, y + j * ldy + i, ldy);
  }
  transpose_plain(x + whole, ldx, y + whole * ldy, ldy, i, columns - whole);
  transpose_plain(x + i * ldx, ldx, y + i, ldy, rows - i, columns);
}

// The same if rows of x or y are so far apart that the tile's lines share one or two sets of the first-level cache, which hold
// fewer lines: each line is read, and each written, in one go.
template <class T>
HWY_NOINLINE void transpose_far_tile(const T* x, std::int64_t ldx, T* y, std::int64_t ldy) {
  constexpr std::int64_t kTile = static_cast<std::int64_t>(64 / sizeof(T));
  HWY_ALIGN T from[kTile * kTile], to[kTile * kTile];
  for (std::int64_t i = 0; i < kTile; ++i) std::memcpy(from + i * kTile, x + i * ldx, 64);
  transpose_tile(from, kTile, to, kTile, kTile, kTile);
  for (std::int64_t j = 0; j < kTile; ++j) std::memcpy(y + j * ldy, to + j * kTile, 64);
}

template <class T>
void transpose_of(const T* x, std::int64_t ldx, T* y, std::int64_t ldy, std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t kTile = static_cast<std::int64_t>(64 / sizeof(T)), kFar = static_cast<std::int64_t>(2048 / sizeof(T));
  const bool far = ldx % kFar == 0 || ldy % kFar == 0;
  if (rows >= 2 && rows <= 4 && ldy == rows) {
    const std::int64_t done = from_planes(x, ldx, y, rows, columns);
    return transpose_plain(x + done, ldx, y + done * ldy, ldy, rows, columns - done);
  }
  if (columns >= 2 && columns <= 4 && ldx == columns) {
    const std::int64_t done = to_planes(x, y, ldy, rows, columns);
    return transpose_plain(x + done * ldx, ldx, y + done, ldy, rows - done, columns);
  }
  for (std::int64_t i = 0; i < rows; i += kTile) {
    for (std::int64_t j = 0; j < columns; j += kTile) {
      if (far && i + kTile <= rows && j + kTile <= columns) {
        transpose_far_tile(x + i * ldx + j, ldx, y + j * ldy + i, ldy);
        continue;
      }
      transpose_tile(x + i * ldx + j, ldx, y + j * ldy + i, ldy, std::min(kTile, rows - i), std::min(kTile, columns - j));
    }
  }
}

#else

template <class T>
void transpose_of(const T* x, std::int64_t ldx, T* y, std::int64_t ldy, std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t kTile = 32;
  for (std::int64_t i = 0; i < rows; i += kTile) {
    for (std::int64_t j = 0; j < columns; j += kTile) {
      transpose_plain(x + i * ldx + j, ldx, y + j * ldy + i, ldy, std::min(kTile, rows - i), std::min(kTile, columns - j));
    }
  }
}

#endif

}  // namespace

const TransposeKernels& transpose_table() {
  static const TransposeKernels table{transpose_of<std::uint8_t>, transpose_of<std::uint16_t>, transpose_of<std::uint32_t>,
                                      transpose_of<std::uint64_t>};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const TransposeKernels&, transpose_kernels, transpose_table)
#endif
