#pragma once
// The providers of this build.

#include <span>
#include <string_view>

#include "provider/provider.h"

namespace sdx {

// In the order of automatic selection. Static lifetime.
std::span<const Provider* const> provider_table();

// Null when this build has no code for it.
const Provider* find_provider(std::string_view short_name);

}  // namespace sdx
