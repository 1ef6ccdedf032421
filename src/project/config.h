#pragma once
// Project files into ProjectConfig.

#include <filesystem>
#include <map>
#include <string>

#include <sdx/session.hpp>

#include <sdx/project.hpp>
#include "base/tools_api.h"
#include "project/yaml/yaml.h"

namespace sdx {

struct ParsedProject {
  ProjectConfig config;
  // "FILE:LINE:COLUMN: inputs.x" by key path, for checks that need the model.
  std::map<std::string, std::string> places;
  std::string place(const std::string& path) const;
};

// Checks everything that can be checked without the model. Label files are read relative to `folder`. Throws Error.
ParsedProject parse_project(const YamlDocument& document, const std::filesystem::path& folder);

// The two sections alone; `base` is what keys that are not there keep.
Preprocessing parse_preprocessing(const YamlValue& section, Preprocessing base);

// Reads a project file, environment variables expanded.
ParsedProject read_project(const std::filesystem::path& file);

// Its settings for a session: provider chain, options (gpu.memory as each provider's own limit), threads, limits.
SDX_TOOLS_API SessionOptions session_options_of(const ProjectConfig& config);

// "2GB", "512MB", "1024KB" (powers of 1000), "2GiB" (of 1024). Throws Error at the value's place.
std::uint64_t parse_size(const YamlValue& value);

}  // namespace sdx
