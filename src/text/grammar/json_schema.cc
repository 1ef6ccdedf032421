// JSON Schema (draft 2020-12, with what older drafts and OpenAPI call the same) as a grammar. What the grammar cannot enforce is
// refused with the place in the schema.

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "text/grammar/readers.h"
#include "text/grammar/schema_merge.h"

namespace sdx::text::grammar {
namespace {

using Json = nlohmann::ordered_json;
constexpr int max_depth = 64;
constexpr std::size_t max_merged = 20'000, max_combined = 2'000'000;

const std::set<std::string_view> conditions{"type",
                                            "properties",
                                            "required",
                                            "additionalProperties",
                                            "items",
                                            "prefixItems",
                                            "minItems",
                                            "maxItems",
                                            "enum",
                                            "const",
                                            "anyOf",
                                            "oneOf",
                                            "allOf",
                                            "$ref",
                                            "minLength",
                                            "maxLength",
                                            "pattern",
                                            "format",
                                            "minimum",
                                            "maximum",
                                            "exclusiveMinimum",
                                            "exclusiveMaximum",
                                            "minProperties",
                                            "maxProperties",
                                            "multipleOf",
                                            "uniqueItems"};

const std::map<std::string_view, const char*> formats{
    {"date",
     "(000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-"
     "9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"},
    {"time", "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"},
    {"uuid", "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"},
    {"email", "[A-Za-z0-9_+-]{1,20}(\\.[A-Za-z0-9_+-]{1,20}){0,2}@([a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?\\.){1,4}[a-z]{2,20}"},
    {"hostname", "([a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?\\.){0,4}[a-z]([a-z0-9-]{0,20}[a-z0-9])?"},
    {"ipv4", "((25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])\\.){3}(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"},
    {"ipv6", "([0-9a-f]{1,4}:){7}[0-9a-f]{1,4}"},
    {"uri",
     "https?://([a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?\\.){1,4}[a-z]{2,20}(/"
     "[A-Za-z0-9._~-]{0,40}){0,8}(\\?[A-Za-z0-9._~=&-]{0,80})?"},
    {"duration", "P([0-9]{1,4}[DWMY]|T[0-9]{1,4}[HMS])"},
};

class Reader {
 public:
  Reader(const Json& root, Expressions& to) : root_(root), to_(to), parts_(to) {}

  Rule run() {
    const Rule rule = to_.add_rule("root");
    to_.define(rule, read(root_, "#", 0));
    return rule;
  }

 private:
  [[noreturn]] static void refuse(const std::string& path, const std::string& what) {
    fail(ErrorCode::invalid_argument, "JSON schema, at {}: {}", path.size() > 300 ? path.substr(0, 300) + "…" : path, what);
  }

  Expression read(const Json& schema, const std::string& path, int depth) {
    if (depth > max_depth) refuse(path, "schemas are nested more than 64 deep");
    if (schema.is_boolean()) return schema.get<bool>() ? parts_.value() : to_.never();
    if (!schema.is_object()) refuse(path, "expected an object or a boolean");
    if (++read_ > max_merged) refuse(path, "the schema is too large once its parts are combined");
    for (const auto& [key, value] : schema.items()) {
      if (!is_annotation(key) && !conditions.count(key)) {
        refuse(path + "/" + key, "'" + key + "' is not supported: it could not be enforced");
      }
    }
    if (schema.value("nullable", Json()) == Json(true)) {
      Json rest = schema;
      rest.erase("nullable");
      return to_.choice({read(rest, path, depth + 1), to_.text("null")});
    }
    if (schema.contains("$ref")) return reference(schema, path, depth);
    for (const char* key : {"allOf", "anyOf", "oneOf"}) {
      if (schema.contains(key)) return combined(schema, key, path, depth);
    }
    if (schema.contains("const")) return values(Json::array({schema["const"]}), schema, path);
    if (schema.contains("enum")) {
      if (!schema["enum"].is_array() || schema["enum"].empty()) refuse(path + "/enum", "expected a list with at least one value");
      return values(schema["enum"], schema, path);
    }
    return typed(schema, path, depth);
  }

