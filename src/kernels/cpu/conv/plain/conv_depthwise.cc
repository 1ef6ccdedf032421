#include "kernels/cpu/conv/plain/conv_depthwise.h"

#include <algorithm>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/conv/plain/conv_depthwise_simd.h"
#include "kernels/cpu/conv/plain/conv_simd.h"
#include "kernels/cpu/elementwise/elementwise_simd.h"
#include "kernels/cpu/simd/cuts.h"
#include "kernels/cpu/simd/scratch.h"

namespace sdx::cpu {
namespace {

// Input rows are copied once into scratch, padded and split by the stride's phases, so that every tap of every output row is
// a contiguous read without bounds checks. The copy is one pass over the input, compared with kernel-size passes of arithmetic.
struct Rows {
  std::int64_t phase_width;
  std::int64_t row_floats;
  std::int64_t band;       // output rows per band
  std::int64_t band_rows;  // input rows that a band needs, per depth slice
  std::int64_t slice;      // floats of a depth slice: the copy of its last row may extend past the row
};

constexpr std::int64_t kBandFloats = 6144;  // 24 KB of input rows, in the first-level cache
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
  if (const int at_once = depthwise_kernels().rows_at_once; r.band < s.out[1] && r.band > at_once) r.band -= r.band % at_once;
  r.band_rows = (r.band - 1) * s.stride[1] + extra;
  r.slice = r.band_rows * r.row_floats + lanes;
  return r;
}

struct DepthwiseArguments {
  const ConvKernels* k;
  const ConvShape* s;
  Rows rows;
  const float* x;  // null: from `bytes`
  const ByteConv* bytes;
  const float* weights;
  const float* bias;
  const float* residual;
  UnarySpec act;
  float* y;
};

// A band of output rows [y0, y1) of depth slice oz of one channel of one image.
struct Band {
  std::int64_t channel;  // image * groups + group
  std::int64_t oz, y0, y1;
};

// Input rows of a band: those of a depth slice are loaded once for all slices of outputs that read them.
struct Slices {
  float* rows;
  std::vector<std::int64_t> held;  // the input slice in each place, -1: none
  std::int64_t channel = -1, y0 = -1;
};

std::int64_t place_of(const ConvShape& s, std::int64_t iz, std::int64_t kz) { return s.dilation[0] == 1 ? iz % s.kernel[0] : kz; }

const float* slice_of(const DepthwiseArguments& job, const Slices& slices, std::int64_t iz, std::int64_t kz) {
  return slices.rows + place_of(*job.s, iz, kz) * job.rows.slice;
}

// All input rows that a band needs. Rows outside the input become zeros, or stay unset if only taps inside are used. `line`: room
// for the rows of one depth slice before they are split.
void load_band(const DepthwiseArguments& job, const Band& b, bool zeros, float* line, Slices& slices) {
  const ConvShape& s = *job.s;
  const Rows& r = job.rows;
  const std::int64_t first = b.y0 * s.stride[1] - s.pad[1];
  const std::int64_t needed = (b.y1 - b.y0 - 1) * s.stride[1] + (s.kernel[1] - 1) * s.dilation[1] + 1;
  const std::int64_t begin = std::clamp<std::int64_t>(-first, 0, needed);
  const std::int64_t end = std::clamp<std::int64_t>(s.in[1] - first, begin, needed);
  if (b.channel != slices.channel || b.y0 != slices.y0) std::fill(slices.held.begin(), slices.held.end(), -1);
  slices.channel = b.channel;
  slices.y0 = b.y0;
  for (std::int64_t kz = 0; kz < s.kernel[0]; ++kz) {
    const std::int64_t iz = b.oz * s.stride[0] - s.pad[0] + kz * s.dilation[0];
    if (iz < 0 || iz >= s.in[0]) continue;
    const std::int64_t place = place_of(s, iz, kz);
    if (slices.held[to_size(place)] == iz) continue;
    slices.held[to_size(place)] = iz;
    float* to = slices.rows + place * r.slice;
    if (end > begin) {
      const std::int64_t at = ((b.channel * s.in[0] + iz) * s.in[1] + first + begin) * s.in[2];
      if (job.x == nullptr) job.bytes->widen(job.bytes->context, at, (end - begin) * s.in[2], line);
      job.k->split_rows(job.x == nullptr ? line : job.x + at, end - begin, s.in[2], s.pad[2], s.stride[2], r.phase_width,
                        to + begin * r.row_floats);
    }
    // Last, since each row's copy may extend into the next rows.
    if (zeros) std::fill_n(to, begin * r.row_floats, 0.0F);
    if (zeros) std::fill_n(to + end * r.row_floats, (needed - end) * r.row_floats, 0.0F);
  }
}

// Any kernel: one output row of the band, tap by tap. `residual` (this row's, may be null) may be y.
void tap_row(const DepthwiseArguments& job, const Band& b, std::int64_t oy, const float* w, float bias, const float* residual,
             float* y, const Slices& slices) {
  const ConvShape& s = *job.s;
  const std::int64_t area = s.kernel[1] * s.kernel[2];
  const std::int64_t first_row = b.y0 * s.stride[1] - s.pad[1];
  ConvTap taps[kTapsAtOnce];
  std::int64_t count = 0;
  bool started = false;
  // Kernels of more than 128 elements run in several passes; the first adds bias and residual, later ones the sums so far.
  const auto flush = [&](bool last) {
    job.k->taps(taps, count, started ? 0.0F : bias, started ? y : residual, last ? job.act : UnarySpec{}, y, s.out[2]);
    started = true;
    count = 0;
  };
  for (std::int64_t kz = 0; kz < s.kernel[0]; ++kz) {
    const std::int64_t iz = b.oz * s.stride[0] - s.pad[0] + kz * s.dilation[0];
    if (iz < 0 || iz >= s.in[0]) continue;
    for (std::int64_t ky = 0; ky < s.kernel[1]; ++ky) {
      const std::int64_t row = (oy - b.y0) * s.stride[1] + ky * s.dilation[1];
      if (first_row + row < 0 || first_row + row >= s.in[1]) continue;
      const float* base = slice_of(job, slices, iz, kz) + row * job.rows.row_floats;
      for (std::int64_t kx = 0; kx < s.kernel[2]; ++kx) {
        if (count == kTapsAtOnce) flush(false);
        const std::int64_t o = kx * s.dilation[2];
        taps[count++] = {base + o % s.stride[2] * job.rows.phase_width + o / s.stride[2], w[kz * area + ky * s.kernel[2] + kx]};
      }
    }
  }
  flush(true);
}

// Windows of 3x3, 5x5 and 7x7 have kernels in which output rows share reads: with a vertical dilation of d, every d-th row does.
bool has_row_kernel(const DepthwiseArguments& job) {
  const ConvShape& s = *job.s;
  return (s.kernel[1] == 3 || s.kernel[1] == 5 || s.kernel[1] == 7) && s.kernel[2] == s.kernel[1] && s.stride[1] <= 2 &&
         (s.dilation[1] == 1 || s.stride[1] == 1);
}

// Whether those kernels can read the input as it is.
bool reads_in_place(const DepthwiseArguments& job) {
  const ConvShape& s = *job.s;
  return has_row_kernel(job) && job.x != nullptr && depthwise_kernels().rows_in_place != nullptr && s.stride[2] == s.stride[1] &&
         (s.dilation[2] == 1 || s.stride[2] == 1);
}

bool in_registers(const UnarySpec& act) { return act.op == Unary::none || act.op == Unary::relu || act.op == Unary::clip; }

// Depth slices whose taps are too many for one pass are added up: the first pass adds the bias, the last applies the function.
void rows_of_band(const DepthwiseArguments& job, const Band& b, const std::int64_t* offset, const float* w, float bias,
                  const Slices& slices, float* y) {
  const ConvShape& s = *job.s;
  const Rows& r = job.rows;
  const std::int64_t step = s.dilation[1], rows = b.y1 - b.y0, area = s.kernel[1] * s.kernel[2];
  DepthwiseRows of{};
  of.k = static_cast<int>(s.kernel[1]);
  of.stride = static_cast<int>(s.stride[1]);
  of.row_step = step * r.row_floats;
  of.y_step = step * s.out[2];
  of.width = s.out[2];
  of.offset = offset;
  of.bias = bias;
  const std::int64_t iz = b.oz * s.stride[0] - s.pad[0], at_once = kDepthwiseTaps / area;
  std::int64_t kz = 0, end = s.kernel[0];
  while (kz < end && iz + kz * s.dilation[0] < 0) ++kz;
  while (kz < end && iz + (end - 1) * s.dilation[0] >= s.in[0]) --end;
  if (kz == end) {
    std::fill_n(y, rows * s.out[2], bias);
    if (in_registers(job.act)) elementwise_kernels().unary(job.act, y, y, rows * s.out[2]);
  }
  const DepthwiseKernels& k = depthwise_kernels();
  const bool in_place = reads_in_place(job);
  if (in_place) {
    of.row_gap = step;
    of.row_step = step * s.in[2];
    of.in_rows = s.in[1];
    of.in_columns = s.in[2];
  }
  const float* in[kDepthwiseTaps];
  for (of.slices = in; kz < end; kz += of.depth) {
    of.depth = static_cast<int>(std::min(at_once, end - kz));
    of.w = w + kz * area;
    for (int i = 0; i < of.depth; ++i) {
      const std::int64_t z = iz + (kz + i) * s.dilation[0];
      in[i] = in_place ? job.x + (b.channel * s.in[0] + z) * s.in[1] * s.in[2] : slice_of(job, slices, z, kz + i);
    }
    if (kz + of.depth == end && in_registers(job.act)) of.act = job.act;
    for (std::int64_t first = 0; first < std::min(step, rows); ++first) {
      of.first_row = b.y0 * s.stride[1] - s.pad[1] + first;
      of.at = in_place ? of.first_row * s.in[2] : first * r.row_floats;
      (in_place ? k.rows_in_place : k.rows)(of, y + first * s.out[2], (rows - first + step - 1) / step);
    }
    of.add = true;
    of.bias = 0;
  }
}

// Room for the input rows of a band before they are split.
std::int64_t job_line(const DepthwiseArguments& job) {
  return job.x != nullptr ? 0 : job.rows.band_rows * job.s->in[2] + job.k->lanes;
}

void run_band(const DepthwiseArguments& job, const Band& b, bool by_rows, Slices& slices) {
  const ConvShape& s = *job.s;
  const Rows& r = job.rows;
  const std::int64_t multiplier = s.out_channels / s.groups;
  const std::int64_t plane = s.out[0] * s.out[1] * s.out[2];
  const std::int64_t taps = s.kernel[0] * s.kernel[1] * s.kernel[2];
  const std::int64_t n = (b.y1 - b.y0) * s.out[2];
  float* line = slices.rows + r.slice * s.kernel[0];
  float* sums = line + job_line(job);
  const bool in_place = reads_in_place(job);
  if (!in_place) load_band(job, b, by_rows, line, slices);
  std::int64_t offset[7];
  for (std::int64_t i = 0; i < std::min<std::int64_t>(7, s.kernel[2]); ++i) {
    const std::int64_t o = i * s.dilation[2];
    offset[i] = in_place ? o - s.pad[2] : o % s.stride[2] * r.phase_width + o / s.stride[2];
  }
  for (std::int64_t mul = 0; mul < multiplier; ++mul) {
    const std::int64_t channel = b.channel % s.groups * multiplier + mul;
    const std::int64_t at = (b.channel * multiplier + mul) * plane + (b.oz * s.out[1] + b.y0) * s.out[2];
    float* out = job.y != nullptr ? job.y + at : sums;
    const float* w = job.weights + channel * taps;
    const float bias = job.bias != nullptr ? job.bias[channel] : 0.0F;
    if (by_rows && job.residual != nullptr) {
      // Apart from y, which may be the residual.
      DepthwiseArguments plain = job;
      plain.act = {};
      rows_of_band(plain, b, offset, w, bias, slices, sums);
      elementwise_kernels().bias_act(sums, 0.0F, job.residual + at, job.act, out, n);
    } else if (by_rows) {
      rows_of_band(job, b, offset, w, bias, slices, out);
      if (!in_registers(job.act)) elementwise_kernels().unary(job.act, out, out, n);
    } else {
      for (std::int64_t oy = b.y0; oy < b.y1; ++oy) {
        const std::int64_t row = (oy - b.y0) * s.out[2];
        tap_row(job, b, oy, w, bias, job.residual != nullptr ? job.residual + at + row : nullptr, out + row, slices);
      }
    }
    if (job.y == nullptr) job.bytes->narrow(job.bytes->context, sums, n, channel, at);
  }
}

void run(DepthwiseArguments job) {
  const ConvShape& s = *job.s;
  if (s.out[0] <= 0 || s.out[1] <= 0 || s.out[2] <= 0) return;
  job.rows = plan_rows(s, job.k->lanes);
  const Rows& r = job.rows;
  const bool by_rows = has_row_kernel(job);
  const std::int64_t taps = s.kernel[0] * s.kernel[1] * s.kernel[2];
  const std::int64_t bands = (s.out[1] + r.band - 1) / r.band;
  const std::int64_t per_channel = s.out[0] * bands;
  const std::int64_t work = std::max<std::int64_t>(1, r.band * s.out[2] * taps * (s.out_channels / s.groups));
  const std::int64_t floats = r.slice * s.kernel[0] + job_line(job) + r.band * s.out[2] + 3 * job.k->lanes;
  parallel_for(
      s.batch * s.groups * per_channel, std::max<std::int64_t>(1, 60000 / work), [&](std::int64_t begin, std::int64_t end) {
        Slices slices{thread_scratch(2, static_cast<std::size_t>(floats)), std::vector<std::int64_t>(to_size(s.kernel[0]), -1)};
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t y0 = i % per_channel / s.out[0] * r.band;
          run_band(job, {i / per_channel, i % s.out[0], y0, std::min(s.out[1], y0 + r.band)}, by_rows, slices);
        }
      });
}

}  // namespace

void conv_depthwise(const ConvShape& s, const float* x, const float* weights, const float* bias, const float* residual,
                    const UnarySpec& act, float* y) {
  run({&conv_kernels(), &s, {}, x, nullptr, weights, bias, residual, act, y});
}

void conv_depthwise_bytes(const ConvShape& s, const ByteConv& bytes, const float* weights) {
  run({&conv_kernels(), &s, {}, nullptr, &bytes, weights, nullptr, nullptr, {}, nullptr});
}

}  // namespace sdx::cpu
