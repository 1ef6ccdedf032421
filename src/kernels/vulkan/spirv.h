#pragma once
// The shaders as SPIR-V, compiled at build time from shaders/.

#include <cstdint>
#include <span>

#include "kernels/vulkan/shaders.h"

namespace sdx::vulkan {

std::span<const std::uint32_t> spirv_of(Shader shader);
const char* name_of(Shader shader);

}  // namespace sdx::vulkan
