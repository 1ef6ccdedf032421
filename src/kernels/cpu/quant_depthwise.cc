// Convolutions of bytes with one input channel per group, in float: products of two values of at most 255 are below 2^16, so that
// sums of up to 256 of them are exact in 24 bits. The float kernel reads rows without bounds checks and keeps the weights in
// registers; as a product of matrices these had one row, and took 20 times as long.

#include <algorithm>

#include "base/thread_pool.h"
#include "kernels/cpu/conv_kernels.h"
#include "kernels/cpu/gemm_kernels.h"
#include "kernels/cpu/quant_kernels.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kMostTaps = 256;
constexpr std::int64_t kBandFloats = 32768;  // of input and of output: 256 KB, in the second-level cache

struct Job {
  const ConvShape& s;
  const std::uint8_t* x;
  bool x_signed;
  std::int32_t x_zero;
  const float* weights;
  const QEpilogue& epilogue;
  char* y;
  std::int64_t element;  // bytes of an output
};

// The output rows [y0, y1) of one channel; all of them where there is a depth.
void band(const Job& job, std::int64_t channel, std::int64_t y0, std::int64_t y1) {
  const ConvShape& s = job.s;
  const std::int64_t multiplier = s.out_channels / s.groups;
  const std::int64_t first = y0 * s.stride[1] - s.pad[1];
  const std::int64_t last = (y1 - 1) * s.stride[1] - s.pad[1] + (s.kernel[1] - 1) * s.dilation[1];
  const std::int64_t in0 = std::clamp<std::int64_t>(first, 0, s.in[1]);
  const std::int64_t in1 = std::clamp<std::int64_t>(last + 1, in0, s.in[1]);
  ConvShape part = s;
  part.batch = part.groups = part.in_channels = 1;
  part.out_channels = multiplier;
  part.in[1] = in1 - in0;
  part.pad[1] = in0 - first;
  part.out[1] = y1 - y0;
  const std::int64_t floats_in = s.in[0] * part.in[1] * s.in[2];
  const std::int64_t plane = s.out[0] * part.out[1] * s.out[2];
  float* in = thread_scratch(1, static_cast<std::size_t>(floats_in + 16 + multiplier * plane));
  float* out = in + (floats_in + 15) / 16 * 16;
  const QuantKernels& kernels = quant_kernels();
  for (std::int64_t z = 0; z < s.in[0]; ++z) {
    const std::uint8_t* rows = job.x + ((channel * s.in[0] + z) * s.in[1] + in0) * s.in[2];
    kernels.dequantize(rows, job.x_signed, in + z * part.in[1] * s.in[2], part.in[1] * s.in[2], 1.0F, job.x_zero);
  }
  const std::int64_t taps = s.kernel[0] * s.kernel[1] * s.kernel[2];
  const std::int64_t row = channel % s.groups * multiplier;
  conv_depthwise(part, in, job.weights + row * taps, nullptr, nullptr, UnarySpec{}, out);
  for (std::int64_t m = 0; m < multiplier; ++m) {
    const std::int64_t at = ((channel * multiplier + m) * s.out[0] * s.out[1] + y0) * s.out[2];
    kernels.write_sums(out + m * plane, plane, row + m, job.epilogue, job.y + at * job.element);
  }
}

}  // namespace

bool qconv_is_depthwise(const ConvShape& s) {
  return s.groups > 1 && s.in_channels == s.groups && s.kernel[0] * s.kernel[1] * s.kernel[2] <= kMostTaps;
}

void qconv_depthwise(const ConvShape& s, const std::uint8_t* x, bool x_signed, std::int32_t x_zero, const float* weights,
                     const QEpilogue& epilogue, void* y) {
  const bool wide = epilogue.output == QEpilogue::Output::i32 || epilogue.output == QEpilogue::Output::f32;
  const Job job{s, x, x_signed, x_zero, weights, epilogue, static_cast<char*>(y), wide ? 4 : 1};
  const std::int64_t multiplier = s.out_channels / s.groups;
  const std::int64_t row = std::max(s.in[2] * s.stride[1], s.out[2] * multiplier);
  const std::int64_t height = s.out[0] > 1 || s.in[0] > 1 ? s.out[1] : std::clamp<std::int64_t>(kBandFloats / row, 1, s.out[1]);
  const std::int64_t bands = (s.out[1] + height - 1) / height;
  const std::int64_t work = height * s.out[2] * s.out[0] * multiplier * s.kernel[0] * s.kernel[1] * s.kernel[2];
  parallel_for(s.batch * s.groups * bands, std::max<std::int64_t>(1, 60000 / std::max<std::int64_t>(1, work)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const std::int64_t y0 = i % bands * height;
                   band(job, i / bands, y0, std::min(s.out[1], y0 + height));
                 }
               });
}

}  // namespace sdx::cpu
