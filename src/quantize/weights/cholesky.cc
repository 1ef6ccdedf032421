#include "quantize/weights/cholesky.h"

#include <algorithm>
#include <cmath>

#include "base/thread_pool.h"

namespace sdx::quantize {
namespace {

constexpr std::int64_t kPanel = 64;

double dot(const double* a, const double* b, std::int64_t count) {
  double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  std::int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    s0 += a[i] * b[i];
    s1 += a[i + 1] * b[i + 1];
    s2 += a[i + 2] * b[i + 2];
    s3 += a[i + 3] * b[i + 3];
  }
  for (; i < count; ++i) s0 += a[i] * b[i];
  return (s0 + s1) + (s2 + s3);
}

// Turns the lower triangle of `m` into L, where L times its transpose is the matrix. It works on panels of columns: within one, a
// row needs dot products with the panel's rows only, because the rest has been subtracted before.
bool lower_factor(std::vector<double>& m, std::int64_t n) {
  double* const a = m.data();
  for (std::int64_t start = 0; start < n; start += kPanel) {
    const std::int64_t end = std::min(n, start + kPanel);
    for (std::int64_t j = start; j < end; ++j) {
      double* const row = a + j * n;
      for (std::int64_t k = start; k < j; ++k) {
        row[k] = (row[k] - dot(row + start, a + k * n + start, k - start)) / a[k * n + k];
      }
      const double pivot = row[j] - dot(row + start, row + start, j - start);
      if (!(pivot > 0) || !std::isfinite(pivot)) return false;
      row[j] = std::sqrt(pivot);
    }
    current_pool().parallel_for(n - end, 8, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = end + first; i < end + last; ++i) {
        double* const row = a + i * n;
        for (std::int64_t k = start; k < end; ++k) {
          row[k] = (row[k] - dot(row + start, a + k * n + start, k - start)) / a[k * n + k];
        }
      }
    });
    current_pool().parallel_for(n - end, 8, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = end + first; i < end + last; ++i) {
        double* const row = a + i * n;
        for (std::int64_t k = end; k <= i; ++k) row[k] -= dot(row + start, a + k * n + start, end - start);
      }
    });
  }
  return true;
}

// Columns [first, last) of the inverse of the lower triangle `l`, row by row: a row is a combination of those above it.
void invert_columns(const std::vector<double>& l, std::int64_t n, std::int64_t first, std::int64_t last,
                    std::vector<double>& out) {
  for (std::int64_t i = first; i < n; ++i) {
    double* const row = out.data() + i * n;
    const std::int64_t columns = std::min(last, i + 1);
    for (std::int64_t k = first; k < i; ++k) {
      const double factor = l[static_cast<std::size_t>(i * n + k)];
      const double* const above = out.data() + k * n;
      const std::int64_t end = std::min(columns, k + 1);
      for (std::int64_t c = first; c < end; ++c) row[c] -= factor * above[c];
    }
    if (i < last) row[i] = 1;
    const double pivot = l[static_cast<std::size_t>(i * n + i)];
    for (std::int64_t c = first; c < columns; ++c) row[c] /= pivot;
  }
}

}  // namespace

std::optional<std::vector<float>> inverse_factor(std::vector<double> matrix, std::int64_t size) {
  const auto count = static_cast<std::size_t>(size * size);
  std::reverse(matrix.begin(), matrix.end());  // rows and columns alike
  if (!lower_factor(matrix, size)) return std::nullopt;
  std::vector<double> inverse(count, 0);
  const std::int64_t strips = (size + kPanel - 1) / kPanel;
  current_pool().parallel_for(strips, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t s = first; s < last; ++s) {
      invert_columns(matrix, size, s * kPanel, std::min(size, (s + 1) * kPanel), inverse);
    }
  });
  std::vector<float> upper(count);
  for (std::size_t i = 0; i < count; ++i) upper[i] = static_cast<float>(inverse[count - 1 - i]);
  return upper;
}

}  // namespace sdx::quantize
