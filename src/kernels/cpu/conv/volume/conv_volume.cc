#include "kernels/cpu/conv/volume/conv_volume.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/conv/blocked/blocked_layout.h"
#include "kernels/cpu/movement/transpose_simd.h"
#include "kernels/cpu/simd/cuts.h"

namespace sdx::cpu {
namespace {

// Size of the planes that are rearranged at a time, inputs and outputs: they come from the second or third-level cache when the
// convolution reads them, and weights are read once for all of them.
constexpr std::int64_t kSlabFloats = 1 << 20;

// A side of planes: how channels are laid out within [plane][block of channels][pixel][channel].
struct Planes {
  std::int64_t channels, block, pixels;
  std::int64_t blocks() const { return up_div(channels, block); }
  std::int64_t floats() const { return blocks() * block * pixels; }
};

struct Volume {
  const ConvShape* s;
  ConvShape picture;  // of one plane of outputs
  Planes in, out;
  std::int64_t most;  // planes of outputs in a slab

  Volume(BlockedConv algorithm, const ConvShape& shape) : s(&shape) {
    const std::int64_t block = channel_block();
    in = {s->in_channels, algorithm == BlockedConv::plain ? 1 : block, s->in[1] * s->in[2]};
    out = {s->out_channels, block, s->out[1] * s->out[2]};
    picture = shape;
    picture.in_channels = s->kernel[0] * in.blocks() * in.block;
    picture.image_blocks = s->stride[0] * in.blocks();
    picture.in[0] = picture.out[0] = picture.kernel[0] = picture.stride[0] = 1;
    picture.pad[0] = 0;
    const std::int64_t each = s->stride[0] * in.floats() + out.floats();
    most = std::clamp<std::int64_t>(kSlabFloats / std::max<std::int64_t>(1, each), 1, std::max<std::int64_t>(1, s->out[0]));
    most = up_div(s->out[0], std::max<std::int64_t>(1, up_div(s->out[0], most)));
  }
  std::int64_t planes_read(std::int64_t outputs) const { return (outputs - 1) * s->stride[0] + s->kernel[0]; }
  std::int64_t x_floats() const { return round_up(planes_read(most) * in.floats(), 16); }
  std::int64_t y_floats() const { return round_up(most * out.floats(), 16); }
};

void transpose_floats(const float* x, std::int64_t ldx, float* y, std::int64_t ldy, std::int64_t rows, std::int64_t columns) {
  transpose_kernels().bytes4(reinterpret_cast<const std::uint32_t*>(x), ldx, reinterpret_cast<std::uint32_t*>(y), ldy, rows,
                             columns);
}

// Calls part(plane, channel, channels) for each block of channels of each plane.
template <class F>
void for_blocks(const Planes& p, std::int64_t planes, F&& part) {
  const std::int64_t blocks = p.blocks(),
                     grain = std::max<std::int64_t>(1, 32768 / std::max<std::int64_t>(1, p.block * p.pixels));
  parallel_for(planes * blocks, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t channel = i % blocks * p.block;
      part(i / blocks, channel, std::min(p.block, p.channels - channel));
    }
  });
}

// Planes [first, first + planes) of a volume of `depth` planes, zeros where it has none, into blocks.
void to_planes(const Planes& p, const float* volume, std::int64_t depth, std::int64_t first, std::int64_t planes, float* to) {
  const std::int64_t step = depth * p.pixels;  // between channels
  for_blocks(p, planes, [&](std::int64_t plane, std::int64_t channel, std::int64_t channels) {
    float* const y = to + plane * p.floats() + channel * p.pixels;
    const std::int64_t z = first + plane;
    if (z < 0 || z >= depth) {
      std::fill(y, y + p.block * p.pixels, 0.0F);
      return;
    }
    const float* const x = volume + channel * step + z * p.pixels;
    if (p.block == 1) {
      std::copy(x, x + p.pixels, y);
      return;
    }
    if (channels < p.block) std::fill(y, y + p.block * p.pixels, 0.0F);
    transpose_floats(x, step, y, p.block, channels, p.pixels);
  });
}

