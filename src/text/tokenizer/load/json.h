#pragma once
// JSON as tokenizer files have it: up to millions of small values, read once. Values are views into the document. 128,000 tokens
// and as many merges (8 MB) are parsed in 20 ms; a general tree of strings and maps takes ten times that.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdx::text {

enum class JsonKind : std::uint8_t { null, boolean, number, string, array, object };
std::string_view name(JsonKind kind) noexcept;

class JsonDocument;

// A value within a document, which must outlive it.
class JsonValue {
 public:
  JsonKind kind() const noexcept;
  bool is(JsonKind k) const noexcept { return kind() == k; }
  // The value, or nothing if it is of another kind, or does not fit.
  std::optional<bool> boolean() const noexcept;
  std::optional<std::string_view> string() const noexcept;
  std::optional<double> number() const noexcept;
  std::optional<std::uint64_t> whole() const noexcept;  // a whole number >= 0, written as one
  // The number of elements or members of an array or object; 0 for others.
  std::size_t size() const noexcept;
  // The member of that name; of several the last. Nothing where this is not an object.
  std::optional<JsonValue> find(std::string_view key) const noexcept;

  class Iterator {
   public:
    Iterator(const JsonDocument* document, std::uint32_t at, bool members) : document_(document), at_(at), members_(members) {}
    std::string_view key() const noexcept;  // of a member
    JsonValue operator*() const noexcept;
    Iterator& operator++() noexcept;
    bool operator==(const Iterator& other) const noexcept { return at_ == other.at_; }

   private:
    const JsonDocument* document_;
    std::uint32_t at_;
    bool members_;
  };
  Iterator begin() const noexcept;
  Iterator end() const noexcept;

 private:
  friend class JsonDocument;
  friend class Iterator;
  JsonValue(const JsonDocument* document, std::uint32_t at) : document_(document), at_(at) {}
  const JsonDocument* document_;
  std::uint32_t at_;
};

class JsonDocument {
 public:
  // Strict JSON in UTF-8, at most 127 levels deep. Throws Error(invalid_model) with line and column.
  explicit JsonDocument(std::string source);
  JsonDocument(const JsonDocument&) = delete;
  JsonDocument& operator=(const JsonDocument&) = delete;
  JsonValue root() const noexcept { return {this, 0}; }

 private:
  friend class JsonValue;
  friend class JsonParser;
  struct Node {
    const char* data;          // text of a string or number
    std::uint32_t size;        // of that text; elements of an array, members of an object
    std::uint32_t after : 29;  // the node behind this one and all that it holds
    std::uint32_t kind : 3;
  };
  std::string source_;  // strings are unescaped in place
  std::vector<Node> nodes_;
};

}  // namespace sdx::text
