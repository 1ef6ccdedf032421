#include "kernels/cpu/rows/doubles.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/elements/functions.h"
#include "kernels/cpu/order/folds_simd.h"
#include "kernels/cpu/rows/row_tasks.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kGrain = 8192;
// The largest number of columns that are taken side by side: strips of 256 KB stay in the second-level cache.
constexpr std::int64_t kStrip = 128;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The functions that rows are made of. Each goes over a row that is in cache.
struct Rows {
  const Fold& adding = sums(DataType::float64);
  const Fold& largest = extremes(DataType::float64, true);
  UnaryRow square = unary_row(UnaryFn::square, DataType::float64), abs = unary_row(UnaryFn::abs, DataType::float64);
  UnaryRow exp = unary_row(UnaryFn::exp, DataType::float64);
  BinaryRow add = binary_row(BinaryFn::add, DataType::float64), subtract = binary_row(BinaryFn::subtract, DataType::float64);
  BinaryRow multiply = binary_row(BinaryFn::multiply, DataType::float64),
            divide = binary_row(BinaryFn::divide, DataType::float64);

  double sum(const double* x, std::int64_t n) const {
    double y = 0;
    adding.row(x, n, &y);
    return y;
  }
  // Returns the sum of fn(x[i]).
  double sum_of(UnaryRow fn, const double* x, std::int64_t n) const {
    constexpr std::int64_t kSome = 512;
    double buffer[kSome], total = 0;
    for (std::int64_t i = 0; i < n; i += kSome) {
      const std::int64_t some = std::min(kSome, n - i);
      fn(x + i, buffer, some);
      total += sum(buffer, some);
    }
    return total;
  }
  // Applies a function to a row and one number.
  static void by(BinaryRow fn, const double* x, double number, double* y, std::int64_t n) { fn(x, 1, &number, 0, y, n); }
};

// Calls row(first element) for each row of [outer, n], or columns(first element, how many) for [outer, n, inner].
template <class R, class C>
void over(std::int64_t outer, std::int64_t n, std::int64_t inner, const R& row, const C& columns) {
  if (outer <= 0 || n <= 0 || inner <= 0) return;
  if (inner == 1) {
    return parallel_for(outer, grain(n, kGrain), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t o = begin; o < end; ++o) row(o * n);
    });
  }
  const std::int64_t strip = std::min(inner, std::clamp<std::int64_t>(32768 / n, 16, kStrip)),
                     strips = (inner + strip - 1) / strip;
  parallel_for(outer * strips, grain(n * strip, kGrain), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      const std::int64_t column = t % strips * strip;
      columns(t / strips * n * inner + column, std::min(strip, inner - column));
    }
  });
}

void softmax_row(const Rows& r, const double* x, double* y, std::int64_t n, bool log) {
  double top = 0;
  r.largest.row(x, n, &top);
  Rows::by(r.subtract, x, top, y, n);
  if (log) return Rows::by(r.subtract, y, std::log(r.sum_of(r.exp, y, n)), y, n);
  r.exp(y, y, n);
  Rows::by(r.multiply, y, 1 / r.sum(y, n), y, n);
}

void softmax_columns(const Rows& r, const double* x, double* y, std::int64_t axis, std::int64_t inner, std::int64_t width,
                     bool log) {
  double top[kStrip], total[kStrip] = {}, buffer[kStrip];
  std::copy_n(x, width, top);
  for (std::int64_t a = 1; a < axis; ++a) r.largest.merge(x + a * inner, width, top);
  for (std::int64_t a = 0; a < axis; ++a) {
    double* const row = y + a * inner;
    r.subtract(x + a * inner, 1, top, 1, row, width);
    r.exp(row, log ? buffer : row, width);
    r.adding.merge(log ? buffer : row, width, total);
  }
  for (std::int64_t i = 0; i < width; ++i) total[i] = log ? std::log(total[i]) : 1 / total[i];
  for (std::int64_t a = 0; a < axis; ++a) (log ? r.subtract : r.multiply)(y + a * inner, 1, total, 1, y + a * inner, width);
}

// Computes x / norm, or 0 if the norm is 0.
void lp_row(const Rows& r, const double* x, double* y, std::int64_t n, bool squares) {
  const double sum = r.sum_of(squares ? r.square : r.abs, x, n), norm = squares ? std::sqrt(sum) : sum;
  Rows::by(r.divide, x, norm == 0 ? kInfinity : norm, y, n);
}

void lp_columns(const Rows& r, const double* x, double* y, std::int64_t axis, std::int64_t inner, std::int64_t width,
                bool squares) {
  double norm[kStrip] = {}, buffer[kStrip];
  for (std::int64_t a = 0; a < axis; ++a) {
    (squares ? r.square : r.abs)(x + a * inner, buffer, width);
    r.adding.merge(buffer, width, norm);
  }
  for (std::int64_t i = 0; i < width; ++i) {
    if (squares) norm[i] = std::sqrt(norm[i]);
    if (norm[i] == 0) norm[i] = kInfinity;
  }
  for (std::int64_t a = 0; a < axis; ++a) r.divide(x + a * inner, 1, norm, 1, y + a * inner, width);
}

