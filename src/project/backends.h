#pragma once
// backends.yaml: names for providers with their options, and what automatic selection tries.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sdx/session.hpp>

#include "base/tools_api.h"
#include "project/find.h"
#include "project/yaml/yaml.h"

namespace sdx {

struct Backend {
  std::string name;
  std::string provider;  // canonical
  std::vector<std::pair<std::string, std::string>> options;
  std::string description;
};

struct Backends {
  std::filesystem::path file;
  std::vector<Backend> backends;                                       // in the file's order
  std::vector<std::string> provider_priority;                          // see SessionOptions
  std::vector<std::pair<std::string, std::string>> platform_defaults;  // see SessionOptions

  const Backend* find(std::string_view name) const noexcept;
};

// Throws Error(invalid_argument) "FILE:LINE:COLUMN: …" for unknown keys, providers and platforms (with the closest match), and
// for a backend that has a provider's name.
Backends parse_backends(const YamlDocument& document);

// The file in use: backends.yaml beside the registry that is named explicitly, else in the current folder, else in `home`;
// nullopt: there is none.
std::optional<std::filesystem::path> backends_file(const project::Places& places = project::default_places());
// The contents of that file. Also throws Error(io).
SDX_TOOLS_API std::optional<Backends> find_backends(const project::Places& places = project::default_places());

// Puts it into a session's options: names of backends in the chain become their providers with their options (which those given
// already override), and automatic selection follows the file unless the options say otherwise themselves. Throws
// Error(invalid_argument) where two backends of the chain give one provider different options.
SDX_TOOLS_API void apply_backends(const Backends& backends, SessionOptions& options);

}  // namespace sdx
