#include "serve/inference/json_numbers.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text/json_text.h"
#include "base/text/utf8.h"

namespace sdx::serve {
namespace {

// Text that is not set aside is parsed to a document, which takes twenty times its memory.
constexpr std::size_t kMostText = std::size_t{8} << 20;
constexpr std::size_t kMostValues = 4096;

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Skips over JSON without parsing it: accepted text may still be invalid, but its brackets and quotes match.
class Walker {
 public:
  explicit Walker(std::string_view json) : json_(json) {}

  std::size_t at() const { return at_; }
  std::string_view between(std::size_t from, std::size_t to) const { return json_.substr(from, to - from); }

  char peek() {
    while (at_ < json_.size() && is_space(json_[at_])) ++at_;
    return at_ < json_.size() ? json_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c || at_ >= json_.size()) return false;
    ++at_;
    return true;
  }
  void need(char c) {
    if (!take(c)) broken();
  }
  // Moves past the closing quote; returns the text between the quotes, as it is written.
  std::string_view string() {
    need('"');
    const std::size_t begin = at_;
    while (true) {
      at_ = json_.find_first_of("\"\\", at_);
      if (at_ == std::string_view::npos) broken();
      if (json_[at_] == '"') break;
      at_ += 2;
      if (at_ > json_.size()) broken();
    }
    return json_.substr(begin, at_++ - begin);
  }
  void skip_value() {
    const char first = peek();
    if (first == '"') {
      string();
      return;
    }
    if (first != '[' && first != '{') {
      at_ = std::min(json_.find_first_of(",]} \n\t\r", at_), json_.size());
      return;
    }
    std::size_t depth = 0;
    do {
      at_ = json_.find_first_of("[]{}\"", at_);
      if (at_ == std::string_view::npos) broken();
      const char c = json_[at_];
      if (c == '"') {
        string();
        continue;
      }
      depth += c == '[' || c == '{' ? 1 : std::size_t{0} - 1;
      ++at_;
    } while (depth > 0);
  }
  [[noreturn]] void broken() const {
    fail(ErrorCode::invalid_argument, "the request is not JSON: something is missing or wrong at byte {}",
         std::min(at_, json_.size()));
  }

 private:
  std::string_view json_;
  std::size_t at_ = 0;
};

// One object; values of `member` are set aside.
void walk_item(Walker& walker, std::string_view member, Skeleton& out, std::size_t& copied) {
  walker.need('{');
  if (walker.take('}')) return;
  do {
    const std::string_view key = walker.string();
    walker.need(':');
    if (key != member) {
      walker.skip_value();
      continue;
    }
    walker.peek();
    const std::size_t begin = walker.at();
    walker.skip_value();
    if (out.values.size() >= kMostValues) fail(ErrorCode::invalid_argument, "more than {} arrays of data", kMostValues);
    out.text += walker.between(copied, begin);
    out.text += std::to_string(out.values.size());
    copied = walker.at();
    out.values.push_back(walker.between(begin, copied));
  } while (walker.take(','));
  walker.need('}');
}

// ---- Reading ----

template <class T>
constexpr bool kIsFloat = std::is_floating_point_v<T>;

template <class T>
class ValueReader {
 public:
  ValueReader(std::string_view json, std::string_view what) : at_(json.data()), end_(json.data() + json.size()), what_(what) {}

  // Flattens nested arrays.
  void read(T* to, std::size_t count) {
    std::size_t depth = 0, got = 0;
    need_array();
    ++depth;
    bool value_may_come = true, value_must_come = false;
    while (depth > 0) {
      const char c = next();
      if (c == ']') {
        if (value_must_come) wrong("a value is missing");
        --depth;
        ++at_;
        value_may_come = false;
      } else if (c == ',') {
        if (value_may_come) wrong("a value is missing");
        ++at_;
        value_may_come = value_must_come = true;
        continue;
      } else if (!value_may_come) {
        wrong("a comma is missing");
      } else if (c == '[') {
        if (++depth > 64) wrong("arrays are nested too deeply");
        ++at_;
        value_must_come = false;
        continue;
      } else {
        if (got == count) too_many(count);
        to[got++] = value();
        value_may_come = false;
      }
      value_must_come = false;
    }
    if (next_or_end() != '\0') wrong("something follows the array");
    if (got != count) fail(ErrorCode::invalid_argument, "{}: the shape has {} elements, \"data\" has {}", what_, count, got);
  }

 private:
  char next_or_end() {
    while (at_ < end_ && is_space(*at_)) ++at_;
    return at_ < end_ ? *at_ : '\0';
  }
  char next() {
    const char c = next_or_end();
    if (c == '\0') wrong("the array does not end");
    return c;
  }
  void need_array() {
    if (next() != '[') wrong("\"data\" must be an array");
    ++at_;
  }

