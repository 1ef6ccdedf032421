#pragma once
// The progress of training on a terminal.

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "train/loop/request.h"

namespace sdx::train::loop {

// Values as a line of `width` Braille letters, two points to each and four heights; the last 2 * width values, or means of
// groups.
std::string braille_line(std::span<const double> values, std::size_t width);

struct PlotLine {
  std::string name;
  std::vector<double> values;
};
// A plot of up to three lines over the same number of points, `columns` letters wide and `rows` high, with the range of values.
// Empty for fewer than two points.
std::string plot_text(std::span<const PlotLine> lines, std::size_t columns, std::size_t rows);

// "0.4321" with four significant digits; "–" for NaN.
std::string short_number(double v);

class Progress {
 public:
  explicit Progress(const Console& console) : line_(console) {}

  // Batches of all epochs, and those that were done before.
  void start(std::int64_t done, std::int64_t total);
  void step(std::int64_t epoch, std::int64_t epochs, std::int64_t done, std::int64_t samples, double loss);
  void part(const char* what, std::int64_t done, std::int64_t total);
  void clear() { line_.clear(); }  // before something else is written

 private:
  using Clock = std::chrono::steady_clock;
  StatusLine line_;
  Clock::time_point start_ = Clock::now();
  std::int64_t first_ = 0, total_ = 0, samples_ = 0;
  std::vector<double> recent_;
};

}  // namespace sdx::train::loop
