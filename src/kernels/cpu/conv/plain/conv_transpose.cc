#include "kernels/cpu/conv/plain/conv_transpose.h"

// Transposed convolutions: products with all weights at once, [kernel..., in...] for each output channel, which are then added up
// row by row. Neighbours in a row of results come from different taps: each row is computed as `stride` contiguous phases, which
// are interleaved at the end.

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/conv/plain/conv_simd.h"
#include "kernels/cpu/elementwise/elementwise_simd.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/gemm/gemm_block.h"
#include "kernels/cpu/gemm/gemm_simd.h"
#include "kernels/cpu/simd/cuts.h"
#include "kernels/cpu/simd/scratch.h"

namespace sdx::cpu {
namespace {

// Input positions i with 0 <= i < in and 0 <= first + i * stride < out.
struct Range {
  std::int64_t begin, end;
};
Range inside(std::int64_t first, std::int64_t stride, std::int64_t in, std::int64_t out) {
  const std::int64_t b = first >= 0 ? 0 : std::min(in, (-first + stride - 1) / stride);
  const std::int64_t e = first >= out ? 0 : std::min(in, (out - first + stride - 1) / stride);
  return {b, std::max(b, e)};
}

// The input rows that contribute to a row of results.
struct Source {
  std::int64_t tap;  // kz, ky
  std::int64_t row;  // iz, iy
};

void sources_of(const ConvShape& s, std::int64_t oz, std::int64_t oy, std::vector<Source>& out) {
  out.clear();
  const auto from = [&](int a, std::int64_t o, std::int64_t k) -> std::int64_t {
    const std::int64_t at = o + s.pad[a] - k * s.dilation[a];
    return at >= 0 && at % s.stride[a] == 0 && at / s.stride[a] < s.in[a] ? at / s.stride[a] : -1;
  };
  for (std::int64_t kz = 0; kz < s.kernel[0]; ++kz) {
    const std::int64_t iz = from(0, oz, kz);
    if (iz < 0) continue;
    for (std::int64_t ky = 0; ky < s.kernel[1]; ++ky) {
      const std::int64_t iy = from(1, oy, ky);
      if (iy >= 0) out.push_back({kz * s.kernel[1] + ky, iz * s.in[1] + iy});
    }
  }
}

// Sums one output channel's products; those of consecutive taps are `plane` apart. `lines`: room for all phases of a row;
// `phases`: a pointer to each.
void put_channel(const ConvShape& s, const float* columns, std::int64_t plane, float bias, const UnarySpec& act, float* y,
                 float* lines, std::int64_t line, const float** phases, std::vector<Source>& sources) {
  const ConvKernels& k = conv_kernels();
  const std::int64_t stride = s.stride[2], count = std::min(stride, s.out[2]);
  // One tap per phase, all inside: the products are interleaved as they are.
  const bool one_each =
      s.kernel[2] == stride && s.dilation[2] == 1 && s.pad[2] == 0 && s.out[2] <= s.in[2] * stride && s.kernel[2] > 1;
  for (std::int64_t oz = 0; oz < s.out[0]; ++oz) {
    for (std::int64_t oy = 0; oy < s.out[1]; ++oy) {
      float* const row = y + (oz * s.out[1] + oy) * s.out[2];
      sources_of(s, oz, oy, sources);
      const auto product = [&](const Source& of, std::int64_t kx) {
        return columns + (of.tap * s.kernel[2] + kx) * plane + of.row * s.in[2];
      };
      if (sources.empty()) {
        std::fill_n(row, s.out[2], bias);
        continue;
      }
      if (one_each && sources.size() == 1) {
        for (std::int64_t f = 0; f < count; ++f) phases[f] = product(sources[0], f);
        k.weave(phases, stride, bias, row, s.out[2]);
        continue;
      }
      std::fill_n(lines, count * line, 0.0F);
      for (std::int64_t f = 0; f < count; ++f) phases[f] = lines + f * line;
      for (const Source& of : sources) {
        for (std::int64_t kx = 0; kx < s.kernel[2]; ++kx) {
          const std::int64_t first = kx * s.dilation[2] - s.pad[2], q = floor_div(first, stride);
          const Range r = inside(first, stride, s.in[2], s.out[2]);
          if (r.end > r.begin)
            k.add_to(product(of, kx) + r.begin, lines + (first - q * stride) * line + q + r.begin, r.end - r.begin);
        }
      }
      k.weave(phases, stride, bias, row, s.out[2]);
    }
  }
  if (act.op != Unary::none) elementwise_kernels().unary(act, y, y, volume(s.out));
}

// --- sums of whole planes ------------------------------------------------------------------------------------------------------

// If every phase of the results has the extents of the input, a tap's products are added to a phase at one distance from their
// place, whole planes at a time; masks leave out what does not belong to the same row and column. Row by row, a quarter of the
// time of small images went into the sums.
bool sums_planes(const ConvShape& s) {
  constexpr std::int64_t kMostPixels = 4096, kMostPhases = 16;
  if (s.in[0] != 1 || s.kernel[0] != 1 || s.out[0] != 1 || s.pad[0] != 0) return false;
  for (int a = 1; a < 3; ++a) {
    if (s.out[a] != s.in[a] * s.stride[a]) return false;
  }
  return volume(s.in) <= kMostPixels && s.stride[1] * s.stride[2] <= kMostPhases && volume(s.kernel) > s.stride[1] * s.stride[2];
}

// The distance of input positions from places in phase f, for tap k; false if the tap is of another phase or reads only what is
// outside.
bool distance_of(const ConvShape& s, int axis, std::int64_t f, std::int64_t k, std::int64_t& distance) {
  const std::int64_t at = f + s.pad[axis] - k * s.dilation[axis];
  distance = floor_div(at, s.stride[axis]);
  return at == distance * s.stride[axis] && -s.in[axis] < distance && distance < s.in[axis];
}

// Room around the products for elements that masks leave out.
std::int64_t plane_slack(const ConvShape& s) {
  return sums_planes(s) ? round_up(volume(s.in) + 2 * conv_kernels().lanes, 16) : 0;
}

struct PlaneSums {
  std::vector<std::uint32_t> masks;
  std::vector<MaskedTap> taps;
  std::vector<std::int64_t> first;  // tap of each phase, and their number
  std::int64_t line;                // floats of a phase
};

// Adds the mask of places whose input positions are inside.
void add_mask(const ConvShape& s, std::int64_t dy, std::int64_t dx, std::vector<std::uint32_t>& masks, std::int64_t line) {
  const std::int64_t width = s.in[2];
  masks.resize(masks.size() + to_size(line));
  std::uint32_t* const mask = masks.data() + masks.size() - line;
  for (std::int64_t y = std::max<std::int64_t>(0, -dy); y < std::min(s.in[1], s.in[1] - dy); ++y) {
    const std::int64_t begin = std::max<std::int64_t>(0, -dx), end = std::min(width, width - dx);
    std::fill(mask + y * width + begin, mask + y * width + end, ~0U);
  }
}

// `plane`: distance between the products of neighbouring taps.
PlaneSums plane_sums(const ConvShape& s, std::int64_t plane) {
  PlaneSums p;
  p.line = round_up(volume(s.in), conv_kernels().lanes);
  std::vector<std::pair<std::int64_t, std::int64_t>> known;
  std::vector<std::size_t> mask_of;
  for (std::int64_t f = 0; f < s.stride[1] * s.stride[2]; ++f) {
    p.first.push_back(static_cast<std::int64_t>(p.taps.size()));
    for (std::int64_t k = 0; k < volume(s.kernel); ++k) {
      std::int64_t dy = 0, dx = 0;
      if (!distance_of(s, 1, f / s.stride[2], k / s.kernel[2], dy) || !distance_of(s, 2, f % s.stride[2], k % s.kernel[2], dx))
        continue;
      const auto same = std::find(known.begin(), known.end(), std::pair{dy, dx});
      mask_of.push_back(static_cast<std::size_t>(same - known.begin()));
      if (same == known.end()) {
        known.emplace_back(dy, dx);
        add_mask(s, dy, dx, p.masks, p.line);
      }
      p.taps.push_back({k * plane + dy * s.in[2] + dx, nullptr});
    }
  }
  p.first.push_back(static_cast<std::int64_t>(p.taps.size()));
  for (std::size_t i = 0; i < p.taps.size(); ++i) p.taps[i].mask = p.masks.data() + mask_of[i] * to_size(p.line);
  return p;
}

// One output channel. `lines`: room for all phases.
void put_planes(const ConvShape& s, const PlaneSums& p, const float* columns, float bias, const UnarySpec& act, float* y,
                float* lines, const float** rows) {
  for (std::int64_t f = 0; f < s.stride[1] * s.stride[2]; ++f) {
    const std::int64_t first = p.first[to_size(f)], count = p.first[to_size(f + 1)] - first;
    conv_kernels().masked_sum(columns, p.taps.data() + first, count, lines + f * p.line, volume(s.in));
  }
  weave_phases(s, lines, p.line, s.out[1], bias, act, y, rows);
}

// Number of images whose products are computed together: few pixels do not fill register tiles.
std::int64_t images_together(const ConvShape& s) {
  constexpr std::int64_t kColumns = 256, kFloats = 1 << 20;
  const std::int64_t n = std::max<std::int64_t>(1, volume(s.in)), channels = std::max(s.out_channels, s.in_channels) / s.groups;
  const std::int64_t fit = kFloats / std::max<std::int64_t>(1, n * channels * volume(s.kernel));
  return std::clamp<std::int64_t>(std::min(kColumns / n, fit), 1, std::max<std::int64_t>(1, s.batch));
}

// Puts several images side by side: [channels of a group][image][pixel].
void put_together(const ConvShape& s, const float* x, std::int64_t group, std::int64_t images, float* out) {
  const std::int64_t k = s.in_channels / s.groups, n = volume(s.in);
  parallel_for(k, std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, images * n)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t c = begin; c < end; ++c) {
                   for (std::int64_t i = 0; i < images; ++i)
                     std::copy_n(x + ((i * s.groups + group) * k + c) * n, n, out + (c * images + i) * n);
                 }
               });
}

