#include "kernels/vulkan/instance.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>

namespace sdx::vulkan {
namespace {

template <std::size_t size>
void set_text(char (&to)[size], const std::string& text) {
  std::snprintf(to, size, "%s", text.c_str());
}

PFN_vkGetInstanceProcAddr open_loader() {
  std::string why;
  for (const char* name : {"libvulkan.so.1", "libvulkan.so"}) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
      if (void* f = dlsym(library, "vkGetInstanceProcAddr")) return reinterpret_cast<PFN_vkGetInstanceProcAddr>(f);
    }
    if (why.empty()) {
      const char* said = dlerror();
      why = said == nullptr ? "it has no vkGetInstanceProcAddr" : said;
    }
  }
  throw Failure(Outcome::unavailable, "Vulkan's loader cannot be loaded: " + why);
}

DeviceType type_of(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return DeviceType::integrated;
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return DeviceType::discrete;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return DeviceType::virtual_gpu;
    case VK_PHYSICAL_DEVICE_TYPE_CPU: return DeviceType::cpu;
    default: return DeviceType::other;
  }
}

// What a device lacks that every shader uses; empty: nothing.
std::string lack_of(const VkPhysicalDeviceProperties& properties, const VkPhysicalDeviceVulkan12Features& features, bool queue) {
  if (properties.apiVersion < VK_API_VERSION_1_2) return "Vulkan 1.2";
  if (features.bufferDeviceAddress == VK_FALSE) return "bufferDeviceAddress";
  if (features.timelineSemaphore == VK_FALSE) return "timelineSemaphore";
  if (features.scalarBlockLayout == VK_FALSE) return "scalarBlockLayout";
  const VkPhysicalDeviceLimits& limits = properties.limits;
  if (limits.maxComputeWorkGroupInvocations < kGroup || limits.maxComputeWorkGroupSize[0] < kGroup) {
    return "workgroups of " + std::to_string(kGroup);
  }
  return queue ? "" : "a queue for computing";
}

}  // namespace

const Instance& Instance::get() {
  static std::mutex mutex;
  static const Instance* made = nullptr;
  const std::lock_guard lock(mutex);
  if (made == nullptr) made = new Instance;
  return *made;
}

Instance::Instance() {
  const PFN_vkGetInstanceProcAddr get = open_loader();
  const auto version = reinterpret_cast<PFN_vkEnumerateInstanceVersion>(get(nullptr, "vkEnumerateInstanceVersion"));
  std::uint32_t has = VK_API_VERSION_1_0;
  if (version != nullptr) version(&has);
  if (has < VK_API_VERSION_1_2) throw Failure(Outcome::unavailable, "Vulkan's loader is older than Vulkan 1.2");
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pApplicationName = application.pEngineName = "sardonyx";
  application.apiVersion = VK_API_VERSION_1_2;
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &application;
  const auto create = reinterpret_cast<PFN_vkCreateInstance>(get(nullptr, "vkCreateInstance"));
  if (create == nullptr) throw Failure(Outcome::unavailable, "Vulkan's loader has no vkCreateInstance");
  const VkResult result = create(&info, nullptr, &instance_);
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER) throw Failure(Outcome::unavailable, "no driver for Vulkan is installed");
  if (result != VK_SUCCESS) throw Failure(Outcome::unavailable, "Vulkan cannot be started: " + name_of(result));
#define SDX_VULKAN_LOAD(name) f_.name = reinterpret_cast<PFN_vk##name>(get(instance_, "vk" #name));
  SDX_VULKAN_INSTANCE_FUNCTIONS(SDX_VULKAN_LOAD)
#undef SDX_VULKAN_LOAD
  std::uint32_t count = 0;
  f_.EnumeratePhysicalDevices(instance_, &count, nullptr);
  std::vector<VkPhysicalDevice> handles(count);
  if (count > 0) f_.EnumeratePhysicalDevices(instance_, &count, handles.data());
  handles.resize(count);
  for (const VkPhysicalDevice handle : handles) look_at(handle);
}

void Instance::look_at(VkPhysicalDevice handle) {
  PhysicalDevice d;
  d.handle = handle;
  VkPhysicalDeviceMaintenance3Properties maintenance{};
  maintenance.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES;
  VkPhysicalDeviceDriverProperties driver{};
  driver.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES;
  driver.pNext = &maintenance;
  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  properties.pNext = &driver;
  f_.GetPhysicalDeviceProperties2(handle, &properties);
  VkPhysicalDeviceVulkan12Features features12{};
  features12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  if (properties.properties.apiVersion >= VK_API_VERSION_1_2) {
    VkPhysicalDeviceFeatures2 features{};
    features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    features.pNext = &features12;
    f_.GetPhysicalDeviceFeatures2(handle, &features);
  }
  std::uint32_t count = 0;
  f_.GetPhysicalDeviceQueueFamilyProperties(handle, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  f_.GetPhysicalDeviceQueueFamilyProperties(handle, &count, families.data());
  // A family for computing alone does not wait for what is drawn.
  bool found = false;
  for (const bool alone : {true, false}) {
    for (std::uint32_t i = 0; i < count && !found; ++i) {
      const VkQueueFlags flags = families[i].queueFlags;
      found =
          (flags & VK_QUEUE_COMPUTE_BIT) != 0 && families[i].queueCount > 0 && (!alone || (flags & VK_QUEUE_GRAPHICS_BIT) == 0);
      if (found) d.queue_family = i;
    }
  }
  f_.GetPhysicalDeviceMemoryProperties(handle, &d.memory);
  DeviceFacts& facts = d.facts;
  const VkPhysicalDeviceProperties& p = properties.properties;
  set_text(facts.name, p.deviceName);
  set_text(facts.driver, std::string(driver.driverName) + " " + driver.driverInfo);
  set_text(facts.lacks, lack_of(p, features12, found));
  facts.type = type_of(p.deviceType);
  facts.vendor = p.vendorID;
  facts.device = p.deviceID;
  facts.driver_version = p.driverVersion;
  static_assert(sizeof facts.cache_id == VK_UUID_SIZE);
  std::copy_n(p.pipelineCacheUUID, VK_UUID_SIZE, facts.cache_id);
  facts.api_major = VK_API_VERSION_MAJOR(p.apiVersion);
  facts.api_minor = VK_API_VERSION_MINOR(p.apiVersion);
  for (std::uint32_t i = 0; i < d.memory.memoryHeapCount; ++i) {
    const VkMemoryHeap& heap = d.memory.memoryHeaps[i];
    if ((heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0) facts.memory = std::max<std::uint64_t>(facts.memory, heap.size);
  }
  facts.largest_allocation = maintenance.maxMemoryAllocationSize;
  std::copy_n(p.limits.maxComputeWorkGroupCount, 3, facts.most_groups);
  d.driver_id = driver.driverID;
  devices_.push_back(d);
}

}  // namespace sdx::vulkan
