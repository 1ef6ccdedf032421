#pragma once
// Text tables and small charts.

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sdx {

// Columns of a terminal that UTF-8 text takes, one for each character.
std::size_t columns(std::string_view text);

// Rows of cells in columns; the first row is the heading. Columns whose cells below the heading are numbers are right-aligned.
std::string text_table(const std::vector<std::vector<std::string>>& rows, std::string_view indent = "");
std::string markdown_table(const std::vector<std::vector<std::string>>& rows);

// One character for each of up to `width` consecutive groups of values: its median between the lowest and the highest shown.
std::string sparkline(std::span<const double> values, std::size_t width);

// Bars of how many values fall into each of `bins` equal ranges between the 0th and the 99th percentile; what lies above is
// counted in the last line. Values are in milliseconds.
std::string histogram(std::span<const double> values, std::size_t bins, std::size_t width);

// Milliseconds with 4 significant digits, "0.01234"; "–" for 0 and for what is no number.
std::string ms_text(double ms);

}  // namespace sdx
