#include "session/quantize_at_load.h"

#include <dlfcn.h>

#include <atomic>
#include <string_view>

#include "base/system/own_library.h"

namespace sdx::session {
namespace {

std::atomic<QuantizeModel> g_quantize{nullptr};

void* accept(void* handle) {
  const auto function = reinterpret_cast<SdxQuantizeAtLoadFunction>(::dlsym(handle, "sdx_quantize_at_load"));
  const QuantizeModule* const module = function == nullptr ? nullptr : function();
  const bool same = module != nullptr && std::string_view(module->version) == SDX_VERSION &&
                    module->model_bytes == sizeof(Model) && module->options_bytes == sizeof(SessionOptions);
  return same ? reinterpret_cast<void*>(module->quantize) : nullptr;
}

QuantizeModel load() {
  const auto quantize = reinterpret_cast<QuantizeModel>(
      load_own_library({"libsdx_quantize.so.0",
                        "SDX_QUANTIZE_LIB",
                        "quantising a model when it is opened",
                        {folder_of(reinterpret_cast<const void*>(&quantize_with)), program_folder()},
                        {".", "..", "../lib"}},
                       &accept));
  g_quantize = quantize;
  return quantize;
}

}  // namespace

void quantize_with(QuantizeModel quantize) noexcept { g_quantize = quantize; }

void quantize_at_load(Model& model, const SessionOptions& options) {
  const QuantizeModel known = g_quantize;
  (known != nullptr ? known : load())(model, options);
}

}  // namespace sdx::session
