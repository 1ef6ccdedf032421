// JSON Schema (draft 2020-12, with the names of older drafts and OpenAPI) as a grammar. Conditions that a grammar cannot enforce
// are noted with their places in the schema; a schema without any enforceable condition is refused.

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "text/grammar/grammar.h"
#include "text/grammar/readers.h"
#include "text/grammar/schema_conditions.h"
#include "text/grammar/schema_items.h"
#include "text/grammar/schema_merge.h"
#include "text/grammar/schema_parts.h"
#include "text/unicode/unicode.h"

namespace sdx::text::grammar {
namespace {

using Json = nlohmann::ordered_json;
// Depth counts quarters of levels, since rewriting a condition is less than nesting.
constexpr int level = 4, max_depth = 64 * level;
constexpr std::size_t max_merged = 20'000, max_combined = 2'000'000;

class Reader {
 public:
  Reader(const Json& root, Expressions& to) : root_(root), to_(to), parts_(to), numbers_(to, parts_), strings_(to, parts_) {}

  Rule run() {
    const Rule rule = to_.add_rule("root");
    to_.define(rule, read(root_, "#", 0));
    // References are read one by one, since they are no nesting.
    while (!pending_.empty()) {
      const auto [name, target, of] = pending_.back();
      pending_.pop_back();
      to_.define(of, read(*target, name, 0));
    }
    return rule;
  }

 private:
  [[noreturn]] static void refuse(const std::string& path, const std::string& what) { refuse_schema(path, what); }

  Expression read(const Json& schema, const std::string& path, int depth) {
    if (depth > max_depth) refuse(path, "schemas are nested more than 64 deep");
    if (schema.is_boolean()) return schema.get<bool>() ? parts_.value() : to_.never();
    if (!schema.is_object()) refuse(path, "expected an object or a boolean");
    if (++read_ > max_merged) refuse(path, "the schema is too large once its parts are combined");
    if (path == "#" && (schema.value("not", Json()) == Json::object() || schema.value("not", Json()) == Json(true))) {
      refuse(path + "/not", "the schema allows nothing");
    }
    if (schema.value("nullable", Json()) == Json(true)) {
      Json rest = schema;
      rest.erase("nullable");
      return to_.choice({read(rest, path, depth + level), to_.text("null")});
    }
    for (const std::string_view key : rewritten_conditions()) {
      if (schema.contains(key) && !(key == "not" && left_out_values(schema) != nullptr)) {
        return with_rewritten(schema, std::string(key), path, depth);
      }
    }
    for (const char* key : {"$dynamicRef", "$recursiveRef"}) {
      if (!schema.contains(key)) continue;
      Json rest = schema;
      rest["$ref"] = schema[key];
      rest.erase(key);
      return read(rest, path, depth + 1);
    }
    if (schema.contains("$ref")) return reference(schema, path, depth);
    // merge_schema() moves conditions that it cannot merge to allOf, which therefore comes last.
    for (const char* key : {"anyOf", "oneOf", "allOf"}) {
      if (schema.contains(key)) return combined(schema, key, path, depth);
    }
    if (schema.contains("const")) return values(Json::array({schema["const"]}), schema, path);
    if (schema.contains("enum")) {
      if (!schema["enum"].is_array() || schema["enum"].empty()) refuse(path + "/enum", "expected a list with at least one value");
      return values(schema["enum"], schema, path);
    }
    return typed(schema, path, depth);
  }

  // The same schema with a condition put into words that a grammar has, or without it.
  Expression with_rewritten(const Json& schema, const std::string& key, const std::string& path, int depth) {
    const bool one = key == "not" || key == "if";
    if (one && !schema[key].is_boolean() && !schema[key].is_object()) refuse(path + "/" + key, "expected an object or a boolean");
    Json rest = schema;
    rest.erase(key);
    if (key == "if") rest.erase("then"), rest.erase("else");
    const auto parts = rewritten(key, schema, [&](const Json& part) { return resolved(part, path, 0); });
    if (!parts) to_.note(path + "/" + key);
    if (!parts || parts->empty()) return read(rest, path, depth + 1);
    std::vector<Json> all{rest};
    all.insert(all.end(), parts->begin(), parts->end());
    return read(merge(all, path), path, depth + 1);
  }

