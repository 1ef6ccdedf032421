#include "kernels/cpu/image_kernels.h"

#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/image_kernels.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

HWY_INLINE void put(VF v, float* y, std::int64_t left) {
  const DF d;
  if (left >= lanes_f32()) {
    hn::StoreU(v, d, y);
  } else {
    store_tail(v, d, y, left);
  }
}

void max_rows(const float* const* rows, std::int64_t count, float* y, std::int64_t n) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  for (std::int64_t i = 0; i < n; i += lanes) {
    VF m = hn::LoadU(d, rows[0] + i);
    for (std::int64_t r = 1; r < count; ++r) m = max_nan(m, hn::LoadU(d, rows[r] + i));
    put(m, y + i, n - i);
  }
}

void sum_rows(const float* const* rows, std::int64_t count, const float* scale, float* y, std::int64_t n) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  for (std::int64_t i = 0; i < n; i += lanes) {
    VF s = hn::Zero(d);
    for (std::int64_t r = 0; r < count; ++r) s = hn::Add(s, hn::LoadU(d, rows[r] + i));
    const VF f = n - i >= lanes ? hn::LoadU(d, scale + i) : load_tail(d, scale + i, n - i);
    put(hn::Mul(s, f), y + i, n - i);
  }
}

void lerp(const float* a, const float* b, float t, float* y, std::int64_t n) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const VF vt = hn::Set(d, t);
  for (std::int64_t i = 0; i < n; i += lanes) {
    const bool whole = n - i >= lanes;
    const VF va = whole ? hn::LoadU(d, a + i) : load_tail(d, a + i, n - i);
    const VF vb = whole ? hn::LoadU(d, b + i) : load_tail(d, b + i, n - i);
    put(hn::MulAdd(vt, hn::Sub(vb, va), va), y + i, n - i);
  }
}

void transpose32(const std::uint32_t* x, std::int64_t ldx, std::uint32_t* y, std::int64_t ldy, std::int64_t rows,
                 std::int64_t columns) {
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<std::uint32_t, 4> d;
  const hn::RepartitionToWide<decltype(d)> d2;
  for (; i + 4 <= rows; i += 4) {
    std::int64_t j = 0;
    for (; j + 4 <= columns; j += 4) {
      const std::uint32_t* p = x + i * ldx + j;
      const auto r0 = hn::LoadU(d, p);
      const auto r1 = hn::LoadU(d, p + ldx);
      const auto r2 = hn::LoadU(d, p + 2 * ldx);
      const auto r3 = hn::LoadU(d, p + 3 * ldx);
      const auto t0 = hn::BitCast(d2, hn::InterleaveLower(d, r0, r1));
      const auto t1 = hn::BitCast(d2, hn::InterleaveLower(d, r2, r3));
      const auto t2 = hn::BitCast(d2, hn::InterleaveUpper(d, r0, r1));
      const auto t3 = hn::BitCast(d2, hn::InterleaveUpper(d, r2, r3));
      std::uint32_t* q = y + j * ldy + i;
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d2, t0, t1)), d, q);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d2, t0, t1)), d, q + ldy);
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d2, t2, t3)), d, q + 2 * ldy);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d2, t2, t3)), d, q + 3 * ldy);
    }
    for (; j < columns; ++j) {
      for (std::int64_t r = i; r < i + 4; ++r) y[j * ldy + r] = x[r * ldx + j];
    }
  }
#endif
  for (; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) y[j * ldy + i] = x[i * ldx + j];
  }
}

#if HWY_TARGET != HWY_SCALAR

// 16 rows and columns. Interleaving rows i and i + 8 turns the address of a byte (4 bits of row, 4 of column) left by a bit: four
// times exchange row and column.
HWY_INLINE void transpose_sixteen(const std::uint8_t* x, std::int64_t ldx, std::uint8_t* y, std::int64_t ldy) {
  const hn::FixedTag<std::uint8_t, 16> d;
  hn::Vec<decltype(d)> v[16];
  hn::Vec<decltype(d)> w[16];
  for (int i = 0; i < 16; ++i) v[i] = hn::LoadU(d, x + i * ldx);
  for (int turn = 0; turn < 2; ++turn) {
    for (int i = 0; i < 8; ++i) {
      w[2 * i] = hn::InterleaveLower(d, v[i], v[i + 8]);
      w[2 * i + 1] = hn::InterleaveUpper(d, v[i], v[i + 8]);
    }
    for (int i = 0; i < 8; ++i) {
      v[2 * i] = hn::InterleaveLower(d, w[i], w[i + 8]);
      v[2 * i + 1] = hn::InterleaveUpper(d, w[i], w[i + 8]);
    }
  }
  for (int i = 0; i < 16; ++i) hn::StoreU(v[i], d, y + i * ldy);
}

// Three channels, from planes to pixels or back. How many pixels that did.
std::int64_t three_planes(const std::uint8_t* x, std::int64_t ldx, std::uint8_t* y, std::int64_t count) {
  const hn::FixedTag<std::uint8_t, 16> d;
  std::int64_t j = 0;
  for (; j + 16 <= count; j += 16) {
    hn::StoreInterleaved3(hn::LoadU(d, x + j), hn::LoadU(d, x + ldx + j), hn::LoadU(d, x + 2 * ldx + j), d, y + 3 * j);
  }
  return j;
}
std::int64_t three_pixels(const std::uint8_t* x, std::uint8_t* y, std::int64_t ldy, std::int64_t count) {
  const hn::FixedTag<std::uint8_t, 16> d;
  std::int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    hn::Vec<decltype(d)> v0;
    hn::Vec<decltype(d)> v1;
    hn::Vec<decltype(d)> v2;
    hn::LoadInterleaved3(d, x + 3 * i, v0, v1, v2);
    hn::StoreU(v0, d, y + i);
    hn::StoreU(v1, d, y + ldy + i);
    hn::StoreU(v2, d, y + 2 * ldy + i);
  }
  return i;
}

#endif

void transpose8(const std::uint8_t* x, std::int64_t ldx, std::uint8_t* y, std::int64_t ldy, std::int64_t rows,
                std::int64_t columns) {
  std::int64_t i = 0;
  std::int64_t j0 = 0;
#if HWY_TARGET != HWY_SCALAR
  if (rows == 3 && ldy == 3) {
    j0 = three_planes(x, ldx, y, columns);
  } else if (columns == 3 && ldx == 3) {
    i = three_pixels(x, y, ldy, rows);
  } else {
    for (; i + 16 <= rows; i += 16) {
      std::int64_t j = 0;
      for (; j + 16 <= columns; j += 16) transpose_sixteen(x + i * ldx + j, ldx, y + j * ldy + i, ldy);
      for (; j < columns; ++j) {
        for (std::int64_t r = i; r < i + 16; ++r) y[j * ldy + r] = x[r * ldx + j];
      }
    }
  }
#endif
  for (std::int64_t j = j0; j < columns; ++j) {
    for (std::int64_t r = i; r < rows; ++r) y[j * ldy + r] = x[r * ldx + j];
  }
}

}  // namespace

const ImageKernels* image_table() {
  static const ImageKernels table{static_cast<int>(lanes_f32()), max_rows, sum_rows, lerp, transpose32, transpose8};
  return &table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/dispatch.h"

namespace sdx::cpu {

const ImageKernels& image_kernels() { return *SDX_CPU_PICK(image_table)(); }

}  // namespace sdx::cpu
#endif
