#include "speech/words/alignment.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace sdx::speech {
namespace {

constexpr std::int64_t kMedian = 7, kSides = kMedian / 2;

// The first `used` weights of each token of a head, with a sum of 1 for each token.
std::vector<double> cropped(const Attention& a, std::int64_t head, std::int64_t used) {
  std::vector<double> out(static_cast<std::size_t>(a.tokens * used));
  for (std::int64_t token = 0; token < a.tokens; ++token) {
    const float* const from = a.weights.data() + (head * a.tokens + token) * a.positions;
    double* const to = out.data() + token * used;
    double sum = 0;
    for (std::int64_t i = 0; i < used; ++i) sum += to[i] = static_cast<double>(from[i]);
    if (!(sum > 0)) continue;
    for (std::int64_t i = 0; i < used; ++i) to[i] /= sum;
  }
  return out;
}

// At each position a mean of 0 and a standard deviation of 1 over the tokens.
void normalise(std::vector<double>& rows, std::int64_t tokens, std::int64_t used) {
  const auto width = static_cast<std::size_t>(used);
  std::vector<double> mean(width), deviation(width);
  const auto each = [&](auto&& visit) {
    for (std::size_t at = 0; at < rows.size(); ++at) visit(rows[at], at % width);
  };
  const auto count = static_cast<double>(tokens);
  each([&](double x, std::size_t i) { mean[i] += x / count; });
  each([&](double x, std::size_t i) { deviation[i] += (x - mean[i]) * (x - mean[i]) / count; });
  for (double& d : deviation) d = std::sqrt(d);
  each([&](double& x, std::size_t i) { x = deviation[i] > 0 ? (x - mean[i]) / deviation[i] : 0; });
}

// Beyond the ends the row goes on mirrored. A row that is too short for that stays.
double median_at(const double* row, std::int64_t used, std::int64_t at) {
  if (used <= kSides) return row[at];
  std::array<double, kMedian> near{};
  for (std::int64_t k = 0; k < kMedian; ++k) {
    std::int64_t i = std::abs(at + k - kSides);
    if (i >= used) i = 2 * (used - 1) - i;
    near[static_cast<std::size_t>(k)] = row[i];
  }
  std::nth_element(near.begin(), near.begin() + kSides, near.end());
  return near[kSides];
}

}  // namespace

std::vector<double> token_fit(const Attention& a, std::int64_t used, std::int64_t begin, std::int64_t end) {
  std::vector<double> fit(static_cast<std::size_t>((end - begin) * used));
  for (std::int64_t head = 0; head < a.heads; ++head) {
    std::vector<double> rows = cropped(a, head, used);
    normalise(rows, a.tokens, used);
    for (std::int64_t token = begin; token < end; ++token) {
      const double* const row = rows.data() + token * used;
      double* const to = fit.data() + (token - begin) * used;
      for (std::int64_t i = 0; i < used; ++i) to[i] += median_at(row, used, i) / static_cast<double>(a.heads);
    }
  }
  return fit;
}

std::vector<std::int64_t> path_starts(std::span<const double> fit, std::int64_t tokens, std::int64_t positions) {
  enum Step : std::uint8_t { both, token, position };
  const std::int64_t width = positions + 1;
  std::vector<float> above(static_cast<std::size_t>(width), std::numeric_limits<float>::infinity()), row = above;
  above[0] = 0;
  std::vector<Step> steps(static_cast<std::size_t>(tokens * positions));
  for (std::int64_t i = 0; i < tokens; ++i) {
    row[0] = std::numeric_limits<float>::infinity();
    for (std::int64_t j = 0; j < positions; ++j) {
      const float from_both = above[static_cast<std::size_t>(j)], from_token = above[static_cast<std::size_t>(j + 1)];
      const float from_position = row[static_cast<std::size_t>(j)];
      float cost = from_position;
      Step step = position;
      if (from_both < from_token && from_both < from_position) {
        cost = from_both;
        step = both;
      } else if (from_token < from_both && from_token < from_position) {
        cost = from_token;
        step = token;
      }
      const auto at = static_cast<std::size_t>(i * positions + j);
      row[static_cast<std::size_t>(j + 1)] = static_cast<float>(static_cast<double>(cost) - fit[at]);
      steps[at] = step;
    }
    std::swap(above, row);
  }
  std::vector<std::int64_t> starts(static_cast<std::size_t>(tokens));
  for (std::int64_t i = tokens - 1, j = positions - 1; i >= 0 && j >= 0;) {
    starts[static_cast<std::size_t>(i)] = j;
    const Step step = i == 0 ? position : j == 0 ? token : steps[static_cast<std::size_t>(i * positions + j)];
    if (step != position) --i;
    if (step != token) --j;
  }
  return starts;
}

}  // namespace sdx::speech
