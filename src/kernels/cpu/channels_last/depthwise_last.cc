#include "kernels/cpu/channels_last/depthwise_last.h"

#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"
#include "kernels/cpu/channels_last/depthwise_last_simd.h"
#include "kernels/cpu/conv/conv_windows.h"
#include "kernels/cpu/elementwise/bounds.h"
#include "kernels/cpu/elementwise/elementwise_simd.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kMostPixels = 4;  // that the kernel computes at a time
// After this many floats of results, activations that are no bounds are applied, in the first-level cache.
constexpr std::int64_t kNear = 2048;

struct DepthwiseArguments {
  const ConvShape* s;
  const float* x;
  const float* packed;
  const float* bias;
  const float* residual;
  UnarySpec act;
  Bounds bounds;
  float* y;
};

// The number of outputs from ox on that have the taps `t`, at most 4.
std::int64_t alike(const ConvShape& s, std::int64_t ox, const Span& t) {
  std::int64_t count = 1;
  for (; count < kMostPixels && ox + count < s.out[2]; ++count) {
    const Span next = taps_inside(s, 2, ox + count);
    if (next.begin != t.begin || next.end != t.end) break;
  }
  return count;
}

void run_row(const DepthwiseArguments& j, std::int64_t index) {
  const ConvShape& s = *j.s;
  const std::int64_t c = s.in_channels, image = index / s.out[1], oy = index % s.out[1];
  const Span ky = taps_inside(s, 1, oy);
  const float* const plane = j.x + image * s.in[1] * s.in[2] * c;
  const std::int64_t iy = oy * s.stride[1] - s.pad[1] + ky.begin * s.dilation[1];
  const std::int64_t row = index * s.out[2] * c;
  LastPixels p;
  p.row_step = s.dilation[1] * s.in[2] * c, p.tap_step = s.dilation[2] * c, p.pixel_step = s.stride[2] * c;
  p.w_row = s.kernel[2] * c;
  p.channels = c;
  p.bias = j.bias;
  p.lo = j.bounds.lo, p.hi = j.bounds.hi;
  std::int64_t done = 0;  // pixels whose activations are applied
  for (std::int64_t ox = 0; ox < s.out[2]; ox += p.count) {
    const Span kx = taps_inside(s, 2, ox);
    p.count = alike(s, ox, kx);
    p.columns = kx.size();
    p.rows = p.columns > 0 ? ky.size() : 0;
    const std::int64_t ix = ox * s.stride[2] - s.pad[2] + kx.begin * s.dilation[2];
    p.x = p.rows > 0 ? plane + (iy * s.in[2] + ix) * c : plane;
    p.w = j.packed + (p.rows > 0 ? ky.begin * s.kernel[2] + kx.begin : 0) * c;
    p.y = j.y + row + ox * c;
    p.residual = j.residual != nullptr ? j.residual + row + ox * c : nullptr;
    depthwise_last_kernels().pixels(p);
    const std::int64_t fresh = (ox + p.count - done) * c;
    if (j.bounds.after && (fresh >= kNear || ox + p.count == s.out[2])) {
      float* const from = j.y + row + done * c;
      elementwise_kernels().unary(j.act, from, from, fresh);
      done = ox + p.count;
    }
  }
}

}  // namespace

bool depthwise_last_supports(const ConvShape& s) {
  return s.groups == s.in_channels && s.out_channels == s.in_channels && s.groups > 0 && s.kernel[0] == 1 && s.stride[0] == 1 &&
         s.in[0] == 1 && s.pad[0] == 0;
}

std::size_t depthwise_last_packed_bytes(const ConvShape& s) {
  return sizeof(float) * static_cast<std::size_t>(s.kernel[1] * s.kernel[2] * s.in_channels);
}

void depthwise_last_pack_f32(const ConvShape& s, const void* weights, float* packed) {
  const auto* from = static_cast<const char*>(weights);
  const std::int64_t taps = s.kernel[1] * s.kernel[2];
  for (std::int64_t c = 0; c < s.in_channels; ++c) {
    for (std::int64_t k = 0; k < taps; ++k, from += sizeof(float))
      std::memcpy(packed + k * s.in_channels + c, from, sizeof(float));
  }
}

void depthwise_last_f32(const ConvShape& s, const float* x, const float* packed, const float* bias, const float* residual,
                        const UnarySpec& act, float* y) {
  const DepthwiseArguments j{&s, x, packed, bias, residual, act, Bounds(act), y};
  const std::int64_t work = s.out[2] * s.in_channels * s.kernel[1] * s.kernel[2];
  const std::int64_t grain = std::max<std::int64_t>(1, (std::int64_t{1} << 16) / std::max<std::int64_t>(1, work));
  parallel_for(s.batch * s.out[1], grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) run_row(j, i);
  });
}

}  // namespace sdx::cpu
