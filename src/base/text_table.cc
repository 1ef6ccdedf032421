#include "base/text_table.h"

#include <algorithm>
#include <cctype>

namespace sdx {
namespace {

std::size_t columns(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

bool is_number(const std::string& cell) {
  return !cell.empty() &&
         (std::isdigit(static_cast<unsigned char>(cell[0])) != 0 || cell.starts_with("–") || cell[0] == '-' || cell[0] == '+');
}

std::string padded(const std::string& cell, std::size_t width, bool right) {
  const std::string space(width - std::min(width, columns(cell)), ' ');
  return right ? space + cell : cell + space;
}

}  // namespace

std::string text_table(const std::vector<std::vector<std::string>>& rows, std::string_view indent) {
  if (rows.empty()) return "";
  std::vector<std::size_t> widths(rows[0].size(), 0);
  std::vector<bool> right(rows[0].size(), true);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t c = 0; c < rows[r].size() && c < widths.size(); ++c) {
      widths[c] = std::max(widths[c], columns(rows[r][c]));
      if (r > 0 && !rows[r][c].empty()) right[c] = right[c] && is_number(rows[r][c]);
    }
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line(indent);
    for (std::size_t c = 0; c < row.size() && c < widths.size(); ++c) {
      line += (c == 0 ? "" : "  ") + padded(row[c], widths[c], right[c]);
    }
    while (line.ends_with(' ')) line.pop_back();
    out += line + "\n";
  }
  return out;
}

std::string markdown_table(const std::vector<std::vector<std::string>>& rows) {
  std::string out;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    out += "|";
    for (std::string cell : rows[r]) {
      for (std::size_t at = 0; (at = cell.find('|', at)) != std::string::npos; at += 2) cell.insert(at, "\\");
      std::replace(cell.begin(), cell.end(), '\n', ' ');
      out += " " + cell + " |";
    }
    out += "\n";
    if (r != 0) continue;
    out += "|";
    for (std::size_t c = 0; c < rows[0].size(); ++c) out += rows.size() > 1 && is_number(rows[1][c]) ? "---:|" : "---|";
    out += "\n";
  }
  return out;
}

}  // namespace sdx
