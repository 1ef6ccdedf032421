#include "kernels/cpu/image/shrink_simd.h"

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/image/shrink_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

using D8 = hn::Rebind<std::uint8_t, DF>;

HWY_INLINE VF to_floats(hn::Vec<D8> v) {
  const hn::RebindToSigned<DF> di;
  return hn::ConvertTo(DF(), hn::PromoteTo(di, v));
}

void add_rows(const std::uint8_t* rows, std::ptrdiff_t stride, const float* weights, std::int64_t count, float* y,
              std::int64_t n) {
  const DF d;
  const D8 d8;
  const std::int64_t lanes = lanes_f32();
  std::int64_t i = 0;
  // Sums of four vectors of columns stay in registers while rows are read.
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    VF s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    const std::uint8_t* p = rows + i;
    for (std::int64_t r = 0; r < count; ++r, p += stride) {
      const VF w = hn::Set(d, weights[r]);
      s0 = hn::MulAdd(w, to_floats(hn::LoadU(d8, p)), s0);
      s1 = hn::MulAdd(w, to_floats(hn::LoadU(d8, p + lanes)), s1);
      s2 = hn::MulAdd(w, to_floats(hn::LoadU(d8, p + 2 * lanes)), s2);
      s3 = hn::MulAdd(w, to_floats(hn::LoadU(d8, p + 3 * lanes)), s3);
    }
    hn::StoreU(s0, d, y + i);
    hn::StoreU(s1, d, y + i + lanes);
    hn::StoreU(s2, d, y + i + 2 * lanes);
    hn::StoreU(s3, d, y + i + 3 * lanes);
  }
  for (; i < n; ++i) {
    float sum = 0;
    for (std::int64_t r = 0; r < count; ++r) sum += weights[r] * static_cast<float>(rows[r * stride + i]);
    y[i] = sum;
  }
}

void split3(const std::uint8_t* pixels, std::int64_t n, const float* mean, float scale, float* const* planes) {
  const DF d;
  const D8 d8;
  const std::int64_t lanes = lanes_f32();
  const VF factor = hn::Set(d, scale);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::Vec<D8> a, b, c;
    hn::LoadInterleaved3(d8, pixels + 3 * i, a, b, c);
    hn::StoreU(hn::Mul(hn::Sub(to_floats(a), hn::Set(d, mean[0])), factor), d, planes[0] + i);
    hn::StoreU(hn::Mul(hn::Sub(to_floats(b), hn::Set(d, mean[1])), factor), d, planes[1] + i);
    hn::StoreU(hn::Mul(hn::Sub(to_floats(c), hn::Set(d, mean[2])), factor), d, planes[2] + i);
  }
  for (; i < n; ++i) {
    for (int c = 0; c < 3; ++c) planes[c][i] = (static_cast<float>(pixels[3 * i + c]) - mean[c]) * scale;
  }
}

}  // namespace

const ShrinkKernels& shrink_table() {
  static const ShrinkKernels table{add_rows, split3};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const ShrinkKernels&, shrink_kernels, shrink_table)
#endif