  // ---- References

  const Json& target(const std::string& name, const std::string& path) const {
    if (name == "#") return root_;
    if (const Json* anchor = anchored(name)) return *anchor;
    if (!name.starts_with("#/")) refuse(path, "the reference '" + name + "' leads out of the schema; only '#/…' is supported");
    try {
      const nlohmann::json::json_pointer pointer(unescape(name.substr(1)));
      const Json& found = root_.at(Json::json_pointer(pointer.to_string()));
      return found;
    } catch (const Json::exception&) {
      refuse(path, "the reference '" + name + "' leads nowhere");
    }
  }

  // The part of the schema that is called so; nullptr where none is.
  const Json* anchored(const std::string& name) const {
    if (!name.starts_with("#") || name.starts_with("#/")) return nullptr;
    std::vector<const Json*> open{&root_};
    while (!open.empty()) {
      const Json* at = open.back();
      open.pop_back();
      if (!at->is_structured()) continue;
      for (const char* key : {"$anchor", "$dynamicAnchor"}) {
        if (at->is_object() && at->value(key, Json()) == Json(name.substr(1))) return at;
      }
      for (const Json& part : *at) open.push_back(&part);
    }
    return nullptr;
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
      return read(merge({found, rest}, path), path, depth + level);
    }
    const auto known = references_.find(name);
    if (known != references_.end()) return to_.use(known->second);
    const Rule rule = to_.add_rule(name);
    references_.emplace(name, rule);
    pending_.push_back({name, &found, rule});
    return to_.use(rule);
  }

  Json resolved(const Json& schema, const std::string& path, int depth) const {
    if (depth > max_depth) refuse(path, "references that lead to each other without end");
    if (!schema.is_object() || !schema.contains("$ref") || !schema["$ref"].is_string()) return schema;
    Json rest = schema;
    rest.erase("$ref");
    const Json found = resolved(target(schema["$ref"].get<std::string>(), path), path, depth + level);
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
      if (result == Json(false)) break;
    }
    return is_impossible(result) ? Json(false) : result;
  }

  // An object must have what it must not have.
  static bool is_impossible(const Json& schema) {
    if (!schema.is_object() || !schema.contains("properties") || !schema.contains("required")) return false;
    if (schema.value("type", Json("object")) != Json("object") || !schema["required"].is_array()) return false;
    const Json& properties = schema["properties"];
    return std::any_of(schema["required"].begin(), schema["required"].end(), [&](const Json& name) {
      return name.is_string() && properties.value(name.get<std::string>(), Json()) == Json(false);
    });
  }

  Expression combined(const Json& schema, const std::string& key, const std::string& path, int depth) {
    const Json& list = schema[key];
    if (!list.is_array() || list.empty()) refuse(path + "/" + key, "expected a list with at least one schema");
    Json rest = schema;
    rest.erase(key);
    for (const auto& item : schema.items()) {
      if (item.key() != "nullable" && is_annotation(item.key())) rest.erase(item.key());
    }
    if (key == "allOf" && rest.contains("contains") && only_contains(list)) {
      to_.note(path + "/contains");  // lists are counted for one alone
      return read(rest, path, depth + 1);
    }
    if (key == "allOf") {
      std::vector<Json> all(list.begin(), list.end());
      if (!rest.empty()) all.push_back(rest);
      return read(merge(all, path + "/allOf"), path, depth + level);
    }
    std::vector<Expression> ways;
    for (std::size_t i = 0; i < list.size(); i++) {
      const std::string place = path + "/" + key + "/" + std::to_string(i);
      ways.push_back(rest.empty() ? read(list[i], place, depth + level)
                                  : read(merge({rest, list[i]}, place), place, depth + level));
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
      if (!is_annotation(key) && !is_checked(key)) to_.note(path + "/" + key);
    }
    std::vector<Expression> ways;
    const auto types = types_of(schema, path);
    for (const Json& value : list) {
      if (!holds(value, rest, path) || is_left_out(value, schema)) continue;
      if (types.empty() ||
          std::any_of(types.begin(), types.end(), [&](const std::string& type) { return is_of_type(value, type); }))
        ways.push_back(parts_.literal(value));
    }
    return to_.choice(std::move(ways));
  }

