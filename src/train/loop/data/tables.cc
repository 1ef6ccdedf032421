// Tables: values between commas, or a JSON object in each line.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "base/counted.h"
#include "base/error.h"
#include "base/suggest.h"
#include "base/system/mapped_file.h"
#include "tensor/element.h"
#include "tensor/json.h"
#include "train/loop/data/arrays.h"
#include "train/loop/data/csv.h"
#include "train/loop/data/texts.h"

namespace sdx::train::loop {
namespace {

constexpr std::array<const char*, 6> kLabelNames{"label", "labels", "class", "target", "targets", "y"};
constexpr std::array<const char*, 5> kTextNames{"text", "sentence", "content", "review", "document"};
constexpr std::size_t kMostCategories = 1000;

// Columns as numbers: one each, or of words one for each different word.
struct Feature {
  std::size_t column = 0;
  std::vector<std::string> categories;  // empty: a number
};

std::string where_of(const SourceRequest& r, std::size_t line) { return fmt::format("'{}', line {}", r.path.string(), line); }

// Removes rows with gaps if the request says so.
void drop_gaps(const SourceRequest& r, CsvTable& table, std::vector<std::string>& notes) {
  if (!r.settings.skip_bad) return;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const bool gap = std::any_of(table.rows[i].begin(), table.rows[i].end(), [](const std::string& v) {
      return v.empty() || v == "NA" || v == "NaN" || v == "nan" || v == "null";
    });
    if (gap) continue;
    if (kept != i) {
      table.rows[kept] = std::move(table.rows[i]);
      table.lines[kept] = table.lines[i];
    }
    ++kept;
  }
  if (kept == table.rows.size()) return;
  notes.push_back(fmt::format("{} rows with gaps are skipped", table.rows.size() - kept));
  table.rows.resize(kept);
  table.lines.resize(kept);
  if (kept == 0) fail(ErrorCode::invalid_argument, "'{}': every row has a gap", r.path.string());
}

Feature feature_of(const SourceRequest& r, const CsvTable& table, std::size_t column) {
  Feature f{column, {}};
  double number = 0;
  std::size_t numbers = 0;
  std::set<std::string> words;
  for (const auto& row : table.rows) {
    if (finite_number(row[column], number)) {
      ++numbers;
    } else if (words.size() <= kMostCategories) {
      words.insert(row[column]);
    }
  }
  if (words.empty()) return f;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const std::string& value = table.rows[i][column];
    const bool gap = value.empty() || value == "NA" || value == "NaN" || value == "nan" || value == "null";
    if (!gap && (numbers == 0 || finite_number(value, number))) continue;
    fail(ErrorCode::invalid_argument, "{}, column '{}': {}{}; fill the gap, or skip such rows with --on-bad skip",
         where_of(r, table.lines[i]), table.names[column], value.empty() ? "nothing" : "'" + value + "'",
         numbers > 0 ? " where numbers are expected" : " among words");
  }
  if (words.size() > kMostCategories) {
    fail(ErrorCode::invalid_argument,
         "'{}': the column '{}' has more than {} different words, too many for categories; remove it from the file",
         r.path.string(), table.names[column], kMostCategories);
  }
  f.categories.assign(words.begin(), words.end());
  return f;
}

// One row's numbers for an input that takes whole numbers (categories by number) or others (categories as 0 and 1).
void append_values(const Feature& f, const std::string& value, bool whole, std::vector<double>& out) {
  double number = 0;
  if (f.categories.empty()) {
    finite_number(value, number);
    out.push_back(number);
    return;
  }
  const auto it = std::lower_bound(f.categories.begin(), f.categories.end(), value);
  const bool known = it != f.categories.end() && *it == value;
  const auto place = static_cast<std::size_t>(it - f.categories.begin());
  if (whole) {
    out.push_back(known ? static_cast<double>(place) : -1);
    return;
  }
  for (std::size_t i = 0; i < f.categories.size(); ++i) out.push_back(known && i == place ? 1 : 0);
}

Tensor columns_as_array(const CsvTable& table, const std::vector<Feature>& features, const ValueSpec& spec,
                        const SourceRequest& r) {
  const bool whole = is_integer(spec.dtype);
  std::vector<double> values, row;
  Tensor out;
  std::string names;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    row.clear();
    for (const Feature& f : features) append_values(f, table.rows[i][f.column], whole, row);
    if (i == 0) {
      out = Tensor(whole ? DataType::int64 : DataType::float32,
                   {static_cast<std::int64_t>(table.rows.size()), static_cast<std::int64_t>(row.size())});
    }
    const auto first = static_cast<std::int64_t>(i * row.size());
    for (std::size_t k = 0; k < row.size(); ++k) set_element(out, first + static_cast<std::int64_t>(k), row[k]);
  }
  std::int64_t batch = 0;
  const std::string what =
      fmt::format("'{}': {} as numbers", r.path.string(), counted(static_cast<std::int64_t>(features.size()), "column"));
  return fitted_array(out, spec, what, batch);
}

