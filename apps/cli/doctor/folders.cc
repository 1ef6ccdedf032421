// Folders and services that commands use: the cache, models, the project of this folder, the hub.

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sdx/project.hpp>
#include <sdx/registry.hpp>
#include <string>

#include "base/error.h"
#include "base/system/file.h"
#include "cache/entry.h"
#include "cache/folder.h"
#include "cli/doctor/parts.h"
#include "hub/pull.h"
#include "project/find.h"

namespace sdx::cli::doctor {
namespace {

namespace fs = std::filesystem;

bool is_set(const std::string& variable) {
  const char* text = std::getenv(variable.c_str());
  return text != nullptr && *text != '\0';
}

// The folder itself, or the nearest one above it, where it would be made.
fs::path nearest_existing(fs::path path) {
  std::error_code error;
  path = fs::absolute(path, error).lexically_normal();
  while (!fs::exists(fs::symlink_status(path, error)) && path.has_relative_path()) path = path.parent_path();
  return path;
}

// Why nothing can be written to a folder, or why it cannot be made; empty: it can.
std::string why_unwritable(const fs::path& folder) {
  const fs::path there = nearest_existing(folder);
  std::error_code error;
  if (!fs::is_directory(there, error)) return fmt::format("'{}' is no folder", there.string());
  if (may_make_files_in(there)) return "";
  return fmt::format("cannot write to '{}': {}", there.string(), std::strerror(errno));
}

bool is_model(const fs::directory_entry& entry) {
  const fs::path name = entry.path().filename();
  if (name.string().starts_with('.')) return false;  // a pull at work
  const fs::path ending = name.extension();
  std::error_code error;
  return entry.is_directory(error) || ending == ".onnx" || ending == ".ort" || ending == ".gguf" || ending == ".yml" ||
         ending == ".yaml";
}

void read_registry(ModelFacts& facts) {
  const auto file = Registry::find_file();
  if (!file) return;
  facts.registry = *file;
  try {
    const Registry registry = Registry::open(*file);
    std::error_code error;
    for (const RegistryEntry& entry : registry.entries()) {
      ++facts.listed;
      facts.gone += fs::exists(entry.file, error) ? 0 : 1;
    }
  } catch (const Error& e) {
    facts.problem = e.message();
  }
}

}  // namespace

CacheFacts look_at_cache() {
  CacheFacts facts;
  facts.folder = cache::cache_folder();
  if (facts.folder.empty()) return facts;
  std::error_code error;
  facts.exists = fs::is_directory(facts.folder, error);
  for (const cache::CacheItem& item : cache::list_cache(facts.folder)) {
    facts.bytes += item.bytes;
    ++facts.entries;
    if (facts.problem.empty()) facts.problem = cache::cache_distrust(facts.folder, item.folder);
  }
  if (facts.problem.empty()) facts.problem = cache::cache_distrust(facts.folder, facts.folder);
  if (!facts.problem.empty()) return facts;  // with its own advice
  facts.problem = why_unwritable(facts.folder);
  if (!facts.problem.empty()) facts.hint = "set SDX_CACHE_DIR to a folder that this user can write to";
  return facts;
}

ModelFacts look_at_models() {
  ModelFacts facts;
  if (const fs::path home = project::default_places().home; !home.empty()) facts.folder = home / "models";
  std::error_code error;
  if (!facts.folder.empty()) {
    for (fs::directory_iterator at(facts.folder, error), end; !error && at != end; at.increment(error)) {
      facts.models += is_model(*at) ? 1 : 0;
    }
  }
  read_registry(facts);
  return facts;
}

ProjectFacts look_at_project() {
  ProjectFacts facts;
  try {
    const auto file = project::project_file_in(".");
    if (!file) return facts;
    facts.file = *file;
    facts.name = Project::open(*file).config().name;
  } catch (const Error& e) {
    facts.problem = e.message();
  }
  return facts;
}

HubFacts look_at_hub() {
  HubFacts facts;
  try {
    facts.endpoint = hub::endpoint_url().text();
    if (facts.endpoint.ends_with('/')) facts.endpoint.pop_back();
  } catch (const Error& e) {
    facts.problem = e.message();
  }
  facts.token = is_set("HF_TOKEN");
  for (const char* name : {"http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"}) {
    if (is_set(name)) facts.proxies.emplace_back(name);
  }
  return facts;
}

}  // namespace sdx::cli::doctor
