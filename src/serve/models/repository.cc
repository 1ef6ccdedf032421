#include "serve/models/repository.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/suggest.h"
#include "base/system/mapped_file.h"
#include "base/text/model_name.h"
#include "serve/grpc_api.h"
#include "serve/models/model_files.h"
#include "tensor/gguf/gguf_names.h"

namespace sdx::serve {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostModels = 10'000;
constexpr std::size_t kConfigBytes = std::size_t{1} << 20;

// "7", without sign and leading zeros; 0 is none.
std::optional<std::int64_t> version_number(const std::string& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 1 || text[0] == '0') return std::nullopt;
  return number;
}

std::map<std::int64_t, fs::path> numbered_folders(const fs::path& folder) {
  std::map<std::int64_t, fs::path> out;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const auto number = version_number(it->path().filename().string());
    std::error_code ignored;
    if (number && it->is_directory(ignored)) out[*number] = it->path();
  }
  return out;
}

void read_config(const fs::path& file, RepositoryModel& model) {
  std::vector<std::string> ignored;
  const std::string json = load_module<GrpcModule>().read_config(read_file(file, kConfigBytes), ignored);
  model.settings = settings_of_json(json, ignored);
  if (!ignored.empty()) model.warning = "config.pbtxt: ignored: " + sdx::join(ignored);
}

void choose_versions(std::map<std::int64_t, fs::path>& versions, const ModelSettings& settings) {
  if (!settings.versions.empty()) {
    std::erase_if(versions, [&](const auto& item) {
      return std::find(settings.versions.begin(), settings.versions.end(), item.first) == settings.versions.end();
    });
    if (versions.empty()) fail(ErrorCode::invalid_argument, "none of the versions in version_policy exists");
  } else if (settings.newest > 0) {
    while (static_cast<std::int64_t>(versions.size()) > settings.newest) versions.erase(versions.begin());
  }
}

// The record that a pull leaves in the model's folder has its name; of a folder that was renamed it is that of the folder.
std::string pulled_name(const fs::path& folder) {
  const fs::path file = folder / kPullRecord;
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) return {};
  const nlohmann::json record = nlohmann::json::parse(read_file(file, kConfigBytes), nullptr, false);
  const auto name = record.is_object() ? record.find("name") : record.end();
  if (!record.is_object() || name == record.end() || !name->is_string()) return {};
  const std::string own = folder.filename().string();
  return model_folder_name(name->get<std::string>()) == own ? name->get<std::string>() : own;
}

RepositoryModel scan_model(const fs::path& path, const fs::path& root) {
  RepositoryModel out;
  try {
    check_inside(path, root);
    std::error_code ignored;
    std::map<std::int64_t, fs::path> versions;
    if (fs::is_directory(path, ignored)) {
      out.folder = path;
      out.pulled_as = pulled_name(path);
      versions = numbered_folders(path);
    }
    if (versions.empty()) versions[1] = path;
    const fs::path config = path / "config.pbtxt";
    std::string stamp;
    if (fs::is_regular_file(config, ignored)) {
      stamp = model_stamp(config);
      read_config(config, out);
    }
    choose_versions(versions, out.settings);
    for (const auto& [number, place] : versions) out.versions[number] = {place, stamp + model_stamp(place)};
  } catch (const Error& error) {
    out.error = error.message();
  }
  return out;
}

}  // namespace

std::map<std::string, RepositoryModel> scan_repository(const fs::path& folder) {
  std::error_code error;
  const fs::path root = fs::canonical(folder, error);
  if (error) fail(ErrorCode::io, "cannot read the repository '{}': {}", folder.string(), error.message());
  std::map<std::string, RepositoryModel> out;
  for (fs::directory_iterator it(root, error), end; it != end; it.increment(error)) {
    if (error) break;
    const fs::path path = it->path();
    std::string name = path.filename().string();
    if (name.starts_with('.')) continue;
    std::error_code ignored;
    if (!it->is_directory(ignored)) {
      if (path.extension() != ".onnx" && !is_whole_gguf(path)) continue;
      name = model_name_of(path);
    }
    if (out.size() >= kMostModels) fail(ErrorCode::invalid_argument, "more than {} models in '{}'", kMostModels, root.string());
    RepositoryModel model = scan_model(path, root);
    if (const auto [at, fresh] = out.emplace(name, std::move(model)); !fresh) {
      at->second.error = "two files, or a file and a folder, have this name: '" + name + "'";
      at->second.versions.clear();
    }
  }
  if (error) fail(ErrorCode::io, "cannot read the repository '{}': {}", folder.string(), error.message());
  return out;
}

}  // namespace sdx::serve
