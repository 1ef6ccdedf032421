#include "kernels/vulkan/device.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <string>
#include <system_error>
#include <thread>

#include "kernels/vulkan/recorder.h"
#include "kernels/vulkan/spirv.h"

namespace sdx::vulkan {
namespace {

// Operations per second before anything was measured: on the safe side, as too long a part of a run may end the driver's
// patience.
double guessed_rate(DeviceType type) {
  switch (type) {
    case DeviceType::discrete: return 2e12;
    case DeviceType::integrated:
    case DeviceType::virtual_gpu: return 2e11;
    default: return 2e9;
  }
}

std::mutex open_mutex;
std::vector<std::weak_ptr<OpenDevice>>& open_devices() {
  static auto& all = *new std::vector<std::weak_ptr<OpenDevice>>;
  return all;
}

}  // namespace

std::shared_ptr<OpenDevice> OpenDevice::open(std::size_t index) {
  const Instance& instance = Instance::get();
  if (index >= instance.devices().size()) throw Failure(Outcome::unavailable, "there is no such device");
  const std::lock_guard lock(open_mutex);
  auto& all = open_devices();
  if (all.size() <= index) all.resize(index + 1);
  if (auto already = all[index].lock(); already && !already->lost_) return already;
  const PhysicalDevice& physical = instance.devices()[index];
  if (physical.facts.lacks[0] != '\0') {
    throw Failure(Outcome::unavailable, std::string(physical.facts.name) + " lacks " + physical.facts.lacks);
  }
  std::shared_ptr<OpenDevice> made(new OpenDevice(physical));
  all[index] = made;
  return made;
}

OpenDevice::OpenDevice(const PhysicalDevice& physical) : physical_(&physical), rate_(guessed_rate(physical.facts.type)) {
  make_device();
  VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, kMostPush};
  VkPipelineLayoutCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  info.pushConstantRangeCount = 1;
  info.pPushConstantRanges = &range;
  const VkResult result = f_.CreatePipelineLayout(device_, &info, nullptr, &layout_);
  if (result != VK_SUCCESS) f_.DestroyDevice(device_, nullptr);
  vulkan::check(result, "make a pipeline layout");
  VkPipelineCacheCreateInfo empty{};
  empty.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
  if (f_.CreatePipelineCache(device_, &empty, nullptr, &compiled_) != VK_SUCCESS) compiled_ = VK_NULL_HANDLE;
}

void OpenDevice::make_device() {
  const float priority = 1;
  VkDeviceQueueCreateInfo queue{};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueFamilyIndex = physical_->queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkPhysicalDeviceVulkan12Features features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  features.bufferDeviceAddress = features.timelineSemaphore = features.scalarBlockLayout = VK_TRUE;
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = &features;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  const InstanceFunctions& instance = Instance::get().f();
  vulkan::check(instance.CreateDevice(physical_->handle, &info, nullptr, &device_), "open the device");
#define SDX_VULKAN_LOAD(name) f_.name = reinterpret_cast<PFN_vk##name>(instance.GetDeviceProcAddr(device_, "vk" #name));
  SDX_VULKAN_DEVICE_FUNCTIONS(SDX_VULKAN_LOAD)
#undef SDX_VULKAN_LOAD
  f_.GetDeviceQueue(device_, physical_->queue_family, 0, &queue_);
}

OpenDevice::~OpenDevice() {
  if (!lost_) f_.DeviceWaitIdle(device_);
  for (const auto& [key, pipeline] : pipelines_) f_.DestroyPipeline(device_, pipeline, nullptr);
  f_.DestroyPipelineCache(device_, compiled_, nullptr);
  f_.DestroyPipelineLayout(device_, layout_, nullptr);
  f_.DestroyDevice(device_, nullptr);
}

void OpenDevice::check_alive() const {
  if (lost_) throw Failure(Outcome::lost, std::string(physical_->facts.name) + " was lost");
}

void OpenDevice::check(VkResult result, const char* what) {
  if (result == VK_ERROR_DEVICE_LOST) lost_ = true;
  vulkan::check(result, what);
}

