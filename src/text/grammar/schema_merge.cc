#include "text/grammar/schema_merge.h"

#include <algorithm>

#include "base/words.h"
#include "text/grammar/schema_conditions.h"

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

// The schema of a property for which both hold. Lists of values are intersected at once, so that contradictory alternatives end
// here.
Json property_of_both(const Json& mine, const Json& theirs) {
  if (mine == theirs || theirs == Json(true)) return mine;
  if (mine == Json(true)) return theirs;
  if (mine == Json(false) || theirs == Json(false)) return false;
  const auto plain = [](const Json& schema) {
    return schema.is_object() && std::all_of(schema.items().begin(), schema.items().end(), [&](const auto& item) {
             const std::string& key = item.key();
             return key == "const" || key == "enum" || key == "type" || (key == "not" && left_out_values(schema) != nullptr);
           });
  };
  const auto listed = [](const Json& schema) { return schema.contains("const") || schema.contains("enum"); };
  if (plain(mine) && plain(theirs) && (listed(mine) || listed(theirs))) {
    Json out = mine;
    if (merge_schema(out, theirs).empty()) return allows_no_value(out) ? Json(false) : out;
  }
  return Json{{"allOf", Json::array({mine, theirs})}};
}

// Properties that one side does not list are what its additionalProperties says.
std::string merge_properties(Json& to, const Json& other) {
  const auto more = [](const Json& schema) { return schema.value("additionalProperties", Json(true)); };
  const Json mine = to.value("properties", Json::object()), theirs = other.value("properties", Json::object());
  if (!mine.is_object() || !theirs.is_object()) return "'properties': expected an object";
  Json result = Json::object();
  const auto add = [&](const std::string& name, const Json& schema, const Json& elsewhere) -> std::string {
    const Json rest = more(elsewhere);
    if (rest != Json(true) && elsewhere.contains("patternProperties")) {
      return "'allOf' with 'patternProperties' and 'additionalProperties' that may apply to properties of another part is not "
             "supported ('" +
             name + "')";
    }
    result[name] = property_of_both(schema, rest);
    return {};
  };
  for (const auto& [name, schema] : mine.items()) {
    if (theirs.contains(name)) {
      result[name] = property_of_both(schema, theirs[name]);
    } else if (std::string problem = add(name, schema, other); !problem.empty()) {
      return problem;
    }
  }
  for (const auto& [name, schema] : theirs.items()) {
    if (mine.contains(name)) continue;
    if (std::string problem = add(name, schema, to); !problem.empty()) return problem;
  }
  if (!result.empty()) to["properties"] = result;
  return {};
}

// Conditions that belong together, and that hold side by side where they differ.
constexpr std::string_view kAside = "anyOf oneOf if not contains dependentRequired dependentSchemas dependencies";

// Keywords that have a meaning only together with `key`.
std::vector<std::string> companions(std::string_view key) {
  if (key == "if") return {"then", "else"};
  if (key == "contains") return {"minContains", "maxContains"};
  return {};
}

bool is_companion(std::string_view key) { return key == "then" || key == "else" || key == "minContains" || key == "maxContains"; }

Json with_companions(const Json& schema, const std::string& key) {
  Json out = Json::object();
  if (!schema.contains(key)) return out;
  out[key] = schema[key];
  for (const std::string& other : companions(key)) {
    if (schema.contains(other)) out[other] = schema[other];
  }
  return out;
}

// Puts `key` of `other` beside the conditions of `to`, for keywords that are not merged. Returns whether it did.
bool set_aside(Json& to, const std::string& key, const Json& other) {
  if (!has_word(kAside, key)) return false;
  const Json mine = with_companions(to, key), theirs = with_companions(other, key);
  if (!to.contains(key)) {
    for (const std::string& part : companions(key)) to.erase(part);  // alone they say nothing
    for (const auto& [name, value] : theirs.items()) to[name] = value;
  } else if (mine != theirs) {
    if (const Json *a = left_out_values(mine), *b = left_out_values(theirs); a != nullptr && b != nullptr) {
      Json all = *a;
      for (const Json& value : *b) {
        if (!has(all, value)) all.push_back(value);
      }
      to["not"] = Json{{"enum", all}};
      return true;
    }
    if (!to.contains("allOf") || !to["allOf"].is_array()) to["allOf"] = Json::array();
    to["allOf"].push_back(theirs);
  }
  return true;
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
  } else if (key == "items" || key == "propertyNames") {
    mine = Json{{"allOf", Json::array({mine, value})}};
  } else if (key == "additionalProperties" || key == "unevaluatedProperties") {
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

bool is_condition(std::string_view key) {
  constexpr std::string_view kAll =
      "type properties required additionalProperties items prefixItems minItems maxItems enum const anyOf oneOf allOf $ref "
      "minLength maxLength pattern format minimum maximum multipleOf exclusiveMinimum exclusiveMaximum minProperties uniqueItems "
      "maxProperties propertyNames patternProperties unevaluatedProperties additionalItems unevaluatedItems not if contains "
      "minContains maxContains dependentRequired dependentSchemas dependencies";
  return has_word(kAll, key);
}

bool is_annotation(std::string_view key) { return !is_condition(key); }

bool only_contains(const Json& list) {
  return list.is_array() && std::all_of(list.begin(), list.end(), [](const Json& part) {
           return part.is_object() && part.contains("contains") && part == with_companions(part, "contains");
         });
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
    if (key == "properties" || is_companion(key) || set_aside(to, key, other)) continue;
    if (std::string problem = merge_key(to, key, value); !problem.empty()) return problem;
    if (to.is_boolean()) return {};
  }
  if (!first && !null) to.erase("nullable");  // null is allowed only where both allow it
  return {};
}

}  // namespace sdx::text::grammar
