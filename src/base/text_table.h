#pragma once
// Tables for people.

#include <string>
#include <string_view>
#include <vector>

#include "base/tools_api.h"

namespace sdx {

// Rows of cells in columns; the first row is the heading. Columns whose cells below the heading are numbers are right-aligned.
// Cells are UTF-8, one column of a terminal for each character.
SDX_TOOLS_API std::string text_table(const std::vector<std::vector<std::string>>& rows, std::string_view indent = "");
SDX_TOOLS_API std::string markdown_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace sdx
