#pragma once
// Operators in libraries made for ONNX Runtime (they export RegisterCustomOps). ONNX Runtime's C interface is implemented in a
// layer above (src/dropin): either the program contains it, or libonnxruntime.so.1 of this build, which is loaded with the first
// such library.

#include <memory>
#include <string>

#include "base/module/module.h"
#include "session/custom_ops.h"

namespace sdx::session {

// Calls the library's RegisterCustomOps. `shown` names it in messages; the operators keep it loaded. Throws Error.
using ReadOrtOperators = CustomOps (*)(const std::shared_ptr<void>& library, const std::string& shown);

// ONNX Runtime's own library has the same file name and lacks the symbol.
struct OrtOperatorsModule {
  static constexpr ModuleName kModule{"sardonyx/libonnxruntime.so.1", "sdx_ort_operators_module", "SDX_DROPIN_LIB",
                                      "a library of operators made for ONNX Runtime"};

  ModuleHead head;
  ReadOrtOperators read;
};

// For programs that contain src/dropin: sets `read` as the reader, so that no library is looked for.
void read_ort_operators_with(ReadOrtOperators read) noexcept;

CustomOps read_ort_operators(const std::shared_ptr<void>& library, const std::string& shown);

}  // namespace sdx::session
