#include "serve/openai/fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/text/json_text.h"

namespace sdx::serve::openai {
namespace {

constexpr int kDeepest = 64;
constexpr std::size_t kMostMembers = 1024;        // of one object
constexpr std::size_t kMostMembersInAll = 65536;  // 2^26 comparisons at most: a tenth of a second
// Arrays and objects: an empty one takes three bytes of a body and dozens of memory.
constexpr std::size_t kMostContainers = 262144;

// Counts while nlohmann's parser reads, and stops it where there is too much.
class Limits {
 public:
  bool operator()(int depth, Json::parse_event_t event, Json&) {
    if (depth > kDeepest) throw ApiError(400, fmt::format("The JSON body is nested more than {} levels deep.", kDeepest));
    const bool begins = event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    if (begins && ++containers_ > kMostContainers) {
      throw ApiError(400, fmt::format("The JSON body has more than {} arrays and objects.", kMostContainers));
    }
    if (event == Json::parse_event_t::object_start) {
      members_.push_back(0);
    } else if (event == Json::parse_event_t::object_end) {
      members_.pop_back();
    } else if (event == Json::parse_event_t::key) {
      if (++members_.back() > kMostMembers || ++all_ > kMostMembersInAll) {
        throw ApiError(400, fmt::format("The JSON body has more than {} members in one object, or {} in all.", kMostMembers,
                                        kMostMembersInAll));
      }
    }
    return true;
  }

