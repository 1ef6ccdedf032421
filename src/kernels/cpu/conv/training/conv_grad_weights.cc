#include "kernels/cpu/conv/training/conv_grad_weights.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/conv/training/conv_grad_simd.h"
#include "kernels/cpu/gemm/gemm_block.h"
#include "kernels/cpu/gemm/gemm_simd.h"
#include "kernels/cpu/rows/reduce.h"
#include "kernels/cpu/simd/cuts.h"
#include "kernels/cpu/simd/scratch.h"

namespace sdx::cpu {
namespace {

// Copies of input and dy per pass: most of a typical share of the third-level cache.
constexpr std::int64_t kCopiedFloats = 1 << 19;
constexpr std::int64_t kLine = 16;  // floats
constexpr std::int64_t kMostPhases = 64, kMostExtent = std::int64_t{1} << 24;

// Indices of a phase that lie within the input: [begin, end) of `count`.
struct Inside {
  std::int64_t begin, end;
};
Inside inside(const GradAxis& a, std::int64_t phase, std::int64_t count) {
  const auto clamp = [&](std::int64_t position) { return std::clamp<std::int64_t>(up_div(position, a.stride), 0, count); };
  const std::int64_t begin = a.pad > phase ? clamp(a.pad - phase) : 0;
  const std::int64_t end = a.in + a.pad > phase ? clamp(a.in + a.pad - phase) : 0;
  return {begin, std::max(begin, end)};
}

// If all phases have zeros at both ends, those at the end of a row are also those at the beginning of the next.
GradAxis grad_axis(const ConvShape& s, int i) {
  GradAxis a;
  a.out = s.out[i], a.in = s.in[i], a.pad = s.pad[i], a.stride = s.stride[i], a.dilation = s.dilation[i], a.taps = s.kernel[i];
  a.reach = (a.taps - 1) * a.dilation / a.stride;
  a.phases = std::min(a.stride, (a.taps - 1) * a.dilation + 1);
  const std::int64_t count = a.out + a.reach;
  std::int64_t shared = a.reach;
  for (std::int64_t p = 0; p < a.phases; ++p) {
    const Inside r = inside(a, p, count);
    shared = std::min({shared, r.begin, count - r.end});
  }
  a.pitch = count - shared;
  return a;
}

bool is_depthwise(const ConvShape& s) { return s.groups == s.in_channels && s.groups == s.out_channels; }

// Every stride-th element from position `phase` on: `row` is null outside the image.
void put_row(const GradAxis& a, std::int64_t phase, const float* row, float* out) {
  if (row == nullptr) {
    std::fill_n(out, a.pitch, 0.0F);
    return;
  }
  const Inside r = inside(a, phase, a.pitch);
  std::fill_n(out, r.begin, 0.0F);
  const float* from = row + phase - a.pad;
  if (a.stride == 1) {
    std::copy(from + r.begin, from + r.end, out + r.begin);
  } else if (a.stride == 2) {
    conv_grad_kernels().every_second(from + 2 * r.begin, r.end - r.begin, out + r.begin);
  } else {
    for (std::int64_t j = r.begin; j < r.end; ++j) out[j] = from[j * a.stride];
  }
  std::fill(out + r.end, out + a.pitch, 0.0F);
}

// One channel of an image from position (py, px) on.
void put_image(const ConvGradWeights& p, std::int64_t py, std::int64_t px, const float* image, float* out) {
  for (std::int64_t q = 0; q < p.y.pitch; ++q) {
    const std::int64_t iy = q * p.y.stride + py - p.y.pad;
    put_row(p.x, px, iy >= 0 && iy < p.y.in ? image + iy * p.x.in : nullptr, out + q * p.x.pitch);
  }
}

std::int64_t image_pitch(const ConvGradWeights& p) { return p.y.pitch * p.x.pitch; }
std::int64_t phases(const ConvGradWeights& p) { return p.y.phases * p.x.phases; }

// Offset of a tap's input from the first channel's first phase.
std::int64_t tap_offset(const ConvGradWeights& p, std::int64_t tap, std::int64_t phase_step) {
  const std::int64_t y = tap / p.x.taps * p.y.dilation, x = tap % p.x.taps * p.x.dilation;
  const std::int64_t phase = y % p.y.stride * p.x.phases + x % p.x.stride;
  return phase * phase_step + y / p.y.stride * p.x.pitch + x / p.x.stride;
}

struct WeightGradientPass {
  const ConvGradWeights& p;
  const GemmKernels& gemm;
  std::int64_t group, image, images;  // images [image, image + images)
  std::int64_t inputs, outputs, taps;
  float* input;  // [phase][input channel][plane]; by tap: [input channel][tap][plane], each of them a channel
  float* dy;     // [panel][pixel][nr]
};

void copy_input(const WeightGradientPass& j, const float* x) {
  const ConvGradWeights& p = j.p;
  const std::int64_t plane = volume(p.shape.in), pitch = image_pitch(p), count = phases(p);
  const std::int64_t taps = volume(p.shape.kernel), channels = p.shape.in_channels / p.shape.groups;
  parallel_for(j.inputs * count, std::max<std::int64_t>(1, 32768 / std::max<std::int64_t>(1, j.images * pitch)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const std::int64_t phase = i / j.inputs, tap = i % taps;
                   const std::int64_t c = p.by_tap ? i / taps : i % j.inputs;
                   const std::int64_t py = p.by_tap ? tap / p.x.taps * p.y.dilation : phase / p.x.phases;
                   const std::int64_t px = p.by_tap ? tap % p.x.taps * p.x.dilation : phase % p.x.phases;
                   float* out = j.input + i * p.plane;
                   for (std::int64_t n = 0; n < j.images; ++n) {
                     const std::int64_t channel = (j.image + n) * p.shape.in_channels + j.group * channels + c;
                     put_image(p, py, px, x + channel * plane, out + n * pitch);
                   }
                   std::fill(out + j.images * pitch, out + p.plane, 0.0F);
                 }
               });
}

void copy_dy(const WeightGradientPass& j, const float* dy) {
  const ConvGradWeights& p = j.p;
  const std::int64_t nr = j.gemm.nr, plane = volume(p.shape.out), pitch = image_pitch(p);
  const std::int64_t panels = p.columns / nr;
  const bool whole = p.x.pitch == p.x.out;
  parallel_for(panels * j.images, std::max<std::int64_t>(1, 32768 / (pitch * nr)), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t panel = i / j.images, n = i % j.images;
      const std::int64_t channel = (j.image + n) * p.shape.out_channels + j.group * j.outputs + panel * nr;
      const std::int64_t some = std::min(nr, j.outputs - panel * nr);
      const float* from = dy + channel * plane;
      float* out = j.dy + (panel * j.images + n) * pitch * nr;
      const auto put = [&](std::int64_t row, std::int64_t pixels) {
        j.gemm.pack_b_panels(reinterpret_cast<const char*>(from + row * p.x.out), 1, plane, pixels, some, 1.0F,
                             out + row * p.x.pitch * nr);
      };
      if (whole) put(0, plane);
      for (std::int64_t row = 0; row < p.y.out && !whole; ++row) {
        put(row, p.x.out);
        std::fill(out + (row * p.x.pitch + p.x.out) * nr, out + (row + 1) * p.x.pitch * nr, 0.0F);
      }
      std::fill(out + p.y.out * p.x.pitch * nr, out + pitch * nr, 0.0F);
    }
  });
}

