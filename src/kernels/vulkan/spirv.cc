#include "kernels/vulkan/spirv.h"

#include <iterator>

namespace sdx::vulkan {
namespace {

// shaders.inc, made by the build, includes an array of words k_NAME for each shader.
#include "shaders.inc"

}  // namespace

std::span<const std::uint32_t> spirv_of(Shader shader) {
  switch (shader) {
#define SDX_VULKAN_CASE(name) \
  case Shader::name: return k_##name;
    SDX_VULKAN_SHADERS(SDX_VULKAN_CASE)
#undef SDX_VULKAN_CASE
    case Shader::count: break;
  }
  return {};
}

const char* name_of(Shader shader) {
  switch (shader) {
#define SDX_VULKAN_CASE(name) \
  case Shader::name: return #name;
    SDX_VULKAN_SHADERS(SDX_VULKAN_CASE)
#undef SDX_VULKAN_CASE
    case Shader::count: break;
  }
  return "";
}

}  // namespace sdx::vulkan
