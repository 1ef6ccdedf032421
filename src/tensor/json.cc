#include "tensor/json.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/counted.h"
#include "base/error.h"
#include "base/text/json_text.h"
#include "tensor/dispatch.h"
#include "tensor/element.h"

namespace sdx {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxRank = 64;

std::string shorten(const json& j) {
  std::string text = dump_json(j);
  if (text.size() > 40) text = text.substr(0, 40) + "…";
  return text;
}

class Builder {
 public:
  Builder(DataType dtype, std::string_view name) : dtype_(dtype), name_(name) {}

  // The shape that the nested lists have along their first elements; complex numbers end one level early.
  Shape shape_of(const json& data) const {
    Shape shape;
    const json* at = &data;
    while (at->is_array() && !is_complex_pair(*at)) {
      shape.push_back(static_cast<std::int64_t>(at->size()));
      if (shape.size() > kMaxRank) fail(ErrorCode::invalid_argument, "'{}': lists are nested deeper than {}", name_, kMaxRank);
      if (at->empty()) break;
      at = &at->front();
    }
    return shape;
  }

  // Demands that every list has the length the first one of its depth has. Done before anything is allocated: uneven
  // lists could otherwise ask for far more memory than their text takes.
  void check(const json& data, const Shape& nested) { walk(data, nested, 0, nullptr); }

  void fill(const json& data, const Shape& nested, Tensor& out) { walk(data, nested, 0, &out); }

 private:
  bool is_complex() const { return dtype_ == DataType::complex64 || dtype_ == DataType::complex128; }
  bool is_complex_pair(const json& j) const {
    return is_complex() && j.is_array() && j.size() == 2 && !j[0].is_array() && !j[1].is_array();
  }

  std::string place() const {
    std::string text(name_);
    for (const std::size_t i : path_) text += "[" + std::to_string(i) + "]";
    return text;
  }

  void walk(const json& j, const Shape& nested, std::size_t depth, Tensor* out) {
    if (depth == nested.size()) {
      if ((j.is_array() && !is_complex_pair(j)) || j.is_object()) {
        fail(ErrorCode::invalid_argument, "'{}': expected one element, received {}: all lists of a depth must be nested alike",
             place(), shorten(j));
      }
      if (out != nullptr) {
        store(j, *out);
        ++next_;
      }
      return;
    }
    if (!j.is_array()) {
      fail(ErrorCode::invalid_argument, "'{}': expected a list of {}, received {}: all lists of a depth must be nested alike",
           place(), nested[depth], shorten(j));
    }
    if (static_cast<std::int64_t>(j.size()) != nested[depth]) {
      fail(ErrorCode::invalid_argument, "'{}': this list has {}, the first one at this depth has {}", place(),
           counted(static_cast<std::int64_t>(j.size()), "element"), nested[depth]);
    }
    path_.push_back(0);
    for (const json& item : j) {
      walk(item, nested, depth + 1, out);
      ++path_.back();
    }
    path_.pop_back();
  }

  [[noreturn]] void wrong(const json& j, std::string_view why) const {
    fail(ErrorCode::invalid_argument, "'{}': {} cannot be an element of type {}: {}", place(), shorten(j), sdx::name(dtype_),
         why);
  }

  double number(const json& j) const {
    if (j.is_string()) {
      const auto& text = j.get_ref<const std::string&>();
      if (text == "NaN" || text == "nan") return std::numeric_limits<double>::quiet_NaN();
      if (text == "Infinity" || text == "inf" || text == "+Infinity") return std::numeric_limits<double>::infinity();
      if (text == "-Infinity" || text == "-inf") return -std::numeric_limits<double>::infinity();
      wrong(j, "expected a number, or \"NaN\", \"Infinity\" or \"-Infinity\"");
    }
    if (j.is_boolean()) return j.get<bool>() ? 1 : 0;
    if (!j.is_number()) wrong(j, "expected a number");
    return j.get<double>();
  }

  void store_integer(const json& j, Tensor& out) {
    if (j.is_string()) wrong(j, "expected an integer");
    const int bits = bit_width(dtype_);
    const bool is_unsigned = sdx::name(dtype_).starts_with('u');
    const std::uint64_t high =
        is_unsigned ? (bits == 64 ? UINT64_MAX : (std::uint64_t{1} << bits) - 1) : (std::uint64_t{1} << (bits - 1)) - 1;
    const std::int64_t low = is_unsigned ? 0 : -static_cast<std::int64_t>(high) - 1;
    const auto out_of_range = [&] { wrong(j, fmt::format("its range is {} to {}", low, high)); };
    std::uint64_t raw = 0;
    if (j.is_number_float()) {
      const double v = j.get<double>();
      if (v != std::floor(v)) wrong(j, "it has a fraction");
      if (!(v >= static_cast<double>(low) && v <= static_cast<double>(high)) || std::abs(v) > 9007199254740992.0) out_of_range();
      raw = static_cast<std::uint64_t>(static_cast<std::int64_t>(v));
    } else if (j.is_number_unsigned()) {
      raw = j.get<std::uint64_t>();
      if (raw > high) out_of_range();
    } else if (j.is_number_integer()) {
      const auto v = j.get<std::int64_t>();
      if (v < low) out_of_range();
      raw = static_cast<std::uint64_t>(v);
    } else if (j.is_boolean()) {
      raw = j.get<bool>() ? 1 : 0;
    } else {
      wrong(j, "expected an integer");
    }
    if (dtype_ == DataType::uint64) {
      std::memcpy(static_cast<char*>(out.mutable_data()) + next_ * 8, &raw, 8);
    } else {
      set_element_int(out, next_, static_cast<std::int64_t>(raw));
    }
  }

