#include "kernels/cpu/rows/norm.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/elementwise/elementwise_simd.h"
#include "kernels/cpu/rows/norm_simd.h"
#include "kernels/cpu/rows/reduce_simd.h"
#include "kernels/cpu/rows/row_tasks.h"

namespace sdx::cpu {
namespace {

// The reference's computation, in double, for when float's range or precision does not suffice.
void divide_in_double(const float* x, float* y, std::int64_t n, std::int64_t step, bool squares) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto v = static_cast<double>(x[i * step]);
    sum += squares ? v * v : std::fabs(v);
  }
  const double by = squares ? std::sqrt(sum) : sum;
  for (std::int64_t i = 0; i < n; ++i) y[i * step] = by == 0 ? 0.0F : static_cast<float>(static_cast<double>(x[i * step]) / by);
}

void lp_row(const float* x, float* y, std::int64_t n, bool squares) {
  const float by = reduce_kernels().row(squares ? Reduce::norm : Reduce::sum_abs, x, n);
  const float inverse = 1.0F / by;
  if (!std::isnormal(by) || !std::isnormal(inverse)) return divide_in_double(x, y, n, 1, squares);
  norm_kernels().affine(x, inverse, 0.0F, y, n);
}

void lp_columns(const float* x, float* y, std::int64_t axis, std::int64_t inner, std::int64_t begin, std::int64_t end,
                bool squares) {
  constexpr std::int64_t kSome = 256;
  float by[kSome], inverse[kSome];
  const ElementwiseKernels& elementwise = elementwise_kernels();
  for (std::int64_t c = begin; c < end; c += kSome) {
    const std::int64_t count = std::min(kSome, end - c);
    reduce_kernels().columns(squares ? Reduce::norm : Reduce::sum_abs, x + c, by, axis, inner, 0, count);
    for (std::int64_t i = 0; i < count; ++i) inverse[i] = 1.0F / by[i];
    for (std::int64_t a = 0; a < axis; ++a) {
      elementwise.binary(Binary::mul, x + a * inner + c, inverse, y + a * inner + c, count);
    }
    for (std::int64_t i = 0; i < count; ++i) {
      if (std::isnormal(by[i]) && std::isnormal(inverse[i])) continue;
      divide_in_double(x + c + i, y + c + i, axis, inner, squares);
    }
  }
}

struct Spread {
  double mean = 0, deviation = 0;
};

Spread spread_in_double(const float* x, std::int64_t slices, std::int64_t step, std::int64_t n) {
  Spread s;
  const auto each = [&](auto&& fn) {
    for (std::int64_t o = 0; o < slices; ++o) {
      for (std::int64_t i = 0; i < n; ++i) fn(static_cast<double>(x[o * step + i]));
    }
  };
  const auto count = static_cast<double>(slices * n);
  each([&](double v) { s.mean += v; });
  s.mean /= count;
  each([&](double v) { s.deviation += (v - s.mean) * (v - s.mean); });
  s.deviation = std::sqrt(s.deviation / count);
  return s;
}

// Mean and variance over `slices` runs of n elements, `step` apart. Runs are equally long, so their means are averaged; the
// variance is the mean of the runs' variances plus the variance of their means.
Spread spread_of(const NormKernels& k, const float* x, std::int64_t slices, std::int64_t step, std::int64_t n) {
  double mean = 0, square = 0, variance = 0;
  for (std::int64_t o = 0; o < slices; ++o) {
    const RowMoments m = k.moments(x + o * step, n);
    const double own = static_cast<double>(m.mean) + static_cast<double>(m.rest);
    // Mean and squares are updated as running values: the mean of squares minus the squared mean would cancel.
    const double by = own - mean;
    mean += by / static_cast<double>(o + 1);
    square += by * (own - mean);
    variance += static_cast<double>(m.variance);
  }
  return {mean, std::sqrt((variance + square) / static_cast<double>(slices))};
}

}  // namespace

void layer_norm_f32(const LayerNormArgs& args, std::int64_t rows, std::int64_t n) {
  if (n <= 0) return;
  const NormKernels& k = norm_kernels();
  parallel_for(rows, grain(n, 16384), [&](std::int64_t b, std::int64_t e) {
    for (std::int64_t i = b; i < e; ++i) k.layer_norm(args, i, n);
  });
}