// Writes x without its mean to y, and the mean to *mean_out unless that is null. Returns the variance.
double centre(const Rows& r, const double* x, double* y, std::int64_t n, double* mean_out = nullptr) {
  const auto count = static_cast<double>(n);
  const double mean = r.sum(x, n) / count;
  if (mean_out != nullptr) *mean_out = mean;
  Rows::by(r.subtract, x, mean, y, n);
  return r.sum_of(r.square, y, n) / count;
}

void layer_norm_row(const Rows& r, const LayerNormArgsOf<double>& a, std::int64_t row, std::int64_t n) {
  const double* x = a.x + row * n;
  double* const y = a.y + row * n;
  if (a.skip != nullptr) {
    double* const sum = (a.sum_out != nullptr ? a.sum_out : a.y) + row * n;
    r.add(x, 1, a.skip + row * n, 1, sum, n);
    if (a.skip_bias != nullptr) r.add(sum, 1, a.skip_bias, 1, sum, n);
    x = sum;
  }
  double* const mean_out = a.mean_out == nullptr ? nullptr : a.mean_out + row;
  const double spread = a.rms ? r.sum_of(r.square, x, n) / static_cast<double>(n) : centre(r, x, y, n, mean_out);
  const double inverse = 1 / std::sqrt(spread + static_cast<double>(a.epsilon));
  if (a.inv_std_out != nullptr) a.inv_std_out[row] = inverse;
  Rows::by(r.multiply, a.rms ? x : y, inverse, y, n);
  if (a.scale != nullptr) r.multiply(y, 1, a.scale, 1, y, n);
  if (a.bias != nullptr) r.add(y, 1, a.bias, 1, y, n);
}

}  // namespace

void softmax_f64(const double* x, double* y, std::int64_t outer, std::int64_t axis, std::int64_t inner, bool log) {
  const Rows r;
  over(
      outer, axis, inner, [&](std::int64_t at) { softmax_row(r, x + at, y + at, axis, log); },
      [&](std::int64_t at, std::int64_t width) { softmax_columns(r, x + at, y + at, axis, inner, width, log); });
}

void layer_norm_f64(const LayerNormArgsOf<double>& args, std::int64_t rows, std::int64_t n) {
  if (n <= 0) return;
  const Rows r;
  parallel_for(rows, grain(n, kGrain), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) layer_norm_row(r, args, row, n);
  });
}

void channel_affine_f64(const double* x, const double* scale, const double* shift, double* y, std::int64_t batch,
                        std::int64_t channels, std::int64_t inner) {
  if (inner <= 0 || channels <= 0) return;
  const Rows r;
  // Channels side by side are one row, in which each element has its own scale.
  const std::int64_t n = inner == 1 ? channels : inner, step = inner == 1 ? 1 : 0, rows = batch * channels * inner / n;
  parallel_for(rows, grain(n, kGrain), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t channel = inner == 1 ? 0 : i % channels;
      r.multiply(x + i * n, 1, scale + channel, step, y + i * n, n);
      r.add(y + i * n, 1, shift + channel, step, y + i * n, n);
    }
  });
}

void group_norm_f64(const double* x, const double* scale, const double* bias, float epsilon, double* y, std::int64_t batch,
                    std::int64_t channels, std::int64_t groups, std::int64_t inner) {
  if (inner <= 0 || channels <= 0 || groups <= 0) return;
  const Rows r;
  const std::int64_t per_group = channels / groups, n = per_group * inner;
  parallel_for(batch * groups, grain(n, kGrain), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const double factor = 1 / std::sqrt(centre(r, x + i * n, y + i * n, n) + static_cast<double>(epsilon));
      for (std::int64_t k = 0; k < per_group; ++k) {
        const std::int64_t c = i % groups * per_group + k;
        double* const to = y + i * n + k * inner;
        Rows::by(r.multiply, to, factor * scale[c], to, inner);
        Rows::by(r.add, to, bias[c], to, inner);
      }
    }
  });
}

void lp_norm_f64(const double* x, double* y, std::int64_t outer, std::int64_t axis, std::int64_t inner, bool squares) {
  const Rows r;
  over(
      outer, axis, inner, [&](std::int64_t at) { lp_row(r, x + at, y + at, axis, squares); },
      [&](std::int64_t at, std::int64_t width) { lp_columns(r, x + at, y + at, axis, inner, width, squares); });
}

void mean_variance_norm_f64(const double* x, double* y, std::int64_t outer, std::int64_t groups, std::int64_t inner) {
  if (outer <= 0 || groups <= 0 || inner <= 0) return;
  const Rows r;
  const auto count = static_cast<double>(outer * inner);
  parallel_for(groups, grain(outer * inner, kGrain), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t g = begin; g < end; ++g) {
      const auto each = [&](auto&& fn) {
        for (std::int64_t o = 0; o < outer; ++o) fn((o * groups + g) * inner);
      };
      double sum = 0, squares = 0;
      each([&](std::int64_t at) { sum += r.sum(x + at, inner); });
      each([&](std::int64_t at) {
        Rows::by(r.subtract, x + at, sum / count, y + at, inner);
        squares += r.sum_of(r.square, y + at, inner);
      });
      // ONNX MeanVarianceNormalization-9 adds 1e-9 to the deviation.
      const double deviation = std::sqrt(squares / count) + 1e-9;
      each([&](std::int64_t at) { Rows::by(r.divide, y + at, deviation, y + at, inner); });
    }
  });
}

}  // namespace sdx::cpu
