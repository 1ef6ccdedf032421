#include "providers/vendor/search.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "base/system/dynlib.h"

namespace sdx {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

// Folders of Python packages below an installation's prefix. `lib64` is often a link to `lib`.
void add_site_packages(const fs::path& prefix, std::vector<fs::path>& out) {
  std::error_code none;
  for (const char* lib : {"lib", "lib64"}) {
    for (const auto& entry : fs::directory_iterator(prefix / lib, none)) {
      if (!entry.path().filename().string().starts_with("python3")) continue;
      for (const char* leaf : {"site-packages", "dist-packages"}) {
        const fs::path folder = fs::canonical(entry.path() / leaf, none);
        if (!none && fs::is_directory(folder, none)) add_distinct(folder, out);
      }
    }
  }
}

}  // namespace

void add_distinct(const fs::path& file, std::vector<fs::path>& out) {
  const auto same = [&](const fs::path& other) {
    std::error_code missing;
    return other == file || fs::equivalent(other, file, missing);
  };
  if (std::none_of(out.begin(), out.end(), same)) out.push_back(file);
}

std::vector<fs::path> program_folders() {
  const fs::path folder = folder_of(reinterpret_cast<const void*>(&program_folders));
  if (folder.empty()) return {};
  return {folder, folder.parent_path() / "lib"};
}

std::vector<fs::path> site_packages() {
  std::vector<fs::path> out;
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const std::string v = variable(name); !v.empty()) add_site_packages(v, out);
  }
  if (const std::string home = variable("HOME"); !home.empty()) add_site_packages(fs::path(home) / ".local", out);
  std::error_code none;
  const std::string path = variable("PATH");
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    const fs::path python = fs::path(path.substr(at, end - at)) / "python3";
    if (fs::exists(python, none)) {
      add_site_packages(python.parent_path().parent_path(), out);
      add_site_packages(fs::canonical(python, none).parent_path().parent_path(), out);
    }
    at = end + 1;
  }
  add_site_packages("/usr/local", out);
  add_site_packages("/usr", out);
  return out;
}

void add_library_of(const fs::path& folder, std::string_view stem, std::vector<fs::path>& out) {
  const std::string plain = std::string(stem) + ".so", versioned = plain + ".", mac = std::string(stem) + ".dylib";
  std::error_code none;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename().string();
    if (name == plain || name.starts_with(versioned) || name == mac) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  if (!found.empty()) out.push_back(found.back());
}

}  // namespace sdx