// The columns of an input: the one of its name, or those that are called NAME.0, NAME.1 and so on.
std::vector<std::size_t> columns_named(const CsvTable& table, const std::string& name) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < table.names.size(); ++i) {
    if (table.names[i] == name || table.names[i].starts_with(name + ".")) out.push_back(i);
  }
  return out;
}

// Each value takes the memory of its characters, and of its string.
void check_memory(const SourceRequest& r) {
  constexpr std::uint64_t kEach = 48;
  const auto file = MappedFile::open(r.path);
  std::uint64_t bytes = file->bytes().size();
  for (const std::byte b : file->bytes()) {
    const auto c = static_cast<char>(b);
    bytes += c == ',' || c == '\n' || c == ';' || c == '\t' || c == '|' ? kEach : 0;
  }
  if (bytes <= r.settings.memory) return;
  fail(ErrorCode::out_of_memory,
       "'{}' takes about {} bytes as a table, which is kept in memory, and {} may be used; raise --memory, or convert "
       "the table to .npz, which is read as it is needed",
       r.path.string(), bytes, r.settings.memory);
}

// The columns of each input. A column whose name is that of no input goes to the first input without one.
std::vector<std::vector<std::size_t>> columns_by_input(const SourceRequest& r, const CsvTable& table, std::size_t label) {
  std::vector<std::vector<std::size_t>> out(r.task.inputs.size());
  std::set<std::size_t> taken{label};
  for (const std::size_t i : r.task.features()) {
    out[i] = columns_named(table, r.task.inputs[i].name);
    taken.insert(out[i].begin(), out[i].end());
  }
  for (const std::size_t i : r.task.features()) {
    if (!out[i].empty()) continue;
    for (std::size_t c = 0; c < table.names.size(); ++c) {
      if (taken.insert(c).second) out[i].push_back(c);
    }
    if (out[i].empty()) {
      fail(ErrorCode::invalid_argument, "'{}' has no column for the model's input '{}'; call it so, or '{}.0', '{}.1' and so on",
           r.path.string(), r.task.inputs[i].name, r.task.inputs[i].name, r.task.inputs[i].name);
    }
  }
  return out;
}

bool takes_tokens(const Task& task) {
  const std::vector<std::size_t> features = task.features();
  return !features.empty() && std::all_of(features.begin(), features.end(), [&](std::size_t i) {
    const ValueSpec& s = task.inputs[i];
    return is_integer(s.dtype) || s.name.find("mask") != std::string::npos;
  });
}

std::string json_word(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null()) return "";
  return value.dump();
}

struct Record {
  nlohmann::json values;
  std::size_t line = 0;
};

std::vector<Record> read_records(const SourceRequest& r, std::vector<std::string>& notes) {
  const std::string content = read_file(r.path);
  std::vector<Record> records;
  std::size_t line = 0, bad = 0;
  for (std::size_t at = 0; at < content.size();) {
    const std::size_t end = std::min(content.find('\n', at), content.size());
    const std::string_view text = std::string_view(content).substr(at, end - at);
    at = end + 1;
    ++line;
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    try {
      nlohmann::json value = parse_json(text, where_of(r, line));
      if (!value.is_object()) fail(ErrorCode::invalid_argument, "{}: expected a JSON object", where_of(r, line));
      records.push_back({std::move(value), line});
    } catch (const Error&) {
      if (!r.settings.skip_bad) throw;
      ++bad;
    }
  }
  if (bad > 0) notes.push_back(fmt::format("{} lines that are not JSON objects are left out", bad));
  if (records.empty()) fail(ErrorCode::invalid_argument, "'{}' has no records", r.path.string());
  return records;
}

const nlohmann::json& value_of(const SourceRequest& r, const Record& record, const std::string& key) {
  const auto it = record.values.find(key);
  if (it == record.values.end()) fail(ErrorCode::invalid_argument, "{} has no '{}'", where_of(r, record.line), key);
  return *it;
}

