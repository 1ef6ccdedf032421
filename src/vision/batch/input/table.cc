#include "vision/batch/input/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/suggest.h"
#include "base/system/mapped_file.h"
#include "base/text/ascii.h"
#include "base/text/csv.h"
#include "base/text/text_file.h"
#include "vision/batch/input/sqlite.h"

namespace sdx::vision::batch {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxBytes = std::size_t{1} << 30;

struct Columns {
  std::size_t source = 0;
  std::optional<std::size_t> output;
};

std::optional<std::size_t> place_of(const std::vector<std::string>& names, std::string_view wanted) {
  const auto it = std::find(names.begin(), names.end(), wanted);
  if (it == names.end()) return std::nullopt;
  return static_cast<std::size_t>(it - names.begin());
}

// `where`: the file, and the line if each row has columns of its own.
std::size_t column(const std::string& where, const std::vector<std::string>& names, const std::string& wanted, const char* flag) {
  if (const auto place = place_of(names, wanted)) return *place;
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(wanted.data(), wanted.data() + wanted.size(), number);
  if (error == std::errc{} && end == wanted.data() + wanted.size() && number >= 1 && number <= names.size()) return number - 1;
  const std::string near = closest(wanted, names);
  fail(ErrorCode::invalid_argument, "{} {}: {} has no such column{}; it has {}", flag, wanted, where,
       near.empty() ? "" : fmt::format(", did you mean '{}'?", near), join(names));
}

Columns choose(const std::string& where, const std::vector<std::string>& names, const TableOptions& options) {
  Columns out;
  if (!options.source_column.empty()) {
    out.source = column(where, names, options.source_column, "--source-col");
  } else {
    for (const char* usual : {"file", "path", "source", "image", "picture", "filename", "name"}) {
      if (const auto place = place_of(names, usual)) {
        out.source = *place;
        break;
      }
    }
  }
  if (!options.output_column.empty()) out.output = column(where, names, options.output_column, "--output-col");
  return out;
}

char delimiter_of(std::string_view text, const std::string& wanted) {
  if (wanted == "tab" || wanted == "\\t") return '\t';
  if (wanted.size() == 1 && wanted[0] != '"' && wanted[0] != '\n' && wanted[0] != '\r') return wanted[0];
  if (!wanted.empty()) fail(ErrorCode::invalid_argument, "--map-delimiter {}: expected one letter, or tab", wanted);
  return csv_separator(text);
}

void add_row(const fs::path& file, std::vector<TableRow>& rows, std::string source, std::string output, std::size_t line) {
  if (source.empty()) {
    fail(ErrorCode::invalid_argument, "'{}', row {}: the column of the pictures is empty", file.string(), line);
  }
  rows.push_back({std::move(source), std::move(output), line});
}

std::string read_text(const fs::path& file) {
  try {
    return to_utf8(read_file(file, kMaxBytes));
  } catch (Error& e) {
    if (e.code() == ErrorCode::invalid_argument) e.add_context("in table '" + file.string() + "'");
    throw;
  }
}

// Names of columns as they were meant. A table whose names begin with a space, all but the first, has one behind each separator.
bool tidy_names(std::vector<std::string>& names) {
  const bool spaced =
      names.size() > 1 && std::all_of(names.begin() + 1, names.end(), [](const std::string& n) { return n.starts_with(' '); });
  for (std::string& name : names) name = std::string(trimmed_text(name));
  return spaced;
}

std::vector<TableRow> read_csv(const fs::path& file, const TableOptions& options) {
  const std::string content = read_text(file);
  std::string_view text = content;
  const std::optional<char> separator = take_separator_line(text);
  const char delimiter = separator && options.delimiter.empty() ? *separator : delimiter_of(text, options.delimiter);
  const std::string where = "'" + file.string() + "'";
  std::vector<CsvRecord> records = parse_csv(text, delimiter, where);
  if (records.empty()) fail(ErrorCode::invalid_argument, "{} is empty", where);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < records[0].fields.size(); ++i) {
    names.push_back(options.header ? records[0].fields[i] : fmt::format("{}", i + 1));
  }
  const bool spaced = options.header && tidy_names(names);
  const Columns columns = choose(where, names, options);
  std::vector<TableRow> rows;
  for (std::size_t i = options.header ? 1 : 0; i < records.size(); ++i) {
    auto& [r, line] = records[i];
    for (std::string& field : r) {
      if (spaced && field.starts_with(' ')) field.erase(0, 1);
    }
    const std::size_t needed = std::max(columns.source, columns.output.value_or(0));
    if (needed >= r.size()) {
      fail(ErrorCode::invalid_argument, "{}, line {}: {} column{} where {} are needed", where, line, r.size(),
           r.size() == 1 ? "" : "s", needed + 1);
    }
    const std::string output = columns.output ? r[*columns.output] : "";
    add_row(file, rows, std::move(r[columns.source]), output, line);
  }
  return rows;
}

std::string text_of(const nlohmann::ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null()) return "";
  return value.dump();
}

std::vector<TableRow> read_jsonl(const fs::path& file, const TableOptions& options) {
  const std::string content = read_text(file);
  std::vector<TableRow> rows;
  std::size_t line = 0;
  for (std::size_t at = 0; at < content.size();) {
    const std::size_t end = std::min(content.find('\n', at), content.size());
    const std::string_view text = std::string_view(content).substr(at, end - at);
    at = end + 1;
    ++line;
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const auto object = nlohmann::ordered_json::parse(text, nullptr, false);
    if (!object.is_object()) fail(ErrorCode::invalid_argument, "'{}', line {}: not a JSON object", file.string(), line);
    std::vector<std::string> names;
    std::vector<const nlohmann::ordered_json*> values;
    for (const auto& [key, value] : object.items()) {
      names.push_back(key);
      values.push_back(&value);
    }
    if (names.empty()) fail(ErrorCode::invalid_argument, "'{}', line {}: the object is empty", file.string(), line);
    const Columns columns = choose(fmt::format("'{}', line {}", file.string(), line), names, options);
    add_row(file, rows, text_of(*values[columns.source]), columns.output ? text_of(*values[*columns.output]) : "", line);
  }
  return rows;
}

std::vector<TableRow> read_sqlite(const fs::path& file, const TableOptions& options) {
  std::vector<TableRow> rows;
  std::optional<Columns> columns;
  query_sqlite(file, options.table, options.query, [&](const std::vector<std::string>& names, const SqlRow& row, std::size_t n) {
    if (!columns) columns = choose("'" + file.string() + "'", names, options);
    add_row(file, rows, row[columns->source], columns->output ? row[*columns->output] : "", n);
  });
  return rows;
}

enum class Kind { csv, jsonl, sqlite };

Kind kind_of(const fs::path& file) {
  const std::string ending = ascii_lower(file.extension().string());
  if (ending == ".csv" || ending == ".tsv") return Kind::csv;
  if (ending == ".jsonl" || ending == ".ndjson") return Kind::jsonl;
  if (ending == ".sqlite" || ending == ".sqlite3" || ending == ".db") return Kind::sqlite;
  const std::string content = read_file(file, kMaxBytes);
  if (content.starts_with("SQLite format 3")) return Kind::sqlite;
  return to_utf8(content).starts_with('{') ? Kind::jsonl : Kind::csv;
}

}  // namespace

std::vector<TableRow> read_table(const fs::path& file, const TableOptions& options) {
  switch (kind_of(file)) {
    case Kind::jsonl: return read_jsonl(file, options);
    case Kind::sqlite: return read_sqlite(file, options);
    case Kind::csv: break;
  }
  return read_csv(file, options);
}

}  // namespace sdx::vision::batch
