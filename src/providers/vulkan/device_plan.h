#pragma once
// A region with known shapes: its dispatches in order, with a place in the device's memory for every value.

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "providers/vulkan/emitter.h"
#include "providers/vulkan/runtime.h"

namespace sdx::vulkan {

// Constants on the device, by what they are in the graph.
class ConstantStore {
 public:
  // New blocks have at least `block_bytes`.
  ConstantStore(std::shared_ptr<const Gpu> gpu, std::uint64_t block_bytes) : gpu_(std::move(gpu)), block_bytes_(block_bytes) {}

  // The address of the tensor's elements. Thread-safe.
  std::uint64_t address(ValueId v, const Tensor& tensor);

 private:
  std::shared_ptr<const Gpu> gpu_;
  std::uint64_t block_bytes_;
  std::mutex mutex_;
  std::map<ValueId, std::uint64_t> addresses_;
  std::vector<std::unique_ptr<OwnMemory>> blocks_;
  std::uint64_t used_ = 0;  // of the last block
};

// Memory and recorded commands of one run at a time.
struct DeviceFrame {
  std::unique_ptr<OwnMemory> arena, upload, download;
  std::unique_ptr<OwnRecording> recording;
};

class DevicePlan {
 public:
  // `constants`: of the region; what only this plan knows goes into a store of its own.
  DevicePlan(const Graph& graph, const ops::InferResult& inferred, std::shared_ptr<const Gpu> gpu, ConstantStore& constants);

  void run(const std::vector<const Tensor*>& inputs, const std::vector<Value*>& outputs, const StopCondition& stop);

  // Dispatches of a run.
  std::size_t dispatches() const { return dispatches_.size(); }

 private:
  // Where an operand lies: in the arena, or at an address of its own.
  struct Place {
    bool in_arena = false;
    std::uint64_t at = 0;  // offset or address
    std::uint64_t bytes = 0;
  };
  // An input or a result.
  struct Transfer {
    std::size_t index = 0;  // of the region's inputs or outputs; of the statuses
    Operand operand = 0;
    std::uint64_t staging = 0;  // offset
    std::uint64_t bytes = 0;
    Tensor known;  // of results that the host knows; then nothing is copied
    DataType type = DataType::undefined;
    Shape shape;
  };
  struct Range {
    std::uint64_t begin, end;
    bool written;
  };

  Emitter emit(const ops::InferResult& inferred) const;
  void take(const Emitter& e, const ops::InferResult& inferred, ConstantStore& constants);
  void place_constants(const Emitter& e, const std::vector<bool>& written, ConstantStore& constants);
  void lay_out(const Emitter& e);
  Operand root(Operand operand, std::uint64_t& offset) const;
  bool must_wait(std::vector<Range>& open, const std::vector<Range>& touched) const;
  std::unique_ptr<DeviceFrame> make_frame() const;
  void check_statuses(const DeviceFrame& frame) const;

  const Graph& graph_;
  std::shared_ptr<const Gpu> gpu_;
  ConstantStore own_;
  std::vector<Dispatch> dispatches_;
  std::vector<std::optional<Emitter::Alias>> aliases_;
  std::vector<Place> places_;  // by Operand, of roots
  std::vector<Transfer> inputs_, outputs_, statuses_;
  std::vector<std::string> messages_;  // of statuses_
  std::uint64_t arena_bytes_ = 0, upload_bytes_ = 0, download_bytes_ = 0;
  std::mutex mutex_;
  std::vector<std::unique_ptr<DeviceFrame>> idle_;
};

}  // namespace sdx::vulkan
