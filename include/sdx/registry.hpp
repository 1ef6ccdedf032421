#pragma once
// The model registry (models.yaml): short names for models, with the shapes and settings to run them with.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sdx/dtype.hpp>
#include <sdx/export.hpp>

namespace sdx {

// One input of a model as the registry describes it.
struct RegistryInput {
  std::string name;
  std::optional<std::vector<std::int64_t>> shape;  // all extents are fixed; empty list: a scalar; no value: not specified
  DataType dtype = DataType::undefined;            // undefined: not specified
};

struct SDX_API RegistryEntry {
  std::string name;
  std::string path;            // as written
  std::filesystem::path file;  // `path`, relative to the registry's folder
  std::vector<RegistryInput> inputs;
  DataType dtype = DataType::undefined;  // float32, float16, …; undefined: not specified
  bool convert = false;                  // convert a float32 model to `dtype` (float16 or bfloat16)
  std::optional<int> warmup;             // warm-up runs
  std::optional<int> iterations;         // measured runs
  std::string description;
  std::vector<std::string> tags;
  std::string place;  // "models.yaml:3:3"

  bool has_tag(std::string_view tag) const;
};

// A registry file and its text. add() and remove() edit only the entry in question, so comments, order and layout elsewhere are
// preserved; save() writes the text. Not thread-safe while it is being changed.
class SDX_API Registry {
 public:
  // Throws Error(io) for a file that cannot be read, and Error(invalid_argument) "FILE:LINE:COLUMN: …" for anything that is not a
  // valid registry: bad YAML, unknown keys (with the closest match), wrong types, extents that are not fixed.
  static Registry open(const std::filesystem::path& file);
  // Parses `text`; `file` appears in messages, and paths are relative to its folder.
  static Registry parse(std::string text, std::filesystem::path file);
  // An empty registry for a file that does not exist yet.
  static Registry create(std::filesystem::path file);

  // The registry in use: the first of `given` if not empty, $SDX_REGISTRY, ./models.yaml, and models.yaml in `home` (default:
  // $SDX_HOME or ~/.sdx). The first two need not exist; nullopt if neither is set and the others do not exist.
  static std::optional<std::filesystem::path> find_file(const std::filesystem::path& given = {});

  const std::filesystem::path& file() const noexcept { return file_; }
  const std::string& text() const noexcept { return text_; }
  // In file order. Invalidated by add() and remove().
  std::span<const RegistryEntry> entries() const noexcept { return entries_; }
  const RegistryEntry* find(std::string_view name) const noexcept;
  // Throws Error(invalid_argument) with the closest name.
  const RegistryEntry& at(std::string_view name) const;

  // Appends an entry, ignoring its `file` and `place`. Throws Error(invalid_argument) if the name is taken, if a value is
  // invalid, or if the file's layout has no room for another line ("models: {a: …}").
  void add(const RegistryEntry& entry);
  // Removes an entry and the comments inside it. Throws Error(invalid_argument) if there is no such entry or others refer to it.
  void remove(std::string_view name);
  // Opens the file (an empty registry if it does not exist), applies `change` and saves, holding a lock against concurrent edits.
  // Others wait up to ten seconds and then throw Error(io). Throws whatever open(), `change` and save() throw, leaving the file
  // unchanged.
  static void edit(const std::filesystem::path& file, const std::function<void(Registry&)>& change);

  // Writes a temporary file and renames it into place. Throws Error(io).
  void save() const;

 private:
  std::filesystem::path file_;
  std::string text_;
  std::vector<RegistryEntry> entries_;
};

}  // namespace sdx
