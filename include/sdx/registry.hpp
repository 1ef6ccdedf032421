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

// What the registry says of one input of a model.
struct RegistryInput {
  std::string name;
  std::optional<std::vector<std::int64_t>> shape;  // every extent is fixed; empty: a scalar
  DataType dtype = DataType::undefined;            // undefined: not said
};

struct SDX_API RegistryEntry {
  std::string name;
  std::string path;            // as written
  std::filesystem::path file;  // `path`, relative to the registry's folder
  std::vector<RegistryInput> inputs;
  DataType dtype = DataType::undefined;  // float32, float16, …; undefined: not said
  bool convert = false;                  // a float32 model is converted to `dtype` (float16 or bfloat16)
  std::optional<int> warmup;             // runs before those that count
  std::optional<int> iterations;         // runs that count
  std::string description;
  std::vector<std::string> tags;
  std::string place;  // "models.yaml:3:3"

  bool has_tag(std::string_view tag) const;
};

// A registry file and its text. add() and remove() change that one entry in the text, so that comments, order and layout of
// everything else stay; save() writes it. Not thread-safe while it is changed.
class SDX_API Registry {
 public:
  // Throws Error(io) for a file that cannot be read, and Error(invalid_argument) "FILE:LINE:COLUMN: …" for anything that is no
  // registry: bad YAML, unknown keys (with the closest match), wrong types, shapes with extents that are not fixed.
  static Registry open(const std::filesystem::path& file);
  // The same for a text; `file` stands in messages, and paths are relative to its folder.
  static Registry parse(std::string text, std::filesystem::path file);
  // An empty one, for a file that is not there yet.
  static Registry create(std::filesystem::path file);

  // The registry in use: `given` if it is not empty, $SDX_REGISTRY, ./models.yaml, models.yaml in `home` (default: $SDX_HOME or
  // ~/.sdx). The first two need not exist; nullopt where none of the others does.
  static std::optional<std::filesystem::path> find_file(const std::filesystem::path& given = {});

  const std::filesystem::path& file() const noexcept { return file_; }
  const std::string& text() const noexcept { return text_; }
  // In the file's order. Invalidated by add() and remove().
  std::span<const RegistryEntry> entries() const noexcept { return entries_; }
  const RegistryEntry* find(std::string_view name) const noexcept;
  // Throws Error(invalid_argument) with the closest name.
  const RegistryEntry& at(std::string_view name) const;

  // Appends an entry; `file` and `place` are not read. Throws Error(invalid_argument) where the name is taken or something is not
  // valid, and for a file whose layout leaves no place for a further line ("models: {a: …}").
  void add(const RegistryEntry& entry);
  // Takes an entry out, with the comments inside it. Throws Error(invalid_argument): no such entry, or others refer to it.
  void remove(std::string_view name);
  // Opens the file (an empty registry where it is not there), applies `change` and saves, while nobody else does the same: others
  // wait, up to ten seconds, and then throw Error(io). Throws what open(), `change` and save() throw; the file is as it was then.
  static void edit(const std::filesystem::path& file, const std::function<void(Registry&)>& change);

  // Writes to a temporary file that is renamed into place. Throws Error(io).
  void save() const;

 private:
  std::filesystem::path file_;
  std::string text_;
  std::vector<RegistryEntry> entries_;
};

}  // namespace sdx
