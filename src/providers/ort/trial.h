#pragma once
// Whether a provider works, found out by opening a session on it.

#include <string_view>

#include "providers/interface/diagnose.h"
#include "providers/interface/provider.h"
#include "providers/ort/library.h"

namespace sdx::ort {

// Adds the provider to a session's options, and where only a session starts its driver (`webgpu`, `qnn`), opens one for a model
// of one node, once in a process for the same options. An empty reason: it works.
Diagnosis try_provider(const Library& library, std::string_view provider, const ProviderSettings& settings);

// What the library's message about a session on `webgpu` means, without the places in its source; `loader`: the path of the
// Vulkan loader, empty where there is none. Exposed for tests.
Diagnosis explain_webgpu(const std::string& message, const std::string& loader);

}  // namespace sdx::ort
