#pragma once
// A folder of models in its present state: NAME.onnx, NAME.gguf (one or all parts of a split one), folders with a model
// (recognise_model()), and Triton's layout NAME/config.pbtxt with NAME/VERSION/model.onnx.

#include <filesystem>
#include <map>
#include <string>

#include "serve/models/settings.h"

namespace sdx::serve {

struct RepositoryVersion {
  std::filesystem::path path;  // as recognise_model() takes it; may be none
  std::string stamp;           // changes with the files
  bool operator==(const RepositoryVersion&) const = default;
};

struct RepositoryModel {
  std::map<std::int64_t, RepositoryVersion> versions;  // those that its version_policy wants; a model without numbers is 1
  std::filesystem::path folder;                        // NAME, below the repository without links; "": the model is one file
  std::string pulled_as;                               // the name by which `sdx pull` has fetched it; "": it has not
  ModelSettings settings;
  std::string error;    // why none of it can be served: a configuration that cannot be read, a link that leads elsewhere
  std::string warning;  // members of its configuration without a meaning here
  // Settings follow from files that the stamps have in them.
  bool operator==(const RepositoryModel& other) const { return versions == other.versions && error == other.error; }
};

// Names that begin with '.' are left out. Never throws for an error of one model; Error(io) if the folder cannot be read.
std::map<std::string, RepositoryModel> scan_repository(const std::filesystem::path& folder);

}  // namespace sdx::serve
