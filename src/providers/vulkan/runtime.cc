#include "providers/vulkan/runtime.h"

#include "base/error.h"

namespace sdx::vulkan {

void fail_with(Outcome outcome, const char* message) {
  switch (outcome) {
    case Outcome::unavailable: fail(ErrorCode::provider_unavailable, "{}", message);
    case Outcome::out_of_memory: fail(ErrorCode::out_of_memory, "vulkan: {}", message);
    default: fail(ErrorCode::runtime_failure, "vulkan: {}", message);
  }
}

std::vector<DeviceFacts> list_devices() {
  constexpr std::size_t kMost = 64;
  std::vector<DeviceFacts> devices(kMost);
  std::size_t count = 0;
  checked(load_module<Table>().list, devices.data(), kMost, &count);
  devices.resize(std::min(count, kMost));
  return devices;
}

Gpu::Gpu(std::size_t index) : table_(load_module<Table>()) {
  const std::vector<DeviceFacts> all = list_devices();
  checked(table_.open, index, &device_);
  facts_ = all.at(index);
}

Gpu::~Gpu() { table_.close(device_); }

OwnMemory::OwnMemory(std::shared_ptr<const Gpu> gpu, std::uint64_t bytes, MemoryKind kind) : gpu_(std::move(gpu)) {
  checked(gpu_->table().allocate, gpu_->device(), bytes, kind, &memory_);
}

OwnMemory::~OwnMemory() { gpu_->table().release(gpu_->device(), &memory_); }

OwnRecording::OwnRecording(std::shared_ptr<const Gpu> gpu, const std::vector<Command>& commands) : gpu_(std::move(gpu)) {
  checked(gpu_->table().record, gpu_->device(), commands.data(), commands.size(), &recording_);
}

OwnRecording::~OwnRecording() { gpu_->table().discard(recording_); }

RunFacts OwnRecording::run(const StopCondition& stop) const {
  struct Question : CallbackError {
    const StopCondition* stop;
  } question;
  question.stop = &stop;
  const auto ask = [](void* context) {
    auto* q = static_cast<Question*>(context);
    return q->guarded([&] { q->stop->check(); }) ? 0 : 1;
  };
  RunFacts facts{};
  std::string message;
  const Outcome outcome = call(message, gpu_->table().run, recording_, StopQuestion{ask, &question}, &facts);
  if (outcome == Outcome::stopped) question.rethrow();
  if (outcome != Outcome::ok) fail_with(outcome, message.c_str());
  return facts;
}

}  // namespace sdx::vulkan
