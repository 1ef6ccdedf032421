#pragma once
// The loader, the instance, and what its devices can do.

#include <vector>

#include "kernels/vulkan/failure.h"

namespace sdx::vulkan {

struct PhysicalDevice {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  DeviceFacts facts{};
  std::uint32_t driver_id = 0;
  std::uint32_t queue_family = 0;
  VkPhysicalDeviceMemoryProperties memory{};
};

// One in a process, made at the first call and kept until it ends: drivers are loaded for good.
class Instance {
 public:
  // Throws Failure(unavailable), and the next call tries again.
  static const Instance& get();

  const InstanceFunctions& f() const { return f_; }
  const std::vector<PhysicalDevice>& devices() const { return devices_; }

 private:
  Instance();
  void look_at(VkPhysicalDevice handle);

  VkInstance instance_ = VK_NULL_HANDLE;
  InstanceFunctions f_;
  std::vector<PhysicalDevice> devices_;
};

}  // namespace sdx::vulkan