  void store_complex(const json& j, Tensor& out) {
    const bool pair = is_complex_pair(j);
    const std::complex<double> z(number(pair ? j[0] : j), pair ? number(j[1]) : 0);
    if (dtype_ == DataType::complex128) {
      std::memcpy(static_cast<char*>(out.mutable_data()) + next_ * 16, &z, 16);
    } else {
      const std::complex<float> f(static_cast<float>(z.real()), static_cast<float>(z.imag()));
      std::memcpy(static_cast<char*>(out.mutable_data()) + next_ * 8, &f, 8);
    }
  }

  void store(const json& j, Tensor& out) {
    if (dtype_ == DataType::string) {
      if (!j.is_string()) wrong(j, "expected a string");
      out.mutable_values<std::string>()[static_cast<std::size_t>(next_)] = j.get<std::string>();
    } else if (dtype_ == DataType::boolean) {
      const bool ok = j.is_boolean() || (j.is_number() && (j.get<double>() == 0 || j.get<double>() == 1));
      if (!ok) wrong(j, "expected true or false");
      set_element(out, next_, number(j));
    } else if (is_complex()) {
      store_complex(j, out);
    } else if (is_integer(dtype_)) {
      store_integer(j, out);
    } else {
      const double v = number(j);
      set_element(out, next_, v);
      if (std::isfinite(v) && !std::isfinite(element_as_double(out, next_))) wrong(j, "it is out of range");
    }
  }

  DataType dtype_;
  std::string_view name_;
  std::int64_t next_ = 0;
  std::vector<std::size_t> path_;
};

// Guesses the type of a list's elements if it is unknown.
DataType guess(const json& j, int depth = 0) {
  if (j.is_string()) {
    const auto& s = j.get_ref<const std::string&>();
    return s == "NaN" || s == "Infinity" || s == "-Infinity" ? DataType::float32 : DataType::string;
  }
  if (j.is_boolean()) return DataType::boolean;
  if (j.is_number_float()) return DataType::float32;
  if (!j.is_array()) return DataType::int64;
  DataType found = DataType::undefined;
  if (depth > static_cast<int>(kMaxRank)) return found;
  for (const json& item : j) {
    const DataType t = guess(item, depth + 1);
    if (found == DataType::undefined || t == DataType::float32 || (t == DataType::string && found != DataType::float32))
      found = t;
  }
  return found;
}

Shape read_shape(const json& j, std::string_view name) {
  if (!j.is_array() || j.size() > kMaxRank) fail(ErrorCode::invalid_argument, "'{}': \"shape\" must be a list of integers", name);
  Shape shape;
  for (const json& d : j) {
    if (!d.is_number_integer() || (d.is_number_unsigned() && d.get<std::uint64_t>() > INT64_MAX) || d.get<std::int64_t>() < 0) {
      fail(ErrorCode::invalid_argument, "'{}': \"shape\" holds {}, expected integers >= 0", name, shorten(d));
    }
    shape.push_back(d.get<std::int64_t>());
  }
  return shape;
}

bool fully_known(const std::optional<Shape>& shape) {
  return shape && std::none_of(shape->begin(), shape->end(), [](std::int64_t d) { return d < 0; });
}

// Without "[json.exception.parse_error.101] ", which is for the library's own users.
std::string words_of(const json::exception& e) {
  const std::string all = e.what();
  const std::size_t at = all.find("] ");
  return all.starts_with('[') && at != std::string::npos ? all.substr(at + 2) : all;
}

// nlohmann's names for the tokens that belong at a place.
std::string in_words(std::string_view token) {
  if (token.ends_with("or a literal")) return "a value";
  if (token == "end of input") return "nothing more";
  if (token == "string literal") return "text in double quotes";
  if (token == "number literal") return "a number";
  if (token.ends_with(" literal")) token.remove_suffix(8);
  return std::string(token);
}

// The word that text[at] is in, as [start, end), between commas, brackets, quotes and spaces. Any of these characters alone.
std::pair<std::size_t, std::size_t> word_at(std::string_view text, std::size_t at) {
  const auto in_word = [&](std::size_t i) {
    const auto c = static_cast<unsigned char>(text[i]);
    return std::isalnum(c) != 0 || c >= 0x80 || text[i] == '_' || text[i] == '-' || text[i] == '.';
  };
  std::size_t start = at, end = at + 1;
  while (in_word(at) && start > 0 && in_word(start - 1)) --start;
  while (in_word(at) && end < text.size() && in_word(end)) ++end;
  return {start, end};
}

// "(column 4)", or "(line 2, column 4)" in a text of several lines.
std::string place_of(std::string_view text, std::size_t at) {
  const std::string_view before = text.substr(0, at);
  const std::size_t line = before.rfind('\n');
  const std::size_t column = line == std::string_view::npos ? at + 1 : at - line;
  if (text.find('\n') >= text.size() - 1) return fmt::format("(column {})", column);
  return fmt::format("(line {}, column {})", std::count(before.begin(), before.end(), '\n') + 1, column);
}

// "found 'foo', expected a value (column 3)": nlohmann's error in the words of its grammar.
std::string syntax_error(std::string_view text, const json::parse_error& e) {
  std::string what = words_of(e), expected;
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return "it is empty";
  const std::size_t detail = what.find(" - ");
  if (detail == std::string::npos || e.byte == 0) return what;
  what.erase(0, detail + 3);
  if (const std::size_t at = what.rfind("; expected "); at != std::string::npos) {
    expected = ", expected " + in_words(std::string_view(what).substr(at + 11));
    what.erase(at);
  }
  what = what.substr(0, what.find("; last read: "));
  if (what == "unexpected end of input") return "it ends too early" + expected;
  std::size_t at = std::min(e.byte, text.size()) - 1;
  if (what == "invalid literal") {
    const auto [start, end] = word_at(text, at);
    const std::string_view word = text.substr(start, std::min<std::size_t>(end - start, 40));
    at = start;
    what = word == "'" ? "found a single quote; text needs double quotes" : fmt::format("found '{}'", word);
    if (expected.empty()) expected = ", expected a value";
    if (word == "'") expected.clear();
  } else if (what.starts_with("unexpected ")) {
    what = "found " + in_words(std::string_view(what).substr(11));
  }
  return fmt::format("{}{} {}", what, expected, place_of(text, at));
}

}  // namespace

