#include "cache/folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>

#include "base/error.h"
#include "base/log.h"

namespace sdx::cache {
namespace {

namespace fs = std::filesystem;

bool mine_or_roots(const struct stat& about) { return about.st_uid == ::geteuid() || about.st_uid == 0; }

// The problem with an existing file or folder, also behind links. Access control lists show in the group's bits.
std::string problem_of(const fs::path& path) {
  struct stat about {};
  if (::lstat(path.c_str(), &about) != 0) return "";
  const auto not_ours = [&](const char* what) {
    return fmt::format("{} '{}' belongs to user {}, not to this one ({}) or root", what, path.string(), about.st_uid,
                       ::geteuid());
  };
  if (S_ISLNK(about.st_mode)) {
    if (!mine_or_roots(about)) return not_ours("the link");
    if (::stat(path.c_str(), &about) != 0) return "";
  }
  if (!mine_or_roots(about)) return not_ours(S_ISDIR(about.st_mode) ? "the folder" : "the file");
  if ((about.st_mode & (S_IWGRP | S_IWOTH)) == 0) return "";
  return fmt::format("users other than its owner may write to '{0}' (mode {1:04o}); to use it: chmod go-w '{0}'", path.string(),
                     about.st_mode & 07777U);
}

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
  const auto variable = [](const char* name) -> fs::path {
    const char* text = std::getenv(name);
    return text == nullptr ? "" : text;
  };
  if (!given.empty()) return given;
  if (auto own = variable("SDX_CACHE_DIR"); !own.empty()) return own;
  if (const auto xdg = variable("XDG_CACHE_HOME"); xdg.is_absolute()) return xdg / "sdx";  // relative ones are to be ignored
  if (const auto home = variable("HOME"); home.is_absolute()) return home / ".cache" / "sdx";
  return {};
}

std::string cache_distrust(const fs::path& root, const fs::path& path) {
  std::string problem = problem_of(root);
  fs::path part = root;
  for (const fs::path& name : path.lexically_relative(root)) {
    if (!problem.empty()) break;
    problem = problem_of(part /= name);
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
  if (folder.empty() || ::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return;
  if (errno == ENOENT && folder.has_parent_path() && folder.parent_path() != folder) {
    make_cache_folder(folder.parent_path());
    if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return;
  }
  fail(ErrorCode::io, "cannot create the folder '{}': {}", folder.string(), std::strerror(errno));
}

}  // namespace sdx::cache