struct Sums {
  const float* columns;  // [output channel of the group][tap][image][pixel]
  const float* bias;
  UnarySpec act;
  std::int64_t images;
};

// Adds the products of `from.images` images up, and stores them from y on.
void put_sums(const ConvShape& s, const Sums& from, std::int64_t group, float* y) {
  const std::int64_t channels = s.out_channels / s.groups, n = volume(s.in), plane = volume(s.out);
  const std::int64_t line = (s.out[2] + s.stride[2] - 1) / s.stride[2], per_channel = volume(s.kernel) * n;
  const bool planes = sums_planes(s);
  const PlaneSums sums = planes ? plane_sums(s, from.images * n) : PlaneSums{};
  const std::int64_t room = planes ? s.stride[1] * s.stride[2] * sums.line : std::min(s.stride[2], s.out[2]) * line;
  parallel_for(channels * from.images, std::max<std::int64_t>(1, 32768 / std::max<std::int64_t>(1, per_channel)),
               [&](std::int64_t begin, std::int64_t end) {
                 float* lines = thread_scratch(2, to_size(room));
                 std::vector<const float*> phases(static_cast<std::size_t>(std::min(s.stride[2], s.out[2])));
                 std::vector<Source> sources;
                 for (std::int64_t i = begin; i < end; ++i) {
                   const std::int64_t image = i / channels, c = i % channels;
                   const float* const columns = from.columns + c * per_channel * from.images + image * n;
                   const float b = from.bias != nullptr ? from.bias[group * channels + c] : 0.0F;
                   float* const out = y + ((image * s.groups + group) * channels + c) * plane;
                   if (planes) {
                     put_planes(s, sums, columns, b, from.act, out, lines, phases.data());
                   } else {
                     put_channel(s, columns, from.images * n, b, from.act, out, lines, line, phases.data(), sources);
                   }
                 }
               });
}

