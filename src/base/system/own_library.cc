#include "base/system/own_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "base/error.h"

namespace sdx {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> candidates(const OwnLibrary& library) {
  if (const char* named = std::getenv(library.variable); named != nullptr && *named != '\0') return {named};
  std::vector<fs::path> out;
  for (const fs::path& start : library.starts) {
    if (start.empty()) continue;
    for (const char* folder : library.folders) {
      fs::path path = (start / folder / library.file).lexically_normal();
      if (std::find(out.begin(), out.end(), path) == out.end()) out.push_back(std::move(path));
    }
  }
  return out;
}

}  // namespace

fs::path program_folder() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored).parent_path();
}

fs::path folder_of(const void* code) {
  Dl_info info{};
  std::error_code ignored;
  if (::dladdr(code, &info) == 0 || info.dli_fname == nullptr) return {};
  return fs::absolute(info.dli_fname, ignored).parent_path();
}

void* load_own_library(const OwnLibrary& library, void* (*accept)(void* handle)) {
  std::string tried;
  for (const fs::path& path : candidates(library)) {
    std::error_code ignored;
    if (!fs::is_regular_file(path, ignored)) {
      tried += "\n  " + path.string() + ": not there";
      continue;
    }
    void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      tried += "\n  " + std::string(::dlerror());
      continue;
    }
    if (void* made = accept(handle)) return made;
    tried += "\n  " + path.string() + ": of another version";
  }
  fail(ErrorCode::io, "{} needs {}, which cannot be loaded ({} may name it); tried:{}", library.purpose, library.file,
       library.variable, tried);
}

}  // namespace sdx
