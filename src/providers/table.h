#pragma once
// The providers of this build.

#include <string_view>
#include <vector>

#include "base/tools_api.h"
#include "providers/interface/provider.h"

namespace sdx {

// Our own providers, without those that only ONNX Runtime has. Static lifetime.
std::vector<const Provider*> own_providers();

// Null when this build has no code for it.
SDX_TOOLS_API const Provider* find_provider(std::string_view short_name);

}  // namespace sdx
