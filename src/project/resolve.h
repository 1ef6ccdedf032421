#pragma once
// Finds the model that a user's argument means, with everything that belongs to it, in one step. All commands, and the server for
// its models, get the options of their sessions here.

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
#include "session/options/option_table.h"

namespace sdx::project {

// What was asked for beside a model's name.
struct Asked {
  session::TypedOptions session;
  DataType dtype = DataType::undefined;  // to convert the model to; undefined: what the registry says
  bool keep_io = false;                  // a converted model's inputs and outputs stay as they are
};

// With what backends.yaml says, as apply_backends(). Throws what find_backends() and apply_backends() throw.
SDX_TOOLS_API session::TypedOptions with_backends(session::TypedOptions asked, const Places& places = default_places());

// The options of a session: the project's, where there is one, and over them what was typed.
SDX_TOOLS_API SessionOptions options_for(const session::TypedOptions& asked, const ProjectConfig* project);

struct ResolvedModel {
  std::string name;                                  // for people: as given
  std::filesystem::path source;                      // the model file: as given, the project's, the registry's, the build's
  std::filesystem::path model;                       // the model to open: `source`, or its converted form
  bool built = false;                                // `source` is what a build left whose project file is gone
  std::optional<Project> project;                    // where there is a project file: its settings, pre- and postprocessing
  std::shared_ptr<const RegistryEntry> entry;        // where the registry has that name
  SessionOptions options;                            // options_for() it
  DataType dtype = DataType::undefined;              // to convert it to, if to any
  bool io_stays = false;                             // its inputs and outputs then keep their types: a project declares them
  std::shared_ptr<const ConvertedModel> conversion;  // holds a converted `model` while it is in use

  // Null for a bare model.
  const ProjectConfig* config() const { return project ? &project->config() : nullptr; }
};

// See locate(). Reads the project file, not the model. Throws what locate() and Project::open() throw.
SDX_TOOLS_API ResolvedModel resolve(const std::string& name, const Asked& asked = {}, const Places& places = default_places());

// Converts `model` to its `dtype`, if it has one, and opens the result instead; `options` say where such files are kept. Returns
// whether the conversion was made by this call. Throws what convert_model() throws.
SDX_TOOLS_API bool convert(ResolvedModel& model);

}  // namespace sdx::project
