#include "kernels/cpu/conv/plain/conv_transpose_phases.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/conv/plain/conv.h"
#include "kernels/cpu/conv/plain/conv_simd.h"
#include "kernels/cpu/elementwise/elementwise_simd.h"
#include "kernels/cpu/simd/cuts.h"

namespace sdx::cpu {
namespace {

// The convolution that computes all phases of an output channel, [stride rows][stride columns], as separate channels.
ConvShape phases_of(const ConvShape& s) {
  ConvShape c;
  c.batch = s.batch;
  c.in_channels = s.in_channels;
  c.out_channels = s.out_channels * s.stride[1] * s.stride[2];
  for (int axis = 1; axis < 3; ++axis) {
    const std::int64_t first = floor_div(s.pad[axis], s.stride[axis]);
    c.in[axis] = s.in[axis];
    c.kernel[axis] = s.kernel[axis] / s.stride[axis];
    c.out[axis] = floor_div(s.out[axis] - 1 + s.pad[axis], s.stride[axis]) - first + 1;
    c.pad[axis] = c.kernel[axis] - 1 - first;
  }
  return c;
}

// Number of images whose phases are computed before they are interleaved.
std::int64_t images_together(const ConvShape& s, const ConvShape& c) {
  constexpr std::int64_t kFloats = 1 << 20;
  return std::clamp<std::int64_t>(kFloats / std::max<std::int64_t>(1, c.out_channels * volume(c.out)), 1,
                                  std::max<std::int64_t>(1, s.batch));
}

// One plane of results from its phases, each c.out.
void weave_plane(const ConvShape& s, const ConvShape& c, const float* phases, float bias, float* y) {
  const ConvKernels& k = conv_kernels();
  const std::int64_t width = s.stride[2], plane = volume(c.out);
  std::vector<const float*> rows(to_size(std::min(width, s.out[2])));
  const auto place = [&](int axis, std::int64_t out, std::int64_t& phase) {
    const std::int64_t at = floor_div(out + s.pad[axis], s.stride[axis]);
    phase = out + s.pad[axis] - at * s.stride[axis];
    return at - floor_div(s.pad[axis], s.stride[axis]);
  };
  for (std::int64_t oy = 0; oy < s.out[1]; ++oy) {
    std::int64_t fy = 0;
    const std::int64_t row = place(1, oy, fy);
    for (std::size_t f = 0; f < rows.size(); ++f) {
      std::int64_t fx = 0;
      const std::int64_t column = place(2, static_cast<std::int64_t>(f), fx);
      rows[f] = phases + (fy * width + fx) * plane + row * c.out[2] + column;
    }
    k.weave(rows.data(), width, bias, y + oy * s.out[2], s.out[2]);
  }
}

}  // namespace

bool conv_transpose_has_phases(const ConvShape& s) {
  if (s.groups != 1 || s.kernel[0] != 1 || s.stride[0] != 1) return false;
  bool more = false;
  for (int axis = 1; axis < 3; ++axis) {
    if (s.dilation[axis] != 1 || s.kernel[axis] % s.stride[axis] != 0) return false;
    more = more || s.kernel[axis] > s.stride[axis];
  }
  // Gathering patches for fewer rows takes longer than adding up products: for 64 to 3 channels and 4x4, three times as long.
  constexpr std::int64_t kFewestRows = 64;
  const std::int64_t phases = s.stride[1] * s.stride[2];
  return more && phases > 1 && s.in_channels > 1 && s.out_channels * phases >= kFewestRows;
}

std::size_t conv_transpose_phases_packed_bytes(const ConvShape& s) {
  return conv_packed_bytes(ConvAlgorithm::gemm, phases_of(s));
}

void conv_transpose_phases_pack_f32(const ConvShape& s, const void* weights, float* packed) {
  const ConvShape c = phases_of(s);
  const std::int64_t height = s.stride[1], width = s.stride[2], taps = volume(c.kernel), area = volume(s.kernel);
  std::vector<float> turned(to_size(c.out_channels * c.in_channels * taps));
  const char* const from = static_cast<const char*>(weights);
  for (std::int64_t m = 0; m < c.out_channels; ++m) {
    const std::int64_t channel = m / (height * width), fy = m / width % height, fx = m % width;
    for (std::int64_t i = 0; i < c.in_channels; ++i) {
      for (std::int64_t t = 0; t < taps; ++t) {
        const std::int64_t ky = fy + height * (c.kernel[1] - 1 - t / c.kernel[2]);
        const std::int64_t kx = fx + width * (c.kernel[2] - 1 - t % c.kernel[2]);
        std::memcpy(&turned[to_size((m * c.in_channels + i) * taps + t)],
                    from + ((i * s.out_channels + channel) * area + ky * s.kernel[2] + kx) * 4, sizeof(float));
      }
    }
  }
  conv_pack_f32(ConvAlgorithm::gemm, c, turned.data(), packed);
}

std::size_t conv_transpose_phases_workspace_bytes(const ConvShape& s) {
  const ConvShape c = phases_of(s);
  return to_size(images_together(s, c) * c.out_channels * volume(c.out)) * sizeof(float);
}

void conv_transpose_phases_f32(const ConvShape& s, const float* x, const float* packed, const float* bias, const UnarySpec& act,
                               float* y, void* workspace) {
  ConvShape c = phases_of(s);
  auto* const phases = static_cast<float*>(workspace);
  const std::int64_t some = images_together(s, c), of_channel = s.stride[1] * s.stride[2] * volume(c.out);
  const std::int64_t in_image = s.in_channels * volume(s.in), plane = volume(s.out);
  for (std::int64_t image = 0; image < s.batch; image += some) {
    c.batch = std::min(some, s.batch - image);
    conv_f32(ConvAlgorithm::gemm, c, x + image * in_image, packed, nullptr, nullptr, {}, phases);
    float* const out = y + image * s.out_channels * plane;
    parallel_for(c.batch * s.out_channels, std::max<std::int64_t>(1, 32768 / std::max<std::int64_t>(1, plane)),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t i = begin; i < end; ++i) {
                     const float b = bias != nullptr ? bias[i % s.out_channels] : 0.0F;
                     weave_plane(s, c, phases + i * of_channel, b, out + i * plane);
                     if (act.op != Unary::none) elementwise_kernels().unary(act, out + i * plane, out + i * plane, plane);
                   }
                 });
  }
}

}  // namespace sdx::cpu