 private:
  std::vector<std::size_t> members_;
  std::size_t all_ = 0, containers_ = 0;
};

std::string shown(const Json& value) {
  std::string text = dump_json(value);
  if (text.size() > 100) {
    text.resize(97);
    text += "...";
  }
  return text;
}

template <class Number>
[[noreturn]] void out_of_range(const std::string& param, std::string_view kind, Number value, bool below, Number bound) {
  refuse(fmt::format("Invalid '{}': {} {} value. Expected a value {} {}, but got {} instead.", param, kind,
                     below ? "below minimum" : "above maximum", below ? ">=" : "<=", bound, value),
         param, fmt::format("{}_{}_value", kind, below ? "below_min" : "above_max"));
}

}  // namespace

std::optional<Json> read_json(std::string_view text) {
  Limits limits;
  try {
    // (The parser copies its callback: it is given a reference.)
    return Json::parse(text,
                       [&limits](int depth, Json::parse_event_t event, Json& value) { return limits(depth, event, value); });
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

Json read_body(std::string_view body) {
  std::optional<Json> json = read_json(body);
  if (!json) {
    refuse(
        "We could not parse the JSON body of your request. The API expects a JSON payload in UTF-8, but what was sent is not "
        "valid "
        "JSON.");
  }
  if (!json->is_object()) refuse(fmt::format("The JSON body of a request must be an object, but is {}.", kind_of(*json)));
  return std::move(*json);
}

std::string_view kind_of(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null: return "null";
    case Json::value_t::object: return "an object";
    case Json::value_t::array: return "an array";
    case Json::value_t::string: return "a string";
    case Json::value_t::boolean: return "a boolean";
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned: return "an integer";
    case Json::value_t::number_float: return "a decimal";
    default: return "something else";
  }
}

bool is_function_name(std::string_view name, std::size_t most) {
  return !name.empty() && name.size() <= most &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") == std::string_view::npos;
}

void wrong_type(const std::string& param, std::string_view expected, const Json& value) {
  const std::string_view kind = kind_of(value);
  refuse(
      fmt::format("Invalid type for '{}': expected {}, but got {}{}.", param, expected, kind, value.is_null() ? "" : " instead"),
      param, "invalid_type");
}

void wrong_value(const std::string& param, const Json& value, std::string_view supported) {
  const std::string text = value.is_string() ? "'" + value.get_ref<const std::string&>().substr(0, 100) + "'" : shown(value);
  refuse(fmt::format("Invalid value: {}. Supported values are: {}.", text, supported), param, "invalid_value");
}

void Ignored::add(std::string_view path) { add(path, false); }
void Ignored::add_exact(std::string_view path) { add(path, true); }

void Ignored::add(std::string_view path, bool exact) {
  constexpr std::size_t most = 20, longest = 80;
  std::string name;
  for (std::size_t i = 0; i < path.size() && name.size() < longest; ++i) {
    const char c = path[i];
    name += c > ' ' && c < 0x7F && c != ',' ? c : '?';
    if (c == '[' && !exact) i = std::min(path.find(']', i), path.size()) - 1;
  }
  if (std::find(names_.begin(), names_.end(), name) != names_.end()) return;
  more_ = more_ || names_.size() == most;
  if (names_.size() < most) names_.push_back(std::move(name));
}

std::string Ignored::text() const { return fmt::format("{}{}", fmt::join(names_, ", "), more_ ? ", ..." : ""); }

Fields::Fields(const Json& object, std::string where, Ignored& ignored)
    : object_(object), where_(std::move(where)), ignored_(ignored) {
  if (!object.is_object()) wrong_type(where_, "an object", object);
}

std::string Fields::path(std::string_view name) const {
  return where_.empty() ? std::string(name) : fmt::format("{}.{}", where_, name);
}

const Json* Fields::take(std::string_view name) {
  known_.push_back(name);
  for (const auto& [key, value] : object_.items()) {
    if (key == name) return value.is_null() ? nullptr : &value;
  }
  return nullptr;
}

std::optional<bool> Fields::boolean(std::string_view name) {
  const Json* value = take(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) wrong_type(path(name), "a boolean", *value);
  return value->get<bool>();
}

std::optional<double> Fields::number(std::string_view name, double least, double most) {
  const Json* value = take(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) wrong_type(path(name), "a decimal", *value);
  const double number = value->get<double>();
  if (!std::isfinite(number)) wrong_type(path(name), "a finite decimal", *value);
  if (number < least) out_of_range(path(name), "decimal", number, true, least);
  if (number > most) out_of_range(path(name), "decimal", number, false, most);
  return number;
}

std::optional<std::int64_t> Fields::integer(std::string_view name, std::int64_t least, std::int64_t most) {
  const Json* value = take(name);
  if (value == nullptr) return std::nullopt;
  std::int64_t number = 0;
  if (value->is_number_unsigned()) {
    number =
        static_cast<std::int64_t>(std::min<std::uint64_t>(value->get<std::uint64_t>(), std::numeric_limits<std::int64_t>::max()));
  } else if (value->is_number_integer()) {
    number = value->get<std::int64_t>();
  } else if (value->is_number_float() && value->get<double>() == std::floor(value->get<double>()) &&
             std::fabs(value->get<double>()) < 0x1p53) {
    number = static_cast<std::int64_t>(value->get<double>());  // 16.0, as some clients write 16
  } else {
    wrong_type(path(name), "an integer", *value);
  }
  if (number < least) out_of_range(path(name), "integer", number, true, least);
  if (number > most) out_of_range(path(name), "integer", number, false, most);
  return number;
}

std::optional<std::string> Fields::text(std::string_view name) {
  const Json* value = take(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) wrong_type(path(name), "a string", *value);
  return value->get<std::string>();
}

const Json* Fields::object(std::string_view name) {
  const Json* value = take(name);
  if (value != nullptr && !value->is_object()) wrong_type(path(name), "an object", *value);
  return value;
}

const Json* Fields::array(std::string_view name, std::size_t least, std::size_t most) {
  const Json* value = take(name);
  if (value == nullptr) return nullptr;
  const std::string param = path(name);
  if (!value->is_array()) wrong_type(param, "an array", *value);
  if (value->size() < least && value->empty()) {
    refuse(fmt::format("Invalid '{}': empty array. Expected an array with minimum length {}, but got an empty array instead.",
                       param, least),
           param, "empty_array");
  }
  if (value->size() > most) {
    refuse(fmt::format(
               "Invalid '{}': array too long. Expected an array with maximum length {}, but got an array with length {} instead.",
               param, most, value->size()),
           param, "array_above_max_length");
  }
  return value;
}

const Json& Fields::required(std::string_view name) {
  const Json* value = take(name);
  if (value == nullptr)
    refuse(fmt::format("Missing required parameter: '{}'.", path(name)), path(name), "missing_required_parameter");
  return *value;
}

std::string Fields::required_text(std::string_view name) {
  const Json& value = required(name);
  if (!value.is_string()) wrong_type(path(name), "a string", value);
  return value.get<std::string>();
}

void Fields::ignore(std::initializer_list<std::string_view> names) { known_.insert(known_.end(), names); }

void Fields::unsupported(std::string_view name, std::string_view why) {
  const Json* value = take(name);
  if (value == nullptr || *value == Json(false) || (value->is_structured() && value->empty())) return;
  refuse(fmt::format("Unsupported parameter: '{}'. {}", path(name), why), path(name), "unsupported_parameter");
}

void Fields::finish() const {
  for (const auto& [key, value] : object_.items()) {
    if (std::find(known_.begin(), known_.end(), key) == known_.end()) ignored_.add(path(key));
  }
}

}  // namespace sdx::serve::openai
