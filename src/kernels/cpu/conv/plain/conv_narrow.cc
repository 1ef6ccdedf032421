#include "kernels/cpu/conv/plain/conv_narrow.h"

#include <algorithm>

#include "base/thread_pool.h"
#include "kernels/cpu/conv/plain/conv_narrow_simd.h"
#include "kernels/cpu/elementwise/elementwise_simd.h"
#include "kernels/cpu/gemm/gemm_block.h"
#include "kernels/cpu/gemm/gemm_simd.h"
#include "kernels/cpu/simd/cuts.h"
#include "kernels/cpu/simd/scratch.h"

namespace sdx::cpu {
namespace {

// The input, with zeros around it if outputs extend past it, and the offsets of its elements.
struct Padded {
  const float* x = nullptr;
  std::int64_t extent[3];                  // of a plane
  const std::int64_t* offset = nullptr;    // by k
  const std::int64_t* position = nullptr;  // by image and output position
};

bool needs_padding(const ConvShape& s) {
  for (int i = 0; i < 3; ++i) {
    if (s.pad[i] != 0 || reach(s, i) > s.in[i]) return true;
  }
  return false;
}

void copy_padded(const ConvShape& s, const float* x, const std::int64_t (&extent)[3], float* out) {
  const std::int64_t plane = volume(extent), width = s.in[2];
  const std::int64_t begin = std::clamp<std::int64_t>(s.pad[2], 0, extent[2]);
  const std::int64_t end = std::clamp<std::int64_t>(s.pad[2] + width, begin, extent[2]);
  for (std::int64_t c = 0; c < s.batch * s.in_channels; ++c, out += plane) {
    std::fill_n(out, plane, 0.0F);
    for (std::int64_t z = 0; z < extent[0]; ++z) {
      const std::int64_t iz = z - s.pad[0];
      if (iz < 0 || iz >= s.in[0]) continue;
      for (std::int64_t y = 0; y < extent[1]; ++y) {
        const std::int64_t iy = y - s.pad[1];
        if (iy < 0 || iy >= s.in[1]) continue;
        const float* row = x + ((c * s.in[0] + iz) * s.in[1] + iy) * width;
        std::copy(row + begin - s.pad[2], row + end - s.pad[2], out + (z * extent[1] + y) * extent[2] + begin);
      }
    }
  }
}

// Offsets of all steps along four axes, times[i] steps by[i] apart, the last axis fastest.
void list_offsets(const std::int64_t (&times)[4], const std::int64_t (&by)[4], std::int64_t* out) {
  for (std::int64_t a = 0; a < times[0]; ++a) {
    for (std::int64_t b = 0; b < times[1]; ++b) {
      for (std::int64_t c = 0; c < times[2]; ++c) {
        for (std::int64_t d = 0; d < times[3]; ++d) *out++ = a * by[0] + b * by[1] + c * by[2] + d * by[3];
      }
    }
  }
}

Padded padded(const ConvShape& s, const float* x) {
  Padded p;
  const bool copies = needs_padding(s);
  for (int i = 0; i < 3; ++i) p.extent[i] = copies ? reach(s, i) : s.in[i];
  const std::int64_t plane = volume(p.extent), row = p.extent[2], slice = p.extent[1] * row;
  const std::int64_t k = s.in_channels * volume(s.kernel), positions = s.batch * volume(s.out);
  // Offsets are twice as wide as floats.
  const std::int64_t tables = 2 * (k + positions);
  float* scratch = thread_scratch(2, to_size(tables + (copies ? s.batch * s.in_channels * plane : 0)));
  auto* offset = reinterpret_cast<std::int64_t*>(scratch);
  list_offsets({s.in_channels, s.kernel[0], s.kernel[1], s.kernel[2]},
               {plane, s.dilation[0] * slice, s.dilation[1] * row, s.dilation[2]}, offset);
  list_offsets({s.batch, s.out[0], s.out[1], s.out[2]},
               {s.in_channels * plane, s.stride[0] * slice, s.stride[1] * row, s.stride[2]}, offset + k);
  if (copies) copy_padded(s, x, p.extent, scratch + tables);
  p.x = copies ? scratch + tables : x;
  p.offset = offset;
  p.position = offset + k;
  return p;
}

// Sums of some tiles at some positions -> y, without the activation.
struct Finish {
  const ConvShape* shape;
  const float* bias;
  const float* residual;
  float* y;

