#pragma once
// Reads a request's body, and reports errors in OpenAI's words.

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/openai/error.h"

namespace sdx::serve::openai {

using Json = nlohmann::ordered_json;  // schemas and tools keep the order of their members

// Parses the text of the body, an object. Throws ApiError (400) for text that is not a JSON object, is nested more than 64 levels
// deep, or has more members than a request needs: looking for a member of an ordered object takes time in proportion to their
// number.
Json read_body(std::string_view body);
// The same for JSON of any kind within a body; nothing where it is broken.
std::optional<Json> read_json(std::string_view text);
// "a string", "an integer", …
std::string_view kind_of(const Json& value);

// Members of a request that nothing reads: they have no effect, and clients send many. Their names help users who wonder why.
class Ignored {
 public:
  // "messages[3].id" and "messages[4].id" are both "messages[].id".
  void add(std::string_view path);
  // The same with numbers and names in brackets as they are.
  void add_exact(std::string_view path);
  // "messages[].id, chat_id": for a header, so without bytes that it cannot have; "": none.
  std::string text() const;

 private:
  void add(std::string_view path, bool exact);
  std::vector<std::string> names_;
  bool more_ = false;
};

[[noreturn]] void wrong_type(const std::string& param, std::string_view expected, const Json& value);
[[noreturn]] void wrong_value(const std::string& param, const Json& value, std::string_view supported);

// Whether a tool may have that name: letters of ASCII, digits, '_', '-' and '.', from 1 to `most` of them.
bool is_function_name(std::string_view name, std::size_t most);

// The members of one object. Null counts as absent. Functions throw ApiError (400) for other types and values out of range.
class Fields {
 public:
  // `where`: the object's name in messages, "" for the body itself. Keeps references to `object` and `ignored`.
  Fields(const Json& object, std::string where, Ignored& ignored);
  // An object within this one.
  Fields within(const Json& object, std::string where) const { return {object, std::move(where), ignored_}; }

  const Json* take(std::string_view name);
  std::optional<bool> boolean(std::string_view name);
  std::optional<double> number(std::string_view name, double least, double most);
  std::optional<std::int64_t> integer(std::string_view name, std::int64_t least,
                                      std::int64_t most = std::numeric_limits<std::int64_t>::max());
  std::optional<std::string> text(std::string_view name);
  const Json* object(std::string_view name);
  const Json* array(std::string_view name, std::size_t least, std::size_t most);
  const Json& required(std::string_view name);  // throws where it is absent
  std::string required_text(std::string_view name);

  // Fields of the interface that make no difference here.
  void ignore(std::initializer_list<std::string_view> names);
  // Fields of the interface that cannot be honoured: refused unless they are null, false or empty.
  void unsupported(std::string_view name, std::string_view why);
  // Notes the fields that were not read.
  void finish() const;

  std::string path(std::string_view name) const;  // "messages[0].content"

 private:
  const Json& object_;
  std::string where_;
  Ignored& ignored_;
  std::vector<std::string_view> known_;
};

}  // namespace sdx::serve::openai
