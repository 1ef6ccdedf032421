#include "session/ort_operators.h"

#include <dlfcn.h>

#include <atomic>
#include <string_view>

#include "base/system/own_library.h"

namespace sdx::session {
namespace {

std::atomic<ReadOrtOperators> g_read{nullptr};

// ONNX Runtime's own library has the same file name and lacks the entry.
void* accept(void* handle) {
  const auto* const module = static_cast<const OrtOperatorsModule*>(::dlsym(handle, "sdx_ort_operators"));
  if (module == nullptr || std::string_view(module->version) != SDX_VERSION) return nullptr;
  return reinterpret_cast<void*>(module->read);
}

ReadOrtOperators load() {
  const auto read = reinterpret_cast<ReadOrtOperators>(
      load_own_library({"libonnxruntime.so.1",
                        "SDX_DROPIN_LIB",
                        "a library of operators made for ONNX Runtime",
                        {folder_of(reinterpret_cast<const void*>(&read_ort_operators_with)), program_folder()},
                        {"sardonyx", "../lib/sardonyx", "."}},
                       &accept));
  g_read = read;
  return read;
}

}  // namespace

void read_ort_operators_with(ReadOrtOperators read) noexcept { g_read = read; }

CustomOps read_ort_operators(const std::shared_ptr<void>& library, const std::string& shown) {
  const ReadOrtOperators known = g_read;
  return (known != nullptr ? known : load())(library, shown);
}

}  // namespace sdx::session
