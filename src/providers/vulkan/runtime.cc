#include "providers/vulkan/runtime.h"

#include "base/error.h"
#include "providers/vulkan/pipeline_store.h"

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

Gpu::Gpu(std::size_t index, const DeviceFacts& facts, const std::filesystem::path& cache, std::uint64_t memory_limit)
    : table_(load_module<Table>()), facts_(facts), memory_limit_(memory_limit) {
  checked(table_.open, index, &device_);
  if (!cache.empty()) pipelines_ = PipelineStore::of(cache, facts_);
  if (pipelines_) pipelines_->load(table_, device_);
}

Gpu::~Gpu() {
  if (pipelines_) pipelines_->keep(table_, device_);
  table_.close(device_);
}

void Gpu::take(std::uint64_t bytes) const {
  const std::uint64_t taken = taken_ += bytes;
  if (memory_limit_ == 0 || taken <= memory_limit_) return;
  taken_ -= bytes;
  fail(ErrorCode::out_of_memory, "vulkan: {} bytes more than the {} in use would exceed gpu_mem_limit, {} bytes", bytes,
       taken - bytes, memory_limit_);
}

OwnMemory::OwnMemory(std::shared_ptr<const Gpu> gpu, std::uint64_t bytes, MemoryKind kind) : gpu_(std::move(gpu)) {
  const std::uint64_t counted = kind == MemoryKind::device ? bytes : 0;
  gpu_->take(counted);
  std::string message;
  const Outcome outcome = call(message, gpu_->table().allocate, gpu_->device(), bytes, kind, &memory_);
  if (outcome == Outcome::ok) {
    counted_ = counted;
    return;
  }
  gpu_->give(counted);
  fail_with(outcome, message.c_str());
}

OwnMemory::~OwnMemory() {
  gpu_->table().release(gpu_->device(), &memory_);
  gpu_->give(counted_);
}

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
