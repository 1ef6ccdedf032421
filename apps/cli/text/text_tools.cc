#include "cli/text/text_tools.h"

#include <dlfcn.h>

#include <string_view>

#include "base/system/own_library.h"

namespace sdx::cli {
namespace {

void* tools_of(void* handle) {
  const auto function = reinterpret_cast<SdxTextToolsFunction>(::dlsym(handle, "sdx_text_tools"));
  const text::Tools* tools = function == nullptr ? nullptr : function();
  if (tools == nullptr || tools->version != text::kToolsVersion || std::string_view(tools->product) != SDX_VERSION)
    return nullptr;
  return const_cast<text::Tools*>(tools);
}

}  // namespace

const text::Tools& text_tools() {
  static const text::Tools& loaded = []() -> const text::Tools& {
    const OwnLibrary library{
        "libsdx_text.so.0", "SDX_TEXT_LIB", "this command", {program_folder()}, {SDX_LIB_FROM_BIN, "../lib", "."}};
    return *static_cast<const text::Tools*>(load_own_library(library, tools_of));
  }();
  return loaded;
}

}  // namespace sdx::cli
