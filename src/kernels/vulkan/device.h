#pragma once
// An open device: memory, pipelines, its queue.

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/vulkan/instance.h"

namespace sdx::vulkan {

// A buffer with its memory.
struct Block {
  VkDeviceMemory memory = VK_NULL_HANDLE;
  VkBuffer buffer = VK_NULL_HANDLE;
};

class OpenDevice {
 public:
  // Several that ask for the same device get one, as long as it is not lost.
  static std::shared_ptr<OpenDevice> open(std::size_t index);
  ~OpenDevice();
  OpenDevice(const OpenDevice&) = delete;
  OpenDevice& operator=(const OpenDevice&) = delete;

  const PhysicalDevice& physical() const { return *physical_; }
  DeviceFunctions& f() { return f_; }
  VkDevice handle() const { return device_; }
  VkPipelineLayout layout() const { return layout_; }

  // Throws Failure(lost) once the device is.
  void check_alive() const;
  // Like vulkan::check(), and remembers a lost device.
  void check(VkResult result, const char* what);

  Memory allocate(std::uint64_t bytes, MemoryKind kind);
  void release(Memory& memory);
  void upload(const Memory& to, std::uint64_t offset, const void* data, std::uint64_t bytes);

  // Makes the pipelines of these commands that there are not yet, several at once: drivers take up to 50 ms for each.
  // Thread-safe.
  void make_pipelines(const Command* commands, std::size_t count);
  // Compiled pipelines of an earlier process, for those that are made from now on. The driver looks at their head alone.
  void add_pipelines(const void* data, std::size_t bytes);
  // Writes what is compiled by now to `out`, unless it takes more than `room`, and returns its size.
  std::size_t pipelines(void* out, std::size_t room);
  // One that was made.
  VkPipeline pipeline(const Command& command);
  void submit(const VkSubmitInfo& info);

  // Operations per second, as the runs so far show; a guess by the kind of device before the first.
  double rate() const { return rate_.load(std::memory_order_relaxed); }
  void note_rate(double operations, double seconds);

 private:
  explicit OpenDevice(const PhysicalDevice& physical);
  void make_device();
  std::uint32_t memory_type(std::uint32_t allowed, MemoryKind kind) const;

  struct PipelineKey {
    Shader shader;
    std::array<std::uint32_t, kMostConstants> constants;
    auto operator<=>(const PipelineKey&) const = default;
  };
  static PipelineKey key_of(const Command& command);
  VkPipeline make_pipeline(const PipelineKey& key);

  const PhysicalDevice* physical_;
  DeviceFunctions f_;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipelineCache compiled_ = VK_NULL_HANDLE;
  std::mutex queue_mutex_, pipeline_mutex_;
  std::map<PipelineKey, VkPipeline> pipelines_;
  std::atomic<bool> lost_{false};
  std::atomic<double> rate_;
};

}  // namespace sdx::vulkan
