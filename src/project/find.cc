#include "project/find.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "base/suggest.h"
#include "base/system/mapped_file.h"
#include "base/system/processes/environment.h"
#include "base/text/model_name.h"
#include "project/yaml/yaml.h"
#include "tensor/gguf/gguf_names.h"
#include "tensor/json.h"

namespace sdx::project {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool is_yaml(const fs::path& path) { return path.extension() == ".yml" || path.extension() == ".yaml"; }

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) out.push_back(it->path());
  std::sort(out.begin(), out.end());
  return out;
}

std::string project_name(const fs::path& file) {
  const YamlDocument document = YamlDocument::read(file);
  return document.root().require("name").string();
}

// The description that `sdx build` left; an empty object if there is nothing readable.
nlohmann::json built_info(const fs::path& folder) {
  try {
    nlohmann::json info = parse_json(read_file(folder / "model_info.json", std::size_t{16} << 20), "model_info.json");
    return info.is_object() ? info : nlohmann::json::object();
  } catch (const Error&) {
    return nlohmann::json::object();
  }
}

std::string word(const nlohmann::json& info, const char* key) {
  const auto it = info.find(key);
  return it != info.end() && it->is_string() ? it->get<std::string>() : "";
}

// All of a folder, the one that counts first.
std::vector<fs::path> project_files_in(const fs::path& folder) {
  std::vector<fs::path> out;
  for (const char* name : {"sdx.yml", "sdx.yaml", "gpux.yml", "gpux.yaml"}) {
    if (is_file(folder / name)) out.push_back(folder == "." ? fs::path(name) : folder / name);
  }
  return out;
}

std::optional<Located> in_working_folder(const std::string& name, const Places& places) {
  for (const fs::path& file : project_files_in(places.working)) {
    if (project_name(file) == name) return Located{Located::Kind::project, file, "in " + file.string()};
  }
  return std::nullopt;
}

std::optional<Located> in_registry(const std::string& name, const Places& places) {
  const auto file = registry_file(places);
  if (!file) return std::nullopt;
  const Registry registry = Registry::open(*file);
  const RegistryEntry* entry = registry.find(name);
  if (entry == nullptr) return std::nullopt;
  std::optional<Located> found = locate_path(entry->file);
  if (!found) fail(ErrorCode::io, "{}: there is no model file '{}'", entry->place, entry->file.string());
  found->how = "in " + file->string();
  found->entry = std::make_shared<const RegistryEntry>(*entry);
  return found;
}

std::optional<Located> in_home(const std::string& name, const Places& places) {
  if (places.home.empty() || name.empty() || name.find("..") != std::string::npos || fs::path(name).is_absolute()) {
    return std::nullopt;
  }
  const fs::path folder = places.home / "models";
  // Last, the folder of a pulled model with a name such as "qwen3:0.6b".
  for (const std::string& file : {name, name + ".onnx", name + ".yml", name + ".yaml", model_folder_name(name)}) {
    const fs::path path = folder / file;
    if (!is_file(path) && !is_folder(path)) continue;
    std::optional<Located> found = locate_path(path);
    if (found) found->how = "in " + folder.string();
    return found;
  }
  return std::nullopt;
}

std::optional<Located> in_built(const std::string& name, const Places& places) {
  const fs::path folder = places.working / ".sdx";
  const nlohmann::json info = built_info(folder);
  if (word(info, "name") != name) return std::nullopt;
  const fs::path config = places.working / word(info, "config");
  if (config != places.working && is_file(config)) return Located{Located::Kind::project, config, "in " + folder.string()};
  return Located{Located::Kind::built, folder, "in " + folder.string()};
}

// Searched in the documented order, after an explicit path.
using Step = std::optional<Located> (*)(const std::string& name, const Places& places);
constexpr std::array<Step, 4> kSteps{in_working_folder, in_registry, in_home, in_built};

