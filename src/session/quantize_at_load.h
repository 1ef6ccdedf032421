#pragma once
// SessionOptions::quantize. The quantiser is a separate library (src/quantize), which is loaded when a session first needs
// it.

#include <sdx/session.hpp>

#include "base/module/module.h"
#include "graph/graph.h"
#include "session/open.h"

namespace sdx::session {

// A model that was read becomes one that computes as options.quantize says. Throws Error.
using QuantizeModel = void (*)(Model& model, const SessionOptions& options, const InternalOptions& internal);

struct QuantizeModule {
  static constexpr ModuleName kModule{"libsdx_quantize.so.0", "sdx_quantize_at_load", "SDX_QUANTIZE_LIB",
                                      "quantising a model when it is opened"};
  static constexpr std::size_t kTypesBytes = sizeof(Model) + sizeof(SessionOptions) + sizeof(InternalOptions);

  ModuleHead head;
  QuantizeModel quantize;
};

// For programs that contain the quantiser: then nothing is loaded.
SDX_TOOLS_API void quantize_with(QuantizeModel quantize) noexcept;

// Throws Error(io) if the library is missing or of another build, and all errors of quantising.
void quantize_at_load(Model& model, const SessionOptions& options, const InternalOptions& internal);

}  // namespace sdx::session
