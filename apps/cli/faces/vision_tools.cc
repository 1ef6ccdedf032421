#include "cli/faces/vision_tools.h"

#include <dlfcn.h>

#include <string_view>

#include "base/system/own_library.h"

namespace sdx::cli {
namespace {

using vision::Tools;

void* tools_of(void* handle) {
  const auto function = reinterpret_cast<SdxVisionToolsFunction>(::dlsym(handle, "sdx_vision_tools"));
  const Tools* tools = function == nullptr ? nullptr : function();
  const bool same = tools != nullptr && tools->version == vision::kToolsVersion &&
                    tools->request_bytes == sizeof(vision::Request) && tools->release == std::string_view(SDX_VERSION);
  return same ? const_cast<Tools*>(tools) : nullptr;
}

const Tools& load() {
  const OwnLibrary library{
      "libsdx_vision.so", "SDX_VISION_LIB", "sdx faces", {program_folder()}, {SDX_LIB_FROM_BIN, "../lib", "."}};
  return *static_cast<const Tools*>(load_own_library(library, tools_of));
}

}  // namespace

const Tools& vision_tools() {
  static const Tools& loaded = load();
  return loaded;
}

}  // namespace sdx::cli
