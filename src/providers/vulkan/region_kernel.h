#pragma once
// The kernel of a region: a few plans, by the shapes of the inputs.

#include <memory>

#include "providers/interface/provider.h"
#include "providers/vulkan/runtime.h"

namespace sdx::vulkan {

// With shapes that are fixed, plans and uploads all constants at once. Throws Error.
std::unique_ptr<Kernel> make_region_kernel(const Graph& graph, std::shared_ptr<const Gpu> gpu);

}  // namespace sdx::vulkan
