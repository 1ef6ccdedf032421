#include "train/loop/data/csv.h"

#include <optional>
#include <set>
#include <span>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "base/text/ascii.h"
#include "base/text/csv.h"
#include "base/text/text_file.h"

namespace sdx::train::loop {

CsvTable parse_csv(std::string_view text, const std::string& where) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const std::optional<char> named = take_separator_line(text);
  std::vector<CsvRecord> records = sdx::parse_csv(text, named ? *named : csv_separator(text), where);
  if (records.empty()) fail(ErrorCode::invalid_argument, "{} is empty", where);
  CsvTable table;
  std::set<std::string> unique;
  for (const std::string& field : records[0].fields) {
    table.names.emplace_back(trimmed_text(field));
    if (!unique.insert(table.names.back()).second) {
      fail(ErrorCode::invalid_argument, "{}: two columns are called '{}'", where, table.names.back());
    }
  }
  for (CsvRecord& r : std::span(records).subspan(1)) {
    if (r.fields.size() != table.names.size()) {
      fail(ErrorCode::invalid_argument, "{}, line {}: {} values, and there are {} columns", where, r.line, r.fields.size(),
           table.names.size());
    }
    table.rows.push_back(std::move(r.fields));
    table.lines.push_back(r.line);
  }
  if (table.rows.empty()) fail(ErrorCode::invalid_argument, "{} has names of columns and no rows", where);
  return table;
}

CsvTable read_csv(const std::filesystem::path& path) { return parse_csv(to_utf8(read_file(path)), "'" + path.string() + "'"); }

}  // namespace sdx::train::loop
