#include "kernels/cpu/image/max_pool_places_simd.h"

#include <limits>

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/image/max_pool_places_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR

void row(const PlacesRow& r) {
  for (std::int64_t i = 0; i < r.columns; ++i) {
    float best = -std::numeric_limits<float>::infinity();
    std::int64_t where = 0;
    for (std::int64_t k = 0; k < r.count; ++k) {
      for (std::int64_t x = 0; x < r.kernel; ++x) {
        const std::int64_t at = r.at + i * r.stride + r.rows[k] + x * r.dilation;
        if (r.plane[at] > best) best = r.plane[at], where = at;
      }
    }
    r.y[i] = best;
    r.places[i] = where + r.base;
  }
}

#else

using DI = hn::RebindToSigned<DF>;
using VI = hn::Vec<DI>;

// `n` elements, a stride of 1 or 2 apart; reads nothing before the first or after the last.
template <int kStride>
HWY_INLINE VF load_apart(const float* p, std::int64_t n) {
  if constexpr (kStride == 1) {
    return load_floats(p, n);
  } else {
    const DF d;
    const std::int64_t lanes = lanes_f32(), all = 2 * n - 1;
    const VF low = load_floats(p, all);
    const VF high = all > lanes ? load_floats(p + lanes, all - lanes) : hn::Zero(d);
    return hn::ConcatEven(d, high, low);
  }
}

template <int kStride>
void row_apart(const PlacesRow& r) {
  const DF d;
  const DI di;
  const hn::Repartition<std::int64_t, DI> d64;
  const hn::Half<DI> half;
  const std::int64_t lanes = lanes_f32();
  const VI apart = hn::Mul(hn::Iota(di, 0), hn::Set(di, kStride));
  for (std::int64_t i = 0; i < r.columns; i += lanes) {
    const std::int64_t n = r.columns - i < lanes ? r.columns - i : lanes;
    VF best = hn::Set(d, -std::numeric_limits<float>::infinity());
    VI where = hn::Zero(di);
    for (std::int64_t k = 0; k < r.count; ++k) {
      for (std::int64_t x = 0; x < r.kernel; ++x) {
        const std::int64_t at = r.at + i * kStride + r.rows[k] + x * r.dilation;
        const VF v = load_apart<kStride>(r.plane + at, n);
        const auto more = hn::Gt(v, best);
        best = hn::IfThenElse(more, v, best);
        where = hn::IfThenElse(hn::RebindMask(di, more), hn::Set(di, static_cast<std::int32_t>(at)), where);
      }
    }
    store_floats(best, r.y + i, n);
    where = hn::Add(where, apart);
    const auto base = hn::Set(d64, r.base);
    const auto low = hn::Add(base, hn::PromoteTo(d64, hn::LowerHalf(half, where)));
    const auto high = hn::Add(base, hn::PromoteTo(d64, hn::UpperHalf(half, where)));
    if (n == lanes) {
      hn::StoreU(low, d64, r.places + i);
      hn::StoreU(high, d64, r.places + i + lanes / 2);
    } else {
      HWY_ALIGN std::int64_t buffer[kMaxF32Lanes];
      hn::Store(low, d64, buffer);
      hn::Store(high, d64, buffer + lanes / 2);
      for (std::int64_t j = 0; j < n; ++j) r.places[i + j] = buffer[j];
    }
  }
}

void row(const PlacesRow& r) { r.stride == 1 ? row_apart<1>(r) : row_apart<2>(r); }

#endif

}  // namespace

const PlacesKernels& places_table() {
  static const PlacesKernels table{row};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const PlacesKernels&, places_kernels, places_table)
#endif
