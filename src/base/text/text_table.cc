#include "base/text/text_table.h"

#include <algorithm>
#include <cctype>

#include "base/system/printable.h"
#include "base/text/utf8.h"

namespace sdx {
namespace {

bool is_number(const std::string& cell) {
  return !cell.empty() &&
         (std::isdigit(static_cast<unsigned char>(cell[0])) != 0 || cell.starts_with("–") || cell[0] == '-' || cell[0] == '+');
}

std::string padded(const std::string& cell, std::size_t width, bool right) {
  const std::string space(width - std::min(width, count_chars(cell)), ' ');
  return right ? space + cell : cell + space;
}

using Rows = std::vector<std::vector<std::string>>;

// Names from files may hold newlines, which are escaped, and columns are as wide as the text shown.
Rows in_lines(Rows rows) {
  for (auto& row : rows) {
    for (std::string& cell : row) cell = one_line(cell);
  }
  return rows;
}

struct Columns {
  std::vector<std::size_t> widths;
  std::vector<bool> right;
};

Columns columns_of(const Rows& rows) {
  Columns c{std::vector<std::size_t>(rows[0].size(), 0), std::vector<bool>(rows[0].size(), true)};
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t i = 0; i < rows[r].size() && i < c.widths.size(); ++i) {
      c.widths[i] = std::max(c.widths[i], count_chars(rows[r][i]));
      if (r > 0 && !rows[r][i].empty()) c.right[i] = c.right[i] && is_number(rows[r][i]);
    }
  }
  return c;
}

// Lines of at most `width` columns; a longer word stays whole.
std::vector<std::string> wrapped(const std::string& text, std::size_t width) {
  std::vector<std::string> lines{""};
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    at = end + 1;
    if (!lines.back().empty() && count_chars(lines.back()) + 1 + count_chars(word) > width) lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
  }
  return lines;
}

constexpr std::size_t kGap = 2, kLeastText = 24;  // between columns; the narrowest column that text is wrapped in

std::string plain_table(const Rows& rows, std::string_view indent, std::size_t width) {
  Columns c = columns_of(rows);
  const std::size_t last = c.widths.size() - 1;
  std::size_t before = count_chars(indent);
  for (std::size_t i = 0; i < last; ++i) before += c.widths[i] + kGap;
  const bool wraps = width > 0 && before + c.widths[last] > width && before + kLeastText <= width && !c.right[last];
  if (wraps) c.widths[last] = width - before;
  std::string out;
  for (const auto& row : rows) {
    std::string line(indent);
    std::vector<std::string> more;
    for (std::size_t i = 0; i < row.size() && i < c.widths.size(); ++i) {
      if (i == last && wraps) more = wrapped(row[i], c.widths[i]);
      line += (i == 0 ? "" : "  ") + padded(more.empty() ? row[i] : more[0], c.widths[i], c.right[i]);
    }
    while (line.ends_with(' ')) line.pop_back();
    out += line + "\n";
    for (std::size_t i = 1; i < more.size(); ++i) out += std::string(before, ' ') + more[i] + "\n";
  }
  return out;
}

void append_wrapped(std::string_view line, std::size_t indent, std::size_t width, std::string& out) {
  for (std::size_t room = width;; room = width - std::min(indent, width)) {
    std::size_t cut = std::string_view::npos, seen = 0;
    const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
    for (std::size_t i = 0; i < line.size() && (seen <= room || cut == std::string_view::npos); ++i) {
      if (line[i] == ' ' && i > begin) cut = i;
      if ((static_cast<unsigned char>(line[i]) & 0xC0) != 0x80) ++seen;
    }
    const std::size_t next = seen <= room || cut == std::string_view::npos ? cut : line.find_first_not_of(' ', cut);
    if (seen <= room || next == std::string_view::npos) {
      out += line;
      return;
    }
    out += line.substr(0, line.find_last_not_of(' ', cut) + 1);
    out += "\n" + std::string(indent, ' ');
    line = line.substr(next);
  }
}

}  // namespace

std::string text_table(const Rows& rows, std::string_view indent) {
  return rows.empty() || rows[0].empty() ? "" : plain_table(in_lines(rows), indent, 0);
}

std::string text_table(const Rows& cells, const TableLayout& layout) {
  if (cells.empty() || cells[0].empty()) return "";
  const Rows rows = in_lines(cells);
  const Columns c = columns_of(rows);
  const std::size_t count = c.widths.size(), keys = std::min(layout.keys, count - 1);
  std::size_t start = count_chars(layout.indent);
  for (std::size_t i = 0; i < keys; ++i) start += c.widths[i] + kGap;
  std::string out;
  for (std::size_t first = keys; first < count;) {
    std::size_t end = first;
    for (std::size_t used = start; end < count; ++end) {
      const bool text = end + 1 == count && !c.right[end];  // is wrapped
      const std::size_t width = text ? std::min(c.widths[end], kLeastText) : c.widths[end];
      if (layout.width > 0 && end > first && used + width > layout.width) break;
      used += width + kGap;
    }
    Rows part;
    for (const auto& row : rows) {
      auto& cells = part.emplace_back(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(std::min(keys, row.size())));
      for (std::size_t i = first; i < end && i < row.size(); ++i) cells.push_back(row[i]);
    }
    out += (out.empty() ? "" : "\n") + plain_table(part, layout.indent, layout.width);
    first = end;
  }
  return out;
}

std::string wrapped_text(std::string_view text, std::size_t indent, std::size_t width) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    append_wrapped(text.substr(at, end - at), indent, width, out);
    if (end < text.size()) out += '\n';
    at = end + 1;
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
