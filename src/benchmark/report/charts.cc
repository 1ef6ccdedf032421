#include "benchmark/report/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "benchmark/statistics.h"

namespace sdx::benchmark {
namespace {

// Eighths of a character, "" to a full block.
std::string bar(double length) {
  static const char* const kParts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = static_cast<std::size_t>(std::lround(length * 8));
  std::string out;
  for (std::size_t i = 0; i < eighths / 8; ++i) out += "█";
  return out + kParts[eighths % 8];
}

}  // namespace

std::string sparkline(std::span<const double> values, std::size_t width) {
  static const char* const kLevels[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const std::size_t groups = std::min(width, values.size());
  std::vector<double> medians;
  for (std::size_t i = 0; i < groups; ++i) {
    const std::size_t from = values.size() * i / groups;
    const auto part = values.subspan(from, values.size() * (i + 1) / groups - from);
    medians.push_back(median({part.begin(), part.end()}));
  }
  if (medians.empty()) return "";
  const auto [low, high] = std::minmax_element(medians.begin(), medians.end());
  std::string out;
  for (const double m : medians) {
    out += kLevels[*high > *low ? static_cast<std::size_t>(std::lround(7 * (m - *low) / (*high - *low))) : 0];
  }
  return out;
}

std::string histogram(std::span<const double> values, std::size_t bins, std::size_t width) {
  if (values.empty() || bins == 0) return "";
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const double low = sorted.front();
  const double high = percentile(sorted, 99);
  std::vector<std::size_t> counts(bins, 0);
  std::size_t above = 0;
  for (const double v : sorted) {
    if (v > high) {
      ++above;
      continue;
    }
    const double at = high > low ? (v - low) / (high - low) * static_cast<double>(bins) : 0;
    ++counts[std::min(bins - 1, static_cast<std::size_t>(at))];
  }
  const auto most = static_cast<double>(*std::max_element(counts.begin(), counts.end()));
  std::string out;
  for (std::size_t i = 0; i < bins; ++i) {
    if (high <= low && i > 0) break;
    const double from = low + (high - low) * static_cast<double>(i) / static_cast<double>(bins);
    const double length = static_cast<double>(counts[i]) / most * static_cast<double>(width);
    out += fmt::format("  {:>9} {}{}\n", ms_text(from), bar(length), counts[i] > 0 ? fmt::format(" {}", counts[i]) : "");
  }
  if (above > 0) out += fmt::format("  {:>9} {} above, to {} ms\n", ">", above, ms_text(sorted.back()));
  return out;
}

std::string ms_text(double ms) {
  if (!std::isfinite(ms) || ms == 0) return "–";
  const int decimals = std::clamp(3 - static_cast<int>(std::floor(std::log10(std::abs(ms)))), 0, 6);
  return fmt::format("{:.{}f}", ms, decimals);
}

}  // namespace sdx::benchmark
