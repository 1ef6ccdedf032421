#include <algorithm>

#include "base/thread_pool.h"
#include "kernels/cpu/conv_kernels.h"
#include "kernels/cpu/elementwise_kernels.h"
#include "kernels/cpu/gemm_kernels.h"

namespace sdx::cpu {
namespace {

// Input rows are copied once into scratch, padded and split by the stride's phases, so that every tap of every output row is
// a contiguous read without bounds. The copy is one pass over the input against kernel-size passes of arithmetic.
struct Rows {
  std::int64_t phase_width;
  std::int64_t row_floats;
  std::int64_t band;       // output rows per band
  std::int64_t band_rows;  // input rows that a band needs, per depth slice
};

constexpr std::int64_t kBandFloats = 65536;  // 256 KB of input rows, in the second-level cache
constexpr int kTapsAtOnce = 128;

Rows plan_rows(const ConvShape& s, std::int64_t lanes) {
  Rows r{};
  const std::int64_t reach = (s.kernel[2] - 1) * s.dilation[2] / s.stride[2];
  // taps() works in steps of lanes, hence the slack.
  r.phase_width = (s.out[2] + lanes - 1) / lanes * lanes + reach + 1;
  r.row_floats = r.phase_width * s.stride[2];
  const std::int64_t extra = (s.kernel[1] - 1) * s.dilation[1] + 1;
  const std::int64_t fit = kBandFloats / (r.row_floats * s.kernel[0]);
  r.band = std::clamp<std::int64_t>((fit - extra) / s.stride[1] + 1, 1, s.out[1]);
  r.band_rows = (r.band - 1) * s.stride[1] + extra;
  return r;
}

// The band of output rows [y0, y1) of depth slice oz.
void band(const ConvKernels& k, const ConvShape& s, const Rows& r, const float* x, const float* weights, std::int64_t multiplier,
          const float* bias, const float* residual, const UnarySpec& act, float* y, std::int64_t oz, std::int64_t y0,
          std::int64_t y1, float* scratch) {
  const std::int64_t first_row = y0 * s.stride[1] - s.pad[1];
  const std::int64_t plane = s.out[0] * s.out[1] * s.out[2];
  const std::int64_t area = s.kernel[1] * s.kernel[2];
  const auto slice_in = [&](std::int64_t kz) { return oz * s.stride[0] - s.pad[0] + kz * s.dilation[0]; };
  const std::int64_t rows_needed = (y1 - y0 - 1) * s.stride[1] + (s.kernel[1] - 1) * s.dilation[1] + 1;
  for (std::int64_t kz = 0; kz < s.kernel[0]; ++kz) {
    const std::int64_t iz = slice_in(kz);
    if (iz < 0 || iz >= s.in[0]) continue;
    for (std::int64_t i = 0; i < rows_needed; ++i) {
      const std::int64_t iy = first_row + i;
      if (iy < 0 || iy >= s.in[1]) continue;
      k.split_row(x + (iz * s.in[1] + iy) * s.in[2], s.in[2], s.pad[2], s.stride[2], r.phase_width,
                  scratch + (kz * r.band_rows + i) * r.row_floats);
    }
  }
  ConvTap taps[kTapsAtOnce];
  for (std::int64_t mul = 0; mul < multiplier; ++mul) {
    const float* w = weights + mul * s.kernel[0] * area;
    for (std::int64_t oy = y0; oy < y1; ++oy) {
      const std::int64_t at = mul * plane + (oz * s.out[1] + oy) * s.out[2];
      std::int64_t count = 0;
      bool started = false;
      // Kernels of more than 128 elements run in several passes; the later ones add to what is there.
      const auto flush = [&](bool last) {
        const float* add = last ? (residual != nullptr ? residual + at : nullptr) : nullptr;
        if (!started) {
          k.taps(taps, count, bias != nullptr ? bias[mul] : 0.0F, add, last ? act : UnarySpec{}, y + at, s.out[2]);
        } else {
          // A residual that is y itself was folded into the first pass's result below.
          k.taps(taps, count, 0.0F, y + at, last ? act : UnarySpec{}, y + at, s.out[2]);
        }
        started = true;
        count = 0;
      };
      for (std::int64_t kz = 0; kz < s.kernel[0]; ++kz) {
        const std::int64_t iz = slice_in(kz);
        if (iz < 0 || iz >= s.in[0]) continue;
        for (std::int64_t ky = 0; ky < s.kernel[1]; ++ky) {
          const std::int64_t row = (oy - y0) * s.stride[1] + ky * s.dilation[1];
          if (first_row + row < 0 || first_row + row >= s.in[1]) continue;
          const float* base = scratch + (kz * r.band_rows + row) * r.row_floats;
          for (std::int64_t kx = 0; kx < s.kernel[2]; ++kx) {
            if (count == kTapsAtOnce) {
              if (!started && residual != nullptr) {
                k.taps(taps, count, bias != nullptr ? bias[mul] : 0.0F, residual + at, UnarySpec{}, y + at, s.out[2]);
                started = true;
                count = 0;
              } else {
                flush(false);
              }
            }
            const std::int64_t o = kx * s.dilation[2];
            taps[count++] = {base + o % s.stride[2] * r.phase_width + o / s.stride[2], w[kz * area + ky * s.kernel[2] + kx]};
          }
        }
      }
      flush(true);
    }
  }
}

// 3x3 images without a residual: rows outside the input are zeros in scratch, so that all output rows are alike.
void band3(const ConvKernels& k, const ConvShape& s, const Rows& r, const float* x, const float* weights, std::int64_t multiplier,
           const float* bias, const UnarySpec& act, float* y, std::int64_t y0, std::int64_t y1, float* scratch) {
  const std::int64_t first_row = y0 * s.stride[1] - s.pad[1];
  const std::int64_t rows = (y1 - y0 - 1) * s.stride[1] + 2 * s.dilation[1] + 1;
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t iy = first_row + i;
    float* to = scratch + i * r.row_floats;
    if (iy < 0 || iy >= s.in[1]) {
      std::fill_n(to, r.row_floats, 0.0F);
    } else {
      k.split_row(x + iy * s.in[2], s.in[2], s.pad[2], s.stride[2], r.phase_width, to);
    }
  }
  std::int64_t offset[3];
  for (std::int64_t i = 0; i < 3; ++i) {
    const std::int64_t o = i * s.dilation[2];
    offset[i] = o % s.stride[2] * r.phase_width + o / s.stride[2];
  }
  for (std::int64_t mul = 0; mul < multiplier; ++mul) {
    float* out = y + (mul * s.out[1] + y0) * s.out[2];
    k.depthwise3(scratch, s.stride[1] * r.row_floats, s.dilation[1] * r.row_floats, offset, weights + mul * 9,
                 bias != nullptr ? bias[mul] : 0.0F, act, out, s.out[2], y1 - y0);
    if (act.op != Unary::none && act.op != Unary::relu && act.op != Unary::clip) {
      elementwise_kernels().unary(act, out, out, (y1 - y0) * s.out[2]);
    }
  }
}

}  // namespace

