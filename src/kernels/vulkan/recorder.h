#pragma once
// Commands that were recorded once and run again and again.

#include <vector>

#include "kernels/vulkan/device.h"

namespace sdx::vulkan {

class Recorder {
 public:
  Recorder(OpenDevice& device, const Command* commands, std::size_t count);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Submits part after part, with few of them waiting at the device, so that a run that is stopped ends soon. Throws Failure.
  void run(const StopQuestion& stop, RunFacts* facts);

 private:
  void record(const Command* commands, std::size_t count);
  VkCommandBuffer begin();
  void barrier(VkCommandBuffer to, bool for_host);
  void add(VkCommandBuffer to, const Command& command);
  void submit(std::size_t part);
  bool wait(std::uint64_t value, std::uint64_t nanoseconds);
  void wait_for(std::uint64_t value, const StopQuestion& stop);
  void wait_until_idle();

  OpenDevice& device_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkSemaphore timeline_ = VK_NULL_HANDLE;
  std::vector<VkCommandBuffer> parts_;
  std::uint64_t submitted_ = 0;  // the value that the timeline reaches at last
  double cost_ = 0;
};

}  // namespace sdx::vulkan
