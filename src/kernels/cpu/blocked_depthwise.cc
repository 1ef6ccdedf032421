#include "base/thread_pool.h"
#include "kernels/cpu/blocked.h"
#include "kernels/cpu/blocked_internal.h"
#include "kernels/cpu/blocked_kernels.h"
#include "kernels/cpu/elementwise_kernels.h"
#include "kernels/cpu/gemm_kernels.h"

namespace sdx::cpu {
namespace {

struct Job {
  const BlockedKernels* k;
  const ConvShape* s;
  const float* x;
  const float* packed;
  const float* residual;
  UnarySpec act;
  Bounds bounds;
  float* y;
  Span columns;  // outputs whose windows lie inside the rows
  bool by_rows;  // these are done four at a time
  bool one_tap;  // each output is its input's pixel times a factor
};

// Output columns [from, to) of row oy, one window at a time.
void run_pixels(const Job& j, const float* x, const float* w, const float* bias, float lo, float hi, std::int64_t oy,
                std::int64_t from, std::int64_t to, float* row) {
  const ConvShape& s = *j.s;
  const std::int64_t c = j.k->block;
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
    j.k->depthwise_pixel(p);
  }
}

// Rows [y0, y1) of one block of channels of one image. `zeros`: a row of them; `sums`: room for a row of results.
void run_band(const Job& j, std::int64_t plane, std::int64_t y0, std::int64_t y1, const float* zeros, float* sums) {
  const ConvShape& s = *j.s;
  const std::int64_t c = j.k->block;
  const std::int64_t blocks = up_div(s.in_channels, c);
  const std::int64_t taps = s.kernel[1] * s.kernel[2];
  const float* x = j.x + plane * s.in[1] * s.in[2] * c;
  const float* w = j.packed + plane % blocks * taps * c;
  const float* bias = j.packed + blocks * taps * c + plane % blocks * c;
  const float inf = std::numeric_limits<float>::infinity();
  // What is bounded waits for the residual, which may lie where the results go.
  const float lo = j.residual != nullptr ? -inf : j.bounds.lo;
  const float hi = j.residual != nullptr ? inf : j.bounds.hi;
  for (std::int64_t oy = y0; oy < y1; ++oy) {
    const std::int64_t at = (plane * s.out[1] + oy) * s.out[2] * c;
    float* row = j.residual != nullptr ? sums : j.y + at;
    if (j.one_tap) j.k->affine(x + oy * s.in[2] * c, w, bias, lo, hi, row, s.out[2]);
    const Span inner = j.by_rows ? j.columns : Span{0, 0};
    if (inner.size() > 0) {
      const float* in[5];
      const std::int64_t ix = inner.begin * s.stride[2] - s.pad[2];
      for (std::int64_t ky = 0; ky < s.kernel[1]; ++ky) {
        const std::int64_t iy = oy * s.stride[1] - s.pad[1] + ky;
        in[ky] = iy < 0 || iy >= s.in[1] ? zeros : x + (iy * s.in[2] + ix) * c;
      }
      DepthwiseRow r{in, s.kernel[1], s.stride[1], w, bias, lo, hi, row + inner.begin * c, inner.size()};
      j.k->depthwise_row(r);
      run_pixels(j, x, w, bias, lo, hi, oy, 0, inner.begin, row);
      run_pixels(j, x, w, bias, lo, hi, oy, inner.end, s.out[2], row);
    } else if (!j.one_tap) {
      run_pixels(j, x, w, bias, lo, hi, oy, 0, s.out[2], row);
    }
    if (j.residual != nullptr) j.k->add_clip(row, j.residual + at, j.bounds.lo, j.bounds.hi, j.y + at, s.out[2] * c);
  }
  if (j.bounds.after) {
    float* first = j.y + (plane * s.out[1] + y0) * s.out[2] * c;
    elementwise_kernels().unary(j.act, first, first, (y1 - y0) * s.out[2] * c);
  }
}

}  // namespace

void conv_blocked_depthwise(const ConvShape& s, const float* x, const float* packed, const float* residual, const UnarySpec& act,
                            float* y) {
  const BlockedKernels& k = blocked_kernels();
  Job j{&k, &s, x, packed, residual, act, Bounds(act), y, whole_windows(s, 2), false, pointwise(s)};
  j.by_rows = (s.kernel[1] == 3 || s.kernel[1] == 5) && s.kernel[2] == s.kernel[1] && s.stride[1] == s.stride[2] &&
              s.stride[1] <= 2 && s.dilation[1] == 1 && s.dilation[2] == 1;
  const std::int64_t planes = s.batch * up_div(s.in_channels, k.block);
  const std::int64_t row_work = std::max<std::int64_t>(1, s.out[2] * k.block * s.kernel[1] * s.kernel[2]);
  const std::int64_t fit = std::max<std::int64_t>(1, 200000 / row_work);
  const Cuts bands(s.out[1], std::min(fit, s.out[1]));
  const std::int64_t zero_floats = (std::max<std::int64_t>(s.in[2], 1) + s.kernel[2]) * k.block;
  const std::int64_t work = row_work * up_div(s.out[1], bands.parts);
  parallel_for(planes * bands.parts, std::max<std::int64_t>(1, 100000 / work), [&](std::int64_t begin, std::int64_t end) {
    float* zeros = thread_scratch(2, static_cast<std::size_t>(zero_floats + s.out[2] * k.block));
    std::fill(zeros, zeros + zero_floats, 0.0F);
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t band = i % bands.parts;
      run_band(j, i / bands.parts, bands.begin(band), bands.begin(band + 1), zeros, zeros + zero_floats);
    }
  });
}

}  // namespace sdx::cpu
