#pragma once
// Tables for people.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/tools_api.h"

namespace sdx {

struct TableLayout {
  std::string_view indent = "";
  // Breaks the table into lines of at most this many columns; 0: no limit. The last column's text is wrapped. If that does not
  // suffice, further columns follow in a second table, which repeats the first `keys` columns.
  std::size_t width = 0;
  std::size_t keys = 1;
};

// Rows of cells in columns; the first row is the heading. Columns whose cells below the heading are numbers are right-aligned.
// Cells are UTF-8, one column of a terminal for each character; one_line() (base/system/printable.h) escapes what would break
// lines.
SDX_TOOLS_API std::string text_table(const std::vector<std::vector<std::string>>& rows, std::string_view indent = "");
SDX_TOOLS_API std::string text_table(const std::vector<std::vector<std::string>>& rows, const TableLayout& layout);
// Lines longer than `width` columns go on in further ones, `indent` columns to the right. A longer word stays whole.
SDX_TOOLS_API std::string wrapped_text(std::string_view text, std::size_t indent, std::size_t width);
SDX_TOOLS_API std::string markdown_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace sdx
