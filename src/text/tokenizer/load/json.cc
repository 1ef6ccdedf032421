#include "text/tokenizer/load/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/text/utf8.h"

namespace sdx::text {

std::string_view name(JsonKind kind) noexcept {
  constexpr std::string_view names[] = {"null", "a truth value", "a number", "a string", "an array", "an object"};
  return names[static_cast<std::size_t>(kind)];
}

namespace {

// All digits as one whole number, then one multiplication or division by a power of ten: up to a bit off the nearest double. The
// library `tokenizers` reads scores so, and equal scores must stay equal.
double decimal(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  std::uint64_t digits = 0;
  int exponent = 0;
  bool fraction = false, full = false;
  std::size_t i = 0;
  for (; i < text.size() && text[i] != 'e' && text[i] != 'E'; ++i) {
    if (text[i] == '.') {
      fraction = true;
      continue;
    }
    const auto digit = static_cast<std::uint64_t>(text[i] - '0');
    full = full || digits > (~std::uint64_t{0} - digit) / 10;
    if (!full) digits = digits * 10 + digit;
    exponent += fraction ? (full ? 0 : -1) : (full ? 1 : 0);
  }
  if (i < text.size()) {
    int written = 0;
    const std::string_view rest = text.substr(i + (text[i + 1] == '+' ? 2 : 1));
    if (std::from_chars(rest.data(), rest.data() + rest.size(), written).ec != std::errc{})
      written = rest[0] == '-' ? -100000 : 100000;
    exponent = std::clamp(exponent + std::clamp(written, -100000, 100000), -100000, 100000);
  }
  auto value = static_cast<double>(digits);
  for (; exponent < -308 && value != 0; exponent += 308) value /= 1e308;
  double power = 0;
  const std::string name = "1e" + std::to_string(std::min(std::abs(exponent), 400));
  std::from_chars(name.data(), name.data() + name.size(), power);
  if (value != 0 && exponent > 308) return std::numeric_limits<double>::infinity() * (negative ? -1 : 1);
  if (value != 0) value = exponent >= 0 ? value * power : value / power;
  return negative ? -value : value;
}

}  // namespace

// One pass over the text; a node for each value, a string's node before each member.
class JsonParser {
 public:
  explicit JsonParser(JsonDocument& document) : document_(document), begin_(document.source_.data()) {
    at_ = begin_;
    end_ = begin_ + document.source_.size();
  }

  void parse() {
    if (document_.source_.size() >= kMost) error("the file is larger than 512 MB");
    document_.nodes_.reserve(document_.source_.size() / 12 + 8);
    value(0);
    skip_space();
    if (at_ != end_) error("something follows the value");
  }

 private:
  static constexpr std::size_t kMost = std::size_t{1} << 29;
  static constexpr int kDepth = 127;

  [[noreturn]] void error(std::string_view what) const {
    const auto line = 1 + std::count(begin_, at_, '\n');
    const char* start = at_;
    while (start > begin_ && start[-1] != '\n') --start;
    fail(ErrorCode::invalid_model, "not valid JSON: {} at line {}, column {}", what, line, at_ - start + 1);
  }

  void skip_space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  }

  char next() {
    skip_space();
    if (at_ == end_) error("the text ends too early");
    return *at_;
  }

  std::uint32_t add(JsonKind kind, const char* data, std::size_t size) {
    const auto index = static_cast<std::uint32_t>(document_.nodes_.size());
    document_.nodes_.push_back({data, static_cast<std::uint32_t>(size), index + 1, static_cast<std::uint32_t>(kind)});
    return index;
  }

  void close(std::uint32_t index, std::size_t count) {
    document_.nodes_[index].size = static_cast<std::uint32_t>(count);
    document_.nodes_[index].after = static_cast<std::uint32_t>(document_.nodes_.size());
  }

  void value(int depth) {
    const char c = next();
    if (c == '"') return string();
    if (c == '{' || c == '[') {
      if (depth >= kDepth) error("values are nested more than 127 levels deep");
      return c == '{' ? object(depth) : array(depth);
    }
    if (c == '-' || (c >= '0' && c <= '9')) return number();
    word(c);
  }

  void word(char c) {
    const std::string_view rest(at_, static_cast<std::size_t>(end_ - at_));
    const std::string_view expected = c == 't' ? "true" : c == 'f' ? "false" : "null";
    if (!rest.starts_with(expected)) error("expected a value");
    add(c == 'n' ? JsonKind::null : JsonKind::boolean, at_, expected.size());
    at_ += expected.size();
  }

  void digits() {
    if (at_ == end_ || *at_ < '0' || *at_ > '9') error("expected a digit");
    while (at_ != end_ && *at_ >= '0' && *at_ <= '9') ++at_;
  }