void conv_depthwise(const ConvShape& s, const float* x, const float* weights, const float* bias, const float* residual,
                    const UnarySpec& act, float* y) {
  const ConvKernels& k = conv_kernels();
  const Rows r = plan_rows(s, k.lanes);
  const std::int64_t multiplier = s.out_channels / s.groups;
  const std::int64_t in_plane = s.in[0] * s.in[1] * s.in[2];
  const std::int64_t out_plane = s.out[0] * s.out[1] * s.out[2];
  const std::int64_t taps = s.kernel[0] * s.kernel[1] * s.kernel[2];
  const std::int64_t bands = (s.out[1] + r.band - 1) / r.band;
  const std::int64_t per_channel = s.out[0] * bands;
  const std::int64_t work = std::max<std::int64_t>(1, r.band * s.out[2] * taps * multiplier);
  parallel_for(s.batch * s.groups * per_channel, std::max<std::int64_t>(1, 60000 / work),
               [&](std::int64_t begin, std::int64_t end) {
                 float* scratch = thread_scratch(2, static_cast<std::size_t>(r.row_floats * r.band_rows * s.kernel[0] + k.lanes));
                 for (std::int64_t i = begin; i < end; ++i) {
                   const std::int64_t channel = i / per_channel;  // image * groups + group
                   const std::int64_t g = channel % s.groups;
                   const std::int64_t oz = i % per_channel / bands;
                   const std::int64_t y0 = i % bands * r.band;
                   const std::int64_t offset = channel * multiplier * out_plane;
                   if (residual == nullptr && s.in[0] == 1 && s.kernel[0] == 1 && s.pad[0] == 0 && s.out[0] == 1 &&
                       s.kernel[1] == 3 && s.kernel[2] == 3) {
                     band3(k, s, r, x + channel * in_plane, weights + g * multiplier * taps, multiplier,
                           bias != nullptr ? bias + g * multiplier : nullptr, act, y + offset, y0,
                           std::min(s.out[1], y0 + r.band), scratch);
                     continue;
                   }
                   band(k, s, r, x + channel * in_plane, weights + g * multiplier * taps, multiplier,
                        bias != nullptr ? bias + g * multiplier : nullptr, residual != nullptr ? residual + offset : nullptr, act,
                        y + offset, oz, y0, std::min(s.out[1], y0 + r.band), scratch);
                 }
               });
}

}  // namespace sdx::cpu
