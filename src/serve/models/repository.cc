#include "serve/models/repository.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/error.h"
#include "serve/models/model_files.h"

namespace sdx::serve {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostModels = 10'000;

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

RepositoryModel scan_model(const fs::path& path, const fs::path& root) {
  RepositoryModel out;
  try {
    check_inside(path, root);
    std::error_code ignored;
    std::map<std::int64_t, fs::path> versions;
    if (fs::is_directory(path, ignored)) versions = numbered_folders(path);
    if (versions.empty()) versions[1] = path;
    versions.erase(versions.begin(), std::prev(versions.end()));
    for (const auto& [number, place] : versions) out.versions[number] = {place, model_stamp(place)};
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
      const std::string ending = path.extension().string();
      if (ending != ".onnx" && ending != ".gguf") continue;
      name = path.stem().string();
    }
    if (out.size() >= kMostModels) fail(ErrorCode::invalid_argument, "more than {} models in '{}'", kMostModels, root.string());
    RepositoryModel model = scan_model(path, root);
    if (const auto [at, fresh] = out.emplace(name, std::move(model)); !fresh) {
      at->second.error = "a file and a folder have this name: '" + name + "'";
      at->second.versions.clear();
    }
  }
  if (error) fail(ErrorCode::io, "cannot read the repository '{}': {}", folder.string(), error.message());
  return out;
}

}  // namespace sdx::serve
