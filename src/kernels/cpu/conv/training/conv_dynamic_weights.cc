#include "kernels/cpu/conv/training/conv_dynamic_weights.h"

#include <algorithm>

#include "kernels/cpu/conv/blocked/blocked_layout.h"
#include "kernels/cpu/simd/cuts.h"

namespace sdx::cpu {
namespace {

// Size of images in blocks, input and output: they stay in the second-level cache until the next step reads them.
constexpr std::int64_t kImageFloats = 1 << 19;
// With more pairs of channels, Winograd's transformed weights take longer to write than to compute again.
constexpr std::int64_t kManyPairs = 32 * 1024;
// Up to this many channels, as pictures have, are read in place.
constexpr std::int64_t kPictureChannels = 4;

constexpr std::size_t kLine = 16;  // floats
std::size_t whole_lines(std::int64_t floats) { return to_size(round_up(floats, kLine)); }
std::size_t floats_of(std::size_t bytes) { return (bytes / sizeof(float) + kLine - 1) / kLine * kLine; }

BlockedConv lean(BlockedConv how, const ConvShape& s) {
  if (s.in_channels / s.groups * s.out_channels < kManyPairs) return how;
  if (how == BlockedConv::winograd2) return BlockedConv::winograd2_lean;
  if (how == BlockedConv::winograd4) return BlockedConv::winograd4_lean;
  return how;
}

std::int64_t blocked_image(std::int64_t channels, std::int64_t plane) { return round_up(channels, channel_block()) * plane; }

// Pointwise convolutions with few channels are computed in place, because rearranging would cost more than their products gain.
bool pays_in_blocks(const ConvShape& s) {
  if (volume(s.kernel) > 1) return true;
  const std::int64_t least = std::min(s.in_channels, s.out_channels) / s.groups;
  return least >= 64 && s.stride[1] == 1 && s.stride[2] == 1 && volume(s.out) < 512;
}

bool choose_blocked(DynamicWeightsConv& p) {
  const ConvShape& s = p.shape;
  if (volume(s.in) == 0 || s.in_channels == 0 || s.batch == 0 || s.in[0] != 1 || s.out[0] != 1 || s.kernel[0] != 1 ||
      !pays_in_blocks(s))
    return false;
  p.plain_input = s.in_channels <= kPictureChannels && conv_blocked_supports(BlockedConv::plain, s);
  p.blocked = p.plain_input ? BlockedConv::plain : lean(conv_blocked_choose(s), s);
  return conv_blocked_supports(p.blocked, s);
}

}  // namespace

DynamicWeightsConv plan_dynamic_weights_conv(const ConvShape& shape) {
  DynamicWeightsConv p;
  p.shape = shape;
  p.plain = conv_choose(shape);
  const bool stays = p.plain == ConvAlgorithm::depthwise || p.plain == ConvAlgorithm::pixel;
  p.in_blocks = !stays && choose_blocked(p);
  if (!p.in_blocks) {
    p.packed = floats_of(conv_packed_bytes(p.plain, shape));
    return p;
  }
  const std::int64_t x = p.plain_input ? 0 : blocked_image(shape.in_channels, volume(shape.in));
  const std::int64_t y = blocked_image(shape.out_channels, volume(shape.out));
  p.images = std::clamp<std::int64_t>(kImageFloats / std::max<std::int64_t>(1, x + y), 1, shape.batch);
  ConvShape some = shape;
  some.batch = p.images;
  p.packed = floats_of(conv_blocked_packed_bytes(p.blocked, shape));
  p.x = whole_lines(p.images * x);
  p.y = whole_lines(p.images * y);
  p.own = floats_of(conv_blocked_workspace_bytes(p.blocked, some));
  return p;
}

std::size_t dynamic_weights_conv_workspace_bytes(const DynamicWeightsConv& p) {
  return (p.packed + p.x + p.y + p.own) * sizeof(float);
}

void dynamic_weights_conv_f32(const DynamicWeightsConv& p, const float* x, const float* weights, const float* bias,
                              const UnarySpec& act, float* y, void* workspace) {
  const ConvShape& s = p.shape;
  auto* const packed = static_cast<float*>(workspace);
  if (!p.in_blocks) {
    conv_pack_f32(p.plain, s, weights, packed);
    return conv_f32(p.plain, s, x, packed, bias, nullptr, act, y);
  }
  float* const xs = packed + p.packed;
  float* const ys = xs + p.x;
  conv_blocked_pack(p.blocked, s, weights, bias, packed);
  const std::int64_t in = volume(s.in), out = volume(s.out);
  ConvShape some = s;
  for (std::int64_t n = 0; n < s.batch; n += p.images) {
    some.batch = std::min(p.images, s.batch - n);
    const float* from = x + n * s.in_channels * in;
    if (!p.plain_input) to_blocked_f32(some.batch, s.in_channels, in, from, xs);
    conv_blocked_f32(p.blocked, some, p.plain_input ? from : xs, packed, nullptr, act, ys, ys + p.y);
    from_blocked_f32(some.batch, s.out_channels, out, ys, y + n * s.out_channels * out);
  }
}

}  // namespace sdx::cpu
