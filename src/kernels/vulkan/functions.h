#pragma once
// Vulkan's functions, found at run time.

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

namespace sdx::vulkan {

#define SDX_VULKAN_INSTANCE_FUNCTIONS(F)    \
  F(DestroyInstance)                        \
  F(EnumeratePhysicalDevices)               \
  F(GetPhysicalDeviceProperties2)           \
  F(GetPhysicalDeviceFeatures2)             \
  F(GetPhysicalDeviceMemoryProperties)      \
  F(GetPhysicalDeviceQueueFamilyProperties) \
  F(CreateDevice)                           \
  F(GetDeviceProcAddr)

#define SDX_VULKAN_DEVICE_FUNCTIONS(F) \
  F(DestroyDevice)                     \
  F(DeviceWaitIdle)                    \
  F(GetDeviceQueue)                    \
  F(QueueSubmit)                       \
  F(AllocateMemory)                    \
  F(FreeMemory)                        \
  F(MapMemory)                         \
  F(CreateBuffer)                      \
  F(DestroyBuffer)                     \
  F(GetBufferMemoryRequirements)       \
  F(BindBufferMemory)                  \
  F(GetBufferDeviceAddress)            \
  F(CreateShaderModule)                \
  F(DestroyShaderModule)               \
  F(CreatePipelineLayout)              \
  F(DestroyPipelineLayout)             \
  F(CreateComputePipelines)            \
  F(CreatePipelineCache)               \
  F(DestroyPipelineCache)              \
  F(GetPipelineCacheData)              \
  F(MergePipelineCaches)               \
  F(DestroyPipeline)                   \
  F(CreateCommandPool)                 \
  F(DestroyCommandPool)                \
  F(AllocateCommandBuffers)            \
  F(BeginCommandBuffer)                \
  F(EndCommandBuffer)                  \
  F(CmdBindPipeline)                   \
  F(CmdPushConstants)                  \
  F(CmdDispatch)                       \
  F(CmdPipelineBarrier)                \
  F(CmdCopyBuffer)                     \
  F(CreateSemaphore)                   \
  F(DestroySemaphore)                  \
  F(WaitSemaphores)

#define SDX_VULKAN_POINTER(name) PFN_vk##name name = nullptr;
struct InstanceFunctions {
  SDX_VULKAN_INSTANCE_FUNCTIONS(SDX_VULKAN_POINTER)
};
// Tests replace members of an open device to play a device that fails.
struct DeviceFunctions {
  SDX_VULKAN_DEVICE_FUNCTIONS(SDX_VULKAN_POINTER)
};
#undef SDX_VULKAN_POINTER

}  // namespace sdx::vulkan
