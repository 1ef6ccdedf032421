#include "text/grammar/schema_merge.h"

#include <algorithm>

namespace sdx::text::grammar {
namespace {

using Json = nlohmann::ordered_json;

Json as_list(const Json& value) { return value.is_array() ? value : Json::array({value}); }

bool has(const Json& list, const Json& value) { return std::find(list.begin(), list.end(), value) != list.end(); }

// Types that both allow; an integer is a number.
Json common_types(const Json& a, const Json& b) {
  Json result = Json::array();
  for (const Json& type : as_list(a)) {
    if (has(as_list(b), type) || (type == "integer" && has(as_list(b), "number"))) result.push_back(type);
    if (type == "number" && has(as_list(b), "integer") && !has(as_list(a), "integer") && !has(as_list(b), "number"))
      result.push_back("integer");
  }
  return result;
}

Json common_values(const Json& a, const Json& b) {
  Json result = Json::array();
  for (const Json& value : a) {
    if (has(b, value)) result.push_back(value);
  }
  return result;
}

bool is_least(const std::string& key) {
  return key == "minimum" || key == "exclusiveMinimum" || key == "minLength" || key == "minItems" || key == "minProperties";
}
bool is_most(const std::string& key) {
  return key == "maximum" || key == "exclusiveMaximum" || key == "maxLength" || key == "maxItems" || key == "maxProperties";
}

// Properties that one side does not list are what its additionalProperties says.
std::string merge_properties(Json& to, const Json& other) {
  const auto closed = [](const Json& schema) { return schema.value("additionalProperties", Json(true)) != Json(true); };
  const Json mine = to.value("properties", Json::object()), theirs = other.value("properties", Json::object());
  if (!mine.is_object() || !theirs.is_object()) return "'properties': expected an object";
  Json result = Json::object();
  for (const auto& [name, schema] : mine.items()) {
    if (theirs.contains(name)) {
      result[name] = schema == theirs[name] ? schema : Json{{"allOf", Json::array({schema, theirs[name]})}};
    } else if (closed(other)) {
      return "'allOf' with 'additionalProperties' that applies to properties of another part is not supported ('" + name + "')";
    } else {
      result[name] = schema;
    }
  }
  for (const auto& [name, schema] : theirs.items()) {
    if (mine.contains(name)) continue;
    if (closed(to))
      return "'allOf' with 'additionalProperties' that applies to properties of another part is not supported ('" + name + "')";
    result[name] = schema;
  }
  if (!result.empty()) to["properties"] = result;
  return {};
}

std::string merge_key(Json& to, const std::string& key, const Json& value) {
  if (!to.contains(key) || to[key] == value) {
    to[key] = value;
    return {};
  }
  if (is_annotation(key)) return {};
  Json& mine = to[key];
  if (mine.is_array() && value.is_array() && mine.size() * value.size() > 4'000'000)
    return "'" + key + "' is too long to be combined";
  if (key == "type") {
    mine = common_types(mine, value);
    if (mine.empty()) to = false;
  } else if (key == "enum" && mine.is_array() && value.is_array()) {
    mine = common_values(mine, value);
    if (mine.empty()) to = false;
  } else if (key == "const") {
    to = false;
  } else if (key == "required" && mine.is_array() && value.is_array()) {
    for (const Json& name : value) {
      if (!has(mine, name)) mine.push_back(name);
    }
  } else if ((is_least(key) || is_most(key)) && mine.is_number() && value.is_number()) {
    if (is_least(key) ? value > mine : value < mine) mine = value;
  } else if (key == "items") {
    mine = Json{{"allOf", Json::array({mine, value})}};
  } else if (key == "additionalProperties") {
    if (mine == Json(true)) {
      mine = value;
    } else if (value != Json(true)) {
      mine = mine == Json(false) || value == Json(false) ? Json(false) : Json{{"allOf", Json::array({mine, value})}};
    }
  } else if (key == "allOf" && mine.is_array() && value.is_array()) {
    mine.insert(mine.end(), value.begin(), value.end());
  } else if (key == "uniqueItems") {
    mine = true;
  } else {
    return "two different '" + key + "' for the same value cannot be combined";
  }
  return {};
}

}  // namespace

bool is_annotation(std::string_view key) {
  static constexpr std::string_view kAll[] = {
      "title",   "description", "default",  "examples",         "example",         "deprecated",    "readOnly",     "writeOnly",
      "$schema", "$id",         "id",       "$comment",         "$anchor",         "$defs",         "definitions",  "$vocabulary",
      "strict",  "name",        "nullable", "contentMediaType", "contentEncoding", "discriminator", "externalDocs", "xml"};
  return key.starts_with("x-") || std::find(std::begin(kAll), std::end(kAll), key) != std::end(kAll);
}

std::string merge_schema(Json& to, const Json& other) {
  if (other.is_boolean() || to.is_boolean()) {
    if (other == Json(false) || to == Json(false)) {
      to = false;
    } else if (to.is_boolean()) {
      to = other;
    }
    return {};
  }
  if (!other.is_object()) return "expected an object or a boolean";
  if (to.contains("properties") || other.contains("properties") || to.contains("additionalProperties") ||
      other.contains("additionalProperties")) {
    if (std::string problem = merge_properties(to, other); !problem.empty()) return problem;
  }
  const bool null = to.value("nullable", Json()) == Json(true) && other.value("nullable", Json()) == Json(true);
  const bool first = to.empty();
  for (const auto& [key, value] : other.items()) {
    if (key == "properties") continue;
    if (std::string problem = merge_key(to, key, value); !problem.empty()) return problem;
    if (to.is_boolean()) return {};
  }
  if (!first && !null) to.erase("nullable");  // null is allowed only where both allow it
  return {};
}

}  // namespace sdx::text::grammar
