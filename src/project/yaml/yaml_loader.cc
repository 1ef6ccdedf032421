// Finding the YAML parser: in this program, else in libsdx_yaml.so.

#include <dlfcn.h>

#include "base/system/own_library.h"
#include "project/yaml/yaml_events.h"
#include "project/yaml/yaml_loader.h"

extern "C" {
// Null where nothing that was linked defines it.
__attribute__((weak)) int sdx_yaml_events_1(sdx::YamlEventRequest* request);
}

namespace sdx {
namespace {

// Beside whoever contains this code, as a build and an installation lay things out.
SdxYamlEventsFunction load() {
  const OwnLibrary library{"libsdx_yaml.so",
                           "SDX_YAML_LIB",
                           "reading YAML files",
                           {folder_of(reinterpret_cast<const void*>(&yaml_events_function)), program_folder()},
                           {"sardonyx", "../lib/sardonyx", SDX_YAML_FROM_BIN, "."}};
  return reinterpret_cast<SdxYamlEventsFunction>(
      load_own_library(library, [](void* handle) { return ::dlsym(handle, "sdx_yaml_events_1"); }));
}

}  // namespace

SdxYamlEventsFunction yaml_events_function() {
  if (sdx_yaml_events_1 != nullptr) return sdx_yaml_events_1;
  static const SdxYamlEventsFunction loaded = load();
  return loaded;
}

}  // namespace sdx
