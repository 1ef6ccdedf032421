#include "text/template/from_json.h"

#include <nlohmann/json.hpp>

namespace sdx::text::jinja {
namespace {

constexpr std::size_t max_depth = 400;

// Builds values as they are read; open lists and objects are on a stack.
class Reader {
 public:
  explicit Reader(Runtime& rt) : rt_(rt) {}

  bool null() { return add({}); }
  bool boolean(bool value) { return add(Value::boolean(value)); }
  bool number_integer(std::int64_t value) { return add(Value::integer(value)); }
  bool number_unsigned(std::uint64_t value) { return add(Value::integer(value)); }
  bool number_float(double value, const std::string& text) {
    if (text.find_first_of(".eE") != std::string::npos) return add(Value::real(value));
    Int whole = 0;
    for (const char c : text) {
      if (c == '-') continue;
      if (__builtin_mul_overflow(whole, Int{10}, &whole) || __builtin_add_overflow(whole, Int{c - '0'}, &whole))
        value_error("an integer beyond 127 bits");
    }
    return add(Value::integer(text[0] == '-' ? -whole : whole));
  }
  bool string(std::string& text) { return add(rt_.str(std::move(text))); }
  bool binary(std::vector<std::uint8_t>&) { return false; }
  bool start_object(std::size_t) { return open(true); }
  bool start_array(std::size_t) { return open(false); }
  bool key(std::string& name) {
    open_.back().items.push_back(rt_.str(std::move(name)));
    return true;
  }
  bool end_object() {
    Values items = std::move(open_.back().items);
    open_.pop_back();
    std::vector<std::pair<Value, Value>> pairs;
    pairs.reserve(items.size() / 2);
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) pairs.emplace_back(std::move(items[i]), std::move(items[i + 1]));
    return add(rt_.dict(std::move(pairs)));
  }
  bool end_array() {
    Values items = std::move(open_.back().items);
    open_.pop_back();
    return add(rt_.list(std::move(items)));
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) {
    value_error(std::string("not valid JSON: ") + error.what());
  }

  Value result;

 private:
  struct Open {
    bool object = false;
    Values items;
  };
  bool open(bool object) {
    if (open_.size() >= max_depth) limit_error("JSON that is nested more than " + std::to_string(max_depth) + " deep");
    open_.push_back({object, {}});
    return true;
  }
  bool add(Value value) {
    if (open_.empty()) {
      result = std::move(value);
    } else {
      open_.back().items.push_back(std::move(value));
    }
    return true;
  }

  Runtime& rt_;
  std::vector<Open> open_;
};

}  // namespace

Value parse_json(Runtime& rt, std::string_view text) {
  Reader reader(rt);
  if (!nlohmann::json::sax_parse(text, &reader)) value_error("not valid JSON");
  return std::move(reader.result);
}

}  // namespace sdx::text::jinja
