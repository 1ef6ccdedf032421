#pragma once
// Small charts and figures as text.

#include <cstddef>
#include <span>
#include <string>

namespace sdx::benchmark {

// One character for each of up to `width` consecutive groups of values: its median between the lowest and the highest shown.
std::string sparkline(std::span<const double> values, std::size_t width);

// Bars for the number of values in each of `bins` equal ranges between the 0th and the 99th percentile; the last line counts
// higher values. Values are in milliseconds.
std::string histogram(std::span<const double> values, std::size_t bins, std::size_t width);

// Milliseconds with 4 significant digits, "0.01234"; "–" for 0 and for NaN.
std::string ms_text(double ms);

}  // namespace sdx::benchmark
