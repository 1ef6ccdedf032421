#include "cli/quantize_tools.h"

#include <dlfcn.h>

#include <string_view>

#include "base/system/own_library.h"

namespace sdx::cli {
namespace {

void* tools_of(void* handle) {
  const auto function = reinterpret_cast<SdxQuantizeToolsFunction>(::dlsym(handle, "sdx_quantize_tools"));
  const quantize::Tools* tools = function == nullptr ? nullptr : function();
  const bool same = tools != nullptr && tools->version == quantize::kToolsVersion &&
                    tools->options_bytes == quantize::kOptionsBytes && tools->release == std::string_view(SDX_VERSION);
  return same ? const_cast<quantize::Tools*>(tools) : nullptr;
}

}  // namespace

const quantize::Tools& quantize_tools() {
  static const quantize::Tools& loaded = []() -> const quantize::Tools& {
    const OwnLibrary library{
        "libsdx_quantize.so.0", "SDX_QUANTIZE_LIB", "sdx quantize", {program_folder()}, {SDX_LIB_FROM_BIN, "../lib", "."}};
    return *static_cast<const quantize::Tools*>(load_own_library(library, tools_of));
  }();
  return loaded;
}

}  // namespace sdx::cli
