#include "kernels/cpu/image/image_simd.h"

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/image/image_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

void max_rows(const float* const* rows, std::int64_t count, float* y, std::int64_t n) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  for (std::int64_t i = 0; i < n; i += lanes) {
    VF m = hn::LoadU(d, rows[0] + i);
    for (std::int64_t r = 1; r < count; ++r) m = max_nan(m, hn::LoadU(d, rows[r] + i));
    store_floats(m, y + i, n - i);
  }
}

void sum_rows(const float* const* rows, std::int64_t count, const float* scale, float* y, std::int64_t n) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  for (std::int64_t i = 0; i < n; i += lanes) {
    VF s = hn::Zero(d);
    for (std::int64_t r = 0; r < count; ++r) s = hn::Add(s, hn::LoadU(d, rows[r] + i));
    store_floats(hn::Mul(s, load_floats(scale + i, n - i)), y + i, n - i);
  }
}

void twice(const float* x, float* y, float* z, std::int64_t n) {
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const DF d;
  const std::int64_t lanes = lanes_f32();
  // The last vector overlaps the one before.
  for (; n >= lanes && i < n; i += lanes) {
    const std::int64_t at = i + lanes <= n ? i : n - lanes;
    const VF v = hn::LoadU(d, x + at);
    hn::StoreInterleaved2(v, v, d, y + 2 * at);
    if (z != nullptr) hn::StoreInterleaved2(v, v, d, z + 2 * at);
  }
#endif
  for (; i < n; ++i) {
    y[2 * i] = y[2 * i + 1] = x[i];
    if (z != nullptr) z[2 * i] = z[2 * i + 1] = x[i];
  }
}

void lerp(const float* a, const float* b, float t, float* y, std::int64_t n) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const VF vt = hn::Set(d, t), rest = hn::Set(d, 1.0F - t);
  for (std::int64_t i = 0; i < n; i += lanes) {
    const VF va = load_floats(a + i, n - i), vb = load_floats(b + i, n - i);
    const VF between = hn::MulAdd(vt, hn::Sub(vb, va), va);
    // Infinity less infinity is NaN.
    const VF weighed = hn::MulAdd(vt, vb, hn::Mul(rest, va));
    store_floats(hn::IfThenElse(hn::IsNaN(between), weighed, between), y + i, n - i);
  }
}

}  // namespace

const ImageKernels& image_table() {
  static const ImageKernels table{static_cast<int>(lanes_f32()), max_rows, sum_rows, twice, lerp};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const ImageKernels&, image_kernels, image_table)
#endif
