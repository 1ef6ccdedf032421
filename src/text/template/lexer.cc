#include "text/template/lexer.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/text/utf8.h"
#include "text/template/runtime.h"
#include "text/template/unicode.h"

namespace sdx::text::jinja {

void syntax_error(std::uint32_t line, const std::string& message) {
  throw PyError(PyError::Type::syntax, "line " + std::to_string(line) + ": " + message);
}

std::string normalize_lines(std::string_view source) {
  std::string result;
  result.reserve(source.size());
  for (std::size_t at = 0; at < source.size(); at++) {
    if (source[at] == '\r') {
      if (at + 1 < source.size() && source[at + 1] == '\n') at++;
      result += '\n';
    } else {
      result += source[at];
    }
  }
  if (!result.empty() && result.back() == '\n') result.pop_back();
  return result;
}

namespace {

constexpr std::size_t max_tokens = 200'000;

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<Lexeme> run() {
    while (at_ < source_.size()) root();
    Lexeme end;
    end.line = line_;
    end.at = static_cast<std::uint32_t>(at_);
    lexemes_.push_back(std::move(end));
    return std::move(lexemes_);
  }

 private:
  bool here(std::string_view text) const { return source_.substr(at_).starts_with(text); }
  char character(std::size_t at) const { return at < source_.size() ? source_[at] : '\0'; }

