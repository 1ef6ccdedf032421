#pragma once
// Rewrites logical conditions of a JSON schema (not, if, dependentRequired, …) as conditions that a grammar can express.

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdx::text::grammar {

using SchemaList = std::vector<nlohmann::ordered_json>;

// Returns a schema with its references resolved.
using ResolveSchema = std::function<nlohmann::ordered_json(const nlohmann::ordered_json&)>;

// Schemas that together allow what `schema` does not, and perhaps less; nothing where no schemas say that. Values that it lists
// become {"not": {"enum": […]}}, which the reader of schemas knows.
std::optional<SchemaList> complement_of(const nlohmann::ordered_json& schema, const ResolveSchema& resolve);

// {"not": {"enum": […]}}: the values that are left out; nullptr for any other `not`.
const nlohmann::ordered_json* left_out_values(const nlohmann::ordered_json& schema);

// The conditions that are rewritten, in that order.
const std::vector<std::string_view>& rewritten_conditions();

// Rewrites `schema[key]` as schemas that must all hold (each with plain conditions, anyOf and allOf); nothing if no schemas
// express it. `key` is one of rewritten_conditions(); "then" and "else" belong to "if".
std::optional<SchemaList> rewritten(const std::string& key, const nlohmann::ordered_json& schema, const ResolveSchema& resolve);

// `type`: a name of JSON Schema's.
bool is_of_type(const nlohmann::ordered_json& value, const nlohmann::ordered_json& type);

// Whether no value satisfies a schema that has only const, enum, type and excluded values.
bool allows_no_value(const nlohmann::ordered_json& schema);

}  // namespace sdx::text::grammar
