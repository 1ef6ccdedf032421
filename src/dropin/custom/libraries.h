#pragma once
// Libraries of operators made for ONNX Runtime.

#include <memory>
#include <string>

#include "dropin/abi.h"
#include "session/ort_operators.h"

namespace sdx::dropin {

using RegisterCustomOps = OrtStatus* (*)(OrtSessionOptions* options, const OrtApiBase* base);
inline constexpr const char* kRegisterCustomOps = "RegisterCustomOps";

// A session::ReadOrtOperators.
session::CustomOps operators_of_library(const std::shared_ptr<void>& library, const std::string& shown);

}  // namespace sdx::dropin
