#include "text/calls/python_call.h"

#include <nlohmann/json.hpp>

#include "base/text/json_text.h"
#include "base/text/utf8.h"
#include "text/calls/builder.h"

namespace sdx::text {
namespace {

using State = PythonCall::State;

constexpr int kMostDepth = 64;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_'; }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// Stops where the text ends or does not fit; `part` tells these apart.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  PythonCall call() {
    PythonCall out;
    const bool whole = read(out);
    out.state = whole ? State::whole : part_ ? State::part : State::wrong;
    out.size = at_;
    return out;
  }

 private:
  bool read(PythonCall& out) {
    while (more() && (is_word(text_[at_]) || text_[at_] == '.' || text_[at_] == '-')) ++at_;
    out.name = text_.substr(0, at_);
    if (at_ > kMostName || (at_ == 0 && more())) return false;
    if (!take('(')) return false;
    std::string& json = out.arguments;
    json = "{";
    for (bool first = true;; first = false) {
      blanks();
      if (is(')')) break;
      if (!first) json += ", ";
      const std::size_t begin = at_;
      while (more() && is_word(text_[at_])) ++at_;
      if (at_ == begin) return false;
      json += json_string(text_.substr(begin, at_ - begin)) + ": ";
      blanks();
      if (!take('=') || !value(json, 0)) return false;
      blanks();
      if (!is(',')) break;
      ++at_;
    }
    json += '}';
    return take(')');
  }

  bool more() {
    if (at_ < text_.size()) return true;
    part_ = true;
    return false;
  }
  bool is(char c) { return more() && text_[at_] == c; }
  bool take(char c) {
    if (!is(c)) return false;
    ++at_;
    return true;
  }
  void blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }

  bool value(std::string& json, int depth) {
    blanks();
    if (depth > kMostDepth || !more()) return false;
    const char c = text_[at_];
    if (c == '"' || c == '\'') return string(json);
    if (c == '[' || c == '(') return list(json, c == '[' ? ']' : ')', depth);
    if (c == '{') return dictionary(json, depth);
    if (c == '-' || c == '+' || is_digit(c)) return number(json);
    return word(json);
  }

  bool word(std::string& json) {
    const std::size_t begin = at_;
    while (more() && is_word(text_[at_])) ++at_;
    const std::string_view found = text_.substr(begin, at_ - begin);
    if (found == "True" || found == "true") {
      json += "true";
    } else if (found == "False" || found == "false") {
      json += "false";
    } else if (found == "None" || found == "null") {
      json += "null";
    } else {
      return false;
    }
    return true;
  }

  bool number(std::string& json) {
    if (text_[at_] == '+') ++at_;
    const std::size_t begin = at_;
    while (more() && (is_word(text_[at_]) || text_[at_] == '.' || text_[at_] == '-' || text_[at_] == '+')) ++at_;
    const std::string_view found = text_.substr(begin, at_ - begin);
    if (!nlohmann::json::accept(found)) return false;
    json += found;
    return true;
  }

  bool list(std::string& json, char end, int depth) {
    ++at_;
    json += '[';
    for (bool first = true;; first = false) {
      blanks();
      if (is(end)) break;
      if (!first) json += ", ";
      if (!value(json, depth + 1)) return false;
      blanks();
      if (!is(',')) break;
      ++at_;
    }
    json += ']';
    return take(end);
  }

  bool dictionary(std::string& json, int depth) {
    ++at_;
    json += '{';
    for (bool first = true;; first = false) {
      blanks();
      if (is('}')) break;
      if (!first) json += ", ";
      if (!is('"') && !is('\'')) return false;
      if (!string(json)) return false;
      blanks();
      if (!take(':')) return false;
      json += ": ";
      if (!value(json, depth + 1)) return false;
      blanks();
      if (!is(',')) break;
      ++at_;
    }
    json += '}';
    return take('}');
  }

  bool string(std::string& json) {
    const char quote = text_[at_++];
    std::string out;
    while (more() && text_[at_] != quote) {
      const char c = text_[at_++];
      if (c != '\\') {
        out += c;
      } else if (!more() || !escape(out)) {
        return false;
      }
    }
    json += json_string(out);
    return take(quote);
  }

  bool escape(std::string& out) {
    constexpr std::string_view letters = "ntrbfav0\\'\"/", meant{"\n\t\r\b\f\a\v\0\\'\"/", 12};
    const char c = text_[at_++];
    if (c == '\n') return true;
    if (c == 'x' || c == 'u' || c == 'U') return code(c == 'x' ? 2 : c == 'u' ? 4 : 8, out);
    const std::size_t known = letters.find(c);
    if (known == std::string_view::npos) {
      (out += '\\') += c;
    } else {
      out += meant[known];
    }
    return true;
  }

  bool digits(int count, char32_t& value) {
    value = 0;
    for (int i = 0; i < count; ++i, ++at_) {
      if (!more()) return false;
      const int digit = hex_digit(text_[at_]);
      if (digit < 0) return false;
      value = value * 16 + static_cast<char32_t>(digit);
    }
    return true;
  }

  // JSON writes characters beyond U+FFFF as two halves.
  bool code(int count, std::string& out) {
    char32_t value = 0, low = 0;
    if (!digits(count, value)) return false;
    if (value >= 0xD800 && value < 0xDC00) {
      if (!take('\\') || !take('u') || !digits(4, low)) return false;
      if (low < 0xDC00 || low > 0xDFFF) return false;
      value = 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00);
    }
    if (!is_code_point(value)) return false;
    append_utf8(out, value);
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool part_ = false;
};

}  // namespace

PythonCall read_python_call(std::string_view text) { return Reader(text).call(); }

}  // namespace sdx::text