  void number() {
    char* const start = at_;
    if (*at_ == '-') ++at_;
    if (at_ != end_ && *at_ == '0') {
      ++at_;
      if (at_ != end_ && *at_ >= '0' && *at_ <= '9') error("a number begins with 0");
    } else {
      digits();
    }
    if (at_ != end_ && *at_ == '.') {
      ++at_;
      digits();
    }
    if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
      ++at_;
      if (at_ != end_ && (*at_ == '+' || *at_ == '-')) ++at_;
      digits();
    }
    if (!std::isfinite(decimal({start, static_cast<std::size_t>(at_ - start)}))) {
      at_ = start;
      error("a number does not fit");
    }
    add(JsonKind::number, start, static_cast<std::size_t>(at_ - start));
  }

  void string() {
    char* start = ++at_;
    while (at_ != end_ && *at_ != '"' && *at_ != '\\' && static_cast<unsigned char>(*at_) >= 0x20) ++at_;
    char* to = at_;
    while (true) {
      if (at_ == end_) error("a string does not end");
      if (*at_ == '"') break;
      if (static_cast<unsigned char>(*at_) < 0x20) error("a string contains a control character");
      if (*at_ == '\\') {
        escape(to);
      } else {
        *to++ = *at_++;
      }
    }
    add(JsonKind::string, start, static_cast<std::size_t>(to - start));
    ++at_;
  }

  // The meaning of an escape is never longer than the escape, so it overwrites it.
  void escape(char*& to) {
    if (end_ - at_ < 2) error("a string does not end");
    const char c = at_[1];
    constexpr std::string_view names = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
    if (const auto found = names.find(c); found != std::string_view::npos) {
      *to++ = meanings[found];
      at_ += 2;
      return;
    }
    if (c != 'u') error("unknown escape");
    char32_t code = unit();
    if (code >= 0xD800 && code < 0xDC00 && end_ - at_ >= 2 && at_[0] == '\\' && at_[1] == 'u') {
      const char32_t low = unit();
      if (low < 0xDC00 || low > 0xDFFF) error("half of a surrogate pair");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    if (code >= 0xD800 && code <= 0xDFFF) error("half of a surrogate pair");
    std::string text;
    append_utf8(text, code);
    to = std::copy(text.begin(), text.end(), to);
  }

  char32_t unit() {
    unsigned value = 0;
    if (end_ - at_ < 6) error("an escape is cut off");
    if (const auto result = std::from_chars(at_ + 2, at_ + 6, value, 16); result.ptr != at_ + 6)
      error("expected four hexadecimal digits");
    at_ += 6;
    return value;
  }

  void array(int depth) {
    const std::uint32_t index = add(JsonKind::array, at_, 0);
    ++at_;
    std::size_t count = 0;
    if (next() != ']') {
      while (true) {
        value(depth + 1);
        ++count;
        const char c = next();
        if (c == ']') break;
        if (c != ',') error("expected ',' or ']'");
        ++at_;
      }
    }
    ++at_;
    close(index, count);
  }

  void object(int depth) {
    const std::uint32_t index = add(JsonKind::object, at_, 0);
    ++at_;
    std::size_t count = 0;
    if (next() != '}') {
      while (true) {
        if (next() != '"') error("expected a member's name");
        string();
        if (next() != ':') error("expected ':'");
        ++at_;
        value(depth + 1);
        ++count;
        const char c = next();
        if (c == '}') break;
        if (c != ',') error("expected ',' or '}'");
        ++at_;
      }
    }
    ++at_;
    close(index, count);
  }

  JsonDocument& document_;
  char* begin_;
  char* at_;
  char* end_;
};

JsonDocument::JsonDocument(std::string source) : source_(std::move(source)) {
  if (source_.starts_with("\xEF\xBB\xBF")) source_.erase(0, 3);
  if (const std::size_t valid = valid_utf8(source_); valid != source_.size()) {
    fail(ErrorCode::invalid_model, "not valid JSON: byte {} is not UTF-8", valid);
  }
  JsonParser(*this).parse();
}

JsonKind JsonValue::kind() const noexcept { return static_cast<JsonKind>(document_->nodes_[at_].kind); }

std::optional<bool> JsonValue::boolean() const noexcept {
  if (kind() != JsonKind::boolean) return std::nullopt;
  return document_->nodes_[at_].size == 4;
}

std::optional<std::string_view> JsonValue::string() const noexcept {
  if (kind() != JsonKind::string) return std::nullopt;
  const auto& node = document_->nodes_[at_];
  return std::string_view(node.data, node.size);
}

std::optional<double> JsonValue::number() const noexcept {
  if (kind() != JsonKind::number) return std::nullopt;
  const auto& node = document_->nodes_[at_];
  return decimal({node.data, node.size});
}

std::optional<std::uint64_t> JsonValue::whole() const noexcept {
  if (kind() != JsonKind::number) return std::nullopt;
  const auto& node = document_->nodes_[at_];
  std::uint64_t value = 0;
  const auto result = std::from_chars(node.data, node.data + node.size, value);
  if (result.ec != std::errc{} || result.ptr != node.data + node.size) return std::nullopt;
  return value;
}

std::size_t JsonValue::size() const noexcept {
  return kind() == JsonKind::array || kind() == JsonKind::object ? document_->nodes_[at_].size : 0;
}

std::optional<JsonValue> JsonValue::find(std::string_view key) const noexcept {
  std::optional<JsonValue> found;
  if (kind() != JsonKind::object) return found;
  for (Iterator i = begin(); !(i == end()); ++i) {
    if (i.key() == key) found = *i;
  }
  return found;
}

JsonValue::Iterator JsonValue::begin() const noexcept {
  return size() == 0 ? end() : Iterator(document_, at_ + 1, kind() == JsonKind::object);
}
JsonValue::Iterator JsonValue::end() const noexcept {
  return Iterator(document_, document_->nodes_[at_].after, kind() == JsonKind::object);
}

std::string_view JsonValue::Iterator::key() const noexcept {
  const auto& node = document_->nodes_[at_];
  return {node.data, node.size};
}
JsonValue JsonValue::Iterator::operator*() const noexcept { return {document_, members_ ? at_ + 1 : at_}; }
JsonValue::Iterator& JsonValue::Iterator::operator++() noexcept {
  at_ = document_->nodes_[members_ ? at_ + 1 : at_].after;
  return *this;
}

}  // namespace sdx::text
