#include "train/loop/data/csv.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "base/text/text_file.h"

namespace sdx::train::loop {
namespace {

char separator_of(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  char best = ',';
  std::ptrdiff_t most = 0;
  for (const char c : {',', ';', '\t', '|'}) {
    const std::ptrdiff_t count = std::count(line.begin(), line.end(), c);
    if (count > most) {
      most = count;
      best = c;
    }
  }
  return best;
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& where)
      : where_(where), separator_(take_separator_line(text).value_or('\0')), text_(text) {
    if (separator_ == '\0') separator_ = separator_of(text);
  }

  // False at the end. Empty lines are no records.
  bool record(std::vector<std::string>& fields, std::size_t& line) {
    while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r')) step();
    if (at_ >= text_.size()) return false;
    line = line_;
    fields.clear();
    while (true) {
      fields.push_back(text_[at_ < text_.size() ? at_ : 0] == '"' && at_ < text_.size() ? quoted() : plain());
      if (at_ >= text_.size()) return true;
      const char c = text_[at_];
      step();
      if (c == separator_) continue;
      if (c == '\r' && at_ < text_.size() && text_[at_] == '\n') step();
      return true;
    }
  }

 private:
  void step() { line_ += text_[at_++] == '\n' ? 1 : 0; }
  bool ends() const { return at_ >= text_.size() || text_[at_] == separator_ || text_[at_] == '\n' || text_[at_] == '\r'; }

  std::string plain() {
    const std::size_t begin = at_;
    while (!ends()) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::string quoted() {
    const std::size_t line = line_;
    std::string out;
    for (++at_; at_ < text_.size(); step()) {
      if (text_[at_] != '"') {
        out += text_[at_];
      } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
        out += '"';
        ++at_;
      } else {
        ++at_;
        if (!ends()) fail(ErrorCode::invalid_argument, "{}, line {}: text after a closing quote", where_, line_);
        return out;
      }
    }
    fail(ErrorCode::invalid_argument, "{}, line {}: a quote is opened and not closed", where_, line);
  }

  const std::string& where_;
  char separator_;
  std::string_view text_;
  std::size_t at_ = 0, line_ = 1;
};

}  // namespace

CsvTable parse_csv(std::string_view text, const std::string& where) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  Parser parser(text, where);
  CsvTable table;
  std::size_t line = 0;
  if (!parser.record(table.names, line)) fail(ErrorCode::invalid_argument, "{} is empty", where);
  for (std::string& name : table.names) name = std::string(trimmed_text(name));
  std::set<std::string> unique;
  for (const std::string& name : table.names) {
    if (!unique.insert(name).second) fail(ErrorCode::invalid_argument, "{}: two columns are called '{}'", where, name);
  }
  std::vector<std::string> fields;
  while (parser.record(fields, line)) {
    if (fields.size() != table.names.size()) {
      fail(ErrorCode::invalid_argument, "{}, line {}: {} values, and there are {} columns", where, line, fields.size(),
           table.names.size());
    }
    table.rows.push_back(fields);
    table.lines.push_back(line);
  }
  if (table.rows.empty()) fail(ErrorCode::invalid_argument, "{} has names of columns and no rows", where);
  return table;
}

CsvTable read_csv(const std::filesystem::path& path) { return parse_csv(to_utf8(read_file(path)), "'" + path.string() + "'"); }

}  // namespace sdx::train::loop
