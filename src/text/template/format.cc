// Python's format specifications, str.format, and % on strings.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/text/utf8.h"
#include "text/template/runtime.h"
#include "text/template/unicode.h"

namespace sdx::text::jinja {
namespace {

constexpr int max_width = 1 << 20, max_precision = 2000;

struct Spec {
  std::string fill = " ";
  char align = 0;  // < > = ^
  char sign = '-';
  bool alternate = false, zero = false;
  int width = 0;
  char grouping = 0;
  int precision = -1;
  char type = 0;
};

int read_number(std::string_view text, std::size_t& at, int most, const char* what) {
  int number = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; at++) {
    number = number * 10 + (text[at] - '0');
    if (number > most) limit_error(std::string("a format with a ") + what + " of more than " + std::to_string(most));
  }
  return number;
}

bool is_align(char c) { return c == '<' || c == '>' || c == '=' || c == '^'; }

Spec parse_spec(std::string_view text) {
  Spec spec;
  std::size_t at = 0;
  const std::size_t first = text.empty() ? 0 : std::max<std::size_t>(decode_utf8(text, 0).bytes, 1);
  if (first < text.size() && is_align(text[first])) {
    spec.fill = text.substr(0, first);
    spec.align = text[first];
    at = first + 1;
  } else if (!text.empty() && is_align(text[0])) {
    spec.align = text[0];
    at = 1;
  }
  const auto next = [&](char c) { return at < text.size() && text[at] == c ? (at++, true) : false; };
  if (at < text.size() && (text[at] == '+' || text[at] == '-' || text[at] == ' ')) spec.sign = text[at++];
  next('z');
  if (next('#')) spec.alternate = true;
  if (next('0')) {
    spec.zero = true;
    if (!spec.align) {
      spec.align = '=';
      spec.fill = "0";
    }
  }
  spec.width = read_number(text, at, max_width, "width");
  if (at < text.size() && (text[at] == ',' || text[at] == '_')) spec.grouping = text[at++];
  if (next('.')) {
    if (at >= text.size() || text[at] < '0' || text[at] > '9') value_error("Format specifier missing precision");
    spec.precision = read_number(text, at, max_precision, "precision");
  }
  if (at < text.size()) spec.type = text[at++];
  if (at < text.size()) value_error("Invalid format specifier");
  return spec;
}

std::string pad(const std::string& text, const Spec& spec, char otherwise) {
  const auto size = static_cast<int>(count_chars(text));
  if (size >= spec.width) return text;
  const char align = spec.align ? spec.align : otherwise;
  const int padding = spec.width - size, before = align == '<' ? 0 : align == '^' ? padding / 2 : padding;
  std::string result;
  for (int i = 0; i < before; i++) result += spec.fill;
  result += text;
  for (int i = before; i < padding; i++) result += spec.fill;
  return result;
}

std::string grouped(const std::string& digits, char separator, std::size_t size) {
  std::string result;
  for (std::size_t i = 0; i < digits.size(); i++) {
    if (i && (digits.size() - i) % size == 0) result += separator;
    result += digits[i];
  }
  return result;
}

// sign, prefix such as 0x, whole digits, the rest (fraction, exponent).
std::string number_text(const Spec& spec, bool negative, const std::string& prefix, std::string whole, const std::string& rest,
                        std::size_t group) {
  const std::string head = (negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign)) + prefix;
  if (spec.align == '=' && spec.fill == "0" && spec.grouping) {
    const auto room = static_cast<std::size_t>(std::max(0, spec.width - static_cast<int>(head.size() + rest.size())));
    while (grouped(whole, spec.grouping, group).size() < room) whole.insert(0, "0");
    return head + grouped(whole, spec.grouping, group) + rest;
  }
  const std::string body = (spec.grouping ? grouped(whole, spec.grouping, group) : whole) + rest;
  if (spec.align != '=') return pad(head + body, spec, '>');
  Spec inner = spec;
  inner.align = '>';
  inner.width = spec.width - static_cast<int>(head.size());
  return head + pad(body, inner, '>');
}

std::string digits_of(UInt value, unsigned base, bool capital) {
  if (value == 0) return "0";
  std::string digits;
  for (; value != 0; value /= base)
    digits += (capital ? "0123456789ABCDEF" : "0123456789abcdef")[static_cast<std::size_t>(value % base)];
  std::reverse(digits.begin(), digits.end());
  return digits;
}