// Without padding, windows side by side have no sums: each row of the input gives rows of results of its own. A few rows at a
// time, products are in the second-level cache when they are put in their places.
bool sides_meet(const ConvShape& s) {
  if (volume(s.in) == 0 || s.kernel[0] != 1 || s.in[0] != 1 || s.out[0] != 1 || s.pad[0] != 0) return false;
  for (int a = 1; a < 3; ++a) {
    const bool meets = s.kernel[a] == s.stride[a] && s.dilation[a] == 1 && s.pad[a] == 0 && s.out[a] == s.in[a] * s.stride[a];
    if (!meets) return false;
  }
  return true;
}

// Rows of the input whose products are computed together: 256 KB of products, with little of the last panel empty.
std::int64_t rows_together(const ConvShape& s) {
  constexpr std::int64_t kFloats = 64 * 1024, kPanel = 32;
  const std::int64_t width = s.in[2], most = kFloats / (s.out_channels / s.groups * volume(s.kernel) * width);
  if (most >= s.in[1] || most * width < 2 * kPanel) return s.in[1];
  std::int64_t best = most;
  for (std::int64_t rows = most; 2 * rows >= most && rows * width >= 2 * kPanel; --rows) {
    const auto empty = [&](std::int64_t n) {
      return static_cast<double>(round_up(n * width, kPanel)) / static_cast<double>(n * width);
    };
    if (empty(rows) < empty(best)) best = rows;
  }
  return best;
}

