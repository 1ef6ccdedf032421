#include "cache/folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>

#include "base/error.h"
#include "base/log.h"
#include "base/system/file.h"
#include "base/system/process.h"

namespace sdx::cache {
namespace {

namespace fs = std::filesystem;

void warn_once(const std::string& problem) {
  static std::mutex mutex;
  static auto* const said = new std::set<std::string>;  // never destroyed: sessions may outlive static objects
  {
    const std::lock_guard lock(mutex);
    if (!said->insert(problem).second) return;
  }
  log::warning("the cache is not used: {}", problem);
}

}  // namespace

fs::path cache_folder(const fs::path& given) {
  if (!given.empty()) return given;
  const char* const own = std::getenv("SDX_CACHE_DIR");
  return own != nullptr && *own != '\0' ? path_of(own) : user_cache_folder("sdx");
}

std::string cache_distrust(const fs::path& root, const fs::path& path) {
  std::string problem = distrust_of(root);
  fs::path part = root;
  for (const fs::path& name : path.lexically_relative(root)) {
    if (!problem.empty()) break;
    problem = distrust_of(part /= name);
  }
  return problem;
}

std::string cache_problem(const fs::path& root, const fs::path& path) {
  std::string problem = cache_distrust(root, path);
  if (!problem.empty()) warn_once(problem);
  return problem;
}

fs::path cache_file(const fs::path& given, const fs::path& name) {
  const fs::path root = cache_folder(given);
  if (root.empty() || !cache_problem(root, root / name).empty()) return {};
  return root / name;
}

void make_cache_folder(const fs::path& folder) {
  if (folder.empty() || make_private_folder(folder) || errno == EEXIST) return;
  if (errno == ENOENT && folder.has_parent_path() && folder.parent_path() != folder) {
    make_cache_folder(folder.parent_path());
    if (make_private_folder(folder) || errno == EEXIST) return;
  }
  fail(ErrorCode::io, "cannot create the folder '{}': {}", folder.string(), std::strerror(errno));
}

}  // namespace sdx::cache