  // ---- References

  const Json& target(const std::string& name, const std::string& path) const {
    if (name == "#") return root_;
    if (!name.starts_with("#/")) refuse(path, "the reference '" + name + "' leads out of the schema; only '#/…' is supported");
    try {
      const nlohmann::json::json_pointer pointer(unescape(name.substr(1)));
      const Json& found = root_.at(Json::json_pointer(pointer.to_string()));
      return found;
    } catch (const Json::exception&) {
      refuse(path, "the reference '" + name + "' leads nowhere");
    }
  }

  static std::string unescape(const std::string& text) {
    std::string result;
    for (std::size_t i = 0; i < text.size(); i++) {
      int value = 0;
      if (text[i] == '%' && i + 2 < text.size() &&
          std::sscanf(text.c_str() + i + 1, "%2x", reinterpret_cast<unsigned*>(&value)) == 1) {
        result += static_cast<char>(value);
        i += 2;
      } else {
        result += text[i];
      }
    }
    return result;
  }

  Expression reference(const Json& schema, const std::string& path, int depth) {
    if (!schema["$ref"].is_string()) refuse(path + "/$ref", "expected a text");
    const std::string name = schema["$ref"].get<std::string>();
    const Json& found = target(name, path + "/$ref");
    const bool alone = std::all_of(schema.items().begin(), schema.items().end(),
                                   [](const auto& item) { return item.key() == "$ref" || is_annotation(item.key()); });
    if (!alone) {
      Json rest = schema;
      rest.erase("$ref");
      return read(merge({found, rest}, path), path, depth + 1);
    }
    const auto known = references_.find(name);
    if (known != references_.end()) return to_.use(known->second);
    const Rule rule = to_.add_rule(name);
    references_.emplace(name, rule);
    to_.define(rule, read(found, name, depth + 1));
    return to_.use(rule);
  }

  Json resolved(const Json& schema, const std::string& path, int depth) const {
    if (depth > max_depth) refuse(path, "references that lead to each other without end");
    if (!schema.is_object() || !schema.contains("$ref") || !schema["$ref"].is_string()) return schema;
    Json rest = schema;
    rest.erase("$ref");
    const Json found = resolved(target(schema["$ref"].get<std::string>(), path), path, depth + 1);
    return rest.empty() ? found : merge({found, rest}, path);
  }

  static std::size_t size_of(const Json& json) {
    std::size_t size = 1;
    if (json.is_structured()) {
      for (const Json& item : json) size += size_of(item);
    }
    return size;
  }

  Json merge(const std::vector<Json>& schemas, const std::string& path) const {
    Json result = Json::object();
    for (const Json& schema : schemas) {
      combined_ += size_of(schema) + size_of(result);
      if (combined_ > max_combined) refuse(path, "the schema is too large once its parts are combined");
      const std::string problem = merge_schema(result, resolved(schema, path, 0));
      if (!problem.empty()) refuse(path, problem);
      if (result.is_boolean()) break;
    }
    return result;
  }

  Expression combined(const Json& schema, const std::string& key, const std::string& path, int depth) {
    const Json& list = schema[key];
    if (!list.is_array() || list.empty()) refuse(path + "/" + key, "expected a list with at least one schema");
    Json rest = schema;
    rest.erase(key);
    for (const auto& item : schema.items()) {
      if (item.key() != "nullable" && is_annotation(item.key())) rest.erase(item.key());
    }
    if (key == "allOf") {
      std::vector<Json> all(list.begin(), list.end());
      if (!rest.empty()) all.push_back(rest);
      return read(merge(all, path + "/allOf"), path, depth + 1);
    }
    std::vector<Expression> ways;
    for (std::size_t i = 0; i < list.size(); i++) {
      const std::string place = path + "/" + key + "/" + std::to_string(i);
      ways.push_back(rest.empty() ? read(list[i], place, depth + 1) : read(merge({rest, list[i]}, place), place, depth + 1));
    }
    return to_.choice(std::move(ways));
  }

