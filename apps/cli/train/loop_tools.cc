#include "cli/train/loop_tools.h"

#include <dlfcn.h>

#include <string_view>

#include "base/system/own_library.h"

namespace sdx::cli {
namespace {

using train::loop::Tools;

void* tools_of(void* handle) {
  const auto function = reinterpret_cast<SdxTrainLoopToolsFunction>(::dlsym(handle, "sdx_train_loop_tools"));
  const Tools* tools = function == nullptr ? nullptr : function();
  const bool same = tools != nullptr && tools->version == train::loop::kToolsVersion &&
                    tools->request_bytes == sizeof(train::loop::Request) && tools->release == std::string_view(SDX_VERSION);
  return same ? const_cast<Tools*>(tools) : nullptr;
}

}  // namespace

const Tools& train_loop_tools() {
  static const Tools& loaded = []() -> const Tools& {
    const OwnLibrary library{
        "libsdx_train.so.0", "SDX_TRAIN_LIB", "sdx train", {program_folder()}, {SDX_LIB_FROM_BIN, "../lib", "."}};
    return *static_cast<const Tools*>(load_own_library(library, tools_of));
  }();
  return loaded;
}

}  // namespace sdx::cli
