#pragma once
// Text that is free but for marks, which something else begins or ends with.

#include <string_view>
#include <vector>

#include "text/grammar/expressions.h"

namespace sdx::text::grammar {

// What a text may begin with, behind blanks.
enum class Beginning {
  any,
  no_object,  // no brace, nor a bracket and a brace or a blank
  no_list,    // neither brace nor bracket
};
// Any text without the marks.
Expression without_marks(const std::vector<std::string_view>& marks, Beginning beginning, Expressions& to);
// Any text that ends with the mark, which is nowhere else in it.
Expression up_to_mark(std::string_view mark, Expressions& to);

}  // namespace sdx::text::grammar
