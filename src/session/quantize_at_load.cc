#include "session/quantize_at_load.h"

#include <atomic>

namespace sdx::session {
namespace {

std::atomic<QuantizeModel> g_quantize{nullptr};

}  // namespace

void quantize_with(QuantizeModel quantize) noexcept { g_quantize = quantize; }

void quantize_at_load(Model& model, const SessionOptions& options, const InternalOptions& internal) {
  const QuantizeModel known = g_quantize;
  (known != nullptr ? known : load_module<QuantizeModule>().quantize)(model, options, internal);
}

}  // namespace sdx::session