  void advance(std::size_t to) {
    line_ += static_cast<std::uint32_t>(
        std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_), source_.begin() + static_cast<std::ptrdiff_t>(to), '\n'));
    starts_line_ = to > at_ ? source_[to - 1] == '\n' : starts_line_;
    at_ = to;
  }

  Lexeme& add(Token type, std::string text = {}) {
    if (lexemes_.size() >= max_tokens) syntax_error(line_, "the template has more than 200000 tokens");
    Lexeme lexeme;
    lexeme.type = type;
    lexeme.text = std::move(text);
    lexeme.line = line_;
    lexeme.at = static_cast<std::uint32_t>(at_);
    lexemes_.push_back(std::move(lexeme));
    return lexemes_.back();
  }

  // The end of the white space that begins at `from`.
  std::size_t after_space(std::size_t from) const { return source_.size() - strip_left(source_.substr(from)).size(); }

  // Length of "{% raw %}" at `at`, or 0; strips what follows where it says so.
  std::size_t raw_begin(std::size_t at) const {
    if (!source_.substr(at).starts_with("{%")) return 0;
    std::size_t end = at + 2;
    if (character(end) == '-' || character(end) == '+') end++;
    end = after_space(end);
    if (!source_.substr(end).starts_with("raw")) return 0;
    end = after_space(end + 3);
    if (source_.substr(end).starts_with("-%}")) return after_space(end + 3) - at;
    if (source_.substr(end).starts_with("%}")) return end + 2 - at;
    return 0;
  }

  std::string_view stripped(std::string_view text, char sign, bool variable) const {
    if (sign == '-') return strip_right(text);
    if (sign == '+' || variable) return text;
    const std::size_t line = text.rfind('\n') + 1;  // npos + 1 is 0
    if (line == 0 && !starts_line_) return text;
    return strip_left(text.substr(line)).empty() ? text.substr(0, line) : text;
  }

  void root() {
    std::size_t next = at_;
    for (;; next++) {
      next = source_.find('{', next);
      if (next == std::string_view::npos) break;
      const char c = character(next + 1);
      if (c == '%' || c == '{' || c == '#') break;
    }
    if (next == std::string_view::npos) {
      add(Token::data, std::string(source_.substr(at_)));
      advance(source_.size());
      return;
    }
    const char kind = source_[next + 1], sign = character(next + 2);
    const bool has_sign = sign == '-' || sign == '+';
    const std::string_view data = stripped(source_.substr(at_, next - at_), has_sign ? sign : '\0', kind == '{');
    if (!data.empty()) add(Token::data, std::string(data));
    advance(next);
    if (const std::size_t raw = raw_begin(at_)) {
      advance(at_ + raw);
      return raw_text();
    }
    tag_ = at_;
    if (kind == '#') {
      advance(at_ + 2 + (has_sign ? 1 : 0));
      return comment();
    }
    add(kind == '%' ? Token::block_begin : Token::variable_begin);
    advance(at_ + 2 + (has_sign ? 1 : 0));
    inside(kind == '%');
  }

  void comment() {
    const std::size_t close = source_.find("#}", at_);
    if (close == std::string_view::npos) syntax_error(line_, "Missing end of comment tag");
    const char before = close > at_ ? source_[close - 1] : '\0';
    std::size_t end = close + 2;
    if (before == '-') {
      end = after_space(end);
    } else if (before != '+' && character(end) == '\n') {
      end++;
    }
    advance(end);
  }

  void raw_text() {
    for (std::size_t from = at_;; from++) {
      from = source_.find("{%", from);
      if (from == std::string_view::npos) syntax_error(line_, "Missing end of raw directive");
      std::size_t end = from + 2;
      const char sign = character(end);
      const bool has_sign = sign == '-' || sign == '+';
      if (has_sign) end++;
      end = after_space(end);
      if (!source_.substr(end).starts_with("endraw")) continue;
      end = after_space(end + 6);
      if (source_.substr(end).starts_with("+%}")) {
        end += 3;
      } else if (source_.substr(end).starts_with("-%}")) {
        end = after_space(end + 3);
      } else if (source_.substr(end).starts_with("%}")) {
        end += 2;
        if (character(end) == '\n') end++;
      } else {
        continue;
      }
      const std::string_view data = stripped(source_.substr(at_, from - at_), has_sign ? sign : '\0', false);
      if (!data.empty()) add(Token::data, std::string(data));
      advance(end);
      return;
    }
  }

  bool end_of_tag(bool block) {
    const char* plain = block ? "%}" : "}}";
    std::size_t end;
    if (character(at_) == '-' && source_.substr(at_ + 1).starts_with(plain)) {
      end = after_space(at_ + 3);
    } else if (block && character(at_) == '+' && source_.substr(at_ + 1).starts_with(plain)) {
      end = at_ + 3;
    } else if (here(plain)) {
      end = at_ + 2;
      if (block && character(end) == '\n') end++;
    } else {
      return false;
    }
    add(block ? Token::block_end : Token::variable_end);
    advance(end);
    return true;
  }

  void inside(bool block) {
    std::string open;
    while (at_ < source_.size()) {
      if (open.empty() && end_of_tag(block)) return;
      const std::size_t space = after_space(at_);
      if (space > at_) {
        advance(space);
        continue;
      }
      if (number() || identifier() || string()) continue;
      if (!operation(open)) {
        syntax_error(line_,
                     "unexpected char " + quoted_character() + " at " + std::to_string(count_chars(source_.substr(0, at_))));
      }
    }
  }

  std::string quoted_character() const {
    std::string quoted;
    append_quoted(quoted, source_.substr(at_, byte_offset(source_.substr(at_), 1)));
    return quoted;
  }

  // (\d+_)*\d+ from `at` on; where it ends, or `at`.
  std::size_t digits(std::size_t at) const {
    std::size_t end = at;
    while (true) {
      const std::size_t begin = end;
      while (character(end) >= '0' && character(end) <= '9') end++;
      if (end == begin) return begin == at ? at : begin - 1;  // an underscore that no digit follows
      if (character(end) != '_') return end;
      end++;
    }
  }

  bool real() {
    if (at_ > 0 && source_[at_ - 1] == '.') return false;
    std::size_t end = digits(at_);
    if (end == at_) return false;
    bool is_real = false;
    if (character(end) == '.' && digits(end + 1) > end + 1) {
      end = digits(end + 1);
      is_real = true;
    }
    if (character(end) == 'e' || character(end) == 'E') {
      const std::size_t exponent = end + 1 + (character(end + 1) == '+' || character(end + 1) == '-' ? 1 : 0);
      if (digits(exponent) > exponent) {
        end = digits(exponent);
        is_real = true;
      }
    }
    if (!is_real) return false;
    std::string text(source_.substr(at_, end - at_));
    text.erase(std::remove(text.begin(), text.end(), '_'), text.end());
    Lexeme& lexeme = add(Token::real);
    const auto result = std::from_chars(text.data(), text.data() + text.size(), lexeme.real);
    if (result.ec != std::errc()) syntax_error(line_, "a number that no float can hold: " + text);
    advance(end);
    return true;
  }

  static int digit_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return 99;
  }

  bool number() {
    if (character(at_) < '0' || character(at_) > '9') return false;
    if (real()) return true;
    int base = 10;
    std::size_t begin = at_;
    if (character(at_) == '0') {
      const char kind = static_cast<char>(character(at_ + 1) | 0x20);
      const int other = kind == 'b' ? 2 : kind == 'o' ? 8 : kind == 'x' ? 16 : 0;
      const std::size_t first = at_ + 2 + (character(at_ + 2) == '_' ? 1 : 0);
      if (other && digit_value(character(first)) < other) {
        base = other;
        begin = at_ + 2;
      }
    }
    const bool zeros = base == 10 && character(at_) == '0';
    Int value = 0;
    std::size_t end = begin;
    for (;; end++) {
      std::size_t at = end;
      if (character(at) == '_' && (end > begin || base != 10)) at++;
      const int digit = digit_value(character(at));
      if (digit >= base || (zeros && digit != 0)) break;
      if (__builtin_mul_overflow(value, Int{base}, &value) || __builtin_add_overflow(value, Int{digit}, &value)) {
        syntax_error(line_, "an integer beyond 127 bits");
      }
      end = at;
    }
    add(Token::integer).integer = value;
    advance(end);
    return true;
  }

  bool identifier() {
    std::size_t end = at_;
    while (end < source_.size()) {
      const CodePoint c = decode_utf8(source_, end);
      if (!c.bytes || !(c.value < 0x80 ? c.value == '_' || (c.value >= '0' && c.value <= '9') ||
                                             ((c.value | 0x20) >= 'a' && (c.value | 0x20) <= 'z')
                                       : is_identifier_part(c.value))) {
        break;
      }
      end += c.bytes;
    }
    if (end == at_) return false;
    if (!is_identifier_start(decode_utf8(source_, at_).value)) syntax_error(line_, "Invalid character in identifier");
    add(Token::name, std::string(source_.substr(at_, end - at_)));
    advance(end);
    return true;
  }

  bool string() {
    const char quote = character(at_);
    if (quote != '\'' && quote != '"') return false;
    std::size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) return false;
    add(Token::string, unescape(source_.substr(at_ + 1, end - at_ - 1)));
    advance(end + 1);
    return true;
  }

  void append_code(std::string& to, std::string_view digits, int base, std::size_t least) const {
    char32_t code = 0;
    std::size_t used = 0;
    for (; used < digits.size() && digit_value(digits[used]) < base; used++)
      code = code * static_cast<char32_t>(base) + static_cast<char32_t>(digit_value(digits[used]));
    if (used < least) syntax_error(line_, "truncated escape in a string");
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
      syntax_error(line_, "an escape in a string that is not a character");
    append_utf8(to, code);
  }

  std::string unescape(std::string_view text) const {
    std::string result;
    for (std::size_t at = 0; at < text.size(); at++) {
      if (text[at] != '\\') {
        result += text[at];
        continue;
      }
      const char c = text[++at];
      static constexpr std::pair<char, char> plain[] = {{'n', '\n'}, {'t', '\t'}, {'r', '\r'}, {'\\', '\\'}, {'\'', '\''},
                                                        {'"', '"'},  {'a', '\a'}, {'b', '\b'}, {'f', '\f'},  {'v', '\v'}};
      const auto* found = std::find_if(std::begin(plain), std::end(plain), [c](const auto& pair) { return pair.first == c; });
      if (found != std::end(plain)) {
        result += found->second;
      } else if (c == '\n') {
        continue;
      } else if (c >= '0' && c <= '7') {
        std::size_t size = 1;
        while (size < 3 && at + size < text.size() && text[at + size] >= '0' && text[at + size] <= '7') size++;
        append_code(result, text.substr(at, size), 8, 1);
        at += size - 1;
      } else if (c == 'x' || c == 'u' || c == 'U') {
        const std::size_t size = c == 'x' ? 2 : c == 'u' ? 4 : 8;
        append_code(result, text.substr(at + 1, size), 16, size);
        at += size;
      } else if (c == 'N') {
        syntax_error(line_, "\\N{…} in strings is not supported");
      } else if (static_cast<unsigned char>(c) >= 0x80) {
        at = odd_escape(result, text, at);
      } else {
        result += '\\';
        result += c;
      }
    }
    return result;
  }

  // Jinja turns a character beyond ASCII into an escape before it resolves escapes: after a backslash, that escape stays as text.
  static std::size_t odd_escape(std::string& to, std::string_view text, std::size_t at) {
    const CodePoint c = decode_utf8(text, at);
    char buffer[16];
    const auto code = static_cast<unsigned>(c.value);
    std::snprintf(buffer, sizeof buffer, code < 0x100 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x", code);
    to += buffer;
    return at + (c.bytes ? c.bytes : 1) - 1;
  }

  bool operation(std::string& open) {
    static constexpr std::string_view operators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
                                                     "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    const auto* found =
        std::find_if(std::begin(operators), std::end(operators), [this](std::string_view op) { return here(op); });
    if (found == std::end(operators)) return false;
    const char c = (*found)[0];
    if (c == '{') open += '}';
    if (c == '(') open += ')';
    if (c == '[') open += ']';
    if (c == '}' || c == ')' || c == ']') {
      if (open.empty()) syntax_error(line_, std::string("unexpected '") + c + "'");
      if (open.back() != c) syntax_error(line_, std::string("unexpected '") + c + "', expected '" + open.back() + "'");
      open.pop_back();
    }
    add(Token::op, std::string(*found));
    advance(at_ + found->size());
    return true;
  }

  std::string_view source_;
  std::size_t at_ = 0, tag_ = 0;
  std::uint32_t line_ = 1;
  bool starts_line_ = true;
  std::vector<Lexeme> lexemes_;
};

}  // namespace

std::vector<Lexeme> tokenize(std::string_view source) { return Lexer(source).run(); }

}  // namespace sdx::text::jinja
