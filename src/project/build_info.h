#pragma once
// The description of a build: .sdx/model_info.json.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <sdx/project.hpp>
#include <sdx/session.hpp>

#include "cache/fingerprint.h"

namespace sdx::project {

// The conditions of a build besides its files, as text: the requested chain, dimensions, libraries. Equal text means an equal
// build.
std::string build_settings(const SessionOptions& options);

struct BuildInfo {
  std::string source;    // the model, relative to the project's folder
  std::string compiled;  // relative to .sdx
  std::string settings;
  std::string version;  // of the program that built it
  bool optimized = false;
  std::vector<cache::Fingerprint> files;
  std::vector<std::string> providers;
};

// nullopt where there is no readable build.
std::optional<BuildInfo> read_build_info(const std::filesystem::path& folder);

// model_info.json and provider_info.json (docs/projects.md).
struct BuildFacts {
  const ProjectConfig& config;
  std::string config_file;  // relative to the project's folder; "" for a bare model
  const BuildInfo& info;
  const BuildReport& report;
  const Session& session;  // of the built model
  const SessionOptions& options;
};
std::string model_info_json(const BuildFacts& facts);
std::string provider_info_json(const BuildFacts& facts);

}  // namespace sdx::project