// sums[input][tap][output] += products. The outer loops run over pixels, then panels, so that a panel's block stays in the
// first-level cache, and with it the inputs of a tile of channels, which all taps share.
void multiply(const WeightGradientPass& j, float* sums) {
  const ConvGradWeights& p = j.p;
  const std::int64_t nr = j.gemm.nr, pixels = j.images * image_pitch(p);
  const std::int64_t panels = p.columns / nr;
  const Cuts tiles(j.inputs, j.gemm.mr), ks = k_cuts(pixels);
  std::vector<std::int64_t> offsets;
  for (std::int64_t t = 0; t < j.taps; ++t) offsets.push_back(tap_offset(p, t, j.inputs * p.plane));
  const double work = static_cast<double>(pixels) * static_cast<double>(p.columns * j.gemm.mr);
  const auto grain = static_cast<std::int64_t>(std::max(1.0, 250000.0 / work));
  parallel_for(tiles.parts * j.taps, grain, [&](std::int64_t begin, std::int64_t end) {
    GemmTile g;
    g.lda = p.plane;
    g.ldb = nr;
    g.ldc = j.taps * p.columns;
    for (std::int64_t kb = 0; kb < ks.parts; ++kb) {
      const std::int64_t k0 = ks.begin(kb);
      g.k = ks.size(kb);
      g.accumulate = kb > 0 || j.image > 0;
      for (std::int64_t panel = 0; panel < panels; ++panel) {
        g.b = j.dy + (panel * pixels + k0) * nr;
        g.n = 2 * (j.outputs - panel * nr) <= nr ? nr / 2 : nr;
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t tile = i / j.taps, tap = i % j.taps, c0 = tiles.begin(tile);
          g.m = tiles.size(tile);
          g.a = j.input + c0 * p.plane + offsets[to_size(tap)] + k0;
          g.c = sums + (c0 * j.taps + tap) * p.columns + panel * nr;
          j.gemm.tile(g);
        }
      }
    }
  });
}