  void operator()(const float* sums, std::int64_t lanes, std::int64_t channel, std::int64_t height, std::int64_t from,
                  std::int64_t count) const {
    const std::int64_t n = volume(shape->out);
    for (std::int64_t p = 0; p < count; ++p) {
      const std::int64_t image = (from + p) / n, pixel = (from + p) % n;
      for (std::int64_t i = 0; i < height; ++i) {
        const std::int64_t at = (image * shape->out_channels + channel + i) * n + pixel;
        float value = sums[p * lanes + i];
        if (bias != nullptr) value += bias[channel + i];
        if (residual != nullptr) value += residual[at];
        y[at] = value;
      }
    }
  }
};

}  // namespace

bool conv_is_narrow(const ConvShape& s) {
  const GemmKernels& gemm = gemm_kernels();
  // The most positions for which this is faster than a panel of nr: fewer if the panel needs no patches (64 and 256 channels,
  // AVX-512: 12 and 20 of 32 positions).
  const std::int64_t most = (needs_padding(s) || volume(s.kernel) > 1 ? 5 : 3) * gemm.nr / 8;
  return s.groups == 1 && gemm.mr <= narrow_kernels().lanes && s.batch * volume(s.out) <= most;
}

void conv_narrow(const ConvShape& s, const float* x, const float* packed, const float* bias, const float* residual,
                 const UnarySpec& act, float* y) {
  const NarrowKernels& kernels = narrow_kernels();
  const std::int64_t m = s.out_channels, k = s.in_channels * volume(s.kernel), positions = s.batch * volume(s.out);
  const Cuts tiles(m, gemm_kernels().mr), ks = k_cuts(k), blocks(positions, kNarrowPositions);
  const std::int64_t at_once = kernels.tiles_at(blocks.size(0));
  const Padded in = padded(s, x);
  const Finish finish{&s, bias, residual, y};
  const double work = static_cast<double>(k) * static_cast<double>(positions * at_once * kernels.lanes);
  const auto grain = static_cast<std::int64_t>(std::clamp(100000.0 / work, 1.0, 1e6));
  parallel_for(up_div(tiles.parts, at_once), grain, [&](std::int64_t begin, std::int64_t end) {
    alignas(64) float sums[kNarrowTiles * kNarrowPositions * 16];
    for (std::int64_t first = begin * at_once; first < std::min(end * at_once, tiles.parts); first += at_once) {
      NarrowBlock b;
      b.tiles = std::min(at_once, tiles.parts - first);
      b.x = in.x;
      b.sums = sums;
      for (std::int64_t part = 0; part < blocks.parts; ++part) {
        b.positions = blocks.size(part);
        b.position_offset = in.position + blocks.begin(part);
        for (std::int64_t kb = 0; kb < ks.parts; ++kb) {
          b.k = b.whole = ks.size(kb);
          b.offset = in.offset + ks.begin(kb);
          b.accumulate = kb > 0;
          for (std::int64_t t = 0; t < b.tiles; ++t) {
            const std::int64_t at = ks.begin(kb) * m + tiles.begin(first + t) * b.k;
            b.weights[t] = packed + at;
            b.height[t] = tiles.size(first + t);
            const std::int64_t readable = m * k - at - kernels.lanes;  // the last offset at which a vector does not extend past
                                                                       // the end
            b.whole = std::min(b.whole, readable < 0 ? 0 : readable / b.height[t] + 1);
          }
          kernels.sum(b);
        }
        for (std::int64_t t = 0; t < b.tiles; ++t) {
          finish(sums + t * b.positions * kernels.lanes, kernels.lanes, tiles.begin(first + t), b.height[t], blocks.begin(part),
                 b.positions);
        }
      }
      if (act.op == Unary::none) continue;
      const std::int64_t n = volume(s.out), channel = tiles.begin(first), until = tiles.begin(first + b.tiles);
      for (std::int64_t image = 0; image < s.batch; ++image) {
        float* from = y + (image * m + channel) * n;
        elementwise_kernels().unary(act, from, from, (until - channel) * n);
      }
    }
  });
}

}  // namespace sdx::cpu
