#pragma once
// Devices that providers run on, as programs list and choose them: the processor, with our engine.

#include <cstdint>
#include <string>

#include "dropin/objects.h"

namespace sdx::dropin {

struct OrtHardwareDevice {
  OrtHardwareDeviceType type = HARDWARE_CPU;
  std::uint32_t vendor_id = 0, device_id = 0;
  std::string vendor;
  OrtKeyValuePairs metadata;
};

struct OrtEpDevice {
  std::string provider, vendor;
  OrtKeyValuePairs metadata, options;
  const OrtHardwareDevice* device = nullptr;
};

// For good.
const OrtEpDevice* cpu_device();

}  // namespace sdx::dropin