// The results of `rows` input rows from `first` on, whose products are [channel][tap][row]. `bias` (may be null) and `y`: from
// the group's first channel on.
void put_rows(const ConvShape& s, const float* products, const float* bias, const UnarySpec& act, std::int64_t first,
              std::int64_t rows, float* y) {
  const std::int64_t channels = s.out_channels / s.groups, plane = rows * s.in[2];
  std::vector<const float*> phases(to_size(s.stride[2]));
  for (std::int64_t c = 0; c < channels; ++c, products += volume(s.kernel) * plane) {
    float* const out = y + c * volume(s.out) + first * s.stride[1] * s.out[2];
    weave_phases(s, products, plane, rows * s.stride[1], bias != nullptr ? bias[c] : 0.0F, act, out, phases.data());
  }
}

// Each thread has rows of its own, if there are enough for all.
bool pays_by_rows(const ConvShape& s) {
  if (!sides_meet(s)) return false;
  const std::int64_t parts = up_div(s.in[1], rows_together(s)), threads = current_pool().threads();
  return parts > 1 && s.batch * s.groups * parts >= 2 * threads;
}

void by_rows(const ConvShape& s, const float* x, const float* packed, const float* bias, const UnarySpec& act, float* y) {
  const std::int64_t some = rows_together(s), parts = up_div(s.in[1], some), n = volume(s.in);
  const std::int64_t channels = s.out_channels / s.groups;
  parallel_for(s.batch * s.groups * parts, 1, [&](std::int64_t begin, std::int64_t end) {
    GemmArgs g;
    g.m = channels * volume(s.kernel);
    g.k = s.in_channels / s.groups;
    g.ldb = n;
    g.c = thread_scratch(3, to_size(g.m * some * s.in[2]));
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t image = i / parts, group = image % s.groups, row = i % parts * some;
      const std::int64_t rows = std::min(some, s.in[1] - row);
      g.packed_a = packed + group * g.m * g.k;
      g.n = g.ldc = rows * s.in[2];
      g.b = x + image * g.k * n + row * s.in[2];
      gemm_block(gemm_kernels(), g, nullptr, 0, g.m, 0, g.n);
      put_rows(s, g.c, bias != nullptr ? bias + group * channels : nullptr, act, row, rows, y + image * channels * volume(s.out));
    }
  });
}

