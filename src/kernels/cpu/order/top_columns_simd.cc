#include "kernels/cpu/order/top_columns_simd.h"

#include "kernels/cpu/order/top_k.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/order/top_columns_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
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

// The best of each lane, sorted.
template <int kCount>
struct Best {
  VI keys[kCount], places[kCount];
};

// Each element goes before the first one below it, and all after that move on; so equal ones keep their order. `filled`: as many
// of the best are set; the others come after any element.
template <int kCount>
HWY_INLINE void insert(Best<kCount>& best, VI key, VI place, std::int64_t filled) {
  const auto none = hn::Gt(key, key), all = hn::Not(none);
  auto before_last = none;  // whether the element goes before the previous one of the best
  VI last_key = key, last_place = place;
  for (int j = 0; j < kCount; ++j) {
    const VI old_key = best.keys[j], old_place = best.places[j];
    const auto before = j < filled ? hn::Gt(key, old_key) : all;
    best.keys[j] = hn::IfThenElse(before, hn::IfThenElse(before_last, last_key, key), old_key);
    best.places[j] = hn::IfThenElse(before, hn::IfThenElse(before_last, last_place, place), old_place);
    before_last = before;
    last_key = old_key;
    last_place = old_place;
  }
}

template <int kCount>
void top_few(const float* x, std::int64_t n, std::int64_t step, std::int64_t count, bool largest, std::int32_t* positions) {
  const DI di;
  Best<kCount> best;
  for (int j = 0; j < kCount; ++j) best.keys[j] = best.places[j] = hn::Zero(di);
  for (std::int64_t i = 0; i < kCount; ++i)
    insert(best, keys_of(load_floats(x + i * step, count), largest), hn::Set(di, static_cast<std::int32_t>(i)), i);
  for (std::int64_t i = kCount; i < n; ++i)
    insert(best, keys_of(load_floats(x + i * step, count), largest), hn::Set(di, static_cast<std::int32_t>(i)), kCount);
  for (int j = 0; j < kCount; ++j) hn::StoreU(best.places[j], di, positions + j * lanes_f32());
}

// The same with the best in memory.
void top_more(const float* x, std::int64_t n, std::int64_t step, std::int64_t count, std::int64_t k, bool largest,
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

void top(const float* x, std::int64_t n, std::int64_t step, std::int64_t count, std::int64_t k, bool largest,
         std::int32_t* positions) {
  switch (k) {
    case 1: return top_few<1>(x, n, step, count, largest, positions);
    case 2: return top_few<2>(x, n, step, count, largest, positions);
    case 3: return top_few<3>(x, n, step, count, largest, positions);
    case 4: return top_few<4>(x, n, step, count, largest, positions);
    case 5: return top_few<5>(x, n, step, count, largest, positions);
    case 6: return top_few<6>(x, n, step, count, largest, positions);
    case 7: return top_few<7>(x, n, step, count, largest, positions);
    case 8: return top_few<8>(x, n, step, count, largest, positions);
    default: return top_more(x, n, step, count, k, largest, positions);
  }
}

}  // namespace

const TopColumnsKernels& top_columns_table() {
  static const TopColumnsKernels table{static_cast<int>(lanes_f32()), top};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const TopColumnsKernels&, top_columns_kernels, top_columns_table)
#endif
