#include "project/yaml/yaml.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text/ascii.h"
#include "base/text/json_text.h"
#include "project/yaml/yaml_node.h"

namespace sdx {
namespace {

bool parse_number(const std::string& written, double& out) {
  std::string text;
  for (const char c : written) {
    if (c != '_') text += c;
  }
  const char* first = text.data() + (text.starts_with('+') ? 1 : 0);
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(first, last, out);
  return error == std::errc{} && end == last && first != last;
}

bool parse_integer(const std::string& written, std::int64_t& out) {
  std::string text;
  for (const char c : written) {
    if (c != '_') text += c;
  }
  const bool hex = text.starts_with("0x") || text.starts_with("0X");
  const char* first = text.data() + (hex ? 2 : text.starts_with('+') ? 1 : 0);
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(first, last, out, hex ? 16 : 10);
  return error == std::errc{} && end == last && first != last;
}

std::string shortened(const std::string& text) { return text.size() <= 60 ? text : text.substr(0, 57) + "..."; }

}  // namespace

YamlKind YamlValue::kind() const noexcept { return node_ == nullptr ? YamlKind::absent : node_->kind; }
int YamlValue::line() const noexcept { return node_ == nullptr ? 1 : node_->line; }
int YamlValue::column() const noexcept { return node_ == nullptr ? 1 : node_->column; }
bool YamlValue::quoted() const noexcept { return node_ != nullptr && node_->quoted; }

std::string YamlValue::at(std::string_view message) const {
  return fmt::format("{}:{}:{}: {}{}{}", *file_, line(), column(), path_, path_.empty() ? "" : ": ", message);
}

void YamlValue::fail(std::string_view message) const { throw Error(ErrorCode::invalid_argument, at(message)); }

std::string YamlValue::found() const {
  switch (kind()) {
    case YamlKind::absent: return "nothing";
    case YamlKind::null: return "no value";
    case YamlKind::scalar: return "'" + shortened(node_->text) + "'";
    case YamlKind::list: return "a list";
    case YamlKind::map: return "a map";
  }
  return "";
}

void YamlValue::expect(YamlKind wanted, const char* what) const {
  if (kind() != wanted) fail(fmt::format("expected {}, found {}", what, found()));
}

std::string YamlValue::text() const {
  expect(YamlKind::scalar, "a word");
  return node_->text;
}

std::string YamlValue::string() const {
  expect(YamlKind::scalar, "a word");
  if (node_->text.empty()) fail("must not be empty");
  return node_->text;
}

bool YamlValue::boolean() const {
  expect(YamlKind::scalar, "true or false");
  const std::string word = ascii_lower(node_->text);
  if (!node_->quoted && (word == "true" || word == "yes" || word == "on")) return true;
  if (!node_->quoted && (word == "false" || word == "no" || word == "off")) return false;
  fail(fmt::format("expected true or false, found {}", found()));
}

std::int64_t YamlValue::integer(std::int64_t low, std::int64_t high) const {
  std::int64_t value = 0;
  const bool number = is_scalar() && !node_->quoted && parse_integer(node_->text, value);
  if (number && value >= low && value <= high) return value;
  const bool open = high == std::numeric_limits<std::int64_t>::max();
  const std::string range = open ? fmt::format("of at least {}", low) : fmt::format("from {} to {}", low, high);
  fail(fmt::format("expected an integer {}, found {}{}", range, found(), is_scalar() && node_->quoted ? " in quotes" : ""));
}

double YamlValue::number(double low, double high) const {
  double value = 0;
  const bool number = is_scalar() && !node_->quoted && parse_number(node_->text, value) && std::isfinite(value);
  if (number && value >= low && value <= high) return value;
  std::string range;
  if (std::isfinite(low) && std::isfinite(high)) range = fmt::format(" from {} to {}", low, high);
  if (std::isfinite(low) && !std::isfinite(high)) range = fmt::format(" of at least {}", low);
  fail(fmt::format("expected a finite number{}, found {}{}", range, found(), is_scalar() && node_->quoted ? " in quotes" : ""));
}

std::string YamlValue::one_of(std::initializer_list<std::string_view> choices) const {
  expect(YamlKind::scalar, "a word");
  const std::string word = ascii_lower(node_->text);
  std::vector<std::string> names;
  for (const std::string_view c : choices) {
    if (ascii_lower(c) == word) return std::string(c);
    names.emplace_back(c);
  }
  const std::string near = closest(node_->text, names);
  fail(fmt::format("expected one of {}, found {}{}", join(names), found(), near.empty() ? "" : "; did you mean '" + near + "'?"));
}

std::vector<YamlValue> YamlValue::list() const {
  expect(YamlKind::list, "a list");
  std::vector<YamlValue> out;
  for (std::size_t i = 0; i < node_->items.size(); ++i) {
    out.push_back(YamlValue(&node_->items[i], file_, fmt::format("{}[{}]", path_, i)));
  }
  return out;
}

std::vector<std::pair<std::string, YamlValue>> YamlValue::entries() const {
  expect(YamlKind::map, "a map");
  std::vector<std::pair<std::string, YamlValue>> out;
  for (const YamlEntry& e : node_->entries) {
    out.emplace_back(e.key, YamlValue(&e.value, file_, path_.empty() ? e.key : path_ + "." + e.key));
  }
  return out;
}

std::vector<std::string> YamlValue::strings() const {
  if (is_scalar()) return {string()};
  expect(YamlKind::list, "a list of words");
  std::vector<std::string> out;
  for (const YamlValue& item : list()) out.push_back(item.string());
  return out;
}

std::vector<std::int64_t> YamlValue::integers(std::int64_t low, std::int64_t high) const {
  expect(YamlKind::list, "a list of integers");
  std::vector<std::int64_t> out;
  for (const YamlValue& item : list()) out.push_back(item.integer(low, high));
  return out;
}

YamlValue YamlValue::get(std::string_view key) const {
  const std::string path = path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
  if (!present() || is_null()) return {nullptr, file_, path};
  expect(YamlKind::map, "a map");
  for (const YamlEntry& e : node_->entries) {
    if (e.key == key) return {&e.value, file_, path};
  }
  return {nullptr, file_, path};
}

YamlValue YamlValue::require(std::string_view key) const {
  YamlValue value = get(key);
  if (!value.present()) fail(fmt::format("the key '{}' is missing", key));
  if (value.is_null()) value.fail("a value is missing");
  return value;
}

YamlValue::Place YamlValue::key_place(std::string_view key) const noexcept {
  if (kind() != YamlKind::map) return {};
  for (const YamlEntry& e : node_->entries) {
    if (e.key == key) return {e.line, e.column};
  }
  return {};
}

void YamlValue::only_keys(std::initializer_list<std::string_view> keys) const {
  only_keys(std::span<const std::string_view>(keys.begin(), keys.size()));
}

void YamlValue::only_keys(std::span<const std::string_view> keys) const {
  if (!present() || is_null()) return;
  expect(YamlKind::map, "a map");
  for (const YamlEntry& e : node_->entries) {
    if (std::find(keys.begin(), keys.end(), e.key) != keys.end()) continue;
    const std::vector<std::string> known(keys.begin(), keys.end());
    const std::string near = closest(e.key, known);
    sdx::fail(ErrorCode::invalid_argument, "{}:{}:{}: {}{}unknown key '{}'{}; known: {}", *file_, e.line, e.column, path_,
              path_.empty() ? "" : ": ", shortened(e.key), near.empty() ? "" : ", did you mean '" + near + "'?", join(known));
  }
}

std::string yaml_scalar(std::string_view text) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '/' || c == '.';
  };
  const auto inner = [&](char c) { return plain(c) || c == '-' || c == ' ' || c == '+'; };
  static constexpr std::string_view kWords[] = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"};
  const std::string word = ascii_lower(text);
  double number = 0;
  std::int64_t integer = 0;
  bool bare = !text.empty() && plain(text.front()) && plain(text.back()) && std::all_of(text.begin(), text.end(), inner);
  bare = bare && std::find(std::begin(kWords), std::end(kWords), word) == std::end(kWords);
  bare = bare && !parse_number(std::string(text), number) && !parse_integer(std::string(text), integer) && text.front() != '.';
  if (bare) return std::string(text);
  return json_string(text);  // JSON's escapes are YAML's
}

}  // namespace sdx
