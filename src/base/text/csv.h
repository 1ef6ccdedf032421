#pragma once
// Tables of text: values between commas, semicolons, tabs or bars.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/tools_api.h"

namespace sdx {

// The separator (, ; tab or |) that is most frequent in the first line.
SDX_TOOLS_API char csv_separator(std::string_view text);

struct CsvRecord {
  std::vector<std::string> fields;
  std::size_t line = 0;  // of the text, where it begins, from 1
};

// RFC 4180: fields in quotes may hold separators, line ends and doubled quotes. Empty lines are left out. Throws
// Error(invalid_argument) for a quote that is not closed and for text behind a closing quote, with the line; `where` begins the
// message.
SDX_TOOLS_API std::vector<CsvRecord> parse_csv(std::string_view text, char separator, std::string_view where);

// A field in quotes.
SDX_TOOLS_API std::string csv_quoted(std::string_view text);

}  // namespace sdx
