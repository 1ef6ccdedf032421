#include "train/loop/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/quantity.h"
#include "base/system/terminal.h"

namespace sdx::train::loop {
namespace {

constexpr std::size_t kRecent = 400;  // losses that the line on the terminal shows

// The letter whose points are the bits of `dots`: U+2800 and on.
std::string braille(unsigned dots) {
  return {static_cast<char>(0xE2), static_cast<char>(0xA0 | (dots >> 6)), static_cast<char>(0x80 | (dots & 0x3F))};
}

// Points of a letter, from the top: left column, right column.
constexpr std::array<std::array<unsigned, 4>, 2> kDots{{{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}}};

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
  void add(std::span<const double> values) {
    for (const double v : values) {
      if (!std::isfinite(v)) continue;
      low = std::min(low, v);
      high = std::max(high, v);
    }
  }
  // 0 at the top, `levels` - 1 at the bottom.
  std::size_t level(double v, std::size_t levels) const {
    const double share = high > low ? (high - v) / (high - low) : 0.5;
    return std::min(levels - 1, static_cast<std::size_t>(std::lround(share * static_cast<double>(levels - 1))));
  }
};

// Means of groups of neighbours, where there are more than `most`.
std::vector<double> thinned(std::span<const double> values, std::size_t most) {
  if (values.size() <= most) return {values.begin(), values.end()};
  std::vector<double> out;
  for (std::size_t i = 0; i < most; ++i) {
    const std::size_t begin = values.size() * i / most, end = values.size() * (i + 1) / most;
    double sum = 0;
    for (std::size_t k = begin; k < end; ++k) sum += values[k];
    out.push_back(sum / static_cast<double>(end - begin));
  }
  return out;
}

}  // namespace

std::string short_number(double v) {
  if (!std::isfinite(v)) return "–";
  return fmt::format("{:.4g}", v);
}

std::string braille_line(std::span<const double> values, std::size_t width) {
  const std::vector<double> points = thinned(values, 2 * width);
  Range range;
  range.add(points);
  std::string out;
  for (std::size_t i = 0; i < points.size(); i += 2) {
    unsigned dots = 0;
    for (std::size_t k = 0; k < 2 && i + k < points.size(); ++k) {
      if (std::isfinite(points[i + k])) dots |= kDots[k][range.level(points[i + k], 4)];
    }
    out += braille(dots);
  }
  return out;
}

std::string plot_text(std::span<const PlotLine> lines, std::size_t columns, std::size_t rows) {
  Range range;
  std::size_t most = 0;
  for (const PlotLine& l : lines) {
    range.add(l.values);
    most = std::max(most, l.values.size());
  }
  if (most < 2 || !(range.low <= range.high) || columns == 0 || rows == 0) return "";
  std::vector<unsigned> dots(columns * rows, 0);
  for (const PlotLine& l : lines) {
    // Each column of points shows the line's value there, and those between it and its left neighbour's.
    std::size_t before = SIZE_MAX;
    for (std::size_t x = 0; x < 2 * columns && !l.values.empty(); ++x) {
      const double at = static_cast<double>(x) / static_cast<double>(2 * columns - 1) * static_cast<double>(l.values.size() - 1);
      const double v = l.values[static_cast<std::size_t>(std::lround(at))];
      if (!std::isfinite(v)) continue;
      const std::size_t level = range.level(v, 4 * rows);
      const std::size_t other = before == SIZE_MAX ? level : before;
      for (std::size_t y = std::min(level, other); y <= std::max(level, other); ++y) {
        dots[y / 4 * columns + x / 2] |= kDots[x % 2][y % 4];
      }
      before = level;
    }
  }
  std::string out;
  for (std::size_t y = 0; y < rows; ++y) {
    out += fmt::format("{:>10} ", y == 0 ? short_number(range.high) : y + 1 == rows ? short_number(range.low) : "");
    for (std::size_t x = 0; x < columns; ++x) out += braille(dots[y * columns + x]);
    out += '\n';
  }
  out += std::string(11, ' ');
  for (std::size_t i = 0; i < lines.size(); ++i) out += (i == 0 ? "" : ", ") + lines[i].name;
  return out + '\n';
}

void Progress::start(std::int64_t done, std::int64_t total) {
  first_ = done;
  total_ = total;
  start_ = Clock::now();
}

void Progress::step(std::int64_t epoch, std::int64_t epochs, std::int64_t done, std::int64_t samples, double loss) {
  samples_ += samples;
  recent_.push_back(loss);
  if (recent_.size() >= 2 * kRecent) recent_.erase(recent_.begin(), recent_.begin() + kRecent);
  if (!line_.due()) return;
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  const double rate = seconds > 0 ? static_cast<double>(done - first_) / seconds : 0;
  const std::string left = rate > 0 ? duration_text(static_cast<double>(total_ - done) / rate) : "–";
  const std::string head = fmt::format("epoch {}/{}  {}/{}  loss {}", epoch + 1, epochs, done, total_, short_number(loss));
  const std::string tail =
      fmt::format("{:.0f} samples/s, {} left", seconds > 0 ? static_cast<double>(samples_) / seconds : 0, left);
  const std::size_t used = head.size() + tail.size() + 4 + 1, columns = columns_of_terminal(kErrors);
  const std::size_t room = columns > used ? std::min<std::size_t>(40, columns - used) : 0;
  const std::size_t shown = std::min(recent_.size(), kRecent);
  line_.draw(head + "  " + braille_line(std::span(recent_).last(shown), room) + "  " + tail);
}

void Progress::part(const char* what, std::int64_t done, std::int64_t total) {
  if (line_.due()) line_.draw(fmt::format("{} {}/{}", what, done, total));
}

}  // namespace sdx::train::loop