  T value() {
    if constexpr (std::is_same_v<T, std::string>) {
      return text();
    } else if constexpr (std::is_same_v<T, bool>) {
      return boolean();
    } else {
      return number();
    }
  }

  bool boolean() {
    for (const auto& [word, value] : {std::pair{"true", true}, {"false", false}, {"1", true}, {"0", false}}) {
      const std::size_t size = std::char_traits<char>::length(word);
      if (static_cast<std::size_t>(end_ - at_) >= size && std::equal(at_, at_ + size, word)) {
        at_ += size;
        return value;
      }
    }
    wrong("BOOL takes true and false");
  }

  T number() {
    T out{};
    check_start();
    const auto [behind, error] = std::from_chars(at_, end_, out);
    if (error == std::errc::invalid_argument) wrong("this is not a number of the type");
    if (error == std::errc::result_out_of_range) {
      if constexpr (kIsFloat<T>) {
        out = denormal(behind);
      } else {
        wrong("the number does not fit the type");
      }
    }
    if constexpr (kIsFloat<T>) {
      if (behind[-1] == '.') wrong("a digit must follow the point");
    }
    at_ = behind;
    return out;
  }
  // Forms that from_chars accepts, but JSON does not: leading zeros, "inf", "nan".
  void check_start() {
    const char* digit = at_ < end_ && *at_ == '-' ? at_ + 1 : at_;
    if (digit >= end_ || !is_digit(*digit)) wrong("this is not a number");
    if (*digit == '0' && digit + 1 < end_ && is_digit(digit[1])) wrong("numbers do not begin with 0");
  }
  // Too close to zero for the type: nearly zero, or zero. Too large: an error.
  T denormal(const char* behind) {
    if constexpr (kIsFloat<T>) {
      const std::string text(at_, behind);
      const double value = std::strtod(text.c_str(), nullptr);
      if (std::abs(value) < 1) return static_cast<T>(value);
    }
    wrong("the number does not fit the type");
  }

  std::string text() {
    if (*at_ != '"') wrong("BYTES takes strings");
    const char* close = ++at_;
    bool escapes = false;
    for (; close < end_ && *close != '"'; ++close) {
      if (static_cast<unsigned char>(*close) < 0x20) wrong("strings have no control characters");
      if (*close != '\\') continue;
      escapes = true;
      if (++close >= end_) break;
    }
    if (close >= end_) wrong("a string does not end");
    const char* begin = std::exchange(at_, close + 1);
    if (!escapes) return {begin, close};
    // Rare: left to a whole parser.
    const nlohmann::json parsed = nlohmann::json::parse(begin - 1, close + 1, nullptr, false);
    if (!parsed.is_string()) wrong("a string has an escape that JSON does not");
    return parsed.get<std::string>();
  }

  [[noreturn]] void wrong(std::string_view why) const {
    const std::string near(at_, at_ + std::min<std::ptrdiff_t>(end_ - at_, 12));
    fail(ErrorCode::invalid_argument, "{}: {} at '{}'", what_, why, near);
  }
  [[noreturn]] void too_many(std::size_t count) const {
    fail(ErrorCode::invalid_argument, "{}: \"data\" has more values than the {} of the shape", what_, count);
  }

  const char* at_;
  const char* end_;
  std::string_view what_;
};

template <class T>
Tensor read_as(std::string_view json, DataType type, Shape shape, std::string_view what) {
  Tensor out(type, std::move(shape));
  const std::span<T> values = out.mutable_values<T>();
  ValueReader<T>(json, what).read(values.data(), values.size());
  return out;
}

// ---- Writing ----

template <class T>
void append_number(std::string& to, T value) {
  char text[40];
  if constexpr (kIsFloat<T>) {
    if (!std::isfinite(value)) {
      to += "null";
      return;
    }
  }
  to.append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

template <class T>
void append_all(std::string& to, const Tensor& tensor) {
  const std::span<const T> values = tensor.values<T>();
  to.reserve(to.size() + values.size() * (kIsFloat<T> ? 12 : 6));
  for (const T& value : values) {
    if constexpr (std::is_same_v<T, bool>) {
      to += value ? "true" : "false";
    } else {
      append_number(to, value);
    }
    to += ',';
  }
}

float float_of_half(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000U) << 16, exponent = (half >> 10) & 31U, fraction = half & 0x3FFU;
  if (exponent == 0) {
    const float value = std::ldexp(static_cast<float>(fraction), -24);
    return sign != 0 ? -value : value;
  }
  const std::uint32_t bits = exponent == 31 ? 0x7F800000U | fraction << 13 : (exponent + 112) << 23 | fraction << 13;
  return std::bit_cast<float>(sign | bits);
}

void append_halves(std::string& to, const Tensor& tensor) {
  const auto* bits = static_cast<const std::byte*>(tensor.data());
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    std::uint16_t half = 0;
    std::copy_n(bits + 2 * i, 2, reinterpret_cast<std::byte*>(&half));
    const bool brain = tensor.dtype() == DataType::bfloat16;
    append_number(to, brain ? std::bit_cast<float>(std::uint32_t{half} << 16) : float_of_half(half));
    to += ',';
  }
}

}  // namespace