  // Conditions that holds() checks.
  static bool is_checked(std::string_view key) {
    return key == "minLength" || key == "maxLength" || key == "minimum" || key == "maximum" || key == "format" || key == "not";
  }

  static bool is_left_out(const Json& value, const Json& schema) {
    const Json* values = left_out_values(schema);
    return values != nullptr && std::find(values->begin(), values->end(), value) != values->end();
  }

  static bool holds(const Json& value, const Json& schema, const std::string& path) {
    if (value.is_string()) {
      const std::size_t size = count_chars(value.get_ref<const std::string&>());
      return size >= schema_count(schema, "minLength", path, 0) && size <= schema_count(schema, "maxLength", path, unlimited);
    }
    if (!value.is_number()) return true;
    const auto bound = [&](const char* key, double otherwise) {
      return schema.contains(key) && schema[key].is_number() ? schema[key].get<double>() : otherwise;
    };
    const double number = value.get<double>();
    return number >= bound("minimum", number) && number <= bound("maximum", number);
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
        {"object",
         {"properties", "required", "additionalProperties", "minProperties", "maxProperties", "propertyNames",
          "patternProperties", "unevaluatedProperties"}},
        {"array",
         {"items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains", "additionalItems", "unevaluatedItems"}},
        {"string", {"minLength", "maxLength", "pattern", "format"}},
        {"number", {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}}};
    std::vector<std::string> types = types_of(schema, path);
    if (types.empty()) {  // the conditions say what the value is; any other type would pass as well, but is not what is meant
      for (const auto& [type, keys] : kinds) {
        if (std::any_of(schema.items().begin(), schema.items().end(),
                        [&keys = keys](const auto& item) { return keys.count(item.key()) != 0; }))
          types.push_back(type);
      }
      if (types.empty() && !schema.contains("not")) return parts_.value();
      if (types.empty()) types = {"object", "array", "string", "number", "boolean", "null"};
    }
    std::vector<Expression> ways;
    for (const std::string& type : types) {
      if (type == "string") ways.push_back(strings_.read(schema, path));
      if (type == "number" || type == "integer") ways.push_back(numbers_.read(schema, path, type == "integer"));
      for (const Json& value : {Json(true), Json(false), Json()}) {
        if (is_of_type(value, type) && !is_left_out(value, schema)) ways.push_back(to_.text(value.dump()));
      }
      if (type == "array") ways.push_back(array(schema, path, depth));
      if (type == "object") ways.push_back(object(schema, path, depth));
      if ((type == "array" || type == "object") && leaves_out(schema, type)) to_.note(path + "/not");
    }
    return to_.choice(std::move(ways));
  }

  static bool leaves_out(const Json& schema, const std::string& type) {
    const Json* values = left_out_values(schema);
    return values != nullptr &&
           std::any_of(values->begin(), values->end(), [&](const Json& value) { return is_of_type(value, type); });
  }

  static std::uint32_t count(const Json& schema, const char* key, const std::string& path, std::uint32_t otherwise) {
    return schema_count(schema, key, path, otherwise);
  }

  // ---- Arrays and objects

  // The values of a schema that has few; nothing for others.
  std::optional<std::vector<Json>> few_values(const Json& given, const std::string& path) const {
    constexpr std::size_t most = 64;
    const Json schema = resolved(given, path, 0);
    if (!schema.is_object()) return std::nullopt;
    std::vector<Json> out;
    for (const auto& [key, value] : schema.items()) {
      if (key == "const") out = {value};
      if (key == "enum" && value.is_array()) out.assign(value.begin(), value.end());
      if (key != "const" && key != "enum" && key != "type" && !is_annotation(key)) return std::nullopt;
    }
    if (out.empty() && schema.value("type", Json()) == "boolean") out = {true, false};
    const auto types = types_of(schema, path);
    std::erase_if(out, [&](const Json& v) {
      return !types.empty() &&
             std::none_of(types.begin(), types.end(), [&](const std::string& type) { return is_of_type(v, type); });
    });
    return out.empty() || out.size() > most ? std::nullopt : std::optional(std::move(out));
  }

  // Lists that must hold a number of items of a kind; nothing, and a note, if no grammar can count them.
  std::optional<Expression> containing(const Json& schema, bool alike, const CountBounds& items, const std::string& path,
                                       int depth) {
    const Json& wanted = schema["contains"];
    CountBounds hits{count(schema, "minContains", path, 1), count(schema, "maxContains", path, unlimited)};
    if (hits.least == 0 && hits.most == unlimited) return std::nullopt;
    if (hits.least > hits.most) return to_.never();
    const Json item = schema.value("items", Json(true));
    if (hits.most != unlimited && !complement_of(wanted, [&](const Json& part) { return resolved(part, path, 0); })) {
      to_.note(path + "/maxContains");
      hits.most = unlimited;
      if (hits.least == 0) return std::nullopt;
    }
    if (!alike || schema.value("uniqueItems", Json()) == Json(true) || !countable(items, hits)) {
      to_.note(path + "/contains");
      return std::nullopt;
    }
    const std::string place = path + "/contains";
    const Expression hit = read(merge({item, wanted}, place), place, depth + level);
    const Expression other = hits.most == unlimited ? read(item, path + "/items", depth + level)
                                                    : read(merge({item, Json{{"not", wanted}}}, place), place, depth + level);
    return counted_elements(to_, parts_, hit, other, items, hits);
  }

  Expression array(const Json& schema, const std::string& path, int depth) {
    std::uint32_t least = count(schema, "minItems", path, 0), most = count(schema, "maxItems", path, unlimited);
    const bool tuple_like = schema.contains("items") && schema["items"].is_array();  // before draft 2020
    const char* first_key = tuple_like ? "items" : "prefixItems";
    const std::string rest_key = tuple_like ? "additionalItems" : schema.contains("items") ? "items" : "unevaluatedItems";
    const Json first = schema.contains(first_key) ? schema[first_key] : Json::array();
    if (!first.is_array()) refuse(path + "/" + first_key, "expected a list of schemas");
    if (schema.value("uniqueItems", Json()) == Json(true) && most > 1) {
      const auto values = first.empty() && schema.contains("items") ? few_values(schema["items"], path) : std::nullopt;
      constexpr std::size_t most_states = 1024;
      const std::size_t counts = most < (values ? values->size() : 0) ? most : std::max<std::uint32_t>(least, 1);
      if (values && values->size() * (counts + 1) <= most_states) return distinct_elements(to_, parts_, *values, {least, most});
      to_.note(path + "/uniqueItems");
    }
    if (schema.contains("contains")) {
      if (const auto counted = containing(schema, first.empty(), {least, most}, path, depth)) return *counted;
    }
    const bool closed = !schema.contains(rest_key);
    if (first.empty())
      return parts_.elements(closed ? parts_.value() : read(schema[rest_key], path + "/" + rest_key, depth + level), least, most);
    // The first items one by one; without a schema for the others, there are none.
    const auto fixed = static_cast<std::uint32_t>(std::min<std::size_t>(first.size(), most));
    const bool none = closed || schema[rest_key] == Json(false);
    if (none && least > first.size()) return to_.never();
    Expression rest = to_.empty();
    if (!none && most > fixed) {
      const Expression item = to_.sequence(
          {parts_.space(), to_.text(","), parts_.space(), read(schema[rest_key], path + "/" + rest_key, depth + level)});
      rest = to_.repeat(item, least > fixed ? least - fixed : 0, most == unlimited ? unlimited : most - fixed);
    }
    for (std::uint32_t i = fixed; i-- > 0;) {
      std::vector<Expression> parts;
      if (i > 0) parts = {parts_.space(), to_.text(","), parts_.space()};
      parts.push_back(read(first[i], path + "/" + first_key + "/" + std::to_string(i), depth + level));
      parts.push_back(rest);
      rest = to_.sequence(std::move(parts));
      if (i >= least) rest = to_.optional(rest);
    }
    return to_.sequence({to_.text("["), parts_.space(), rest, parts_.space(), to_.text("]")});
  }

  Expression member(Expression name, Expression value) {
    return to_.sequence({name, parts_.space(), to_.text(":"), parts_.space(), value});
  }

  // The members that an object may have.
  struct Members {
    std::vector<std::pair<std::string, Json>> known;
    std::vector<std::string> required;
    std::vector<std::pair<std::string, Json>> patterns;  // of names, with what they stand for
    Json more = true;                                    // of other names
    Json names = true;                                   // what these names are like
    std::uint32_t least = 0, most = unlimited;

    bool is_known(const std::string& name) const {
      return std::any_of(known.begin(), known.end(), [&](const auto& item) { return item.first == name; });
    }
  };

  Members members_of(const Json& schema, const std::string& path) const {
    Members m;
    const Json properties = schema.value("properties", Json::object()),
               patterns = schema.value("patternProperties", Json::object());
    if (!properties.is_object()) refuse(path + "/properties", "expected an object");
    if (!patterns.is_object()) refuse(path + "/patternProperties", "expected an object");
    if (properties.size() > 500) refuse(path + "/properties", "more than 500 properties are not supported");
    if (patterns.size() > 20) refuse(path + "/patternProperties", "more than 20 patterns are not supported");
    if (schema.contains("required") && schema["required"].size() > 500)
      refuse(path + "/required", "more than 500 names are not supported");
    for (const Json& name : schema.value("required", Json::array())) {
      if (!name.is_string()) refuse(path + "/required", "expected a list of names");
      m.required.push_back(name.get<std::string>());
    }
    const char* more_key = schema.contains("additionalProperties") ? "additionalProperties" : "unevaluatedProperties";
    const bool has_more = schema.contains(more_key);
    const bool lists_any = std::any_of(properties.begin(), properties.end(), [](const Json& p) { return p != Json(false); });
    m.more = has_more ? schema[more_key] : Json(!lists_any && m.required.empty() && patterns.empty());
    m.names = schema.value("propertyNames", Json(true));
    m.least = count(schema, "minProperties", path, 0), m.most = count(schema, "maxProperties", path, unlimited);
    for (const auto& [name, value] : properties.items()) m.known.emplace_back(name, value);
    for (const std::string& name : m.required) {
      if (!properties.contains(name)) m.known.emplace_back(name, has_more || !patterns.empty() ? m.more : Json(true));
    }
    for (const auto& [pattern, value] : patterns.items()) add_pattern(pattern, value, properties, m);
    if (m.known.size() > 500) refuse(path + "/properties", "more than 500 properties are not supported");
    return m;
  }

  // If names of properties match the pattern, both schemas hold; the pattern then excludes these names, so that no name comes
  // twice.
  static void add_pattern(const std::string& pattern, const Json& value, const Json& properties, Members& m) {
    Expressions scratch;
    const Expression body = read_regex(pattern, scratch, Writing::plain, true);
    Matcher matcher(Grammar::from_expressions(scratch, body),
                    std::make_shared<const Vocabulary>(std::vector<std::string>(), std::vector<std::int32_t>()));
    bool apart = true;
    for (auto& [name, known] : m.known) {
      matcher.restart();
      if (!matcher.accept_text(name) || !matcher.can_end()) continue;
      apart = false;
      known = properties.contains(name) ? Json{{"allOf", Json::array({known, value})}} : value;
    }
    if (apart) m.patterns.emplace_back(pattern, value);
  }

  Expression object(const Json& schema, const std::string& path, int depth) {
    Members m = members_of(schema, path);
    if (m.names != Json(true)) {
      if (const auto names = few_values(m.names, path)) {
        for (const Json& name : *names) {
          if (name.is_string() && !m.is_known(name.get<std::string>()) && m.more != Json(false))
            m.known.emplace_back(name.get<std::string>(), m.more);
        }
        m.more = false;
        m.names = true;
      } else if (!m.known.empty() && resolved(m.names, path, 0) != Json{{"type", "string"}}) {
        m.more = false;
      }
      if (!m.patterns.empty()) to_.note(path + "/propertyNames");
    }
    if (m.known.empty()) return free_object(m, path, depth);
    if (m.most < m.required.size()) return to_.never();
    if (m.least > m.required.size()) to_.note(path + "/minProperties");
    const bool open = m.more != Json(false) || !m.patterns.empty();
    if (m.most < m.known.size() || (m.most != unlimited && open)) to_.note(path + "/maxProperties");
    return fixed_object(m, path, depth);
  }

  // Members whose names are not listed; never where there are none. `names`: those that are.
  Expression other_member(const Members& m, const std::vector<std::string>& names, const std::string& path, int depth) {
    std::vector<Expression> ways;
    for (const auto& [pattern, value] : m.patterns) {
      const std::string place = path + "/patternProperties/" + pattern;
      Json all = value;
      for (const auto& [other, demands] : m.patterns) {  // a name may match several
        if (other != pattern && demands != value) all = Json{{"allOf", Json::array({all, demands})}};
      }
      ways.push_back(member(strings_.pattern(pattern, place), read(all, place, depth + level)));
    }
    if (m.more != Json(false) && m.patterns.empty()) {
      const Expression value = read(m.more, path + "/additionalProperties", depth + level);
      Expression name = names.empty() ? parts_.string() : parts_.other_string(names);
      if (names.empty() && m.names != Json(true)) {
        Json schema = resolved(m.names, path, 0);
        if (schema.is_object()) schema["type"] = "string";
        name = read(schema, path + "/propertyNames", depth + level);
      }
      ways.push_back(member(name, value));
    }
    return to_.choice(std::move(ways));
  }

  Expression free_object(const Members& m, const std::string& path, int depth) {
    if (m.least > m.most) return to_.never();
    if (m.least > 1) to_.note(path + "/minProperties");  // names may repeat
    const bool any = m.more == Json(true) && m.names == Json(true) && m.patterns.empty();
    if (any && m.least == 0 && m.most == unlimited) return parts_.object();
    const Expression one = m.most == 0 ? to_.never() : to_.as_rule("property", other_member(m, {}, path, depth));
    const bool none = m.most == 0 || (m.more == Json(false) && m.patterns.empty());
    if (none) return m.least > 0 ? to_.never() : to_.sequence({to_.text("{"), parts_.space(), to_.text("}")});
    const Expression next = to_.sequence({parts_.space(), to_.text(","), parts_.space(), one});
    const std::uint32_t least = m.least > 0 ? m.least - 1 : 0;
    Expression content =
        to_.sequence({one, to_.repeat(next, least, m.most == unlimited ? unlimited : m.most - 1), parts_.space()});
    if (m.least == 0) content = to_.optional(content);
    return to_.sequence({to_.text("{"), parts_.space(), content, to_.text("}")});
  }

  // Properties in the order of the schema; then others, where they are allowed. `after[i]` is what may follow once something
  // stands in front, `begin[i]` where nothing does: both from property i on.
  Expression fixed_object(const Members& m, const std::string& path, int depth) {
    const auto& [known, required] = std::tie(m.known, m.required);
    const Expression comma = to_.sequence({parts_.space(), to_.text(","), parts_.space()});
    Expression after = to_.empty(), begin = to_.empty();
    if (m.more != Json(false) || !m.patterns.empty()) {
      std::vector<std::string> names;
      for (const auto& [name, value] : known) names.push_back(name);
      const Expression other = to_.as_rule("other property", other_member(m, names, path, depth));
      after = to_.repeat(to_.sequence({comma, other}), 0);
      begin = to_.optional(to_.sequence({other, after}));
    }
    for (std::size_t i = known.size(); i-- > 0;) {
      const auto& [name, value] = known[i];
      const Expression one = member(parts_.quoted(name), read(value, path + "/properties/" + name, depth + level));
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
  NumberSchemas numbers_;
  StringSchemas strings_;
  struct Pending {
    std::string name;
    const Json* target;
    Rule rule;
  };
  std::vector<Pending> pending_;  // references that are to be read
  std::map<std::string, Rule> references_;
  std::size_t read_ = 0;
  mutable std::size_t combined_ = 0;  // parts of schemas that were copied
};

}  // namespace

Rule read_json_schema(const Json& schema, Expressions& to) { return Reader(schema, to).run(); }

}  // namespace sdx::text::grammar
