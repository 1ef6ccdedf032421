#pragma once
// Options of the provider, and which device they mean.

#include <string>
#include <vector>

#include "kernels/vulkan/table.h"
#include "providers/interface/provider.h"

namespace sdx::vulkan {

struct Settings {
  std::string device;              // a number among the devices of the type, or a part of a name; empty: the best
  bool cpu_type = false;           // drivers that compute on the CPU are meant
  std::uint64_t memory_limit = 0;  // bytes on the device; 0: all
};

// Throws Error(invalid_argument). SDX_VULKAN_DEVICE stands for `device_id` where the settings have none.
Settings settings_of(const ProviderSettings& settings);

// "GPU: name (driver, 8.0 GiB)", "CPU: …"
std::string describe(const DeviceFacts& device);

struct Choice {
  std::size_t index = 0;  // in the list of all devices
  std::string reason;     // why there is none; empty: there is
  std::string hint;
};

// Discrete devices come before integrated ones. A driver that computes on the CPU is taken only if `cpu_type` or a name asks for
// it.
Choice choose_device(const std::vector<DeviceFacts>& devices, const Settings& settings);

}  // namespace sdx::vulkan