json parse_json(std::string_view text, std::string_view what) {
  try {
    return json::parse(text);
  } catch (const json::parse_error& e) {
    fail(ErrorCode::invalid_argument, "{} is not valid JSON: {}", what, syntax_error(text, e));
  } catch (const json::exception& e) {
    fail(ErrorCode::invalid_argument, "{} is not usable JSON: {}", what, words_of(e));
  }
}

Tensor tensor_from_json(const json& j, const JsonHint& hint, std::string_view name) {
  const json* data = &j;
  DataType dtype = hint.dtype;
  std::optional<Shape> shape;
  if (j.is_object()) {
    for (const auto& [key, value] : j.items()) {
      if (key == "data") {
        data = &value;
      } else if (key == "dtype") {
        const DataType given = value.is_string() ? parse_data_type(value.get_ref<const std::string&>()) : DataType::undefined;
        if (given == DataType::undefined) {
          fail(ErrorCode::invalid_argument,
               "'{}': unknown \"dtype\" {}; for example \"float32\", \"int64\", \"bool\", \"string\"", name, shorten(value));
        }
        dtype = given;
      } else if (key == "shape") {
        shape = read_shape(value, name);
      } else {
        fail(ErrorCode::invalid_argument, "'{}': unknown key \"{}\"; a tensor has \"dtype\", \"shape\" and \"data\"", name, key);
      }
    }
    if (data == &j) fail(ErrorCode::invalid_argument, "'{}': an object needs \"data\"", name);
  }
  if (data->is_null() || data->is_object()) {
    fail(ErrorCode::invalid_argument, "'{}': expected a number, string, bool or nested lists, received {}", name, shorten(*data));
  }
  if (dtype == DataType::undefined) dtype = guess(*data);
  if (dtype == DataType::undefined) dtype = DataType::float32;  // an empty list
  Builder builder(dtype, name);
  const Shape nested = builder.shape_of(*data);
  builder.check(*data, nested);
  const std::int64_t count = element_count(nested);
  if (!shape && nested.size() <= 1 && fully_known(hint.shape) && element_count(*hint.shape) == count) shape = hint.shape;
  if (shape && element_count(*shape) != count) {
    fail(ErrorCode::invalid_argument, "'{}': \"shape\" {} needs {}, \"data\" has {}", name, to_string(*shape),
         counted(element_count(*shape), "element"), count);
  }
  Tensor out(dtype, nested);
  if (dtype != DataType::string && out.bytes() != 0) std::memset(out.mutable_data(), 0, out.bytes());
  builder.fill(*data, nested, out);
  return shape ? out.reshaped(*shape) : out;
}

}  // namespace sdx
