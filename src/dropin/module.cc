// What libonnxruntime.so.1 exports.

#include "dropin/custom/libraries.h"
#include "dropin/status.h"
#include "dropin/table.h"

using namespace sdx::dropin;

extern "C" {

// Exported without the prefix, under all versions (symbol_versions.inc).
__attribute__((visibility("default"))) const OrtApiBase* sdx_OrtGetApiBase() noexcept { return api_base(); }

__attribute__((visibility("default"))) OrtStatus* sdx_OrtSessionOptionsAppendExecutionProvider_CPU(OrtSessionOptions*,
                                                                                                   int /*use_arena*/) noexcept {
  return nullptr;  // it comes last in every chain
}

// The engine's `ort` provider never loads a library that has this: it would load itself.
__attribute__((visibility("default"))) extern const int sdx_dropin_library = 1;

// Called by the engine (src/session/ort_operators.h), which loads this library when a session names operators made for ONNX
// Runtime.
__attribute__((visibility("default"))) const sdx::ModuleHead* sdx_ort_operators_module() noexcept {
  using sdx::session::OrtOperatorsModule;
  static constexpr OrtOperatorsModule kModule{sdx::module_head<OrtOperatorsModule>(SDX_VERSION), &operators_of_library};
  return &kModule.head;
}
}

#include <dropin/symbol_versions.inc>
