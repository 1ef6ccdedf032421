#pragma once
// Options of ONNX Runtime's execution providers.

#include <string_view>

#include "provider/provider.h"
#include "providers/ort/library.h"

namespace sdx::ort {

// Throws Error(invalid_argument) with the closest match where an option looks like a misspelt one of those known here. Others go
// through: the library knows more of them, and checks them itself.
void check_options(std::string_view provider, const ProviderSettings& settings);

// Adds the execution provider ("cuda"; for "cpu" nothing) with its options, and entries of the session's own configuration
// ("session.…"). Throws Error(provider_unavailable) with the library's reason.
void append_provider(const Library& library, c::SessionOptions* options, std::string_view provider,
                     const ProviderSettings& settings);

// "CUDAExecutionProvider".
std::string_view vendor_name(std::string_view provider);

}  // namespace sdx::ort
