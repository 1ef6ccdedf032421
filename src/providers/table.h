#pragma once
// The providers of this build.

#include <span>
#include <string_view>

#include "providers/interface/provider.h"

namespace sdx {

// Those of our own, without those that only ONNX Runtime brings. Static lifetime.
std::span<const Provider* const> provider_table();

// Null when this build has no code for it.
const Provider* find_provider(std::string_view short_name);

}  // namespace sdx