std::uint32_t OpenDevice::memory_type(std::uint32_t allowed, MemoryKind kind) const {
  constexpr VkMemoryPropertyFlags kMapped = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  // From the best to what will do.
  std::array<VkMemoryPropertyFlags, 2> wanted{VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0};
  if (kind == MemoryKind::upload) wanted = {kMapped, kMapped};
  if (kind == MemoryKind::download) wanted = {kMapped | VK_MEMORY_PROPERTY_HOST_CACHED_BIT, kMapped};
  const VkPhysicalDeviceMemoryProperties& memory = physical_->memory;
  for (const VkMemoryPropertyFlags flags : wanted) {
    for (std::uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
      if ((allowed >> i & 1U) != 0 && (memory.memoryTypes[i].propertyFlags & flags) == flags) return i;
    }
  }
  throw Failure(Outcome::failed, "the device has no memory of the kind that is needed");
}

Memory OpenDevice::allocate(std::uint64_t bytes, MemoryKind kind) {
  check_alive();
  bytes = std::max<std::uint64_t>((bytes + 63) / 64 * 64, 64);
  if (bytes > physical_->facts.largest_allocation) {
    throw Failure(Outcome::out_of_memory, "an allocation of " + std::to_string(bytes) + " bytes is more than the " +
                                              std::to_string(physical_->facts.largest_allocation) +
                                              " that the device allows at once");
  }
  auto block = std::make_unique<Block>();
  VkBufferCreateInfo buffer{};
  buffer.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  buffer.size = bytes;
  buffer.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                 VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  check(f_.CreateBuffer(device_, &buffer, nullptr, &block->buffer), "make a buffer");
  Memory out{block.get(), 0, nullptr, bytes};
  try {
    VkMemoryRequirements needs{};
    f_.GetBufferMemoryRequirements(device_, block->buffer, &needs);
    VkMemoryAllocateFlagsInfo flags{};
    flags.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO;
    flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
    VkMemoryAllocateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
    info.pNext = &flags;
    info.allocationSize = needs.size;
    info.memoryTypeIndex = memory_type(needs.memoryTypeBits, kind);
    const std::string what = "allocate " + std::to_string(bytes) + " bytes";
    check(f_.AllocateMemory(device_, &info, nullptr, &block->memory), what.c_str());
    check(f_.BindBufferMemory(device_, block->buffer, block->memory, 0), "bind a buffer");
    if (kind != MemoryKind::device) {
      check(f_.MapMemory(device_, block->memory, 0, VK_WHOLE_SIZE, 0, &out.mapped), "map memory");
    }
    VkBufferDeviceAddressInfo address{};
    address.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO;
    address.buffer = block->buffer;
    out.address = f_.GetBufferDeviceAddress(device_, &address);
  } catch (...) {
    out.handle = block.release();
    release(out);
    throw;
  }
  out.handle = block.release();
  return out;
}

void OpenDevice::release(Memory& memory) {
  const std::unique_ptr<Block> block(static_cast<Block*>(memory.handle));
  memory = {};
  if (!block) return;
  f_.DestroyBuffer(device_, block->buffer, nullptr);
  f_.FreeMemory(device_, block->memory, nullptr);
}

void OpenDevice::upload(const Memory& to, std::uint64_t offset, const void* data, std::uint64_t bytes) {
  constexpr std::uint64_t kPart = std::uint64_t{16} << 20;
  if (bytes == 0) return;
  Memory staging = allocate(std::min(bytes, kPart), MemoryKind::upload);
  try {
    for (std::uint64_t at = 0; at < bytes; at += kPart) {
      const std::uint64_t part = std::min(kPart, bytes - at);
      std::memcpy(staging.mapped, static_cast<const char*>(data) + at, part);
      const Copy copy{&staging, &to, 0, offset + at, part};
      Command command{};
      command.copy = &copy;
      Recorder(*this, &command, 1).run({}, nullptr);
    }
  } catch (...) {
    release(staging);
    throw;
  }
  release(staging);
}

OpenDevice::PipelineKey OpenDevice::key_of(const Command& command) {
  PipelineKey key{command.shader, {}};
  std::copy_n(command.constants, std::min(command.constant_count, kMostConstants), key.constants.begin());
  return key;
}