Skeleton set_values_aside(std::string_view json, std::string_view list, std::string_view member) {
  Skeleton out;
  std::size_t copied = 0;
  Walker walker(json);
  walker.need('{');
  if (!walker.take('}')) {
    do {
      const std::string_view key = walker.string();
      walker.need(':');
      if (key != list || walker.peek() != '[') {
        walker.skip_value();
        continue;
      }
      walker.need('[');
      if (walker.take(']')) continue;
      do {
        if (walker.peek() == '{') {
          walk_item(walker, member, out, copied);
        } else {
          walker.skip_value();
        }
      } while (walker.take(','));
      walker.need(']');
    } while (walker.take(','));
    walker.need('}');
  }
  if (out.text.size() + json.size() - copied > kMostText) {
    fail(ErrorCode::invalid_argument, "the request has more than {} bytes of JSON besides its data", kMostText);
  }
  out.text += json.substr(copied);
  return out;
}

Tensor read_values(std::string_view json, DataType type, Shape shape, std::string_view what) {
  // A number takes a digit and a comma at least, a string two quotes and a comma: a shape that promises more than was sent
  // reserves no memory.
  if (static_cast<std::uint64_t>(element_count(shape)) > json.size() / (type == DataType::string ? 3 : 2)) {
    fail(ErrorCode::invalid_argument, "{}: the shape {} has more elements than \"data\"", what, to_string(shape));
  }
  switch (type) {
    case DataType::boolean: return read_as<bool>(json, type, std::move(shape), what);
    case DataType::uint8: return read_as<std::uint8_t>(json, type, std::move(shape), what);
    case DataType::uint16: return read_as<std::uint16_t>(json, type, std::move(shape), what);
    case DataType::uint32: return read_as<std::uint32_t>(json, type, std::move(shape), what);
    case DataType::uint64: return read_as<std::uint64_t>(json, type, std::move(shape), what);
    case DataType::int8: return read_as<std::int8_t>(json, type, std::move(shape), what);
    case DataType::int16: return read_as<std::int16_t>(json, type, std::move(shape), what);
    case DataType::int32: return read_as<std::int32_t>(json, type, std::move(shape), what);
    case DataType::int64: return read_as<std::int64_t>(json, type, std::move(shape), what);
    case DataType::float32: return read_as<float>(json, type, std::move(shape), what);
    case DataType::float64: return read_as<double>(json, type, std::move(shape), what);
    case DataType::string: return read_as<std::string>(json, type, std::move(shape), what);
    default: fail(ErrorCode::invalid_argument, "{}: {} can be sent only as binary data (binary_data_size)", what, name(type));
  }
}

void append_values(std::string& to, const Tensor& tensor, std::string_view what) {
  to += '[';
  switch (tensor.dtype()) {
    case DataType::boolean: append_all<bool>(to, tensor); break;
    case DataType::uint8: append_all<std::uint8_t>(to, tensor); break;
    case DataType::uint16: append_all<std::uint16_t>(to, tensor); break;
    case DataType::uint32: append_all<std::uint32_t>(to, tensor); break;
    case DataType::uint64: append_all<std::uint64_t>(to, tensor); break;
    case DataType::int8: append_all<std::int8_t>(to, tensor); break;
    case DataType::int16: append_all<std::int16_t>(to, tensor); break;
    case DataType::int32: append_all<std::int32_t>(to, tensor); break;
    case DataType::int64: append_all<std::int64_t>(to, tensor); break;
    case DataType::float32: append_all<float>(to, tensor); break;
    case DataType::float64: append_all<double>(to, tensor); break;
    case DataType::float16:
    case DataType::bfloat16: append_halves(to, tensor); break;
    case DataType::string:
      for (const std::string& s : tensor.values<std::string>()) {
        if (!is_utf8(s)) {
          fail(ErrorCode::invalid_argument, "{}: a string is not UTF-8: ask for binary data (binary_data)", what);
        }
        append_json_string(to, s, JsonControls::codes);
        to += ',';
      }
      break;
    default: fail(ErrorCode::not_implemented, "{}: the protocol has no type for {}", what, name(tensor.dtype()));
  }
  if (to.back() == ',') to.pop_back();
  to += ']';
}

}  // namespace sdx::serve
