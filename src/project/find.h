#pragma once
// Finds the model or project that a user's argument means.

#include <filesystem>
#include <memory>
#include <optional>
#include <sdx/registry.hpp>
#include <string>
#include <vector>

#include "base/tools_api.h"

namespace sdx::project {

// The places where names are looked up.
struct Places {
  std::filesystem::path working;        // the current folder
  std::filesystem::path home;           // SDX_HOME, else ~/.sdx; empty where there is neither
  std::filesystem::path registry = {};  // --registry or SDX_REGISTRY; empty: models.yaml in `working`, else in `home`
};
SDX_TOOLS_API Places default_places();

struct Located {
  enum class Kind {
    model,    // `path` is a model file
    project,  // `path` is a project file (sdx.yml)
    built,    // `path` is a folder that `sdx build` wrote, whose project file is gone
  };
  Kind kind = Kind::model;
  std::filesystem::path path;
  std::string how;                                       // "in ./sdx.yml", for messages; empty for an explicit path
  std::shared_ptr<const RegistryEntry> entry = nullptr;  // of a model that the registry names
};

// The project file of a folder: sdx.yml, sdx.yaml, gpux.yml or gpux.yaml, the first that is there. Warns of further ones.
SDX_TOOLS_API std::optional<std::filesystem::path> project_file_in(const std::filesystem::path& folder);

// A path that exists: a model file, a project file (.yml, .yaml), or a folder with a project file, with model.onnx or with a
// single .onnx file. nullopt where nothing is there; Error(io) for a folder with no or several models.
std::optional<Located> locate_path(const std::filesystem::path& path);

// The registry file in use: see Registry::find_file().
std::optional<std::filesystem::path> registry_file(const Places& places);

// Searches in this order: an explicit path; ./sdx.yml, ./gpux.yml … if one has that name; the registry; ~/.sdx/models/NAME (a
// folder), NAME.onnx or NAME.yml; ./.sdx/, if the build there has that name. nullopt: nothing matches. Throws
// Error(invalid_argument) if ./sdx.yml or the registry cannot be read, Error(io) if the registry names a file that is gone.
std::optional<Located> find_by_name(const std::string& name, const Places& places = default_places());

// The same, but Error(io) with the closest file or name where nothing matches.
Located locate(const std::string& text, const Places& places = default_places());

// Every name that find_by_name() would find, sorted.
SDX_TOOLS_API std::vector<std::string> known_names(const Places& places = default_places());

}  // namespace sdx::project
