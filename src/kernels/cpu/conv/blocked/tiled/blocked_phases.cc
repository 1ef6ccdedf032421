#include "kernels/cpu/conv/blocked/tiled/blocked_phases.h"

#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"
#include "kernels/cpu/conv/blocked/blocked_channels_simd.h"
#include "kernels/cpu/conv/blocked/blocked_layout.h"
#include "kernels/cpu/conv/blocked/blocked_tasks.h"
#include "kernels/cpu/conv/blocked/tiled/blocked_winograd.h"
#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/elementwise/elementwise_simd.h"
#include "kernels/cpu/simd/cuts.h"
#include "kernels/cpu/simd/scratch.h"

// A convolution with dilation d is one without dilation on each of the d sub-images of every d-th row, and likewise for columns.
// Sub-images are copied, with their padding, convolved as separate images, and copied back.

namespace sdx::cpu {
namespace {

// Copies pixels of c floats, some steps apart. Sizes are constants: calls of memcpy would take a tenth of the products' time.
template <std::int64_t kBlock>
void copy_pixels_of(const float* from, std::int64_t from_step, float* to, std::int64_t to_step, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    std::memcpy(to + i * to_step * kBlock, from + i * from_step * kBlock, kBlock * sizeof(float));
  }
}

void copy_pixels(std::int64_t c, const float* from, std::int64_t from_step, float* to, std::int64_t to_step, std::int64_t count) {
  if (c == 8) return copy_pixels_of<8>(from, from_step, to, to_step, count);
  if (c == 16) return copy_pixels_of<16>(from, from_step, to, to_step, count);
  for (std::int64_t i = 0; i < count; ++i) std::copy_n(from + i * from_step * c, c, to + i * to_step * c);
}

// One block of channels of one phase: [rows][columns][c], zeros outside the input.
void gather(const ConvShape& s, const ConvShape& phases, std::int64_t c, const float* plane, std::int64_t py, std::int64_t px,
            float* out) {
  const std::int64_t x0 = px - s.pad[2], dx = s.dilation[2], width = phases.in[2];
  const std::int64_t begin = x0 >= 0 ? 0 : std::min(width, up_div(-x0, dx));
  const std::int64_t end = x0 >= s.in[2] ? begin : std::clamp(up_div(s.in[2] - x0, dx), begin, width);
  for (std::int64_t r = 0; r < phases.in[1]; ++r, out += width * c) {
    const std::int64_t iy = py - s.pad[1] + r * s.dilation[1];
    if (iy < 0 || iy >= s.in[1]) {
      std::fill_n(out, width * c, 0.0F);
      continue;
    }
    std::fill_n(out, begin * c, 0.0F);
    if (end > begin) copy_pixels(c, plane + (iy * s.in[2] + x0 + begin * dx) * c, dx, out + begin * c, 1, end - begin);
    std::fill_n(out + end * c, (width - end) * c, 0.0F);
  }
}

std::int64_t padded_floats(const ConvShape& s, std::int64_t channels) {
  return s.groups * up_div(channels / s.groups, channel_block()) * channel_block();
}
std::int64_t input_floats(const ConvShape& phases) {
  return phases.batch * padded_floats(phases, phases.in_channels) * phases.in[1] * phases.in[2];
}

}  // namespace

bool is_dilated(const ConvShape& s) { return s.dilation[1] != 1 || s.dilation[2] != 1; }

ConvShape phases_of(const ConvShape& s) {
  ConvShape p = s;
  p.batch = s.batch * s.dilation[1] * s.dilation[2];
  for (int i = 1; i < 3; ++i) {
    p.out[i] = up_div(s.out[i], s.dilation[i]);
    p.in[i] = p.out[i] + s.kernel[i] - 1;
    p.dilation[i] = 1;
    p.pad[i] = 0;
  }
  return p;
}

std::size_t phases_workspace_floats(const ConvShape& s) {
  const ConvShape p = phases_of(s);
  return static_cast<std::size_t>(input_floats(p) + p.batch * padded_floats(p, p.out_channels) * p.out[1] * p.out[2]);
}

void conv_blocked_winograd_phases(int t, bool lean, const ConvShape& s, const float* x, const float* packed,
                                  const float* residual, const UnarySpec& act, float* y, float* workspace) {
  const BlockedChannelsKernels& k = blocked_channels_kernels();
  const ConvShape p = phases_of(s);
  const std::int64_t c = channel_block(), dy = s.dilation[1], dx = s.dilation[2];
  const std::int64_t in_blocks = padded_floats(s, s.in_channels) / c, out_blocks = padded_floats(s, s.out_channels) / c;
  float* const sums = workspace + input_floats(p);
  const std::int64_t in_plane = p.in[1] * p.in[2] * c, out_plane = p.out[1] * p.out[2] * c;
  const auto grain = [](std::int64_t floats) { return std::max<std::int64_t>(1, 65536 / std::max<std::int64_t>(1, floats)); };
  parallel_for(p.batch * in_blocks, grain(in_plane), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t block = i % in_blocks, phase = i / in_blocks % (dy * dx), image = i / in_blocks / (dy * dx);
      gather(s, p, c, x + (image * in_blocks + block) * s.in[1] * s.in[2] * c, phase / dx, phase % dx, workspace + i * in_plane);
    }
  });
  conv_blocked_winograd(t, lean, p, workspace, packed, nullptr, residual != nullptr ? UnarySpec{} : act, sums);
  const Bounds bounds(act);
  const std::int64_t row_floats = s.out[2] * c;
  parallel_for(s.batch * out_blocks * s.out[1], grain(row_floats), [&](std::int64_t begin, std::int64_t end) {
    float* const line = residual != nullptr ? thread_scratch(2, static_cast<std::size_t>(row_floats)) : nullptr;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t oy = i % s.out[1], block = i / s.out[1] % out_blocks, image = i / s.out[1] / out_blocks;
      float* const to = y + i * row_floats;
      float* const row = residual != nullptr ? line : to;
      for (std::int64_t px = 0; px < std::min(dx, s.out[2]); ++px) {
        const std::int64_t of = (image * dy + oy % dy) * dx + px;
        copy_pixels(c, sums + (of * out_blocks + block) * out_plane + oy / dy * p.out[2] * c, 1, row + px * c, dx,
                    up_div(s.out[2] - px, dx));
      }
      if (residual == nullptr) continue;
      k.add_clip(row, residual + i * row_floats, bounds.lo, bounds.hi, to, row_floats);
      if (bounds.after) elementwise_kernels().unary(act, to, to, row_floats);
    }
  });
}

}  // namespace sdx::cpu
