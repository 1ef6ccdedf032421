#include "kernels/cpu/conv/plain/conv_transpose_tiles.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/conv/blocked/blocked_conv.h"
#include "kernels/cpu/conv/blocked/blocked_layout.h"
#include "kernels/cpu/conv/plain/conv_transpose.h"
#include "kernels/cpu/movement/transpose_simd.h"
#include "kernels/cpu/simd/cuts.h"
#include "kernels/cpu/simd/scratch.h"

namespace sdx::cpu {
namespace {

std::int64_t phases_in(const ConvShape& s) { return s.stride[1] * s.stride[2]; }

// The convolution that computes all phases of an output channel, [stride rows][stride columns], as separate channels.
ConvShape phases_of(const ConvShape& s) {
  ConvShape c;
  c.batch = s.batch;
  c.in_channels = s.in_channels;
  c.out_channels = s.out_channels * phases_in(s);
  for (int axis = 1; axis < 3; ++axis) {
    c.in[axis] = c.out[axis] = s.in[axis];
    c.kernel[axis] = 3;
    c.pad[axis] = 1;
  }
  return c;
}

// The tap of phase f's 3 by which the input is multiplied with tap k, -1 if that belongs to another phase.
std::int64_t tap_of(const ConvShape& s, int axis, std::int64_t f, std::int64_t k) {
  const std::int64_t at = f + s.pad[axis] - k, distance = floor_div(at, s.stride[axis]);
  return at == distance * s.stride[axis] ? distance + 1 : -1;
}

std::int64_t whole_lines(std::int64_t floats) { return round_up(floats, 16); }

// Floats of the workspace: the input and the phases in blocks of channels.
std::int64_t input_floats(const ConvShape& c) {
  return whole_lines(c.batch * round_up(c.in_channels, channel_block()) * volume(c.in));
}
std::int64_t phases_floats(const ConvShape& c) {
  return whole_lines(c.batch * round_up(c.out_channels, channel_block()) * volume(c.out));
}

// Images computed together: small ones share the transforms of weights into the caches.
std::int64_t images_together(const ConvShape& s, ConvShape c) {
  constexpr std::int64_t kFloats = 1 << 20;
  c.batch = 1;
  return std::clamp<std::int64_t>(kFloats / std::max<std::int64_t>(1, input_floats(c) + phases_floats(c)), 1,
                                  std::max<std::int64_t>(1, s.batch));
}

// The phases of a few channels at a time are put in order while they are in the caches: those that fill whole blocks.
void weave_images(const ConvShape& s, const ConvShape& c, const float* phases, const float* bias, const UnarySpec& act,
                  float* y) {
  const std::int64_t block = channel_block(), blocks = up_div(c.out_channels, block), plane = volume(s.in), of = phases_in(s);
  const std::int64_t some = block % of == 0 ? 1 : of, parts = up_div(blocks, some), channels = some * block / of;
  parallel_for(c.batch * parts, 1, [&](std::int64_t begin, std::int64_t end) {
    float* const plain = thread_scratch(2, to_size(some * block * plane));
    std::vector<const float*> rows(to_size(s.stride[2]));
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t image = i / parts, first = i % parts * channels, until = std::min(s.out_channels, first + channels);
      const std::int64_t at = i % parts * some;
      for (std::int64_t b = 0; b < std::min(some, blocks - at); ++b) {
        const float* const from = phases + (image * blocks + at + b) * block * plane;
        transpose_kernels().bytes4(reinterpret_cast<const std::uint32_t*>(from), block,
                                   reinterpret_cast<std::uint32_t*>(plain + b * block * plane), plane, plane, block);
      }
      for (std::int64_t m = first; m < until; ++m) {
        weave_phases(s, plain + (m - first) * of * plane, plane, s.out[1], bias != nullptr ? bias[m] : 0.0F, act,
                     y + (image * s.out_channels + m) * volume(s.out), rows.data());
      }
    }
  });
}

}  // namespace

bool conv_transpose_suits_tiles(const ConvShape& s) {
  // With fewer channels or pixels, the transforms and the additional copies take longer than the products saved.
  constexpr std::int64_t kFewestChannels = 32, kFewestPixels = 196, kMostPhases = 16;
  // Transformed weights take nine times the size.
  constexpr std::int64_t kMostWeights = 1 << 18;
  if (s.groups != 1 || s.kernel[0] != 1 || s.in[0] != 1 || s.out[0] != 1 || s.pad[0] != 0) return false;
  for (int axis = 1; axis < 3; ++axis) {
    if (s.stride[axis] < 2 || s.kernel[axis] != 2 * s.stride[axis] || s.dilation[axis] != 1) return false;
    if (s.out[axis] != s.in[axis] * s.stride[axis] || s.pad[axis] < 0 || s.pad[axis] > s.stride[axis]) return false;
  }
  if (s.in_channels < kFewestChannels || s.out_channels * phases_in(s) < 2 * kFewestChannels) return false;
  if (phases_in(s) > kMostPhases || volume(s.in) < kFewestPixels) return false;
  return s.in_channels * s.out_channels * phases_in(s) <= kMostWeights;
}

std::size_t conv_transpose_tiles_packed_bytes(const ConvShape& s) {
  return conv_blocked_packed_bytes(BlockedConv::winograd4, phases_of(s));
}

void conv_transpose_tiles_pack_f32(const ConvShape& s, const void* weights, float* packed) {
  const ConvShape c = phases_of(s);
  std::vector<float> turned(to_size(c.out_channels * c.in_channels * 9));
  const char* const from = static_cast<const char*>(weights);
  for (std::int64_t m = 0; m < c.out_channels; ++m) {
    const std::int64_t f = m % phases_in(s), channel = m / phases_in(s);
    for (std::int64_t ky = 0; ky < s.kernel[1]; ++ky) {
      const std::int64_t ty = tap_of(s, 1, f / s.stride[2], ky);
      for (std::int64_t kx = 0; kx < s.kernel[2]; ++kx) {
        const std::int64_t tx = tap_of(s, 2, f % s.stride[2], kx);
        if (ty < 0 || tx < 0) continue;
        for (std::int64_t i = 0; i < c.in_channels; ++i) {
          std::memcpy(&turned[to_size((m * c.in_channels + i) * 9 + ty * 3 + tx)],
                      from + (((i * s.out_channels + channel) * s.kernel[1] + ky) * s.kernel[2] + kx) * 4, sizeof(float));
        }
      }
    }
  }
  conv_blocked_pack(BlockedConv::winograd4, c, turned.data(), nullptr, packed);
}

std::size_t conv_transpose_tiles_workspace_bytes(const ConvShape& s) {
  ConvShape c = phases_of(s);
  c.batch = images_together(s, c);
  return to_size(input_floats(c) + phases_floats(c)) * sizeof(float);
}

void conv_transpose_tiles_f32(const ConvShape& s, const float* x, const float* packed, const float* bias, const UnarySpec& act,
                              float* y, void* workspace) {
  ConvShape c = phases_of(s);
  const std::int64_t some = images_together(s, c);
  c.batch = some;
  auto* const xs = static_cast<float*>(workspace);
  float* const phases = xs + input_floats(c);
  for (std::int64_t image = 0; image < s.batch; image += some) {
    c.batch = std::min(some, s.batch - image);
    to_blocked_f32(c.batch, s.in_channels, volume(s.in), x + image * s.in_channels * volume(s.in), xs);
    conv_blocked_f32(BlockedConv::winograd4, c, xs, packed, nullptr, {}, phases);
    weave_images(s, c, phases, bias, act, y + image * s.out_channels * volume(s.out));
  }
}

}  // namespace sdx::cpu
