#pragma once
// A part of a JSON file with the place where it stands, for messages that name it.

#include <initializer_list>
#include <string>

#include "base/error.h"
#include "text/tokenizer/load/json.h"

namespace sdx::text {

class Part {
 public:
  Part(JsonValue value, std::string where) : value_(value), where_(std::move(where)) {}

  const JsonValue& json() const noexcept { return value_; }
  const std::string& where() const noexcept { return where_; }

  template <class... Args>
  [[noreturn]] void wrong(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorCode::invalid_model, "{}: {}", where_, fmt::vformat(format, fmt::make_format_args(args...)));
  }

  // A member that must be there; one that may be absent or null.
  Part at(std::string_view key) const {
    const auto found = value_.find(key);
    if (!found) wrong("'{}' is missing", key);
    return {*found, where_ + "." + std::string(key)};
  }
  std::optional<Part> get(std::string_view key) const {
    const auto found = value_.find(key);
    if (!found || found->is(JsonKind::null)) return std::nullopt;
    return Part(*found, where_ + "." + std::string(key));
  }
  Part element(JsonValue value, std::size_t index) const { return {value, fmt::format("{}[{}]", where_, index)}; }

  std::string_view text() const {
    const auto value = value_.string();
    if (!value) kind_wrong("a string");
    return *value;
  }
  bool truth() const {
    const auto value = value_.boolean();
    if (!value) kind_wrong("true or false");
    return *value;
  }
  double number() const {
    const auto value = value_.number();
    if (!value) kind_wrong("a number");
    return *value;
  }
  std::uint64_t whole() const {
    const auto value = value_.whole();
    if (!value) kind_wrong("a whole number of at least 0");
    return *value;
  }
  std::uint32_t id() const {
    const std::uint64_t value = whole();
    if (value > 0xFFFFFFFFU) wrong("{} is too large for a token's number", value);
    return static_cast<std::uint32_t>(value);
  }
  char32_t character() const;
  void expect(JsonKind kind) const {
    if (!value_.is(kind)) kind_wrong(name(kind));
  }

  std::string text(std::string_view key, std::string_view otherwise) const {
    const auto part = get(key);
    return std::string(part ? part->text() : otherwise);
  }
  bool truth(std::string_view key, bool otherwise) const {
    const auto part = get(key);
    return part ? part->truth() : otherwise;
  }
  std::uint64_t whole(std::string_view key, std::uint64_t otherwise) const {
    const auto part = get(key);
    return part ? part->whole() : otherwise;
  }

  template <class T>
  struct Choice {
    std::string_view name;
    T value;
  };
  // The value of the name that stands here.
  template <class T>
  T choice(std::initializer_list<Choice<T>> all) const {
    const std::string_view given = text();
    std::string names;
    for (const auto& c : all) {
      if (c.name == given) return c.value;
      names += (names.empty() ? "" : ", ") + std::string(c.name);
    }
    wrong("unknown value '{}'; expected one of: {}", given, names);
  }

 private:
  [[noreturn]] void kind_wrong(std::string_view expected) const { wrong("expected {}, not {}", expected, name(value_.kind())); }
  JsonValue value_;
  std::string where_;
};

}  // namespace sdx::text
