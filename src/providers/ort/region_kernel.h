#pragma once
// A region as a session of ONNX Runtime.

#include <memory>
#include <string>

#include "providers/interface/provider.h"
#include "providers/ort/library.h"

namespace sdx::ort {

// Throws Error(not_implemented) with the library's message when it turns the model down; Error(provider_unavailable) when the
// execution provider cannot be had; Error(invalid_argument) for its options.
std::unique_ptr<Kernel> make_region_kernel(std::shared_ptr<const Library> library, const std::string& name,
                                           const std::string& provider, const Region& region, const ProviderSettings& settings);

}  // namespace sdx::ort