  // ---- Values

  Expression values(const Json& list, const Json& schema, const std::string& path) {
    Json rest = schema;
    for (const char* key : {"enum", "const", "type"}) rest.erase(key);
    if (schema.contains("const") && schema.contains("enum")) {
      const Json& allowed = schema["enum"];
      if (!allowed.is_array() || std::find(allowed.begin(), allowed.end(), schema["const"]) == allowed.end()) return to_.never();
    }
    for (const auto& [key, value] : rest.items()) {
      if (!is_annotation(key)) refuse(path + "/" + key, "'" + key + "' beside 'enum' or 'const' is not supported");
    }
    std::vector<Expression> ways;
    const auto types = types_of(schema, path);
    for (const Json& value : list) {
      if (types.empty() || std::any_of(types.begin(), types.end(), [&](const std::string& type) { return is_a(value, type); }))
        ways.push_back(parts_.literal(value));
    }
    return to_.choice(std::move(ways));
  }

  static bool is_a(const Json& value, const std::string& type) {
    if (type == "integer")
      return value.is_number_integer() || (value.is_number_float() && std::floor(value.get<double>()) == value.get<double>());
    if (type == "number") return value.is_number();
    if (type == "string") return value.is_string();
    if (type == "boolean") return value.is_boolean();
    if (type == "null") return value.is_null();
    if (type == "array") return value.is_array();
    return value.is_object();
  }

  static std::vector<std::string> types_of(const Json& schema, const std::string& path) {
    std::vector<std::string> types;
    if (!schema.contains("type")) return types;
    const Json list = schema["type"].is_array() ? schema["type"] : Json::array({schema["type"]});
    static const std::set<std::string> known{"string", "number", "integer", "boolean", "null", "array", "object"};
    for (const Json& type : list) {
      if (!type.is_string() || !known.count(type.get<std::string>())) refuse(path + "/type", "unknown type " + type.dump());
      types.push_back(type.get<std::string>());
    }
    if (types.empty()) refuse(path + "/type", "an empty list of types");
    return types;
  }

  Expression typed(const Json& schema, const std::string& path, int depth) {
    static const std::pair<const char*, std::set<std::string_view>> kinds[] = {
        {"object", {"properties", "required", "additionalProperties", "minProperties", "maxProperties"}},
        {"array", {"items", "prefixItems", "minItems", "maxItems", "uniqueItems"}},
        {"string", {"minLength", "maxLength", "pattern", "format"}},
        {"number", {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}}};
    std::vector<std::string> types = types_of(schema, path);
    if (types.empty()) {  // the conditions say what the value is; any other type would pass as well, but is not what is meant
      for (const auto& [type, keys] : kinds) {
        if (std::any_of(schema.items().begin(), schema.items().end(),
                        [&keys = keys](const auto& item) { return keys.count(item.key()) != 0; }))
          types.push_back(type);
      }
      if (types.empty()) return parts_.value();
    }
    std::vector<Expression> ways;
    for (const std::string& type : types) {
      if (type == "string") ways.push_back(string(schema, path));
      if (type == "number" || type == "integer") ways.push_back(number(schema, path, type == "integer"));
      if (type == "boolean") ways.push_back(to_.choice({to_.text("true"), to_.text("false")}));
      if (type == "null") ways.push_back(to_.text("null"));
      if (type == "array") ways.push_back(array(schema, path, depth));
      if (type == "object") ways.push_back(object(schema, path, depth));
    }
    return to_.choice(std::move(ways));
  }

