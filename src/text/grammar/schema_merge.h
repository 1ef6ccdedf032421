#pragma once
// Two JSON schemas that hold at the same time, as one.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace sdx::text::grammar {

// Keys of a schema that put no condition on a value, as JSON Schema has it: all that are not known. "nullable" is handled
// separately.
bool is_annotation(std::string_view key);

// A list of schemas that have "contains", its bounds, and nothing else: as merge_schema() puts those beside each other.
bool only_contains(const nlohmann::ordered_json& list);

// Adds what `other` demands to `to`. Returns what could not be combined, or nothing. What nothing can fulfil becomes `false`.
std::string merge_schema(nlohmann::ordered_json& to, const nlohmann::ordered_json& other);

}  // namespace sdx::text::grammar
