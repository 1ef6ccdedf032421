// Finding the YAML parser: in this program, else in libsdx_yaml.so.

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "project/yaml_events.h"
#include "project/yaml_loader.h"

extern "C" {
// Null where nothing that was linked defines it.
__attribute__((weak)) int sdx_yaml_events_1(sdx::YamlEventRequest* request);
}

namespace sdx {
namespace {

namespace fs = std::filesystem;

// Beside whoever contains this code, as a build and an installation lay things out.
std::vector<fs::path> candidates() {
  if (const char* named = std::getenv("SDX_YAML_LIB"); named != nullptr && *named != '\0') return {named};
  std::vector<fs::path> starts, out;
  std::error_code ignored;
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&yaml_events_function), &info) != 0 && info.dli_fname != nullptr) {
    starts.push_back(fs::absolute(info.dli_fname, ignored).parent_path());
  }
  starts.push_back(fs::read_symlink("/proc/self/exe", ignored).parent_path());
  for (const fs::path& start : starts) {
    for (const char* folder : {"sardonyx", "../lib/sardonyx", SDX_YAML_FROM_BIN, "."}) {
      fs::path path = (start / folder / "libsdx_yaml.so").lexically_normal();
      if (std::find(out.begin(), out.end(), path) == out.end()) out.push_back(std::move(path));
    }
  }
  return out;
}

SdxYamlEventsFunction load() {
  std::string tried;
  for (const fs::path& path : candidates()) {
    std::error_code ignored;
    if (!fs::is_regular_file(path, ignored)) {
      tried += "\n  " + path.string() + ": not there";
      continue;
    }
    void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      tried += "\n  " + std::string(::dlerror());
      continue;
    }
    if (void* function = ::dlsym(library, "sdx_yaml_events_1")) return reinterpret_cast<SdxYamlEventsFunction>(function);
    tried += "\n  " + path.string() + ": of another version";
  }
  fail(ErrorCode::io, "reading YAML files needs libsdx_yaml.so, which cannot be loaded (SDX_YAML_LIB may name it); tried:{}",
       tried);
}

}  // namespace

SdxYamlEventsFunction yaml_events_function() {
  if (sdx_yaml_events_1 != nullptr) return sdx_yaml_events_1;
  static const SdxYamlEventsFunction loaded = load();
  return loaded;
}

}  // namespace sdx
