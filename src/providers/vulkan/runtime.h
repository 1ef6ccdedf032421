#pragma once
// The engine's side of libsdx_vulkan.so: owners of what it makes, and its outcomes as Errors.

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "kernels/vulkan/table.h"

namespace sdx::vulkan {

// Throws the Error for an outcome that is not ok.
[[noreturn]] void fail_with(Outcome outcome, const char* message);

// Calls a function of the table with room for its message.
template <class F, class... Args>
Outcome call(std::string& message, F function, Args... args) {
  char text[512] = "";
  const Outcome outcome = function(args..., MessagePlace{text, sizeof text});
  message = text;
  return outcome;
}
template <class F, class... Args>
void checked(F function, Args... args) {
  std::string message;
  if (const Outcome outcome = call(message, function, args...); outcome != Outcome::ok) fail_with(outcome, message.c_str());
}

// The devices of this machine, those that cannot be used as well. Throws Error(provider_unavailable).
std::vector<DeviceFacts> list_devices();

class PipelineStore;

// An open device, as one session uses it.
class Gpu {
 public:
  // `cache`: the folder where compiled pipelines are kept; empty: they are not. `memory_limit`: bytes on the device; 0: all.
  // `index`: in list_devices(), which gave the facts.
  Gpu(std::size_t index, const DeviceFacts& facts, const std::filesystem::path& cache, std::uint64_t memory_limit);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  const DeviceFacts& facts() const { return facts_; }
  const Table& table() const { return table_; }
  Device* device() const { return device_; }

  // Counts memory of the device. Throws Error(out_of_memory) beyond the limit.
  void take(std::uint64_t bytes) const;
  void give(std::uint64_t bytes) const { taken_ -= bytes; }

 private:
  const Table& table_;
  DeviceFacts facts_;
  Device* device_ = nullptr;
  std::shared_ptr<PipelineStore> pipelines_;
  std::uint64_t memory_limit_;
  mutable std::atomic<std::uint64_t> taken_{0};
};

// A block of memory.
class OwnMemory {
 public:
  OwnMemory(std::shared_ptr<const Gpu> gpu, std::uint64_t bytes, MemoryKind kind);
  ~OwnMemory();
  OwnMemory(const OwnMemory&) = delete;
  OwnMemory& operator=(const OwnMemory&) = delete;

  const Memory& get() const { return memory_; }
  std::byte* mapped() const { return static_cast<std::byte*>(memory_.mapped); }

 private:
  std::shared_ptr<const Gpu> gpu_;
  Memory memory_{};
  std::uint64_t counted_ = 0;
};

// Recorded commands.
class OwnRecording {
 public:
  OwnRecording(std::shared_ptr<const Gpu> gpu, const std::vector<Command>& commands);
  ~OwnRecording();
  OwnRecording(const OwnRecording&) = delete;
  OwnRecording& operator=(const OwnRecording&) = delete;

  // Returns when the device has finished. Throws what `stop` throws, once the device no longer uses the memory.
  RunFacts run(const StopCondition& stop) const;

 private:
  std::shared_ptr<const Gpu> gpu_;
  Recording* recording_ = nullptr;
};

}  // namespace sdx::vulkan
