#include "kernels/vulkan/recorder.h"

#include <chrono>

namespace sdx::vulkan {
namespace {

constexpr double kPartSeconds = 0.05;                   // a part of a run takes about so long: drivers end what takes seconds
constexpr std::uint64_t kLookEvery = 2'000'000;         // nanoseconds between two questions whether to stop
constexpr std::uint64_t kPatience = 10'000'000'000ULL;  // for what was submitted before a stop
constexpr std::size_t kWaiting = 2;                     // parts at the device at once

}  // namespace

Recorder::Recorder(OpenDevice& device, const Command* commands, std::size_t count) : device_(device) {
  device_.check_alive();
  try {
    VkCommandPoolCreateInfo pool{};
    pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
    pool.queueFamilyIndex = device_.physical().queue_family;
    device_.check(device_.f().CreateCommandPool(device_.handle(), &pool, nullptr, &pool_), "make a command pool");
    VkSemaphoreTypeCreateInfo type{};
    type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
    type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
    VkSemaphoreCreateInfo semaphore{};
    semaphore.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
    semaphore.pNext = &type;
    device_.check(device_.f().CreateSemaphore(device_.handle(), &semaphore, nullptr, &timeline_), "make a semaphore");
    record(commands, count);
  } catch (...) {
    device_.f().DestroySemaphore(device_.handle(), timeline_, nullptr);
    device_.f().DestroyCommandPool(device_.handle(), pool_, nullptr);
    throw;
  }
}

Recorder::~Recorder() {
  device_.f().DestroySemaphore(device_.handle(), timeline_, nullptr);
  device_.f().DestroyCommandPool(device_.handle(), pool_, nullptr);
}

void Recorder::record(const Command* commands, std::size_t count) {
  device_.make_pipelines(commands, count);
  const double budget = device_.rate() * kPartSeconds;
  VkCommandBuffer part = begin();
  double pending = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto cost = static_cast<double>(commands[i].cost);
    if (pending > 0 && pending + cost > budget) {
      device_.check(device_.f().EndCommandBuffer(part), "record commands");
      part = begin();
      pending = 0;
    }
    if (commands[i].barrier != 0) barrier(part, false);
    add(part, commands[i]);
    pending += cost;
    cost_ += cost;
  }
  barrier(part, true);
  device_.check(device_.f().EndCommandBuffer(part), "record commands");
}

VkCommandBuffer Recorder::begin() {
  VkCommandBufferAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  info.commandPool = pool_;
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  VkCommandBuffer made = VK_NULL_HANDLE;
  device_.check(device_.f().AllocateCommandBuffers(device_.handle(), &info, &made), "make a command buffer");
  VkCommandBufferBeginInfo how{};
  how.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  device_.check(device_.f().BeginCommandBuffer(made, &how), "record commands");
  parts_.push_back(made);
  return made;
}

void Recorder::barrier(VkCommandBuffer to, bool for_host) {
  constexpr VkPipelineStageFlags kStages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
  VkMemoryBarrier memory{};
  memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  memory.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  memory.dstAccessMask = for_host ? VK_ACCESS_HOST_READ_BIT
                                  : VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT |
                                        VK_ACCESS_TRANSFER_WRITE_BIT;
  VkPipelineStageFlags next = kStages;
  if (for_host) next = VK_PIPELINE_STAGE_HOST_BIT;
  device_.f().CmdPipelineBarrier(to, kStages, next, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

void Recorder::add(VkCommandBuffer to, const Command& command) {
  DeviceFunctions& f = device_.f();
  if (command.copy != nullptr) {
    const Copy& c = *command.copy;
    const VkBufferCopy region{c.from_offset, c.to_offset, c.bytes};
    f.CmdCopyBuffer(to, static_cast<Block*>(c.from->handle)->buffer, static_cast<Block*>(c.to->handle)->buffer, 1, &region);
    return;
  }
  f.CmdBindPipeline(to, VK_PIPELINE_BIND_POINT_COMPUTE, device_.pipeline(command));
  f.CmdPushConstants(to, device_.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0, command.push_bytes, command.push);
  f.CmdDispatch(to, command.groups[0], command.groups[1], command.groups[2]);
}

void Recorder::submit(std::size_t part) {
  const std::uint64_t value = submitted_ + 1;
  VkTimelineSemaphoreSubmitInfo timeline{};
  timeline.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
  timeline.signalSemaphoreValueCount = 1;
  timeline.pSignalSemaphoreValues = &value;
  VkSubmitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.pNext = &timeline;
  info.commandBufferCount = 1;
  info.pCommandBuffers = &parts_[part];
  info.signalSemaphoreCount = 1;
  info.pSignalSemaphores = &timeline_;
  device_.submit(info);
  submitted_ = value;
}

bool Recorder::wait(std::uint64_t value, std::uint64_t nanoseconds) {
  VkSemaphoreWaitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
  info.semaphoreCount = 1;
  info.pSemaphores = &timeline_;
  info.pValues = &value;
  const VkResult result = device_.f().WaitSemaphores(device_.handle(), &info, nanoseconds);
  device_.check(result, "wait for the device");
  return result == VK_SUCCESS;
}

void Recorder::wait_for(std::uint64_t value, const StopQuestion& stop) {
  while (!wait(value, kLookEvery)) {
    if (stop.stop == nullptr || stop.stop(stop.context) == 0) continue;
    wait_until_idle();
    throw Failure(Outcome::stopped, "the run was stopped");
  }
}

// Before the memory of a run may be used again. A device that does not come to an end counts as lost.
void Recorder::wait_until_idle() {
  if (!wait(submitted_, kPatience)) device_.check(VK_ERROR_DEVICE_LOST, "wait for the device");
}

void Recorder::run(const StopQuestion& stop, RunFacts* facts) {
  device_.check_alive();
  const auto start = std::chrono::steady_clock::now();
  const std::uint64_t before = submitted_;
  try {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (i >= kWaiting) wait_for(before + i + 1 - kWaiting, stop);
      submit(i);
    }
    wait_for(submitted_, stop);
  } catch (const Failure& e) {
    if (e.outcome() != Outcome::lost && e.outcome() != Outcome::stopped && submitted_ != before) wait_until_idle();
    throw;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  device_.note_rate(cost_, took.count());
  if (facts != nullptr) facts->submits = static_cast<std::uint32_t>(parts_.size());
}

}  // namespace sdx::vulkan