std::string c_format(char type, bool alternate, int precision, double value) {
  char pattern[8];
  std::snprintf(pattern, sizeof pattern, "%%%s.*%c", alternate ? "#" : "", type);
  char buffer[4096];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  const int size = std::snprintf(buffer, sizeof buffer, pattern, precision, value);
#pragma GCC diagnostic pop
  return std::string(buffer, static_cast<std::size_t>(std::clamp(size, 0, static_cast<int>(sizeof buffer) - 1)));
}

std::string general_no_type(const Spec& spec, double value) {
  if (spec.precision < 0) return repr_real(value);
  // Formats as 'g', but with a digit after the point, and an exponent from the precision on.
  const int precision = std::max(spec.precision, 1);
  std::string text = c_format('e', false, precision - 1, value);
  const int exponent = std::stoi(text.substr(text.find('e') + 1));
  if (exponent < -4 || exponent >= precision)
    return c_format('g', false, precision, value).find('e') != std::string::npos ? c_format('g', false, precision, value) : text;
  text = c_format('g', false, precision, value);
  if (text.find('.') == std::string::npos) {
    if (static_cast<int>(text.size()) >= precision && exponent + 1 >= precision)
      return c_format('e', false, precision - 1, value);
    text += ".0";
  }
  return text;
}

std::string format_real(const Spec& spec, double value) {
  char type = spec.type;
  std::string text;
  const bool negative = std::signbit(value) && !std::isnan(value);
  const double magnitude = std::fabs(value);
  const int precision = spec.precision < 0 ? 6 : spec.precision;
  switch (type) {
    case 0: text = general_no_type(spec, magnitude); break;
    case 'n': text = c_format('g', spec.alternate, precision, magnitude); break;
    case '%': text = c_format('f', spec.alternate, precision, magnitude * 100) + "%"; break;
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G': text = c_format(type, spec.alternate, precision, magnitude); break;
    default: value_error(std::string("Unknown format code '") + type + "' for object of type 'float'");
  }
  if (!std::isfinite(magnitude)) {
    text = std::isnan(magnitude) ? "nan" : "inf";
    if (type == '%') text += '%';
    if (type == 'E' || type == 'F' || type == 'G') text = upper(text);
  }
  const std::size_t whole = text.find_first_not_of("0123456789");
  return number_text(spec, negative, "", text.substr(0, whole), whole == std::string::npos ? "" : text.substr(whole), 3);
}

std::string format_int(const Spec& spec, Int value) {
  const bool negative = value < 0;
  const auto magnitude = negative ? -static_cast<UInt>(value) : static_cast<UInt>(value);
  if (spec.precision >= 0 && spec.type != 'e' && spec.type != 'f' && spec.type != 'g' && spec.type != 'E' && spec.type != 'F' &&
      spec.type != 'G' && spec.type != '%') {
    value_error("Precision not allowed in integer format specifier");
  }
  if (spec.grouping == ',' &&
      (spec.type == 'b' || spec.type == 'o' || spec.type == 'x' || spec.type == 'X' || spec.type == 'c' || spec.type == 'n')) {
    value_error(std::string("Cannot specify ',' with '") + spec.type + "'.");
  }
  switch (spec.type) {
    case 0:
    case 'd':
    case 'n': return number_text(spec, negative, "", digits_of(magnitude, 10, false), "", 3);
    case 'b': return number_text(spec, negative, spec.alternate ? "0b" : "", digits_of(magnitude, 2, false), "", 4);
    case 'o': return number_text(spec, negative, spec.alternate ? "0o" : "", digits_of(magnitude, 8, false), "", 4);
    case 'x': return number_text(spec, negative, spec.alternate ? "0x" : "", digits_of(magnitude, 16, false), "", 4);
    case 'X': return number_text(spec, negative, spec.alternate ? "0X" : "", digits_of(magnitude, 16, true), "", 4);
    case 'c': {
      if (value < 0 || value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
        throw PyError(PyError::Type::overflow, "%c arg not in range(0x110000)");
      std::string text;
      append_utf8(text, static_cast<char32_t>(value));
      return pad(text, spec, '<');
    }
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
    case '%': return format_real(spec, static_cast<double>(value));
    default: value_error(std::string("Unknown format code '") + spec.type + "' for object of type 'int'");
  }
}

std::string truncated(std::string_view text, int precision) {
  return std::string(precision < 0 ? text : text.substr(0, byte_offset(text, static_cast<std::size_t>(precision))));
}

std::string ascii_repr(Runtime& rt, const Value& value) {
  std::string result;
  for (const char32_t c : decode(repr(rt, value))) {
    const auto code = static_cast<unsigned>(c);
    if (c < 0x80) {
      result += static_cast<char>(c);
    } else {
      result += c < 0x100     ? fmt::format("\\x{:02x}", code)
                : c < 0x10000 ? fmt::format("\\u{:04x}", code)
                              : fmt::format("\\U{:08x}", code);
    }
  }
  return result;
}

}  // namespace

