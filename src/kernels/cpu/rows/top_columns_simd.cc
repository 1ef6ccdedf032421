#include "kernels/cpu/rows/top_columns_simd.h"

#include "kernels/cpu/rows/reduce.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rows/top_columns_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

using DI = hn::RebindToSigned<DF>;
using VI = hn::Vec<DI>;

// Integers in the order of the floats, larger for those that come first: -0 equals 0, and NaN is larger than everything.
HWY_INLINE VI keys_of(VF v, bool largest) {
  const DF d;
  const DI di;
  const VI bits = hn::BitCast(di, hn::Add(v, hn::Zero(d)));
  const VI most = hn::Set(di, 0x7FFFFFFF);
  const VI ordered = hn::Xor(bits, hn::And(hn::ShiftRight<31>(bits), most));
  const VI key = hn::IfThenElse(hn::RebindMask(di, hn::Eq(v, v)), ordered, most);
  return largest ? key : hn::Not(key);
}

// Each lane keeps its k best sorted. An element is put before the first one below it, and all after that move on; so equal ones
// keep their order.
void top(const float* x, std::int64_t n, std::int64_t step, std::int64_t count, std::int64_t k, bool largest,
         std::int32_t* positions) {
  const DI di;
  const std::int64_t lanes = lanes_f32();
  HWY_ALIGN std::int32_t keys[kMostTopColumns * kMaxF32Lanes];
  for (std::int64_t i = 0; i < n; ++i) {
    VI key = keys_of(load_floats(x + i * step, count), largest), at = hn::Set(di, static_cast<std::int32_t>(i));
    const std::int64_t kept = i < k ? i : k;
    if (kept == k && hn::AllFalse(di, hn::Gt(key, hn::Load(di, keys + (k - 1) * lanes)))) continue;
    auto first = hn::Gt(key, key);  // none
    for (std::int64_t j = 0; j < kept; ++j) {
      const VI other = hn::Load(di, keys + j * lanes), other_at = hn::LoadU(di, positions + j * lanes);
      first = hn::Or(first, hn::Gt(key, other));
      hn::Store(hn::IfThenElse(first, key, other), di, keys + j * lanes);
      hn::StoreU(hn::IfThenElse(first, at, other_at), di, positions + j * lanes);
      key = hn::IfThenElse(first, other, key);
      at = hn::IfThenElse(first, other_at, at);
    }
    if (i >= k) continue;
    hn::Store(key, di, keys + i * lanes);
    hn::StoreU(at, di, positions + i * lanes);
  }
}

}  // namespace

const TopColumnsKernels& top_columns_table() {
  static const TopColumnsKernels table{static_cast<int>(lanes_f32()), top};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const TopColumnsKernels&, top_columns_kernels, top_columns_table)
#endif