// Records whose keys are the inputs, with numbers or lists of them.
std::unique_ptr<Dataset> numbers_of(const SourceRequest& r, const std::vector<Record>& records, const std::string& label,
                                    Source& source) {
  std::vector<Tensor> arrays(r.task.inputs.size());
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const ValueSpec& spec = r.task.inputs[i];
    const std::string key = i == r.task.label ? label : spec.name;
    if (i == r.task.label && !value_of(r, records[0], key).is_array()) {
      std::vector<std::string> words, where;
      for (const Record& record : records) {
        words.push_back(json_word(value_of(r, record, key)));
        where.push_back(where_of(r, record.line));
      }
      arrays[i] = labels_of_words(r, words, where, source.classes);
      continue;
    }
    Tensor all;
    for (std::size_t n = 0; n < records.size(); ++n) {
      const std::string what = fmt::format("{}, '{}'", where_of(r, records[n].line), key);
      const Tensor one = tensor_from_json(value_of(r, records[n], key), {spec.dtype, std::nullopt}, what);
      if (n == 0) {
        Shape shape = one.shape();
        shape.insert(shape.begin(), static_cast<std::int64_t>(records.size()));
        all = Tensor(one.dtype(), std::move(shape));
      }
      if (!std::equal(one.shape().begin(), one.shape().end(), all.shape().begin() + 1, all.shape().end()) ||
          one.dtype() != all.dtype()) {
        fail(ErrorCode::invalid_argument, "{} is {}, unlike the first record's", what, one.type_string());
      }
      std::copy_n(static_cast<const std::byte*>(one.data()), one.bytes(),
                  static_cast<std::byte*>(all.mutable_data()) + n * one.bytes());
    }
    arrays[i] = fitted_array(all, spec, fmt::format("'{}', '{}'", r.path.string(), key), source.batch);
  }
  return array_data(r.task, std::move(arrays), "'" + r.path.string() + "'");
}

std::vector<std::string> keys_of(const nlohmann::json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

}  // namespace

Source open_csv(const SourceRequest& r) {
  check_memory(r);
  Source source;
  const std::string where = "'" + r.path.string() + "'";
  CsvTable table = read_csv(r.path);
  drop_gaps(r, table, source.notes);
  std::string label = column_named(table.names, r.settings.label, "--label", kLabelNames, where);
  if (label.empty() && !columns_named(table, r.task.label_input().name).empty()) label = r.task.label_input().name;
  if (label.empty()) label = table.names.back();
  const auto label_at = static_cast<std::size_t>(std::find(table.names.begin(), table.names.end(), label) - table.names.begin());
  std::vector<std::string> words, places;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    words.push_back(label_at < table.names.size() ? table.rows[i][label_at] : "");
    places.push_back(where_of(r, table.lines[i]));
  }
  const std::string text = column_named(table.names, r.settings.text, "--text", kTextNames, where);
  if (!text.empty() && text != label && (takes_tokens(r.task) || !r.settings.text.empty())) {
    const auto text_at = static_cast<std::size_t>(std::find(table.names.begin(), table.names.end(), text) - table.names.begin());
    LabelledTexts rows{{}, std::move(words), std::move(places)};
    for (auto& row : table.rows) rows.texts.push_back(std::move(row[text_at]));
    open_texts(r, std::move(rows), source);
    return source;
  }
  const std::vector<std::vector<std::size_t>> columns = columns_by_input(r, table, label_at);
  std::vector<Tensor> arrays(r.task.inputs.size());
  for (const std::size_t i : r.task.features()) {
    std::vector<Feature> features;
    for (const std::size_t c : columns[i]) features.push_back(feature_of(r, table, c));
    arrays[i] = columns_as_array(table, features, r.task.inputs[i], r);
  }
  arrays[r.task.label] = labels_of_words(r, words, places, source.classes);
  source.data = array_data(r.task, std::move(arrays), where);
  source.kind = fmt::format("{} rows of {} columns", table.rows.size(), table.names.size());
  return source;
}

Source open_lines(const SourceRequest& r) {
  check_memory(r);
  Source source;
  const std::string where = "'" + r.path.string() + "'";
  const std::vector<Record> records = read_records(r, source.notes);
  const std::vector<std::string> keys = keys_of(records[0].values);
  std::string label = column_named(keys, r.settings.label, "--label", kLabelNames, where);
  if (records[0].values.contains(r.task.label_input().name) && r.settings.label.empty()) label = r.task.label_input().name;
  if (label.empty()) {
    fail(ErrorCode::invalid_argument, "{}: none of the keys {} is the label; name it with --label", where, join(keys));
  }
  const std::string text = column_named(keys, r.settings.text, "--text", kTextNames, where);
  if (text.empty() || records[0].values.contains(r.task.inputs[r.task.features().at(0)].name)) {
    source.data = numbers_of(r, records, label, source);
    source.kind = fmt::format("{} records", source.data->size());
    return source;
  }
  LabelledTexts rows;
  for (const Record& record : records) {
    rows.texts.push_back(json_word(value_of(r, record, text)));
    rows.labels.push_back(json_word(value_of(r, record, label)));
    rows.where.push_back(where_of(r, record.line));
  }
  open_texts(r, std::move(rows), source);
  return source;
}

}  // namespace sdx::train::loop