std::string format_spec(Runtime& rt, const Value& value, std::string_view text) {
  rt.step();
  if (text.empty()) return to_text(rt, value);
  if (value.is(Kind::real) || value.is_integral() || value.is_string()) {
    const Spec spec = parse_spec(text);
    rt.budget.reserve(static_cast<std::size_t>(spec.width) * spec.fill.size());
    rt.work(static_cast<std::size_t>(spec.width) * spec.fill.size());
    if (value.is(Kind::real)) return format_real(spec, value.as_real());
    if (value.is_integral()) return format_int(spec, value.as_int());
    if (spec.type && spec.type != 's')
      value_error(std::string("Unknown format code '") + spec.type + "' for object of type 'str'");
    if (spec.grouping) value_error(std::string("Cannot specify '") + spec.grouping + "' with 's'.");
    if (spec.sign != '-') value_error("Sign not allowed in string format specifier");
    if (spec.alternate) value_error("Alternate form (#) not allowed in string format specifier");
    if (spec.align == '=' && !spec.zero) value_error("'=' alignment not allowed in string format specifier");
    Spec plain = spec;
    if (plain.align == '=') plain.align = '<';
    return pad(truncated(value.text(), spec.precision), plain, '<');
  }
  type_error(std::string("unsupported format string passed to ") + type_name(value) + ".__format__");
}

// ---- str.format
namespace {

class Braces {
 public:
  Braces(Runtime& rt, bool markup, const Arguments& arguments) : rt_(rt), markup_(markup), arguments_(arguments) {}

  std::string format(std::string_view text, int depth) {
    if (depth < 0) value_error("Max string recursion exceeded");
    std::string result;
    for (std::size_t at = 0; at < text.size();) {
      const char c = text[at];
      if ((c == '{' || c == '}') && at + 1 < text.size() && text[at + 1] == c) {
        result += c;
        at += 2;
      } else if (c == '}') {
        value_error("Single '}' encountered in format string");
      } else if (c == '{') {
        const std::size_t end = closing(text, at);
        result += field(text.substr(at + 1, end - at - 1), depth);
        rt_.budget.reserve(result.size());
        at = end + 1;
      } else {
        result += c;
        at++;
      }
    }
    rt_.work(text.size());
    return result;
  }

 private:
  static std::size_t closing(std::string_view text, std::size_t at) {
    int open = 0;
    bool bracket = false;
    for (std::size_t i = at; i < text.size(); i++) {
      if (text[i] == '[') bracket = true;
      if (text[i] == ']') bracket = false;
      if (bracket) continue;
      if (text[i] == '{') open++;
      if (text[i] == '}' && --open == 0) return i;
    }
    value_error(at + 1 == text.size() ? "Single '{' encountered in format string" : "expected '}' before end of string");
  }

  std::string field(std::string_view text, int depth) {
    bool bracket = false;
    std::size_t end = 0;
    for (; end < text.size(); end++) {
      if (text[end] == '[') bracket = true;
      if (text[end] == ']') bracket = false;
      if (!bracket && (text[end] == ':' || text[end] == '!')) break;
    }
    Value value = lookup(text.substr(0, end));
    char conversion = 0;
    if (end < text.size() && text[end] == '!') {
      if (end + 1 >= text.size()) value_error("end of string while looking for conversion specifier");
      conversion = text[end + 1];
      end += 2;
      if (end < text.size() && text[end] != ':') value_error("expected ':' after conversion specifier");
    }
    const std::string spec = end < text.size() ? format(text.substr(end + 1), depth - 1) : std::string();
    switch (conversion) {
      case 0: break;
      case 's': value = rt_.str(to_text(rt_, value)); break;
      case 'r': value = rt_.str(repr(rt_, value)); break;
      case 'a': value = rt_.str(ascii_repr(rt_, value)); break;
      default: value_error(std::string("Unknown conversion specifier '") + conversion + "'");
    }
    if (markup_ && value.is_string() && value.str().markup) return value.text();
    const std::string formatted = format_spec(rt_, value, spec);
    return markup_ ? escape_html(formatted) : formatted;
  }

