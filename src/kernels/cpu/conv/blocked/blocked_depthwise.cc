#include "kernels/cpu/conv/blocked/blocked_depthwise.h"

#include <array>

#include "base/thread_pool.h"
#include "kernels/cpu/conv/blocked/blocked_channels_simd.h"
#include "kernels/cpu/conv/blocked/blocked_depthwise_simd.h"
#include "kernels/cpu/conv/blocked/blocked_layout.h"
#include "kernels/cpu/conv/blocked/blocked_tasks.h"
#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/conv/conv_windows.h"
#include "kernels/cpu/elementwise/elementwise_simd.h"
#include "kernels/cpu/simd/cuts.h"
#include "kernels/cpu/simd/scratch.h"

namespace sdx::cpu {
namespace {

// Along one axis, the outputs that read the same pixels of a dilated convolution: every d-th one from `first` on, and of the
// input every d-th pixel from `start` on. They are a convolution without dilation.
struct Phase {
  std::int64_t first, outputs, start, inputs, pad;
};
// Of columns, and the outputs whose windows are inside the rows.
struct ColumnPhase {
  Phase phase;
  Span inner;
};
constexpr std::int64_t kMostPhases = 32;  // networks for segmentation dilate by up to 24

struct BlockedDepthwiseArguments {
  const BlockedDepthwiseKernels* k;
  const BlockedChannelsKernels* channels;
  std::int64_t block;
  const ConvShape* s;
  const float* x;
  const float* packed;
  const float* residual;
  UnarySpec act;
  Bounds bounds;
  float* y;
  bool by_rows;                                  // several of these are computed at a time
  bool one_tap;                                  // each output is one input pixel times a factor
  std::array<ColumnPhase, kMostPhases> columns;  // if by_rows, as many as the dilation
};

// Output columns [from, to) of row oy, one window at a time.
void run_pixels(const BlockedDepthwiseArguments& j, const float* x, const float* w, const float* bias, float lo, float hi,
                std::int64_t oy, std::int64_t from, std::int64_t to, float* row) {
  const ConvShape& s = *j.s;
  const std::int64_t c = j.block;
  const Span ky = taps_inside(s, 1, oy);
  for (std::int64_t ox = from; ox < to; ++ox) {
    const Span kx = taps_inside(s, 2, ox);
    const std::int64_t iy = oy * s.stride[1] - s.pad[1] + ky.begin * s.dilation[1];
    const std::int64_t ix = ox * s.stride[2] - s.pad[2] + kx.begin * s.dilation[2];
    DepthwisePixel p;
    p.rows = kx.size() == 0 ? 0 : ky.size();
    p.columns = kx.size();
    if (p.rows > 0) p.x = x + (iy * s.in[2] + ix) * c;
    p.row_step = s.dilation[1] * s.in[2] * c;
    p.tap_step = s.dilation[2] * c;
    p.w = w + (ky.begin * s.kernel[2] + kx.begin) * c;
    p.w_row = s.kernel[2] * c;
    p.bias = bias;
    p.lo = lo;
    p.hi = hi;
    p.y = row + ox * c;
    j.k->pixel(p);
  }
}

Phase phase_of(const ConvShape& s, int axis, Span outputs, std::int64_t i) {
  const std::int64_t d = s.dilation[axis], first = outputs.begin + i;
  const std::int64_t from = first * s.stride[axis] - s.pad[axis];
  if (d == 1) return {first, outputs.end - first, 0, s.in[axis], -from};  // bands are short: no divisions
  const std::int64_t start = (from % d + d) % d;
  const auto every = [&](std::int64_t extent) { return std::max<std::int64_t>(0, up_div(extent, d)); };
  return {first, every(outputs.end - first), start, every(s.in[axis] - start), (start - from) / d};
}

ColumnPhase column_phase(const ConvShape& s, std::int64_t i) {
  const Phase p = phase_of(s, 2, {0, s.out[2]}, i);
  ConvShape line;
  line.in[2] = p.inputs, line.kernel[2] = s.kernel[2], line.stride[2] = s.stride[2], line.pad[2] = p.pad, line.out[2] = p.outputs;
  return {p, whole_windows(line, 2)};
}

// Rows [outputs.begin, outputs.end), of which `rows` is the first.
void run_rows(const BlockedDepthwiseArguments& j, const float* x, const float* w, const float* bias, float lo, float hi,
              Span outputs, float* rows) {
  const ConvShape& s = *j.s;
  const std::int64_t c = j.block, dy = s.dilation[1], dx = s.dilation[2];
  DepthwiseBand b;
  b.kernel = s.kernel[1], b.stride = s.stride[1];
  b.step = dx * c, b.row_step = dy * s.in[2] * c, b.y_step = dy * s.out[2] * c;
  b.w = w, b.bias = bias, b.lo = lo, b.hi = hi;
  for (std::int64_t py = 0; py < std::min(dy, outputs.size()); ++py) {
    const Phase down = phase_of(s, 1, outputs, py);
    b.in_rows = down.inputs, b.pad_row = down.pad, b.rows = down.outputs;
    for (std::int64_t px = 0; px < std::min(dx, s.out[2]); ++px) {
      const auto& [across, inner] = j.columns[static_cast<std::size_t>(px)];
      b.x = x + (down.start * s.in[2] + across.start) * c;
      b.in_columns = across.inputs, b.pad_column = across.pad, b.columns = across.outputs;
      b.inner_begin = inner.begin, b.inner_end = inner.end;
      b.y = rows + ((down.first - outputs.begin) * s.out[2] + across.first) * c;
      j.k->band(b);
    }
  }
}

// After this many floats of results, steps that registers cannot do are done in the first-level cache.
constexpr std::int64_t kNear = 2048;

// Rows [y0, y1) of one block of channels of one image. `sums`: room for a row of results.
void run_band(const BlockedDepthwiseArguments& j, std::int64_t plane, std::int64_t y0, std::int64_t y1, float* sums) {
  const ConvShape& s = *j.s;
  const std::int64_t c = j.block;
  const std::int64_t blocks = up_div(s.in_channels, c);
  const std::int64_t taps = s.kernel[1] * s.kernel[2];
  const float* x = j.x + plane * s.in[1] * s.in[2] * c;
  const float* w = j.packed + plane % blocks * taps * c;
  const float* bias = j.packed + blocks * taps * c + plane % blocks * c;
  const float inf = std::numeric_limits<float>::infinity();
  // Bounds are applied after the residual, which may be stored where the results go.
  const float lo = j.residual != nullptr ? -inf : j.bounds.lo;
  const float hi = j.residual != nullptr ? inf : j.bounds.hi;
  const std::int64_t row_floats = s.out[2] * c;
  const std::int64_t most =
      j.residual != nullptr ? 1 : (j.bounds.after ? std::max<std::int64_t>(1, kNear / row_floats) : y1 - y0);
  for (std::int64_t oy = y0; oy < y1; oy += most) {
    const std::int64_t end = std::min(y1, oy + most), n = (end - oy) * row_floats;
    float* const at = j.y + (plane * s.out[1] + oy) * row_floats;
    float* const rows = j.residual != nullptr ? sums : at;
    if (j.one_tap) {
      j.channels->affine(x + oy * row_floats, w, bias, lo, hi, rows, (end - oy) * s.out[2]);
    } else if (j.by_rows) {
      run_rows(j, x, w, bias, lo, hi, {oy, end}, rows);
    } else {
      for (std::int64_t r = oy; r < end; ++r) run_pixels(j, x, w, bias, lo, hi, r, 0, s.out[2], rows + (r - oy) * row_floats);
    }
    if (j.residual != nullptr) j.channels->add_clip(rows, j.residual + (at - j.y), j.bounds.lo, j.bounds.hi, at, n);
    if (j.bounds.after) elementwise_kernels().unary(j.act, at, at, n);
  }
}

}  // namespace

void conv_blocked_depthwise(const ConvShape& s, const float* x, const float* packed, const float* residual, const UnarySpec& act,
                            float* y) {
  const std::int64_t block = channel_block();
  BlockedDepthwiseArguments j{&blocked_depthwise_kernels(),
                              &blocked_channels_kernels(),
                              block,
                              &s,
                              x,
                              packed,
                              residual,
                              act,
                              Bounds(act),
                              y,
                              false,
                              pointwise(s),
                              {}};
  const bool dense = s.dilation[1] == 1 && s.dilation[2] == 1;
  j.by_rows = (s.kernel[1] == 3 || s.kernel[1] == 5 || s.kernel[1] == 7) && s.kernel[2] == s.kernel[1] &&
              s.stride[1] == s.stride[2] && (s.stride[1] == 1 || (s.stride[1] == 2 && dense)) && s.dilation[2] <= kMostPhases;
  for (std::int64_t i = 0; j.by_rows && i < std::min(s.dilation[2], s.out[2]); ++i) {
    j.columns[static_cast<std::size_t>(i)] = column_phase(s, i);
  }
  const std::int64_t row_work = std::max<std::int64_t>(1, s.out[2] * block * s.kernel[1] * s.kernel[2]);
  const std::int64_t fit = std::max<std::int64_t>(1, 200000 / row_work);
  const RowTasks tasks(s.batch, up_div(s.in_channels, block), s.out[1], s.out[2], std::min(fit, s.out[1]));
  const std::int64_t work = row_work * up_div(s.out[1], tasks.bands);
  parallel_for(tasks.size(), std::max<std::int64_t>(1, 100000 / work), [&](std::int64_t begin, std::int64_t end) {
    float* sums = residual != nullptr ? thread_scratch(2, static_cast<std::size_t>(s.out[2] * block)) : nullptr;
    for (std::int64_t i = begin; i < end; ++i) run_band(j, tasks.plane(i), tasks.begin(i), tasks.end(i), sums);
  });
}

}  // namespace sdx::cpu