void with_gemm(const ConvShape& s, const float* x, const float* packed, const float* bias, const UnarySpec& act, float* y,
               float* workspace) {
  float* const columns = workspace + plane_slack(s);
  const std::int64_t k = s.in_channels / s.groups;
  const std::int64_t m = s.out_channels / s.groups * volume(s.kernel);
  const std::int64_t n = volume(s.in), some = images_together(s);
  float* const together = columns + m * n * some + plane_slack(s);
  for (std::int64_t image = 0; image < s.batch; image += some) {
    const std::int64_t images = std::min(some, s.batch - image);
    const float* const from = x + image * s.in_channels * n;
    for (std::int64_t group = 0; group < s.groups; ++group) {
      if (images > 1) put_together(s, from, group, images, together);
      GemmArgs g;
      g.m = m;
      g.n = n * images;
      g.k = k;
      g.packed_a = packed + group * m * k;
      g.b = images > 1 ? together : from + group * k * n;
      g.ldb = g.n;
      g.c = columns;
      g.ldc = g.n;
      gemm_f32(g);
      put_sums(s, {columns, bias, act, images}, group, y + image * s.out_channels * volume(s.out));
    }
  }
}

// --- one input channel per group -----------------------------------------------------------------------------------------------

// Rows of the input with zeros around them, so that each phase of a row of results is a sum of their shifted pieces.
struct Padded {
  std::int64_t left, width;
  std::int64_t line;  // of a phase, whole vectors
};

// The input element from which phase f starts for tap kx; false if that is not a whole number of steps.
bool shift_of(const ConvShape& s, std::int64_t f, std::int64_t kx, std::int64_t& shift) {
  const std::int64_t at = f + s.pad[2] - kx * s.dilation[2];
  shift = floor_div(at, s.stride[2]);
  return at == shift * s.stride[2];
}

Padded padded_rows(const ConvShape& s) {
  const std::int64_t lanes = conv_kernels().lanes;
  Padded p{0, s.in[2], ((s.out[2] + s.stride[2] - 1) / s.stride[2] + lanes - 1) / lanes * lanes};
  std::int64_t most = 0;
  for (std::int64_t f : {std::int64_t{0}, s.stride[2] - 1}) {
    for (std::int64_t kx : {std::int64_t{0}, s.kernel[2] - 1}) {
      const std::int64_t shift = floor_div(f + s.pad[2] - kx * s.dilation[2], s.stride[2]);
      p.left = std::max(p.left, -shift);
      most = std::max(most, shift);
    }
  }
  p.width = std::max(p.left + s.in[2], p.left + most + p.line) + lanes;
  return p;
}

constexpr std::int64_t kMostTaps = 128;
constexpr std::int64_t kMostFloats = 256 * 1024;  // of padded rows

bool is_depthwise(const ConvShape& s) {
  if (s.in_channels != s.groups || s.in[0] != 1 || s.kernel[0] != 1 || s.out[0] != 1 || s.pad[0] != 0) return false;
  if (s.kernel[1] * s.kernel[2] > kMostTaps || s.stride[2] > kMostTaps || s.in[1] > kMostFloats) return false;
  if (s.dilation[2] > kMostFloats || s.pad[2] > kMostFloats || s.pad[2] < -kMostFloats) return false;
  const Padded p = padded_rows(s);
  return p.width <= kMostFloats && s.in[1] * p.width <= kMostFloats && s.stride[2] * p.line <= kMostFloats;
}