// dw[output][row] = sums[row][output], in whole lines of dw.
void turn_sums(const WeightGradientPass& j, const float* sums, float* dw) {
  const std::int64_t rows = j.inputs * j.taps, columns = j.p.columns;
  parallel_for(up_div(rows, kLine), std::max<std::int64_t>(1, 2048 / columns), [&](std::int64_t begin, std::int64_t end) {
    float lines[kLine * kLine];
    for (std::int64_t r = begin * kLine; r < std::min(rows, end * kLine); r += kLine) {
      const std::int64_t some = std::min(kLine, rows - r);
      for (std::int64_t m = 0; m < j.outputs; m += kLine) {
        const std::int64_t outputs = std::min(kLine, j.outputs - m);
        j.gemm.pack_a_tile(reinterpret_cast<const char*>(sums + r * columns + m), columns, 1, some, outputs, 1.0F, lines);
        for (std::int64_t i = 0; i < outputs; ++i)
          std::memcpy(dw + (m + i) * rows + r, lines + i * some, to_size(some) * sizeof(float));
      }
    }
  });
}

// One channel at a time: its images and their dy in this thread's scratch.
void depthwise(const ConvGradWeights& p, const float* x, const float* dy, float* dw) {
  const ConvShape& s = p.shape;
  const std::int64_t taps = p.y.taps * p.x.taps, pitch = image_pitch(p), pixels = p.y.out * p.x.pitch;
  const std::int64_t in = volume(s.in), out = volume(s.out);
  std::vector<std::int64_t> offsets;
  for (std::int64_t t = 0; t < taps; ++t) offsets.push_back(tap_offset(p, t, p.plane));
  const std::int64_t work = std::max<std::int64_t>(1, s.batch * pixels * taps / 8);
  const ConvGradKernels& kernels = conv_grad_kernels();
  parallel_for(s.groups, std::max<std::int64_t>(1, 32768 / work), [&](std::int64_t begin, std::int64_t end) {
    float* const planes = thread_scratch(2, to_size(phases(p) * p.plane + pixels));
    float* const gaps = planes + phases(p) * p.plane;
    for (std::int64_t c = begin; c < end; ++c) {
      float* const sums = dw + c * taps;
      std::fill_n(sums, taps, 0.0F);
      for (std::int64_t n = 0; n < s.batch; ++n) {
        for (std::int64_t phase = 0; phase < phases(p); ++phase) {
          float* const plane = planes + phase * p.plane;
          put_image(p, phase / p.x.phases, phase % p.x.phases, x + (n * s.in_channels + c) * in, plane);
          std::fill(plane + pitch, plane + p.plane, 0.0F);
        }
        const float* from = dy + (n * s.out_channels + c) * out;
        for (std::int64_t row = 0; row < p.y.out; ++row) {
          std::copy_n(from + row * p.x.out, p.x.out, gaps + row * p.x.pitch);
          std::fill(gaps + row * p.x.pitch + p.x.out, gaps + (row + 1) * p.x.pitch, 0.0F);
        }
        kernels.dots(gaps, planes, offsets.data(), taps, pixels, sums);
      }
    }
  });
}

}  // namespace

bool conv_grad_weights_supports(const ConvShape& s) {
  if (s.in[0] != 1 || s.out[0] != 1 || s.kernel[0] != 1 || s.pad[0] != 0) return false;
  for (int i = 1; i < 3; ++i) {
    const std::int64_t reach = (s.kernel[i] - 1) * s.dilation[i];
    if (s.pad[i] < 0 || s.pad[i] > kMostExtent || reach > kMostExtent || s.out[i] > kMostExtent) return false;
    if (std::min(s.stride[i], reach + 1) > kMostPhases) return false;
  }
  return true;
}

// Copies by tap need no products for the borders between rows, and fill register tiles even with few channels. An
// estimate: a step of 16 pixels takes half a cycle per pixel and vector of outputs, and copying it about 12.
bool pays_by_tap(const ConvGradWeights& p) {
  const ConvShape& s = p.shape;
  if (is_depthwise(s) || volume(s.kernel) == 1) return false;
  const std::int64_t outputs = s.out_channels / s.groups;
  const double step = 8.0 * static_cast<double>(up_div(outputs, 16));
  const double pitch = static_cast<double>(image_pitch(p)), pixels = static_cast<double>(volume(s.out));
  return s.in_channels / s.groups < 6 || (pitch / pixels - 1) * step > 12.0;
}

