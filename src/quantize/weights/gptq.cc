#include "quantize/weights/gptq.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/thread_pool.h"
#include "quantize/weights/cholesky.h"

namespace sdx::quantize {
namespace {

constexpr std::int64_t kRows = 8;       // that share a pass over the factor
constexpr std::int64_t kColumns = 512;  // of eight rows: 16 KiB, which stay in the first cache

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

std::vector<std::int64_t> column_order(const std::vector<float>& hessian, std::int64_t columns, bool by_size) {
  std::vector<std::int64_t> order(at(columns));
  std::iota(order.begin(), order.end(), 0);
  if (by_size) {
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int64_t a, std::int64_t b) { return hessian[at(a * columns + a)] > hessian[at(b * columns + b)]; });
  }
  return order;
}

// The factor of the Hessian with its rows and columns in order. Inputs that are always 0 get 1 on the diagonal, and have no
// effect on others.
std::vector<float> factor_of(const std::vector<float>& hessian, const std::vector<std::int64_t>& order, double damp) {
  const auto n = static_cast<std::int64_t>(order.size());
  std::vector<double> ordered(at(n * n));
  double trace = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) ordered[at(i * n + j)] = hessian[at(order[at(i)] * n + order[at(j)])];
    trace += ordered[at(i * n + i)];
  }
  const double mean = trace / static_cast<double>(n);
  if (!std::isfinite(mean))
    fail(ErrorCode::runtime_failure, "the inputs of a matrix product are not finite with the calibration data");
  for (std::int64_t i = 0; i < n; ++i) {
    if (ordered[at(i * n + i)] == 0) ordered[at(i * n + i)] = mean > 0 ? mean : 1;
  }
  constexpr int kTries = 8;
  for (int i = 0; i < kTries; ++i, damp *= 10) {
    std::vector<double> damped = ordered;
    for (std::int64_t d = 0; d < n; ++d) damped[at(d * n + d)] += damp * (mean > 0 ? mean : 1);
    if (auto factor = inverse_factor(std::move(damped), n)) return *std::move(factor);
  }
  fail(ErrorCode::runtime_failure, "the products of {} inputs with each other have no Cholesky decomposition, however damped", n);
}

struct Problem {
  std::vector<float>& weights;  // [rows, columns], columns in order
  const std::vector<float>& factor;
  const std::vector<std::int64_t>& order;
  const GptqSettings& settings;
  bool ordered;  // by size: scales are there already
  BlockMatrix& out;
};

// Rows [first, first + rows).
class Strip {
 public:
  Strip(const Problem& p, std::int64_t first, std::int64_t rows)
      : p_(p), first_(first), rows_(rows), columns_(p.out.columns), batch_(std::max<std::int64_t>(128, p.out.format.block)) {
    errors_.resize(at(kRows * batch_));
  }

  void run() {
    for (std::int64_t start = 0; start < columns_; start += batch_) {
      const std::int64_t end = std::min(columns_, start + batch_);
      for (std::int64_t c = start; c < end; ++c) column(c, start, end);
      for (std::int64_t j = end; j < columns_; j += kColumns) pass_on(start, end, j, std::min(columns_, j + kColumns));
    }
  }

 private:
  float* row(std::int64_t r) const { return p_.weights.data() + (first_ + r) * columns_; }

  void column(std::int64_t c, std::int64_t start, std::int64_t end) {
    const BlockFormat& format = p_.out.format;
    const float* const u = p_.factor.data() + c * columns_;
    const std::int64_t place = p_.order[at(c)], block = place / format.block;
    for (std::int64_t r = 0; r < rows_; ++r) {
      float* const w = row(r);
      const std::size_t s = at((first_ + r) * p_.out.blocks + block);
      if (!p_.ordered && c % format.block == 0) {
        const std::int64_t count = std::min(format.block, columns_ - c);
        const BlockScale chosen = choose_scale({w + c, at(count)}, format, p_.settings.rounding);
        p_.out.scales[s] = chosen.scale;
        p_.out.zeros[s] = chosen.zero;
      }
      const BlockScale scale{p_.out.scales[s], p_.out.zeros[s]};
      const std::uint8_t code = encode(w[c], scale, format);
      p_.out.codes[at((first_ + r) * p_.out.width() + place)] = code;
      const float error = (w[c] - (static_cast<float>(code) - scale.zero) * scale.scale) / u[c];
      errors_[at(r * batch_ + c - start)] = error;
      for (std::int64_t j = c + 1; j < end; ++j) w[j] -= error * u[j];
    }
  }

  // Passes the changes of columns [start, end) on to columns [from, to).
  void pass_on(std::int64_t start, std::int64_t end, std::int64_t from, std::int64_t to) const {
    for (std::int64_t c = start; c < end; ++c) {
      const float* const u = p_.factor.data() + c * columns_;
      for (std::int64_t r = 0; r < rows_; ++r) {
        const float error = errors_[at(r * batch_ + c - start)];
        float* const w = row(r);
        for (std::int64_t j = from; j < to; ++j) w[j] -= error * u[j];
      }
    }
  }

  const Problem& p_;
  std::int64_t first_, rows_, columns_, batch_;
  std::vector<float> errors_;
};

// Columns of each row into the order.
void reorder(std::vector<float>& weights, std::int64_t rows, const std::vector<std::int64_t>& order) {
  std::vector<float> row(order.size());
  for (std::int64_t r = 0; r < rows; ++r) {
    float* const w = weights.data() + r * static_cast<std::int64_t>(order.size());
    for (std::size_t c = 0; c < order.size(); ++c) row[c] = w[order[c]];
    std::copy(row.begin(), row.end(), w);
  }
}

}  // namespace

BlockMatrix gptq(std::vector<float> weights, std::int64_t rows, std::int64_t columns, const BlockFormat& format,
                 const std::vector<float>& hessian, const GptqSettings& settings) {
  BlockMatrix out(format, rows, columns);
  const std::vector<std::int64_t> order = column_order(hessian, columns, settings.act_order);
  const std::vector<float> factor = factor_of(hessian, order, settings.damp);
  if (settings.act_order) {
    const BlockMatrix start = quantize_blocks(weights, rows, columns, format, settings.rounding);
    out.scales = start.scales;
    out.zeros = start.zeros;
    reorder(weights, rows, order);
  }
  const Problem problem{weights, factor, order, settings, settings.act_order, out};
  const std::int64_t strips = (rows + kRows - 1) / kRows;
  current_pool().parallel_for(strips, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t s = first; s < last; ++s) Strip(problem, s * kRows, std::min(kRows, rows - s * kRows)).run();
  });
  return out;
}

}  // namespace sdx::quantize