  Value lookup(std::string_view name) {
    const std::size_t end = std::min(name.find_first_of(".["), name.size());
    Value value = first(name.substr(0, end), end == name.size());
    for (std::size_t at = end; at < name.size();) {
      if (name[at] == '.') {
        const std::size_t next = std::min(name.find_first_of(".[", at + 1), name.size());
        if (next == at + 1) value_error("Empty attribute in format string");
        value = get_attribute(rt_, value, name.substr(at + 1, next - at - 1));
        at = next;
      } else if (name[at] == '[') {
        const std::size_t close = name.find(']', at);
        if (close == std::string_view::npos) value_error("Missing ']' in format string");
        const std::string_view key = name.substr(at + 1, close - at - 1);
        if (key.empty()) value_error("Empty attribute in format string");
        const auto number = whole(key);
        value = get_item(rt_, value, number ? Value::integer(*number) : rt_.str(std::string(key)));
        at = close + 1;
      } else {
        value_error("Only '.' or '[' may follow ']' in format field specifier");
      }
    }
    return value;
  }

  static std::optional<Int> whole(std::string_view text) {
    if (text.empty() || text.size() > 9 || text.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
    Int number = 0;
    for (const char c : text) number = number * 10 + (c - '0');
    return number;
  }

  Value first(std::string_view name, bool whole_name) {
    auto number = whole(name);
    if (name.empty() && whole_name) {
      if (manual_) value_error("cannot switch from manual field specification to automatic field numbering");
      number = next_++;
    } else if (number && whole_name) {
      if (next_ > 0) value_error("cannot switch from manual field specification to automatic field numbering");
      manual_ = true;
    }
    if (number) {
      if (*number >= static_cast<Int>(arguments_.positional.size())) {
        throw PyError(PyError::Type::key_or_index,
                      "Replacement index " + repr_int(*number) + " out of range for positional args tuple");
      }
      return arguments_.positional[static_cast<std::size_t>(*number)];
    }
    for (const auto& [key, value] : arguments_.named) {
      if (key == name) return value;
    }
    std::string quoted;
    append_quoted(quoted, name);
    throw PyError(PyError::Type::key_or_index, quoted);
  }

  Runtime& rt_;
  bool markup_;
  const Arguments& arguments_;
  Int next_ = 0;
  bool manual_ = false;
};

}  // namespace

std::string format_braces(Runtime& rt, const Value& format, const Arguments& arguments) {
  return Braces(rt, format.str().markup, arguments).format(format.text(), 2);
}

// ---- %
namespace {

class Percent {
 public:
  Percent(Runtime& rt, const Value& format, const Value& arguments)
      : rt_(rt), text_(format.text()), markup_(format.str().markup), arguments_(arguments), many_(arguments.is(Kind::tuple)) {}

  std::string format() {
    std::string result;
    rt_.work(text_.size());
    while (at_ < text_.size()) {
      const std::size_t next = std::min(text_.find('%', at_), text_.size());
      result.append(text_.substr(at_, next - at_));
      at_ = next;
      if (at_ < text_.size()) {
        at_++;
        result += conversion();
        rt_.budget.reserve(result.size());
      }
    }
    const Kind kind = arguments_.kind();
    const bool mapping =
        kind == Kind::dict || kind == Kind::list || kind == Kind::name_space || kind == Kind::range || kind == Kind::undefined;
    const std::size_t given = many_ ? arguments_.sequence().items.size() : mapping ? 0 : 1;
    if (!named_ && used_ < given) type_error("not all arguments converted during string formatting");
    return result;
  }

 private:
  char peek() const {
    if (at_ >= text_.size()) value_error("incomplete format");
    return text_[at_];
  }

  Value next_argument() {
    if (key_) return *key_;
    if (!many_) {
      if (used_++ > 0) type_error("not enough arguments for format string");
      return arguments_;
    }
    if (used_ >= arguments_.sequence().items.size()) type_error("not enough arguments for format string");
    return arguments_.sequence().items[used_++];
  }

  int star_or_number(int most, const char* what) {
    if (at_ < text_.size() && text_[at_] == '*') {
      at_++;
      const Value value = next_argument();
      if (!value.is_integral()) type_error("* wants int");
      if (value.as_int() > most || value.as_int() < -most) limit_error(std::string("a format with too large a ") + what);
      return static_cast<int>(value.as_int());
    }
    return read_number(text_, at_, most, what);
  }