void depthwise(const ConvShape& s, const float* x, const float* weights, const float* bias, const UnarySpec& act, float* y) {
  const ConvKernels& k = conv_kernels();
  const Padded p = padded_rows(s);
  const std::int64_t multiplier = s.out_channels / s.groups, stride = s.stride[2], area = s.kernel[1] * s.kernel[2];
  const std::int64_t in_plane = s.in[1] * s.in[2], out_plane = s.out[1] * s.out[2];
  const std::int64_t rows_floats = s.in[1] * p.width + k.lanes;
  const std::int64_t work = std::max<std::int64_t>(1, out_plane * multiplier * area / (s.stride[1] * stride));
  parallel_for(s.batch * s.groups, std::max<std::int64_t>(1, 60000 / work), [&](std::int64_t begin, std::int64_t end) {
    float* const rows = thread_scratch(2, static_cast<std::size_t>(rows_floats + stride * p.line));
    float* const lines = rows + rows_floats;
    std::vector<const float*> phases;
    for (std::int64_t f = 0; f < stride; ++f) phases.push_back(lines + f * p.line);
    std::vector<Source> sources;
    ConvTap taps[kMostTaps];
    for (std::int64_t i = begin; i < end; ++i) {
      k.split_rows(x + i * in_plane, s.in[1], s.in[2], p.left, 1, p.width, rows);
      for (std::int64_t mul = 0; mul < multiplier; ++mul) {
        const std::int64_t channel = i % s.groups * multiplier + mul;
        const float* const w = weights + channel * area;
        float* const out = y + (i * multiplier + mul) * out_plane;
        for (std::int64_t oy = 0; oy < s.out[1]; ++oy) {
          sources_of(s, 0, oy, sources);
          for (std::int64_t f = 0; f < stride; ++f) {
            std::int64_t count = 0, shift = 0;
            for (const Source& of : sources) {
              for (std::int64_t kx = 0; kx < s.kernel[2]; ++kx) {
                if (!shift_of(s, f, kx, shift)) continue;
                taps[count++] = {rows + of.row * p.width + p.left + shift, w[of.tap * s.kernel[2] + kx]};
              }
            }
            k.taps(taps, count, 0.0F, nullptr, {}, lines + f * p.line, p.line);
          }
          k.weave(phases.data(), stride, bias != nullptr ? bias[channel] : 0.0F, out + oy * s.out[2], s.out[2]);
        }
        if (act.op != Unary::none) elementwise_kernels().unary(act, out, out, out_plane);
      }
    }
  });
}

}  // namespace

void weave_phases(const ConvShape& s, const float* phases, std::int64_t step, std::int64_t rows, float bias, const UnarySpec& act,
                  float* y, const float** sources) {
  const std::int64_t height = s.stride[1], width = s.stride[2];
  for (std::int64_t oy = 0; oy < rows; ++oy) {
    for (std::int64_t f = 0; f < width; ++f) sources[f] = phases + (oy % height * width + f) * step + oy / height * s.in[2];
    conv_kernels().weave(sources, width, bias, y + oy * s.out[2], s.out[2]);
  }
  if (act.op != Unary::none) elementwise_kernels().unary(act, y, y, rows * s.out[2]);
}

std::size_t conv_transpose_packed_bytes(const ConvShape& s) {
  return static_cast<std::size_t>(s.in_channels * (s.out_channels / s.groups) * volume(s.kernel)) * sizeof(float);
}

// With one input channel per group, both orders are the same.
void conv_transpose_pack_f32(const ConvShape& s, const void* weights, float* packed) {
  const std::int64_t k = s.in_channels / s.groups;
  const std::int64_t m = s.out_channels / s.groups * volume(s.kernel);
  if (k == 1) {
    std::memcpy(packed, weights, conv_transpose_packed_bytes(s));
    return;
  }
  for (std::int64_t g = 0; g < s.groups; ++g) {
    pack_a_f32(static_cast<const char*>(weights) + g * k * m * 4, m, true, m, k, 1.0F, packed + g * k * m);
  }
}

std::size_t conv_transpose_workspace_bytes(const ConvShape& s) {
  if (is_depthwise(s)) return 0;
  const std::int64_t some = images_together(s), together = some > 1 ? s.in_channels / s.groups : 0;
  const std::int64_t products = (s.out_channels / s.groups * volume(s.kernel) + together) * volume(s.in) * some;
  return to_size(products + 2 * plane_slack(s)) * sizeof(float);
}

void conv_transpose_f32(const ConvShape& s, const float* x, const float* packed, const float* bias, const UnarySpec& act,
                        float* y, void* workspace) {
  if (is_depthwise(s)) return depthwise(s, x, packed, bias, act, y);
  if (pays_by_rows(s)) return by_rows(s, x, packed, bias, act, y);
  with_gemm(s, x, packed, bias, act, y, static_cast<float*>(workspace));
}

}  // namespace sdx::cpu
