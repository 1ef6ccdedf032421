#pragma once
// The provider "vulkan": regions of the optimised graph on a device with Vulkan.

#include "providers/interface/provider.h"

namespace sdx::vulkan {

// Null for other names.
const Provider* find(std::string_view name);

}  // namespace sdx::vulkan
