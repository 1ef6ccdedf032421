#include "kernels/cpu/conv/blocked/blocked_channels_simd.h"

#include <algorithm>

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/blocked/blocked_channels_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/conv/blocked/blocked-inl.h"
#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

void scale(const float* x, const float* s, float* y, std::int64_t pixels) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  for (std::int64_t v = 0; v < kBlock; v += lanes) {
    const VF f = hn::LoadU(d, s + v);
    for (std::int64_t i = v; i < pixels * kBlock; i += kBlock) hn::StoreU(hn::Mul(hn::LoadU(d, x + i), f), d, y + i);
  }
}

void shift(const float* x, const float* s, float* y, std::int64_t pixels) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  for (std::int64_t v = 0; v < kBlock; v += lanes) {
    const VF f = hn::LoadU(d, s + v);
    for (std::int64_t i = v; i < pixels * kBlock; i += kBlock) hn::StoreU(hn::Add(hn::LoadU(d, x + i), f), d, y + i);
  }
}

void affine(const float* x, const float* s, const float* b, float lo, float hi, float* y, std::int64_t pixels) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const VF l = hn::Set(d, lo), h = hn::Set(d, hi);
  for (std::int64_t v = 0; v < kBlock; v += lanes) {
    const VF f = hn::LoadU(d, s + v), t = hn::LoadU(d, b + v);
    for (std::int64_t i = v; i < pixels * kBlock; i += kBlock) {
      hn::StoreU(clip(hn::MulAdd(hn::LoadU(d, x + i), f, t), l, h), d, y + i);
    }
  }
}

void add_clip(const float* x, const float* residual, float lo, float hi, float* y, std::int64_t n) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const VF l = hn::Set(d, lo), h = hn::Set(d, hi);
  for (std::int64_t i = 0; i < n; i += lanes) {
    hn::StoreU(clip(hn::Add(hn::LoadU(d, x + i), hn::LoadU(d, residual + i)), l, h), d, y + i);
  }
}

template <int kQuarters>
void lrn_loop(const BlockedLrn& n, float* squares) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const std::int64_t blocks = (n.channels + kBlock - 1) / kBlock;
  const std::int64_t down = (n.size - 1) / 2, stride = blocks * kBlock + n.size;
  for (std::int64_t b = 0; b < blocks; ++b) {
    for (std::int64_t i = 0; i < n.pixels * kBlock; i += lanes) {
      const VF v = hn::LoadU(d, n.x + b * n.plane + i);
      hn::StoreU(hn::Mul(v, v), d, squares + i / kBlock * stride + down + b * kBlock + i % kBlock);
    }
  }
  for (std::int64_t p = 0; p < n.pixels; ++p) {
    std::fill_n(squares + p * stride, down, 0.0F);
    std::fill(squares + p * stride + down + n.channels, squares + (p + 1) * stride, 0.0F);
  }
  const VF alpha = hn::Set(d, n.alpha), bias = hn::Set(d, n.bias), beta = hn::Set(d, n.beta);
  for (std::int64_t b = 0; b < blocks; ++b) {
    for (std::int64_t i = 0; i < n.pixels * kBlock; i += lanes) {
      const float* const window = squares + i / kBlock * stride + b * kBlock + i % kBlock;
      VF sum = hn::LoadU(d, window);
      for (std::int64_t k = 1; k < n.size; ++k) sum = hn::Add(sum, hn::LoadU(d, window + k));
      const VF factor = inverse_power<kQuarters>(hn::MulAdd(alpha, sum, bias), beta);
      hn::StoreU(hn::Mul(hn::LoadU(d, n.x + b * n.plane + i), factor), d, n.y + b * n.plane + i);
    }
  }
}

void lrn(const BlockedLrn& n, float* squares) {
  if (n.beta == 0.75F) return lrn_loop<3>(n, squares);
  if (n.beta == 0.5F) return lrn_loop<2>(n, squares);
  if (n.beta == 1.0F) return lrn_loop<4>(n, squares);
  lrn_loop<0>(n, squares);
}

}  // namespace

const BlockedChannelsKernels& blocked_channels_table() {
  static const BlockedChannelsKernels table{scale, shift, affine, add_clip, lrn};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const BlockedChannelsKernels&, blocked_channels_kernels, blocked_channels_table)
#endif
