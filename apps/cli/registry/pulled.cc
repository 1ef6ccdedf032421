#include "cli/registry/pulled.h"

#include <algorithm>
#include <numeric>
#include <sdx/registry.hpp>

#include "base/text/model_name.h"
#include "hub/repository_files.h"
#include "hub/staging.h"
#include "project/find.h"

namespace sdx::cli {
namespace {

namespace fs = std::filesystem;

std::optional<PulledModel> pulled_model(const fs::path& folder) {
  hub::Pulled p = hub::read_manifest(folder);
  if (p.source.empty()) return std::nullopt;
  const std::string own = folder.filename().string();
  std::string name = model_folder_name(p.name) == own ? p.name : own;  // the folder may have been renamed
  return PulledModel{std::move(name), p.source, p.revision, folder, std::move(p.files)};
}

}  // namespace

std::uint64_t PulledModel::bytes() const {
  return std::accumulate(files.begin(), files.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const hub::PulledFile& f) { return sum + f.bytes; });
}

bool PulledModel::of_text() const {
  return !files.empty() && (files.front().name.ends_with(".gguf") || hub::is_safetensors(files.front().name));
}

std::vector<PulledModel> pulled_models() {
  std::vector<PulledModel> out;
  std::error_code error;
  const fs::path home = project::default_places().home;
  if (home.empty()) return out;
  for (fs::directory_iterator it(home / "models", error), end; !error && it != end; it.increment(error)) {
    if (it->path().filename().string().starts_with('.')) continue;  // a pull at work
    if (auto model = pulled_model(it->path())) out.push_back(std::move(*model));
  }
  std::sort(out.begin(), out.end(), [](const PulledModel& a, const PulledModel& b) { return a.name < b.name; });
  return out;
}

std::optional<PulledModel> pulled_model_named(const std::string& name) {
  const fs::path home = project::default_places().home;
  if (home.empty() || name.empty() || name.starts_with('.') || name.starts_with('/')) return std::nullopt;
  std::optional<PulledModel> model = pulled_model(home / "models" / model_folder_name(name));
  // "team-model" is the folder of "team/model", but "other/model" would be another folder's.
  if (model && model_folder_name(model->name) != model_folder_name(name)) return std::nullopt;
  return model;
}

fs::path text_model(const std::string& given) {
  std::error_code ignored;
  if (fs::exists(given, ignored)) return given;
  if (const auto pulled = pulled_model_named(given)) return pulled->folder;
  if (const auto file = Registry::find_file(); file && fs::exists(*file, ignored)) {
    const Registry all = Registry::open(*file);
    if (const RegistryEntry* entry = all.find(given)) return entry->file;
  }
  return given;
}

}  // namespace sdx::cli
