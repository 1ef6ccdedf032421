#pragma once
// SessionOptions::quantize. The quantiser is a separate library (src/quantize), which is loaded when a session first needs
// it.

#include <cstddef>

#include <sdx/session.hpp>

#include "base/tools_api.h"
#include "graph/graph.h"

namespace sdx::session {

// A model that was read becomes one that computes as options.quantize says. Throws Error.
using QuantizeModel = void (*)(Model& model, const SessionOptions& options);

// What libsdx_quantize.so hands out: the function sdx_quantize_at_load().
struct QuantizeModule {
  const char* version;                     // SDX_VERSION
  std::size_t model_bytes, options_bytes;  // sizeof(Model), sizeof(SessionOptions): what another build would lay out another way
  QuantizeModel quantize;
};

// For programs that have the quantiser inside: nothing is loaded then.
SDX_TOOLS_API void quantize_with(QuantizeModel quantize) noexcept;

// Throws Error(io) where the library is missing or of another build, and whatever quantising throws.
void quantize_at_load(Model& model, const SessionOptions& options);

}  // namespace sdx::session

extern "C" {
// The symbol sdx_quantize_at_load.
using SdxQuantizeAtLoadFunction = const sdx::session::QuantizeModule* (*)();
}