void channel_affine_f32(const float* x, const float* scale, const float* shift, const UnarySpec& act, float* y,
                        std::int64_t batch, std::int64_t channels, std::int64_t inner) {
  if (inner <= 0) return;
  const NormKernels& k = norm_kernels();
  const ElementwiseKernels& elementwise = elementwise_kernels();
  if (inner == 1) {
    parallel_for(batch, grain(channels, 32768), [&](std::int64_t b, std::int64_t e) {
      for (std::int64_t i = b; i < e; ++i) k.affine_columns(x + i * channels, scale, shift, y + i * channels, channels);
      if (act.op != Unary::none) elementwise.unary(act, y + b * channels, y + b * channels, (e - b) * channels);
    });
    return;
  }
  parallel_for(batch * channels, grain(inner, 32768), [&](std::int64_t b, std::int64_t e) {
    for (std::int64_t i = b; i < e; ++i) {
      float* out = y + i * inner;
      k.affine(x + i * inner, scale[i % channels], shift[i % channels], out, inner);
      if (act.op != Unary::none) elementwise.unary(act, out, out, inner);
    }
  });
}

void group_norm_f32(const float* x, const float* scale, const float* bias, float epsilon, float* y, std::int64_t batch,
                    std::int64_t channels, std::int64_t groups, std::int64_t inner) {
  if (inner <= 0 || channels <= 0 || groups <= 0) return;
  const NormKernels& k = norm_kernels();
  const std::int64_t per_group = channels / groups;
  const std::int64_t n = per_group * inner;
  parallel_for(batch * groups, grain(n, 16384), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const RowMoments m = k.moments(x + i * n, n);
      const float inv = 1.0F / std::sqrt(m.variance + epsilon);
      for (std::int64_t j = 0; j < per_group; ++j) {
        const std::int64_t c = i % groups * per_group + j;
        const float s = scale != nullptr ? scale[c] * inv : inv;
        const float b = bias != nullptr ? bias[c] : 0.0F;
        const float* from = x + i * n + j * inner;
        float* to = y + i * n + j * inner;
        if (m.is_far()) {
          k.centred(from, m, s, b, to, inner);
        } else {
          k.affine(from, s, b - m.mean * s, to, inner);
        }
      }
    }
  });
}

void lrn_f32(const float* x, float* y, std::int64_t batch, std::int64_t channels, std::int64_t inner, std::int64_t size,
             float alpha, float beta, float bias) {
  if (batch <= 0 || channels <= 0 || inner <= 0) return;
  const NormKernels& k = norm_kernels();
  over_columns(batch, channels * 2, inner, 16384, [&](std::int64_t i, std::int64_t b, std::int64_t e) {
    const std::int64_t at = i * channels * inner;
    k.lrn(x + at, y + at, channels, inner, b, e, size, alpha, beta, bias);
  });
}

void lp_norm_f32(const float* x, float* y, std::int64_t outer, std::int64_t axis, std::int64_t inner, bool squares) {
  if (outer <= 0 || axis <= 0 || inner <= 0) return;
  if (inner == 1) {
    parallel_for(outer, grain(axis, 16384), [&](std::int64_t b, std::int64_t e) {
      for (std::int64_t i = b; i < e; ++i) lp_row(x + i * axis, y + i * axis, axis, squares);
    });
    return;
  }
  over_columns(outer, axis, inner, 16384, [&](std::int64_t i, std::int64_t b, std::int64_t e) {
    lp_columns(x + i * axis * inner, y + i * axis * inner, axis, inner, b, e, squares);
  });
}

void mean_variance_norm_f32(const float* x, float* y, std::int64_t outer, std::int64_t groups, std::int64_t inner) {
  if (outer <= 0 || groups <= 0 || inner <= 0) return;
  const NormKernels& k = norm_kernels();
  const std::int64_t step = groups * inner;
  parallel_for(groups, grain(outer * inner, 16384), [&](std::int64_t b, std::int64_t e) {
    for (std::int64_t g = b; g < e; ++g) {
      const float* from = x + g * inner;
      Spread s = spread_of(k, from, outer, step, inner);
      // A group that hardly varies is mostly rounding errors in float; the deviation gets 1e-9 (ONNX
      // MeanVarianceNormalization-9).
      const bool clear = s.deviation >= 0.1 * std::fabs(s.mean) && s.deviation > 1e-15;
      if (!clear) s = spread_in_double(from, outer, step, inner);
      const double inverse = 1.0 / (s.deviation + 1e-9);
      for (std::int64_t o = 0; o < outer; ++o) {
        const float* row = from + o * step;
        float* to = y + g * inner + o * step;
        if (clear) {
          k.affine(row, static_cast<float>(inverse), static_cast<float>(-s.mean * inverse), to, inner);
        } else {
          for (std::int64_t i = 0; i < inner; ++i) to[i] = static_cast<float>((static_cast<double>(row[i]) - s.mean) * inverse);
        }
      }
    }
  });
}

}  // namespace sdx::cpu