[[noreturn]] void not_found(const std::string& text, const Places& places) {
  const fs::path path(text);
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::vector<std::string> files, models, stems;
  for (const fs::path& entry : entries_of(folder)) {
    const std::string file = entry.filename().string();
    if (is_file(entry)) files.push_back(file);
    if (is_file(entry) && entry.extension() == ".onnx") stems.push_back(entry.stem().string());
    if (entry.extension() == ".onnx" && models.size() < 8) models.push_back(file);
  }
  const std::string wanted = path.filename().string();
  std::string near = closest(wanted, files);
  if (near.empty()) near = closest(wanted, stems);
  if (!near.empty() && std::find(files.begin(), files.end(), near) == files.end()) near += ".onnx";
  std::string hint;
  if (!near.empty()) {
    hint = fmt::format("; did you mean '{}'?", (path.has_parent_path() ? folder / near : fs::path(near)).string());
  } else if (const std::string name = closest(text, known_names(places)); !name.empty()) {
    hint = fmt::format("; did you mean '{}'?", name);
  } else if (!models.empty()) {
    hint = fmt::format("; models in '{}': {}", folder.string(), join(models));
  }
  const bool a_name = !path.has_parent_path() && !path.has_extension();
  fail(ErrorCode::io, "there is no model file{} '{}'{}", a_name ? " or project" : "", text, hint);
}

}  // namespace

Places default_places() {
  Places places;
  places.working = ".";
  if (const char* home = std::getenv("SDX_HOME"); home != nullptr && *home != '\0') {
    places.home = home;
  } else if (const fs::path user = user_folder(); !user.empty()) {
    places.home = user / ".sdx";
  }
  if (const char* registry = std::getenv("SDX_REGISTRY"); registry != nullptr) places.registry = registry;
  return places;
}

std::optional<fs::path> project_file_in(const fs::path& folder) {
  const std::vector<fs::path> all = project_files_in(folder);
  if (all.empty()) return std::nullopt;
  if (all.size() > 1) {
    log::warning("'{}' has several project files; '{}' is used, '{}' is not. Name the file to use the other one", folder.string(),
                 all[0].filename().string(), all[1].filename().string());
  }
  return all.front();
}

std::optional<fs::path> registry_file(const Places& places) {
  if (!places.registry.empty()) return places.registry;
  const fs::path here = places.working == "." ? fs::path("models.yaml") : places.working / "models.yaml";
  if (is_file(here)) return here;
  if (!places.home.empty() && is_file(places.home / "models.yaml")) return places.home / "models.yaml";
  return std::nullopt;
}

std::optional<Located> locate_path(const fs::path& path) {
  if (is_file(path)) return Located{is_yaml(path) ? Located::Kind::project : Located::Kind::model, path, ""};
  if (!is_folder(path)) return std::nullopt;
  if (const auto project = project_file_in(path)) return Located{Located::Kind::project, *project, ""};
  if (is_file(path / "model.onnx")) return Located{Located::Kind::model, path / "model.onnx", ""};
  if (!word(built_info(path), "compiled").empty()) return Located{Located::Kind::built, path, ""};
  std::vector<fs::path> found;
  for (const fs::path& entry : entries_of(path)) {
    if (entry.extension() == ".onnx") found.push_back(entry);
  }
  if (found.size() == 1) return Located{Located::Kind::model, found.front(), ""};
  if (found.empty()) {
    if (const auto gguf = gguf_in(path)) return Located{Located::Kind::model, *gguf, ""};
  }
  fail(ErrorCode::io, "'{}' is a folder with {} .onnx files and no sdx.yml; name the model file", path.string(), found.size());
}

std::optional<Located> find_by_name(const std::string& name, const Places& places) {
  if (std::optional<Located> found = locate_path(name)) return found;
  for (const Step step : kSteps) {
    if (std::optional<Located> found = step(name, places)) return found;
  }
  return std::nullopt;
}

Located locate(const std::string& text, const Places& places) {
  if (std::optional<Located> found = find_by_name(text, places)) return *found;
  not_found(text, places);
}

std::vector<std::string> known_names(const Places& places) {
  std::vector<std::string> names;
  try {
    for (const fs::path& file : project_files_in(places.working)) names.push_back(project_name(file));
  } catch (const Error&) {
    // Whoever opens the project hears of it.
  }
  try {
    if (const auto file = registry_file(places)) {
      const Registry registry = Registry::open(*file);
      for (const RegistryEntry& entry : registry.entries()) names.push_back(entry.name);
    }
  } catch (const Error&) {
    // The same.
  }
  if (!places.home.empty()) {
    for (const fs::path& entry : entries_of(places.home / "models")) {
      const bool file = entry.extension() == ".onnx" || is_yaml(entry);
      if (file || is_folder(entry)) names.push_back(file ? entry.stem().string() : entry.filename().string());
    }
  }
  if (const std::string built = word(built_info(places.working / ".sdx"), "name"); !built.empty()) names.push_back(built);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace sdx::project