VkPipeline OpenDevice::make_pipeline(const PipelineKey& key) {
  const auto words = spirv_of(key.shader);
  VkShaderModuleCreateInfo module_info{};
  module_info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  module_info.codeSize = words.size_bytes();
  module_info.pCode = words.data();
  VkShaderModule module = VK_NULL_HANDLE;
  check(f_.CreateShaderModule(device_, &module_info, nullptr, &module), "make a shader");
  std::array<VkSpecializationMapEntry, kMostConstants> entries{};
  for (std::uint32_t i = 0; i < kMostConstants; ++i) entries[i] = {i, i * 4, 4};
  const VkSpecializationInfo specialization{kMostConstants, entries.data(), sizeof key.constants, key.constants.data()};
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = &specialization;
  info.layout = layout_;
  VkPipeline made = VK_NULL_HANDLE;
  const VkResult result = f_.CreateComputePipelines(device_, compiled_, 1, &info, nullptr, &made);
  f_.DestroyShaderModule(device_, module, nullptr);
  const std::string what = std::string("make a pipeline of '") + name_of(key.shader) + "'";
  check(result, what.c_str());
  return made;
}

void OpenDevice::make_pipelines(const Command* commands, std::size_t count) {
  const std::lock_guard lock(pipeline_mutex_);
  std::vector<PipelineKey> keys;
  for (std::size_t i = 0; i < count; ++i) {
    if (commands[i].copy != nullptr) continue;
    const PipelineKey key = key_of(commands[i]);
    if (!pipelines_.contains(key) && std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  }
  std::vector<VkPipeline> made(keys.size(), VK_NULL_HANDLE);
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_mutex;
  const auto work = [&] {
    try {
      for (std::size_t i = next++; i < keys.size(); i = next++) made[i] = make_pipeline(keys[i]);
    } catch (...) {
      const std::lock_guard guard(failure_mutex);
      failure = std::current_exception();
      next = keys.size();
    }
  };
  const std::size_t helpers = std::min<std::size_t>(std::thread::hardware_concurrency(), keys.size());
  std::vector<std::thread> threads;
  try {
    for (std::size_t i = 1; i < helpers; ++i) threads.emplace_back(work);
  } catch (const std::system_error&) {
    // Without further threads, this one makes them all.
  }
  work();
  for (std::thread& t : threads) t.join();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (made[i] != VK_NULL_HANDLE) pipelines_.emplace(keys[i], made[i]);
  }
  if (failure) std::rethrow_exception(failure);
}

void OpenDevice::add_pipelines(const void* data, std::size_t bytes) {
  check_alive();
  VkPipelineCacheCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
  info.initialDataSize = bytes;
  info.pInitialData = data;
  VkPipelineCache added = VK_NULL_HANDLE;
  check(f_.CreatePipelineCache(device_, &info, nullptr, &added), "read compiled pipelines");
  const std::lock_guard lock(pipeline_mutex_);
  const VkResult result = compiled_ == VK_NULL_HANDLE ? VK_SUCCESS : f_.MergePipelineCaches(device_, compiled_, 1, &added);
  f_.DestroyPipelineCache(device_, added, nullptr);
  check(result, "keep compiled pipelines");
}

std::size_t OpenDevice::pipelines(void* out, std::size_t room) {
  check_alive();
  const std::lock_guard lock(pipeline_mutex_);
  std::size_t bytes = 0;
  if (compiled_ == VK_NULL_HANDLE) return 0;
  check(f_.GetPipelineCacheData(device_, compiled_, &bytes, nullptr), "measure compiled pipelines");
  if (bytes > 0 && bytes <= room) check(f_.GetPipelineCacheData(device_, compiled_, &bytes, out), "copy compiled pipelines");
  return bytes;
}

VkPipeline OpenDevice::pipeline(const Command& command) {
  const std::lock_guard lock(pipeline_mutex_);
  return pipelines_.at(key_of(command));
}

void OpenDevice::submit(const VkSubmitInfo& info) {
  const std::lock_guard lock(queue_mutex_);
  check(f_.QueueSubmit(queue_, 1, &info, VK_NULL_HANDLE), "submit commands");
}

void OpenDevice::note_rate(double operations, double seconds) {
  constexpr double kLeast = 1e7;  // less says more about submitting than about computing
  if (operations < kLeast || seconds <= 0) return;
  rate_.store(operations / seconds, std::memory_order_relaxed);
}

}  // namespace sdx::vulkan
