#include "cli/train/train_tools.h"

#include <dlfcn.h>

#include <string_view>

#include "base/system/own_library.h"

namespace sdx::cli {
namespace {

void* tools_of(void* handle) {
  const auto function = reinterpret_cast<SdxTrainToolsFunction>(::dlsym(handle, "sdx_train_tools"));
  const train::Tools* tools = function == nullptr ? nullptr : function();
  if (tools == nullptr || tools->version != train::kToolsVersion || std::string_view(tools->product) != SDX_VERSION)
    return nullptr;
  return const_cast<train::Tools*>(tools);
}

}  // namespace

const train::Tools& train_tools() {
  static const train::Tools& loaded = []() -> const train::Tools& {
    const OwnLibrary library{
        "libsdx_train.so.0", "SDX_TRAIN_LIB", "this command", {program_folder()}, {SDX_LIB_FROM_BIN, "../lib", "."}};
    return *static_cast<const train::Tools*>(load_own_library(library, tools_of));
  }();
  return loaded;
}

}  // namespace sdx::cli
