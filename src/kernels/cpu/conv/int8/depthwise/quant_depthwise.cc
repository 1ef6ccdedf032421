#include "kernels/cpu/conv/int8/depthwise/quant_depthwise.h"

#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"
#include "kernels/cpu/conv/int8/depthwise/quant_depthwise_plane.h"
#include "kernels/cpu/conv/int8/depthwise/quant_depthwise_simd.h"
#include "kernels/cpu/conv/int8/quant_nhwc_layout.h"
#include "kernels/cpu/conv/int8/quant_nhwc_simd.h"
#include "kernels/cpu/simd/cuts.h"
#include "kernels/cpu/simd/scratch.h"

namespace sdx::cpu {
namespace {

struct Depthwise {
  const ConvShape* shape;
  const std::uint8_t* x;
  const std::uint8_t* zeros;  // a pixel of zero points
  bool is_signed;
  const std::int16_t* weights;
  const QEpilogue* epilogue;
  char* y;
};

// Computes output rows [begin, end), counted over batch, depth and height.
void depthwise_rows(const Depthwise& d, std::int64_t begin, std::int64_t end) {
  const ConvShape& s = *d.shape;
  const std::int64_t taps = volume(s.kernel);
  const std::int64_t even = round_up(taps, 2);
  const std::int64_t width = s.out[2];
  const std::int64_t channels = s.groups;
  // The scratch memory, counted in floats, holds the pointers and then the sums.
  const std::int64_t pointer_floats = round_up(width * even * 2, 16);
  float* scratch = thread_scratch(0, to_size(pointer_floats + round_up(channels, 64)));
  auto* pointers = reinterpret_cast<const std::uint8_t**>(scratch);
  QDepthwiseRow r;
  r.taps = pointers;
  r.taps_count = even;
  r.is_signed = d.is_signed;
  r.channels = channels;
  r.width = width;
  r.weights = d.weights;
  r.sums = reinterpret_cast<std::int32_t*>(scratch + pointer_floats);
  r.epilogue = d.epilogue;
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t oy = row % s.out[1];
    const std::int64_t oz = row / s.out[1] % s.out[0];
    const std::int64_t batch = row / (s.out[1] * s.out[0]);
    for (std::int64_t t = 0; t < even; ++t) {
      const std::int64_t kx = t % s.kernel[2];
      const std::int64_t iy = oy * s.stride[1] - s.pad[1] + t / s.kernel[2] % s.kernel[1] * s.dilation[1];
      const std::int64_t iz = oz * s.stride[0] - s.pad[0] + t / (s.kernel[2] * s.kernel[1]) * s.dilation[0];
      const bool inside = t < taps && iy >= 0 && iy < s.in[1] && iz >= 0 && iz < s.in[0];
      const std::uint8_t* line = inside ? d.x + ((batch * s.in[0] + iz) * s.in[1] + iy) * s.in[2] * channels : nullptr;
      // Outputs [from, to) read a pixel of the line; the others read padding.
      const std::int64_t x0 = kx * s.dilation[2] - s.pad[2];
      const std::int64_t stride = s.stride[2];
      const std::int64_t from = std::min(width, x0 >= 0 ? 0 : (-x0 + stride - 1) / stride);
      const std::int64_t to = !inside || x0 >= s.in[2] ? from : std::clamp((s.in[2] - x0 + stride - 1) / stride, from, width);
      const std::uint8_t** at = pointers + t;
      for (std::int64_t ox = 0; ox < from; ++ox, at += even) *at = d.zeros;
      const std::uint8_t* pixel = to > from ? line + (x0 + from * stride) * channels : nullptr;
      for (std::int64_t ox = from; ox < to; ++ox, at += even, pixel += stride * channels) *at = pixel;
      for (std::int64_t ox = to; ox < width; ++ox, at += even) *at = d.zeros;
    }
    r.y = d.y + row * width * channels * bytes_per_output(*d.epilogue);
    qdepthwise_kernels().row(r);
  }
}

}  // namespace

void qdepthwise_conv(const ConvShape& s, const void* x, bool x_signed, std::int32_t x_zero, const void* packed,
                     const QEpilogue& epilogue, void* y) {
  const std::int64_t channels = s.groups;
  const nhwc::DepthwiseParts parts = nhwc::depthwise_parts(s, qnhwc_kernels().nr, const_cast<void*>(packed));
  const bool plane = qdepthwise_plane_runs(s, epilogue);
  const bool quads = plane && qdepthwise_plane_has_quads(s) && *parts.narrow != 0;
  const std::int32_t shift = x_zero + (quads && x_signed ? 128 : 0);  // quads hold unsigned bytes
  // The bias takes the zero point's share of the sums. All threads read both arrays.
  float* scratch = thread_scratch(2, to_size(round_up(channels, 16) * 2 + 16));
  auto* bias = reinterpret_cast<std::int32_t*>(scratch);
  auto* zeros = reinterpret_cast<std::uint8_t*>(bias + round_up(channels, 16));
  nhwc::bias_without_zero(epilogue, parts.sums, shift, channels, bias);
  std::memset(zeros, x_zero & 0xFF, to_size(channels));
  QEpilogue e = epilogue;
  e.bias = bias;
  if (plane) {
    const QDepthwiseImage image{static_cast<const std::uint8_t*>(x), x_signed, x_zero};
    return qdepthwise_plane_conv(s, image, parts.by_tap, quads, e, static_cast<std::uint8_t*>(y));
  }
  const Depthwise d{&s, static_cast<const std::uint8_t*>(x), zeros, x_signed, parts.by_block, &e, static_cast<char*>(y)};
  const std::int64_t row_work = s.out[2] * channels * volume(s.kernel);
  parallel_for(s.batch * s.out[0] * s.out[1], std::max<std::int64_t>(1, 200000 / std::max<std::int64_t>(1, row_work)),
               [&](std::int64_t begin, std::int64_t end) { depthwise_rows(d, begin, end); });
}

}  // namespace sdx::cpu
