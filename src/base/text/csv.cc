#include "base/text/csv.h"

#include <algorithm>

#include "base/error.h"

namespace sdx {
namespace {

class Parser {
 public:
  Parser(std::string_view text, char separator, std::string_view where) : text_(text), separator_(separator), where_(where) {}

  // False at the end.
  bool record(CsvRecord& out) {
    while (at_ < text_.size() && is_line_end(text_[at_])) step();
    if (at_ >= text_.size()) return false;
    out.line = line_;
    out.fields.clear();
    while (true) {
      out.fields.push_back(text_.substr(at_).starts_with('"') ? quoted() : plain());
      if (at_ >= text_.size()) return true;
      const char c = text_[at_];
      step();
      if (c == separator_) continue;
      if (c == '\r' && at_ < text_.size() && text_[at_] == '\n') step();
      return true;
    }
  }

 private:
  static bool is_line_end(char c) { return c == '\n' || c == '\r'; }
  bool ends() const { return at_ >= text_.size() || text_[at_] == separator_ || is_line_end(text_[at_]); }
  void step() { line_ += text_[at_++] == '\n' ? 1 : 0; }

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
      } else if (text_.substr(at_ + 1).starts_with('"')) {
        out += text_[at_++];
      } else {
        ++at_;
        if (!ends()) fail(ErrorCode::invalid_argument, "{}, line {}: text after a closing quote", where_, line_);
        return out;
      }
    }
    fail(ErrorCode::invalid_argument, "{}, line {}: a quote is opened and not closed", where_, line);
  }

  std::string_view text_;
  char separator_;
  std::string_view where_;
  std::size_t at_ = 0, line_ = 1;
};

}  // namespace

char csv_separator(std::string_view text) {
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

std::vector<CsvRecord> parse_csv(std::string_view text, char separator, std::string_view where) {
  Parser parser(text, separator, where);
  std::vector<CsvRecord> out;
  for (CsvRecord record; parser.record(record);) out.push_back(std::move(record));
  return out;
}

std::string csv_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) out.append(c == '"' ? 2 : 1, c);
  return out + '"';
}

}  // namespace sdx