// The same planes back.
void from_planes(const Planes& p, const float* from, std::int64_t depth, std::int64_t first, std::int64_t planes, float* volume) {
  const std::int64_t step = depth * p.pixels;
  for_blocks(p, planes, [&](std::int64_t plane, std::int64_t channel, std::int64_t channels) {
    transpose_floats(from + plane * p.floats() + channel * p.pixels, p.block,
                     volume + channel * step + (first + plane) * p.pixels, step, p.pixels, channels);
  });
}

}  // namespace

bool conv_volume_suits(const ConvShape& s) {
  if (s.groups != 1 || s.dilation[0] != 1 || s.kernel[0] < s.stride[0] || volume(s.kernel) <= 1) return false;
  return 2 * s.out_channels >= channel_block();
}

BlockedConv conv_volume_choose(const ConvShape& s) {
  // Channels that fill less than half a block are read one by one, as those of a picture.
  if (2 * s.in_channels < channel_block()) return BlockedConv::plain;
  if (s.dilation[1] != 1 || s.dilation[2] != 1) return BlockedConv::direct;
  ConvShape pictures = Volume(BlockedConv::direct, s).picture;
  pictures.batch = std::max<std::int64_t>(1, s.out[0]);
  return conv_blocked_choose(pictures);
}

std::size_t conv_volume_packed_bytes(BlockedConv algorithm, const ConvShape& s) {
  return conv_blocked_packed_bytes(algorithm, Volume(algorithm, s).picture);
}

void conv_volume_pack(BlockedConv algorithm, const ConvShape& s, const void* weights, const float* bias, float* packed) {
  const Volume v(algorithm, s);
  const std::int64_t taps = s.kernel[1] * s.kernel[2], padded = v.in.blocks() * v.in.block;
  std::vector<float> turned(static_cast<std::size_t>(s.out_channels * s.kernel[0] * padded * taps));
  const auto* from = static_cast<const char*>(weights);
  for (std::int64_t m = 0; m < s.out_channels; ++m) {
    for (std::int64_t c = 0; c < s.in_channels; ++c) {
      for (std::int64_t z = 0; z < s.kernel[0]; ++z, from += taps * 4) {
        std::memcpy(turned.data() + ((m * s.kernel[0] + z) * padded + c) * taps, from, static_cast<std::size_t>(taps) * 4);
      }
    }
  }
  conv_blocked_pack(algorithm, v.picture, turned.data(), bias, packed);
}

std::size_t conv_volume_workspace_bytes(BlockedConv algorithm, const ConvShape& s) {
  const Volume v(algorithm, s);
  return static_cast<std::size_t>(v.x_floats() + v.y_floats()) * sizeof(float);
}

void conv_volume_f32(BlockedConv algorithm, const ConvShape& s, const float* x, const float* packed, const float* residual,
                     const UnarySpec& act, float* y, void* workspace) {
  const Volume v(algorithm, s);
  if (volume(s.out) == 0) return;
  float* const xs = static_cast<float*>(workspace);
  float* const ys = xs + v.x_floats();
  ConvShape pictures = v.picture;
  const std::int64_t image_x = s.in_channels * volume(s.in), image_y = s.out_channels * volume(s.out);
  for (std::int64_t n = 0; n < s.batch; ++n) {
    for (std::int64_t z = 0; z < s.out[0]; z += v.most) {
      const std::int64_t planes = std::min(v.most, s.out[0] - z);
      to_planes(v.in, x + n * image_x, s.in[0], z * s.stride[0] - s.pad[0], v.planes_read(planes), xs);
      if (residual != nullptr) to_planes(v.out, residual + n * image_y, s.out[0], z, planes, ys);
      pictures.batch = planes;
      conv_blocked_f32(algorithm, pictures, xs, packed, residual != nullptr ? ys : nullptr, act, ys);
      from_planes(v.out, ys, s.out[0], z, planes, y + n * image_y);
    }
  }
}

}  // namespace sdx::cpu
