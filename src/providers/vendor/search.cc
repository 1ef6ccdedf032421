#include "providers/vendor/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "base/system/dynlib.h"
#include "base/system/files/library_name.h"
#include "base/system/processes/environment.h"
#include "base/text/ascii.h"

namespace sdx {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

void add_folder(const fs::path& named, std::vector<fs::path>& out) {
  std::error_code none;
  const fs::path folder = fs::canonical(named, none);
  if (!none && fs::is_directory(folder, none)) add_distinct(folder, out);
}

// Folders of packages in those of several versions: "python3.11", on Windows "Python311".
void add_versions(const fs::path& above, std::vector<fs::path>& out) {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(above, none)) {
    if (!ascii_lower(entry.path().filename().string()).starts_with("python3")) continue;
    for (const char* leaf : {"site-packages", "dist-packages"}) add_folder(entry.path() / leaf, out);
  }
}

// Folders of Python packages below an installation's prefix. `lib64` is often a link to `lib`. On Windows it is `Lib` itself that
// has the packages.
void add_site_packages(const fs::path& prefix, std::vector<fs::path>& out) {
  for (const char* lib : {"lib", "lib64"}) add_versions(prefix / lib, out);
  add_folder(prefix / "lib" / "site-packages", out);
}

// Those of the interpreters that the user can call. An installation on Windows has them in its prefix, a virtual environment in a
// folder there.
void add_interpreters(const fs::path& folder, std::vector<fs::path>& out) {
  std::error_code none;
  if (const fs::path python = folder / "python3"; fs::exists(python, none)) {
    add_site_packages(folder.parent_path(), out);
    add_site_packages(fs::canonical(python, none).parent_path().parent_path(), out);
  }
  if (fs::exists(folder / "python.exe", none)) {
    for (const fs::path& prefix : {folder, folder.parent_path()}) add_site_packages(prefix, out);
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
  if (const fs::path home = user_folder(); !home.empty()) add_site_packages(home / ".local", out);
  if (const std::string data = variable("APPDATA"); !data.empty()) add_versions(fs::path(data) / "Python", out);
  for (const std::string& folder : listed_in("PATH")) add_interpreters(folder, out);
  add_site_packages("/usr/local", out);
  add_site_packages("/usr", out);
  return out;
}

void add_library_of(const fs::path& folder, std::string_view stem, std::vector<fs::path>& out) {
  const std::string plain = shared_library_name(stem), versioned = plain + ".", mac = fmt::format("lib{}.dylib", stem);
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
