#pragma once
// Finds the model that a user's argument means, with everything that belongs to it, in one step.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include <sdx/project.hpp>
#include <sdx/registry.hpp>
#include <sdx/session.hpp>

#include "base/tools_api.h"
#include "project/converted.h"
#include "project/find.h"

namespace sdx::project {

struct ResolvedModel {
  std::string name;                                  // for people: as given
  std::filesystem::path source;                      // the model file: as given, the project's, the registry's, the build's
  std::filesystem::path model;                       // the model to open: `source`, or its converted form
  bool built = false;                                // `source` is what a build left whose project file is gone
  std::optional<Project> project;                    // where there is a project file: its settings, pre- and postprocessing
  std::shared_ptr<const RegistryEntry> entry;        // where the registry has that name
  SessionOptions options;                            // the project's settings for a session
  std::shared_ptr<const ConvertedModel> conversion;  // holds a converted `model` while it is in use

  // Null for a bare model.
  const ProjectConfig* config() const { return project ? &project->config() : nullptr; }
};

// See locate(). Reads the project file, not the model. Throws what locate() and Project::open() throw.
SDX_TOOLS_API ResolvedModel resolve(const std::string& name, const Places& places = default_places());

// Converts `model` to `dtype` and makes it the source; `options` say where such files are kept. Types of inputs that a project
// declares stay. Returns whether the conversion was made by this call. Throws what convert_model() throws.
SDX_TOOLS_API bool convert(ResolvedModel& model, DataType dtype, bool keep_io);

}  // namespace sdx::project