ConvGradWeights plan_conv_grad_weights(const ConvShape& s) {
  ConvGradWeights p;
  p.shape = s;
  p.by_winograd = conv_winograd_grad_pays(s);
  if (p.by_winograd) {
    p.winograd = plan_conv_winograd_grad(s);
    return p;
  }
  p.y = grad_axis(s, 1);
  p.x = grad_axis(s, 2);
  p.by_tap = pays_by_tap(p);
  std::int64_t inputs = s.in_channels / s.groups;
  if (p.by_tap) {
    inputs *= volume(s.kernel);
    for (GradAxis* a : {&p.y, &p.x}) a->pitch = a->out, a->reach = 0, a->phases = 1;
  }
  const std::int64_t nr = gemm_kernels().nr;
  const std::int64_t outputs = s.out_channels / s.groups;
  const std::int64_t pitch = image_pitch(p), beyond = p.y.reach * p.x.pitch + p.x.reach;
  p.columns = round_up(outputs, nr);
  // Large sums are worth more images per pass: each pass reads and writes them.
  const std::int64_t most = std::clamp(s.in_channels / s.groups * volume(s.kernel) * p.columns, kCopiedFloats, 4 * kCopiedFloats);
  const std::int64_t per_image = pitch * (phases(p) * inputs + p.columns);
  p.images = is_depthwise(s)
                 ? 1
                 : std::clamp<std::int64_t>(most / std::max<std::int64_t>(1, per_image), 1, std::max<std::int64_t>(1, s.batch));
  // Planes are an odd number of lines apart, so that the same pixels of adjacent channels fall into different cache sets.
  p.plane = up_div(p.images * pitch + beyond, kLine);
  p.plane = (p.plane | 1) * kLine;
  if (is_depthwise(s)) return p;
  p.input = to_size(phases(p) * inputs * p.plane);
  p.dy = to_size(p.images * pitch * p.columns);
  p.sums = to_size(s.groups * (s.in_channels / s.groups) * volume(s.kernel) * p.columns);
  return p;
}

std::size_t conv_grad_weights_workspace_bytes(const ConvGradWeights& p) {
  if (p.by_winograd) return conv_winograd_grad_workspace_bytes(p.winograd);
  return (p.input + p.dy + p.sums) * sizeof(float);
}

void conv_grad_weights_f32(const ConvGradWeights& p, const float* x, const float* dy, float* dw, void* workspace) {
  const ConvShape& s = p.shape;
  const std::int64_t outputs = s.out_channels / s.groups, weights = s.in_channels / s.groups * volume(s.kernel);
  const std::int64_t taps = p.by_tap ? 1 : volume(s.kernel), inputs = weights / taps;
  if (s.batch == 0 || volume(s.out) == 0) {
    std::fill_n(dw, s.out_channels * weights, 0.0F);
    return;
  }
  if (p.by_winograd) return conv_winograd_grad_f32(p.winograd, x, dy, dw, workspace);
  if (is_depthwise(s)) return depthwise(p, x, dy, dw);
  auto* const input = static_cast<float*>(workspace);
  WeightGradientPass j{p, gemm_kernels(), 0, 0, 0, inputs, outputs, taps, input, input + p.input};
  float* const sums = j.dy + p.dy;
  const std::int64_t group_sums = weights * p.columns;
  for (j.image = 0; j.image < s.batch; j.image += p.images) {
    j.images = std::min(p.images, s.batch - j.image);
    for (j.group = 0; j.group < s.groups; ++j.group) {
      copy_input(j, x);
      copy_dy(j, dy);
      multiply(j, sums + j.group * group_sums);
    }
  }
  for (j.group = 0; j.group < s.groups; ++j.group) turn_sums(j, sums + j.group * group_sums, dw + j.group * outputs * weights);
}

void conv_grad_bias_f32(const ConvShape& s, const float* dy, float* db, void* workspace) {
  auto* const planes = static_cast<float*>(workspace);
  if (s.batch == 0 || volume(s.out) == 0) {
    std::fill_n(db, s.out_channels, 0.0F);
    return;
  }
  reduce_f32(Reduce::sum, dy, planes, s.batch * s.out_channels, volume(s.out), 1);
  reduce_f32(Reduce::sum, planes, db, 1, s.batch, s.out_channels);
}

}  // namespace sdx::cpu
