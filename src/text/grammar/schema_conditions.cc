#include "text/grammar/schema_conditions.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "text/grammar/schema_merge.h"

namespace sdx::text::grammar {
namespace {

using Json = nlohmann::ordered_json;

constexpr int max_depth = 12;                 // of conditions within conditions
constexpr std::size_t max_alternatives = 64;  // of one condition
constexpr std::size_t max_dependencies = 8;   // each of them doubles the ways to write an object

Json list(std::vector<Json> items) { return Json(std::move(items)); }

Json object_with(Json more) {
  Json out{{"type", "object"}};
  out.update(more);
  return out;
}

Json without(const std::string& name) { return Json{{"properties", Json{{name, false}}}}; }

Json negated(const Json& schema) { return Json{{"not", schema}}; }

// A schema that demands both; a single one if possible, so that properties keep the order of their object.
Json both(const Json& a, const Json& b, const ResolveSchema& resolve) {
  if (a == Json(true)) return b;
  if (b == Json(true)) return a;
  Json out = resolve(a);
  return merge_schema(out, resolve(b)).empty() ? out : Json{{"allOf", list({a, b})}};
}

std::optional<SchemaList> of_other_types(const Json& value) {
  const Json types = value.is_array() ? value : list({value});
  const auto has = [&](const char* type) { return std::find(types.begin(), types.end(), type) != types.end(); };
  if (has("integer") && !has("number")) return std::nullopt;  // fractions are no type
  Json others = Json::array();
  for (const char* type : {"object", "array", "string", "number", "boolean", "null"}) {
    if (!has(type)) others.push_back(type);
  }
  return others.empty() ? SchemaList{} : SchemaList{Json{{"type", others}}};
}

struct Bound {
  std::string_view key;
  const char* type;
  const char* opposite;
  int step;  // 0: a bound of numbers; else what is added for the nearest count beyond
};
constexpr Bound kBounds[] = {{"minimum", "number", "exclusiveMaximum", 0},
                             {"maximum", "number", "exclusiveMinimum", 0},
                             {"exclusiveMinimum", "number", "maximum", 0},
                             {"exclusiveMaximum", "number", "minimum", 0},
                             {"minLength", "string", "maxLength", -1},
                             {"maxLength", "string", "minLength", 1},
                             {"minItems", "array", "maxItems", -1},
                             {"maxItems", "array", "minItems", 1},
                             {"minProperties", "object", "maxProperties", -1},
                             {"maxProperties", "object", "minProperties", 1}};

std::optional<SchemaList> beyond_bound(const Bound& bound, const Json& value) {
  if (!value.is_number()) return std::nullopt;
  if (bound.step == 0) return SchemaList{Json{{"type", bound.type}, {bound.opposite, value}}};
  const double count = value.get<double>() + bound.step;
  if (count < 0) return SchemaList{};  // there is nothing below 0
  if (count > 100'000 || std::floor(count) != count) return std::nullopt;
  return SchemaList{Json{{"type", bound.type}, {bound.opposite, static_cast<std::int64_t>(count)}}};
}

class Complement {
 public:
  explicit Complement(const ResolveSchema& resolve) : resolve_(resolve) {}

  std::optional<SchemaList> of(const Json& given, int depth) const {
    if (depth > max_depth) return std::nullopt;
    if (given.is_boolean()) return given.get<bool>() ? SchemaList{} : SchemaList{Json(true)};
    const Json schema = resolve_(given);
    if (schema.is_boolean()) return schema.get<bool>() ? SchemaList{} : SchemaList{Json(true)};
    if (!schema.is_object() || schema.value("nullable", Json()) == Json(true)) return std::nullopt;
    SchemaList out;
    for (const auto& [key, value] : schema.items()) {
      if (is_annotation(key)) continue;
      const auto ways = of_key(key, value, depth);
      if (!ways || out.size() + ways->size() > max_alternatives) return std::nullopt;
      out.insert(out.end(), ways->begin(), ways->end());
    }
    return out;
  }

 private:
  bool has(const Json& schema, int depth) const { return of(schema, depth + 1).has_value(); }

  std::optional<SchemaList> of_key(const std::string& key, const Json& value, int depth) const {
    for (const Bound& bound : kBounds) {
      if (key == bound.key) return beyond_bound(bound, value);
    }
    if (key == "type") return of_other_types(value);
    if (key == "const") return SchemaList{negated(Json{{"enum", list({value})}})};
    if (key == "enum" && value.is_array()) return SchemaList{negated(Json{{"enum", value}})};
    if (key == "not") return SchemaList{value};
    if (key == "required" && value.is_array()) return of_required(value);
    if (key == "properties" && value.is_object()) return of_properties(value, depth);
    if (key == "contains") {
      return has(value, depth) ? std::optional(SchemaList{Json{{"type", "array"}, {"items", negated(value)}}}) : std::nullopt;
    }
    if (key == "allOf" || key == "anyOf" || key == "oneOf") return of_several(value, key == "allOf", depth);
    if (key == "additionalProperties" || key == "items" || key == "unevaluatedProperties") {
      return value == Json(true) || value == Json::object() ? std::optional(SchemaList{}) : std::nullopt;
    }
    return std::nullopt;
  }

  static std::optional<SchemaList> of_required(const Json& names) {
    SchemaList out;
    for (const Json& name : names) {
      if (!name.is_string()) return std::nullopt;
      out.push_back(object_with(without(name.get<std::string>())));
    }
    return out;
  }

  std::optional<SchemaList> of_properties(const Json& properties, int depth) const {
    SchemaList out;
    for (const auto& [name, schema] : properties.items()) {
      const auto ways = of(schema, depth + 1);
      if (!ways) return std::nullopt;
      if (ways->empty()) continue;
      out.push_back(object_with(Json{{"required", list({name})}, {"properties", Json{{name, negated(schema)}}}}));
    }
    return out;
  }

  // Not all of them: one does not hold. None of them: each does not.
  std::optional<SchemaList> of_several(const Json& schemas, bool all, int depth) const {
    if (!schemas.is_array() || schemas.size() > max_alternatives) return std::nullopt;
    SchemaList each;
    for (const Json& schema : schemas) {
      if (!has(schema, depth)) return std::nullopt;
      each.push_back(negated(schema));
    }
    if (all) return each;
    return SchemaList{Json{{"allOf", Json(each)}}};
  }

  const ResolveSchema& resolve_;
};

Json any_of(SchemaList ways) { return ways.empty() ? Json(false) : Json{{"anyOf", Json(std::move(ways))}}; }

std::optional<SchemaList> negation(const Json& schema, const ResolveSchema& resolve) {
  const auto ways = complement_of(schema, resolve);
  return ways ? std::optional(SchemaList{any_of(*ways)}) : std::nullopt;
}

std::optional<SchemaList> condition(const Json& schema, const ResolveSchema& resolve) {
  const Json& test = schema["if"];
  const Json then = schema.value("then", Json(true)), otherwise = schema.value("else", Json(true));
  if (then == Json(true) && otherwise == Json(true)) return SchemaList{};
  const auto failed = complement_of(test, resolve);
  if (!failed) return std::nullopt;
  SchemaList ways{both(test, then, resolve)};
  for (const Json& way : *failed) ways.push_back(both(way, otherwise, resolve));
  return SchemaList{any_of(std::move(ways))};
}

// {"a": ["b"]}: without a, or with a and b; {"a": schema}: without a, or with a and the schema.
std::optional<SchemaList> dependencies(const Json& given, const ResolveSchema& resolve) {
  if (!given.is_object() || given.size() > max_dependencies) return std::nullopt;
  SchemaList out;
  for (const auto& [name, demand] : given.items()) {
    Json with;
    if (demand.is_array()) {
      Json required = list({name});
      for (const Json& other : demand) {
        if (!other.is_string()) return std::nullopt;
        if (other != Json(name)) required.push_back(other);
      }
      with = Json{{"required", required}};
    } else {
      with = both(Json{{"required", list({name})}}, demand, resolve);
    }
    if (demand == Json::array() || demand == Json(true) || demand == Json::object()) continue;
    out.push_back(any_of({with, without(name)}));
  }
  return out;
}

}  // namespace

std::optional<SchemaList> complement_of(const Json& schema, const ResolveSchema& resolve) {
  return Complement(resolve).of(schema, 0);
}

const Json* left_out_values(const Json& schema) {
  const auto found = schema.find("not");
  if (found == schema.end() || !found->is_object() || found->size() != 1) return nullptr;
  const auto values = found->find("enum");
  return values != found->end() && values->is_array() ? &*values : nullptr;
}

const std::vector<std::string_view>& rewritten_conditions() {
  static const std::vector<std::string_view> all{"not", "if", "dependentRequired", "dependentSchemas", "dependencies"};
  return all;
}

std::optional<SchemaList> rewritten(const std::string& key, const Json& schema, const ResolveSchema& resolve) {
  if (key == "not") return negation(schema["not"], resolve);
  if (key == "if") return condition(schema, resolve);
  return dependencies(schema[key], resolve);
}

bool is_of_type(const Json& value, const Json& type) {
  if (type == "integer") {
    return value.is_number_integer() || (value.is_number_float() && std::floor(value.get<double>()) == value.get<double>());
  }
  return type == "number" ? value.is_number() : type == (value.is_boolean() ? "boolean" : value.type_name());
}

bool allows_no_value(const Json& schema) {
  if (!schema.is_object() || (!schema.contains("const") && !schema.contains("enum"))) return schema == Json(false);
  const Json values = schema.contains("const") ? list({schema["const"]}) : schema["enum"];
  const Json* left_out = left_out_values(schema);
  if (!values.is_array()) return false;
  return std::none_of(values.begin(), values.end(), [&](const Json& value) {
    if (left_out != nullptr && std::find(left_out->begin(), left_out->end(), value) != left_out->end()) return false;
    if (schema.contains("const") && schema.contains("enum")) {
      const Json& also = schema["enum"];
      if (also.is_array() && std::find(also.begin(), also.end(), value) == also.end()) return false;
    }
    if (!schema.contains("type")) return true;
    const Json types = schema["type"].is_array() ? schema["type"] : list({schema["type"]});
    return std::any_of(types.begin(), types.end(), [&](const Json& type) { return is_of_type(value, type); });
  });
}

}  // namespace sdx::text::grammar
