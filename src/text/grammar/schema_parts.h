#pragma once
// Parts of a JSON schema that say something of one type alone.

#include <string>

#include "text/grammar/decimals.h"
#include "text/grammar/readers.h"

namespace sdx::text::grammar {

// Throws Error(invalid_argument) that names the place in the schema.
[[noreturn]] void refuse_schema(const std::string& path, const std::string& what);
// A number of letters, items or properties.
std::uint32_t schema_count(const nlohmann::ordered_json& schema, const char* key, const std::string& path,
                           std::uint32_t otherwise);

// Numbers: bounds and multipleOf.
class NumberSchemas {
 public:
  NumberSchemas(Expressions& to, JsonParts& parts) : to_(to), parts_(parts), decimals_(to) {}
  Expression read(const nlohmann::ordered_json& schema, const std::string& path, bool whole);

 private:
  Expression read_plain(const nlohmann::ordered_json& schema, const std::string& path, bool whole);
  Expressions& to_;
  JsonParts& parts_;
  Decimals decimals_;
};

// Texts: lengths, pattern, format.
class StringSchemas {
 public:
  StringSchemas(Expressions& to, JsonParts& parts) : to_(to), parts_(parts) {}
  Expression read(const nlohmann::ordered_json& schema, const std::string& path);
  // The position of a pattern for names of properties.
  Expression pattern(const std::string& pattern, const std::string& path);

 private:
  struct Lengths {
    std::uint32_t least = 0, most = unlimited;
  };
  Expression read_plain(const nlohmann::ordered_json& schema, const std::string& path);  // without texts that are left out
  Expression in_quotes(Expression content) { return to_.sequence({to_.text("\""), content, to_.text("\"")}); }
  Expression format(const std::string& name);
  Expression with_lengths(Expression content, const std::string& plain, bool search, const Lengths& lengths,
                          const std::string& path);

  Expressions& to_;
  JsonParts& parts_;
  std::map<std::string, Rule> format_rules_;
};

}  // namespace sdx::text::grammar
