#pragma once
// Runs of a session on a device that has memory of its own, with inputs and outputs bound to it (OrtIoBinding).

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <sdx/tensor.hpp>

#include "providers/interface/provider.h"
#include "providers/ort/library.h"
#include "providers/ort/values.h"

namespace sdx::ort {

// ONNX Runtime's name for the memory of a provider's device ("Cuda"); "" for those that work in the host's.
std::string device_memory_name(std::string_view provider);

// Thread-safe: each run takes a binding of its own, and leaves it for the next.
//
// An input is copied once, by the library, from the caller's memory to the device; where the library can copy into a tensor that
// is there already (1.23 and newer), that tensor is made and bound once for each shape. Results are copied once, into memory of
// the host, unless only other parts of the model on the same device read them: those stay. Inputs that stayed are not copied.
class DeviceRuns {
 public:
  // Null where the session shall not or cannot be bound: the provider works in the host's memory (and the option `io_binding`
  // does not say otherwise), an input or output is not a tensor of numbers, or the library has no such memory. Runs without
  // binding do the same work. `names` of inputs and outputs outlive the result.
  static std::unique_ptr<DeviceRuns> make(const Library& library, c::Session* session, std::string_view provider,
                                          const Region& region, const ProviderSettings& settings,
                                          std::span<const char* const> inputs, std::span<const char* const> outputs);
  ~DeviceRuns();
  DeviceRuns(const DeviceRuns&) = delete;
  DeviceRuns& operator=(const DeviceRuns&) = delete;

  // Works like OrtApi::Run: returns null and one value per output, which the caller releases, or the library's error and no
  // values.
  c::Status* run(std::span<const Value* const> inputs, const c::RunOptions* options, std::span<c::Value*> results) const;

  bool stays(std::size_t output) const { return stays_[output]; }
  const std::string& memory() const { return memory_; }

 private:
  struct Slot;
  using MemoryHandle = std::unique_ptr<c::MemoryInfo, void (*)(c::MemoryInfo*)>;
  using AllocatorHandle = std::unique_ptr<c::Allocator, void (*)(c::Allocator*)>;

  DeviceRuns(const Library& library, c::Session* session, std::span<const char* const> inputs,
             std::span<const char* const> outputs);
  std::unique_ptr<Slot> take() const;
  c::Status* bind_inputs(Slot& slot, std::span<const Value* const> inputs) const;
  c::Status* refill(Slot& slot, std::span<const c::Value* const> from, std::span<const std::size_t> which) const;
  c::Status* keep_tensor(Slot& slot, std::size_t i, const Tensor& like) const;
  c::Status* fetch(Slot& slot, std::span<c::Value*> results) const;

  const Library& library_;
  c::Session* session_;
  std::span<const char* const> inputs_, outputs_;
  std::string memory_;
  MemoryHandle device_;
  AllocatorHandle allocator_;
  std::vector<bool> stays_;
  std::vector<bool> on_device_;                // per input: the session wants it there
  mutable std::atomic<bool> refills_ = false;  // the library can copy into tensors on the device
  mutable std::mutex mutex_;                   // guards idle_
  mutable std::vector<std::unique_ptr<Slot>> idle_;
};

}  // namespace sdx::ort
