#pragma once
// Strict reading of YAML configuration files: every complaint names file, line, column and key.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sdx {

struct YamlLimits {
  std::size_t bytes = std::size_t{4} << 20;  // of the file
  std::size_t nodes = 200'000;               // after aliases are expanded: a "billion laughs" file ends here
  int depth = 64;
};

enum class YamlKind { absent, null, scalar, list, map };

struct YamlNode;

// A place in a document: a handle that is cheap to copy and valid as long as its YamlDocument. All getters throw
// Error(invalid_argument) "FILE:LINE:COLUMN: a.b.c: expected …, found …".
class YamlValue {
 public:
  YamlKind kind() const noexcept;
  bool present() const noexcept { return kind() != YamlKind::absent; }  // false: get() found no such key
  bool is_null() const noexcept { return kind() == YamlKind::null; }    // "key:" without a value, "~", "null"
  bool is_scalar() const noexcept { return kind() == YamlKind::scalar; }
  bool is_list() const noexcept { return kind() == YamlKind::list; }
  bool is_map() const noexcept { return kind() == YamlKind::map; }
  explicit operator bool() const noexcept { return present() && !is_null(); }

  int line() const noexcept;                                  // from 1
  int column() const noexcept;                                // from 1
  const std::string& path() const noexcept { return path_; }  // "models.resnet50.tags[2]"

  std::string string() const;                                       // a word or number as it is written; not empty
  std::string text() const;                                         // the same, may be empty
  bool quoted() const noexcept;                                     // "1" is text where 1 is a number
  bool boolean() const;                                             // true, false, yes, no, on, off
  std::int64_t integer(std::int64_t low, std::int64_t high) const;  // decimal, or 0x…; 1_000 is accepted
  double number(double low, double high) const;                     // finite
  // One of `choices`, case ignored; the error gives the closest. Returns the choice's own spelling.
  std::string one_of(std::initializer_list<std::string_view> choices) const;

  // The elements of a list.
  std::vector<YamlValue> list() const;
  // Keys and values of a map in the file's order. Keys are unique.
  std::vector<std::pair<std::string, YamlValue>> entries() const;
  // A list of words; a single word is a list of one.
  std::vector<std::string> strings() const;
  // A list of integers.
  std::vector<std::int64_t> integers(std::int64_t low, std::int64_t high) const;

  // The value of a key of this map; absent() where the map does not have it (or this value itself is absent or null).
  YamlValue get(std::string_view key) const;
  // The same, an error where it is missing or null.
  YamlValue require(std::string_view key) const;
  struct Place {
    int line = 1, column = 1;  // from 1
  };
  // The place of a key of this map; {1, 1} if the map does not have it.
  Place key_place(std::string_view key) const noexcept;
  // An error naming the closest match for the first key that is not in `keys`.
  void only_keys(std::initializer_list<std::string_view> keys) const;
  void only_keys(std::span<const std::string_view> keys) const;

  // Throws Error(invalid_argument) with the place in front of `message`.
  [[noreturn]] void fail(std::string_view message) const;
  // "FILE:LINE:COLUMN: a.b.c: message", for warnings.
  std::string at(std::string_view message) const;
  // "a list", "'abc'": for messages.
  std::string found() const;

 private:
  friend class YamlDocument;
  YamlValue(const YamlNode* node, const std::string* file, std::string path) : node_(node), file_(file), path_(std::move(path)) {}
  void expect(YamlKind wanted, const char* what) const;

  const YamlNode* node_ = nullptr;  // null: absent
  const std::string* file_;
  std::string path_;
};

// One parsed document. Immutable; may be read from several threads.
class YamlDocument {
 public:
  // Throws Error(invalid_argument): not valid UTF-8 or YAML, control characters, duplicate keys, keys that are not words, tags
  // other than YAML's own, more than one document, and whatever exceeds the limits. `name` stands in messages.
  static YamlDocument parse(std::string_view text, std::string name, const YamlLimits& limits = {});
  // Also Error(io).
  static YamlDocument read(const std::filesystem::path& path, const YamlLimits& limits = {});
  ~YamlDocument();
  YamlDocument(YamlDocument&&) noexcept;
  YamlDocument& operator=(YamlDocument&&) noexcept;

  // Replaces ${NAME} and ${NAME:-default} in values (not in keys) by the environment's. Throws Error(invalid_argument) for a
  // variable that is not set, or empty, and has no default.
  void expand_environment();

  YamlValue root() const;  // null for an empty file
  const std::string& name() const noexcept { return *name_; }

 private:
  YamlDocument();
  std::unique_ptr<std::string> name_;
  std::unique_ptr<YamlNode> root_;
};

// `text` as a YAML scalar that reads back as the same text: bare where that is safe, else in double quotes.
std::string yaml_scalar(std::string_view text);

}  // namespace sdx
