// Columns of rows in memory, as vectors; included once per instruction set, which has vectors.
#if defined(SDX_KERNELS_CPU_COLUMNS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SDX_KERNELS_CPU_COLUMNS_INL_H_
#undef SDX_KERNELS_CPU_COLUMNS_INL_H_
#else
#define SDX_KERNELS_CPU_COLUMNS_INL_H_
#endif

#include <hwy/highway.h>

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

template <int kRows>
using ColumnOf = hwy::HWY_NAMESPACE::Vec<hwy::HWY_NAMESPACE::FixedTag<float, kRows>>;

// Four floats of each of rows first, first + 4, ..., one below the other in the vector's 128-bit blocks.
template <int kRows, class Row>
HWY_INLINE ColumnOf<kRows> every_fourth_row(const Row& row, int first) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::FixedTag<float, kRows> d;
  if constexpr (kRows == 4) {
    return hn::LoadU(d, row(first));
  } else {
    return hn::Combine(d, every_fourth_row<kRows / 2>(row, first + kRows / 2), every_fourth_row<kRows / 2>(row, first));
  }
}

// Four columns of kRows rows (4, 8 or 16, if a vector has as many lanes); row(i) is the address of the first element of row i.
// Most of the work are 4x4 transposes in all blocks at once: from 16 rows, 64 floats take 20 shuffles and 4 stores in place of
// the 32 and 16 of single blocks.
template <int kRows, class Row>
HWY_INLINE void four_columns(const Row& row, ColumnOf<kRows>& c0, ColumnOf<kRows>& c1, ColumnOf<kRows>& c2, ColumnOf<kRows>& c3) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::FixedTag<float, kRows> d;
  const hn::RepartitionToWide<decltype(d)> d2;
  const auto r0 = every_fourth_row<kRows>(row, 0), r1 = every_fourth_row<kRows>(row, 1);
  const auto r2 = every_fourth_row<kRows>(row, 2), r3 = every_fourth_row<kRows>(row, 3);
  const auto t0 = hn::BitCast(d2, hn::InterleaveLower(d, r0, r1)), t1 = hn::BitCast(d2, hn::InterleaveLower(d, r2, r3));
  const auto t2 = hn::BitCast(d2, hn::InterleaveUpper(d, r0, r1)), t3 = hn::BitCast(d2, hn::InterleaveUpper(d, r2, r3));
  c0 = hn::BitCast(d, hn::InterleaveLower(d2, t0, t1));
  c1 = hn::BitCast(d, hn::InterleaveUpper(d2, t0, t1));
  c2 = hn::BitCast(d, hn::InterleaveLower(d2, t2, t3));
  c3 = hn::BitCast(d, hn::InterleaveUpper(d2, t2, t3));
}

#endif

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#endif