  static std::uint32_t count(const Json& schema, const char* key, const std::string& path, std::uint32_t otherwise) {
    if (!schema.contains(key)) return otherwise;
    const Json& value = schema[key];
    const bool whole = value.is_number() && value.get<double>() >= 0 && std::floor(value.get<double>()) == value.get<double>();
    if (!whole) refuse(path + "/" + key, "expected a whole number of at least 0");
    if (value.get<double>() > 200'000) refuse(path + "/" + key, "more than 200000 are not supported");
    return static_cast<std::uint32_t>(value.get<double>());
  }

  Expression string(const Json& schema, const std::string& path) {
    const bool sized = schema.contains("minLength") || schema.contains("maxLength");
    const std::uint32_t least = count(schema, "minLength", path, 0), most = count(schema, "maxLength", path, unlimited);
    if (schema.contains("pattern") + schema.contains("format") + sized > 1)
      refuse(path, "only one of 'pattern', 'format' and the lengths can be enforced together");
    if (schema.contains("pattern")) {
      if (!schema["pattern"].is_string()) refuse(path + "/pattern", "expected a text");
      try {
        return in_quotes(read_regex(schema["pattern"].get_ref<const std::string&>(), to_, Writing::json_string, true));
      } catch (Error& error) {
        error.add_context("in the JSON schema, at " + path + "/pattern");
        throw;
      }
    }
    if (schema.contains("format")) return in_quotes(format(schema["format"], path + "/format"));
    if (!sized) return parts_.string();
    return in_quotes(to_.repeat(parts_.character(), least, most));
  }

  Expression in_quotes(Expression content) { return to_.sequence({to_.text("\""), content, to_.text("\"")}); }

  Expression format(const Json& name, const std::string& path) {
    if (!name.is_string()) refuse(path, "expected a text");
    const std::string text = name.get<std::string>();
    const auto known = format_rules_.find(text);
    if (known != format_rules_.end()) return to_.use(known->second);
    std::string pattern;
    if (text == "date-time") {
      pattern = std::string("(") + formats.at("date") + ")T(" + formats.at("time") + ")";
    } else if (const auto found = formats.find(text); found != formats.end()) {
      pattern = found->second;
    } else {
      refuse(path, "the format '" + text +
                       "' is not supported; date, time, date-time, duration, uuid, email, hostname, ipv4, ipv6 and uri are");
    }
    const Rule rule = to_.add_rule(text);
    format_rules_.emplace(text, rule);
    to_.define(rule, read_regex(pattern, to_, Writing::json_string, false));
    return to_.use(rule);
  }

  // ---- Numbers

  struct Limits {
    std::optional<double> least, most;
    bool above = false, below = false;  // the bound itself is not allowed
  };

  static Limits limits_of(const Json& schema, const std::string& path) {
    Limits limits;
    const auto number = [&](const char* key) -> std::optional<double> {
      if (!schema.contains(key) || schema[key].is_boolean()) return std::nullopt;
      if (!schema[key].is_number()) refuse(path + "/" + key, "expected a number");
      return schema[key].get<double>();
    };
    limits.least = number("minimum");
    limits.most = number("maximum");
    if (schema.value("exclusiveMinimum", Json()) == Json(true)) limits.above = true;  // draft 4
    if (schema.value("exclusiveMaximum", Json()) == Json(true)) limits.below = true;
    if (const auto bound = number("exclusiveMinimum"); bound && (!limits.least || *bound >= *limits.least)) {
      limits.least = bound;
      limits.above = true;
    }
    if (const auto bound = number("exclusiveMaximum"); bound && (!limits.most || *bound <= *limits.most)) {
      limits.most = bound;
      limits.below = true;
    }
    return limits;
  }

  Expression number(const Json& schema, const std::string& path, bool whole) {
    if (schema.contains("multipleOf") && !(whole && schema["multipleOf"] == Json(1)))
      refuse(path + "/multipleOf", "'multipleOf' is not supported: it could not be enforced");
    const Limits limits = limits_of(schema, path);
    if (!limits.least && !limits.most) return whole ? parts_.integer() : parts_.number();
    constexpr double far = 9e15;  // whole numbers that a double holds exactly
    for (const auto& bound : {limits.least, limits.most}) {
      if (bound && !(std::fabs(*bound) <= far)) refuse(path, "bounds of numbers beyond 9e15 are not supported");
    }
    if (whole) {
      std::int64_t least = 0, most = 0;
      if (limits.least)
        least = static_cast<std::int64_t>(limits.above ? std::floor(*limits.least) + 1 : std::ceil(*limits.least));
      if (limits.most) most = static_cast<std::int64_t>(limits.below ? std::ceil(*limits.most) - 1 : std::floor(*limits.most));
      return parts_.whole_range(limits.least ? &least : nullptr, limits.most ? &most : nullptr);
    }
    JsonParts::Bound least, most;
    for (const auto& [bound, exclusive, to] :
         {std::tuple(limits.least, limits.above, &least), std::tuple(limits.most, limits.below, &most)}) {
      if (!bound) continue;
      if (*bound != std::floor(*bound)) refuse(path, "bounds with a fraction are supported for integers only");
      *to = {static_cast<std::int64_t>(*bound), exclusive};
    }
    return parts_.real_range(limits.least ? &least : nullptr, limits.most ? &most : nullptr);
  }

  // ---- Arrays and objects

  Expression array(const Json& schema, const std::string& path, int depth) {
    std::uint32_t least = count(schema, "minItems", path, 0), most = count(schema, "maxItems", path, unlimited);
    if (schema.value("uniqueItems", Json()) == Json(true) && most > 1)
      refuse(path + "/uniqueItems", "'uniqueItems' is not supported: it could not be enforced");
    const bool tuple_like = schema.contains("items") && schema["items"].is_array();  // before draft 2020
    const char* first_key = tuple_like ? "items" : "prefixItems";
    const Json first = schema.contains(first_key) ? schema[first_key] : Json::array();
    if (!first.is_array()) refuse(path + "/" + first_key, "expected a list of schemas");
    const bool closed = tuple_like || !schema.contains("items");
    if (first.empty())
      return parts_.elements(schema.contains("items") ? read(schema["items"], path + "/items", depth + 1) : parts_.value(), least,
                             most);
    // The first items one by one; without a schema for the others, there are none.
    const auto fixed = static_cast<std::uint32_t>(std::min<std::size_t>(first.size(), most));
    const bool none = closed || schema["items"] == Json(false);
    if (none && least > first.size()) return to_.never();
    Expression rest = to_.empty();
    if (!none && most > fixed) {
      const Expression item =
          to_.sequence({parts_.space(), to_.text(","), parts_.space(), read(schema["items"], path + "/items", depth + 1)});
      rest = to_.repeat(item, least > fixed ? least - fixed : 0, most == unlimited ? unlimited : most - fixed);
    }
    for (std::uint32_t i = fixed; i-- > 0;) {
      std::vector<Expression> parts;
      if (i > 0) parts = {parts_.space(), to_.text(","), parts_.space()};
      parts.push_back(read(first[i], path + "/" + first_key + "/" + std::to_string(i), depth + 1));
      parts.push_back(rest);
      rest = to_.sequence(std::move(parts));
      if (i >= least) rest = to_.optional(rest);
    }
    return to_.sequence({to_.text("["), parts_.space(), rest, parts_.space(), to_.text("]")});
  }

  Expression member(Expression name, Expression value) {
    return to_.sequence({name, parts_.space(), to_.text(":"), parts_.space(), value});
  }

  Expression object(const Json& schema, const std::string& path, int depth) {
    const Json properties = schema.value("properties", Json::object());
    if (!properties.is_object()) refuse(path + "/properties", "expected an object");
    if (properties.size() > 500) refuse(path + "/properties", "more than 500 properties are not supported");
    if (schema.contains("required") && schema["required"].size() > 500)
      refuse(path + "/required", "more than 500 names are not supported");
    std::vector<std::string> required;
    for (const Json& name : schema.value("required", Json::array())) {
      if (!name.is_string()) refuse(path + "/required", "expected a list of names");
      required.push_back(name.get<std::string>());
    }
    const bool has_more = schema.contains("additionalProperties");
    const Json more = has_more ? schema["additionalProperties"] : Json(properties.empty() && required.empty());
    const std::uint32_t least = count(schema, "minProperties", path, 0), most = count(schema, "maxProperties", path, unlimited);
    std::vector<std::pair<std::string, Json>> known;
    for (const auto& [name, value] : properties.items()) known.emplace_back(name, value);
    for (const std::string& name : required) {
      if (!properties.contains(name)) known.emplace_back(name, has_more ? more : Json(true));
    }
    if (known.size() > 500) refuse(path + "/properties", "more than 500 properties are not supported");
    if (known.empty()) return free_object(more, least, most, path, depth);
    if (least > std::max<std::size_t>(required.size(), 0) && least > 0 && !(least <= required.size())) {
      refuse(path + "/minProperties", "'minProperties' beyond the required properties is not supported");
    }
    if (most < known.size() || (most != unlimited && more != Json(false)))
      refuse(path + "/maxProperties", "'maxProperties' beside 'properties' is not supported");
    return fixed_object(known, required, more, path, depth);
  }

  Expression free_object(const Json& more, std::uint32_t least, std::uint32_t most, const std::string& path, int depth) {
    if (least > 1) refuse(path + "/minProperties", "'minProperties' of more than 1 is not supported: names may repeat");
    if (more == Json(false) || most == 0)
      return least > 0 ? to_.never() : to_.sequence({to_.text("{"), parts_.space(), to_.text("}")});
    if (more == Json(true) && least == 0 && most == unlimited) return parts_.object();
    const Expression one = member(parts_.string(), read(more, path + "/additionalProperties", depth + 1));
    const Expression next = to_.sequence({parts_.space(), to_.text(","), parts_.space(), one});
    Expression content = to_.sequence({one, to_.repeat(next, 0, most == unlimited ? unlimited : most - 1), parts_.space()});
    if (least == 0) content = to_.optional(content);
    return to_.sequence({to_.text("{"), parts_.space(), content, to_.text("}")});
  }

  // Properties in the order of the schema; then others, where they are allowed. `after[i]` is what may follow once something
  // stands in front, `begin[i]` where nothing does: both from property i on.
  Expression fixed_object(const std::vector<std::pair<std::string, Json>>& known, const std::vector<std::string>& required,
                          const Json& more, const std::string& path, int depth) {
    const Expression comma = to_.sequence({parts_.space(), to_.text(","), parts_.space()});
    Expression after = to_.empty(), begin = to_.empty();
    if (more != Json(false)) {
      std::vector<std::string> names;
      for (const auto& [name, value] : known) names.push_back(name);
      const Expression other = to_.as_rule(
          "other property", member(parts_.other_string(names), read(more, path + "/additionalProperties", depth + 1)));
      after = to_.repeat(to_.sequence({comma, other}), 0);
      begin = to_.optional(to_.sequence({other, after}));
    }
    for (std::size_t i = known.size(); i-- > 0;) {
      const auto& [name, value] = known[i];
      const Expression one = member(parts_.quoted(name), read(value, path + "/properties/" + name, depth + 1));
      const Expression here = to_.as_rule("property " + name, one);
      const Expression behind = to_.as_rule("after " + name, after);
      const bool needed = std::find(required.begin(), required.end(), name) != required.end();
      const Expression with = to_.sequence({here, behind}), with_comma = to_.sequence({comma, here, behind});
      begin = needed ? with : to_.choice({with, begin});
      after = needed ? with_comma : to_.choice({with_comma, behind});
    }
    return to_.sequence({to_.text("{"), parts_.space(), begin, parts_.space(), to_.text("}")});
  }

  const Json& root_;
  Expressions& to_;
  JsonParts parts_;
  std::map<std::string, Rule> references_, format_rules_;
  std::size_t read_ = 0;
  mutable std::size_t combined_ = 0;  // parts of schemas that were copied
};

}  // namespace

Rule read_json_schema(const Json& schema, Expressions& to) { return Reader(schema, to).run(); }

}  // namespace sdx::text::grammar