  void read_key() {
    key_.reset();
    if (peek() != '(') return;
    if (arguments_.is_undefined()) throw PyError(PyError::Type::undefined, arguments_.object<UndefinedInfo>().message());
    if (!arguments_.is(Kind::dict)) type_error("format requires a mapping");
    int open = 1;
    const std::size_t begin = ++at_;
    for (; open > 0; at_++) {
      if (at_ >= text_.size()) value_error("incomplete format key");
      open += text_[at_] == '(' ? 1 : text_[at_] == ')' ? -1 : 0;
    }
    const std::string_view name = text_.substr(begin, at_ - 1 - begin);
    const Value* found = find(arguments_.dict(), name);
    if (!found) {
      std::string quoted;
      append_quoted(quoted, name);
      throw PyError(PyError::Type::key_or_index, quoted);
    }
    key_ = *found;
    named_ = true;
  }

  std::string conversion() {
    read_key();
    Spec spec;
    bool left = false, zero = false;
    for (; std::string_view("-+ #0").find(peek()) != std::string_view::npos; at_++) {
      switch (text_[at_]) {
        case '-': left = true; break;
        case '+': spec.sign = '+'; break;
        case ' ':
          if (spec.sign != '+') spec.sign = ' ';
          break;
        case '#': spec.alternate = true; break;
        default: zero = true;
      }
    }
    spec.width = star_or_number(max_width, "width");
    if (spec.width < 0) {
      left = true;
      spec.width = -spec.width;
    }
    if (peek() == '.') {
      at_++;
      spec.precision = std::max(star_or_number(max_precision, "precision"), 0);
    }
    while (peek() == 'h' || peek() == 'l' || peek() == 'L') at_++;
    spec.type = peek();
    at_++;
    spec.align = left ? '<' : zero ? '=' : '>';
    if (zero && !left) spec.fill = "0";
    rt_.work(static_cast<std::size_t>(spec.width));
    return convert(spec);
  }

  std::string convert(const Spec& spec) {
    switch (spec.type) {
      case '%': return "%";
      case 's':
      case 'r':
      case 'a': {
        const Value value = next_argument();
        std::string text = spec.type == 's' ? to_text(rt_, value) : spec.type == 'r' ? repr(rt_, value) : ascii_repr(rt_, value);
        if (markup_ && !(value.is_string() && value.str().markup && spec.type == 's')) text = escape_html(text);
        return pad_text(truncated(text, spec.precision), spec);
      }
      case 'c': return pad_text(character(next_argument()), spec);
      case 'd':
      case 'i':
      case 'u':
      case 'o':
      case 'x':
      case 'X': return integer(spec);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G': return format_real(spec, real_of(next_argument()));
      default: value_error(std::string("unsupported format character '") + spec.type + "'");
    }
  }

  static std::string pad_text(const std::string& text, Spec spec) {
    if (spec.align == '=') spec.align = '>';
    spec.fill = " ";
    return pad(text, spec, '>');
  }

  static std::string character(const Value& value) {
    if (value.is_string() && count_chars(value.text()) == 1) return value.text();
    if (!value.is_integral()) type_error("%c requires int or char");
    Spec spec;
    spec.type = 'c';
    return format_int(spec, value.as_int());
  }

  std::string integer(const Spec& spec) {
    const Value value = next_argument();
    Int number = 0;
    if (value.is_integral()) {
      number = value.as_int();
    } else if (value.is(Kind::real) && spec.type != 'o' && spec.type != 'x' && spec.type != 'X') {
      if (!(std::fabs(value.as_real()) < 0x1p126)) throw PyError(PyError::Type::overflow, "cannot convert float to integer");
      number = static_cast<Int>(value.as_real());
    } else {
      type_error(std::string("%") + spec.type + " format: a real number is required, not " + type_name(value));
    }
    const auto magnitude = number < 0 ? -static_cast<UInt>(number) : static_cast<UInt>(number);
    const unsigned base = spec.type == 'o' ? 8 : spec.type == 'x' || spec.type == 'X' ? 16 : 10;
    std::string digits = digits_of(magnitude, base, spec.type == 'X');
    if (spec.precision > static_cast<int>(digits.size()))
      digits.insert(0, static_cast<std::size_t>(spec.precision) - digits.size(), '0');
    const std::string prefix = !spec.alternate || base == 10 ? "" : base == 8 ? "0o" : spec.type == 'x' ? "0x" : "0X";
    return number_text(spec, number < 0, prefix, digits, "", 3);
  }

  Runtime& rt_;
  std::string_view text_;
  bool markup_;
  const Value& arguments_;
  bool many_;
  std::size_t at_ = 0, used_ = 0;
  std::optional<Value> key_;
  bool named_ = false;
};

}  // namespace

Value format_percent(Runtime& rt, const Value& format, const Value& arguments) {
  return rt.str(Percent(rt, format, arguments).format(), format.str().markup);
}

}  // namespace sdx::text::jinja
