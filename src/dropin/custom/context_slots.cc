// Functions that kernels call while they run.

#include <algorithm>

#include "base/thread_pool.h"
#include "dropin/custom/operators.h"
#include "dropin/status.h"
#include "dropin/table.h"

namespace sdx::dropin {
namespace {

OrtStatus* input_count(const OrtKernelContext* context, std::size_t* out) noexcept {
  return guarded([&] { require(out, "out") = require(context, "context").inputs.size(); });
}

OrtStatus* output_count(const OrtKernelContext* context, std::size_t* out) noexcept {
  return guarded([&] { require(out, "out") = require(context, "context").outputs.size(); });
}

OrtStatus* get_input(const OrtKernelContext* context, std::size_t index, const OrtValue** out) noexcept {
  return guarded([&] {
    const OrtKernelContext& c = require(context, "context");
    require(out, "out") = index < c.inputs.size() && c.inputs[index] ? &*c.inputs[index] : nullptr;
  });
}

OrtStatus* get_output(OrtKernelContext* context, std::size_t index, const std::int64_t* extents, std::size_t rank,
                      OrtValue** out) noexcept {
  return guarded([&] {
    OrtKernelContext& c = require(context, "context");
    require(out, "out") = nullptr;
    if (index >= c.outputs.size() || !c.op.wants_output(index)) return;
    std::optional<OrtValue>& made = c.outputs[index];
    Shape shape;
    if (rank != 0) shape.assign(&require(extents, "dim_values"), extents + rank);
    const DataType type = c.output_types[index];
    if (type == DataType::undefined) {
      fail_ort(ORT_FAIL, "the element type of output " + std::to_string(index) +
                             " is not known: neither the operator nor the model says it");
    }
    if (!made || made->value.tensor().shape() != shape) {
      OrtValue value;
      value.value = c.op.output(index, type, shape);
      made = std::move(value);
    }
    *out = &*made;
  });
}

// The engine does not share the caller's memory: a kernel's output goes there directly if possible.
OrtStatus* no_preallocated(const OrtKernelContext* context, std::size_t index, OrtValue** out) noexcept {
  return guarded([&] {
    require(out, "output") = nullptr;
    if (index >= require(context, "context").outputs.size())
      fail_ort(ORT_INVALID_ARGUMENT, "the index of an output is out of range");
  });
}

OrtStatus* no_gpu_stream(const OrtKernelContext*, void** out) noexcept {
  return guarded([&] { require(out, "out") = nullptr; });
}

OrtStatus* no_sync_stream(const OrtKernelContext*, OrtSyncStream** out) noexcept {
  return guarded([&] { require(out, "out") = nullptr; });
}

OrtStatus* no_resource(const OrtKernelContext*, int, int, void** out) noexcept {
  return guarded([&] {
    require(out, "resource") = nullptr;
    fail_ort(ORT_INVALID_ARGUMENT, "Failed to fetch a stream hosting the requested resource");
  });
}

OrtStatus* get_allocator(const OrtKernelContext*, const OrtMemoryInfo* memory, OrtAllocator** out) noexcept {
  return guarded([&] {
    require(out, "out") = nullptr;
    if (require(memory, "mem_info").device != DEVICE_CPU) fail_ort(ORT_INVALID_ARGUMENT, "No requested allocator available");
    *out = default_allocator();
  });
}

// Kernels free it with the allocator of the same memory.
OrtStatus* scratch_buffer(const OrtKernelContext*, const OrtMemoryInfo* memory, std::size_t bytes, void** out) noexcept {
  return guarded([&] {
    require(out, "out") = nullptr;
    if (require(memory, "mem_info").device != DEVICE_CPU) fail_ort(ORT_INVALID_ARGUMENT, "No requested allocator available");
    if (bytes != 0) *out = allocate(default_allocator(), bytes);
  });
}

OrtStatus* get_logger(const OrtKernelContext* context, const OrtLogger** out) noexcept {
  return guarded([&] { require(out, "logger") = &require(context, "context").info.host->logger; });
}

// With `batches`, each thread calls the function for a run of consecutive numbers.
OrtStatus* run_parallel(const OrtKernelContext* context, void (*function)(void*, std::size_t), std::size_t total,
                        std::size_t batches, void* argument) noexcept {
  return guarded([&] {
    if (context == nullptr) fail_ort(ORT_RUNTIME_EXCEPTION, "Invalid context");
    if (function == nullptr || total == 0) return;
    const auto count = static_cast<std::int64_t>(total);
    const std::int64_t grain = batches == 0 ? 1 : std::max<std::int64_t>(1, count / static_cast<std::int64_t>(batches));
    parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) function(argument, static_cast<std::size_t>(i));
    });
  });
}

}  // namespace

void fill_kernel_contexts(Table& table) {
  table.set(Slot::KernelContext_GetInputCount, &input_count);
  table.set(Slot::KernelContext_GetOutputCount, &output_count);
  table.set(Slot::KernelContext_GetInput, &get_input);
  table.set(Slot::KernelContext_GetOutput, &get_output);
  table.set(Slot::KernelContext_GetPreallocatedOutput, &no_preallocated);
  table.set(Slot::KernelContext_GetGPUComputeStream, &no_gpu_stream);
  table.set(Slot::KernelContext_GetSyncStream, &no_sync_stream);
  table.set(Slot::KernelContext_GetResource, &no_resource);
  table.set(Slot::KernelContext_GetAllocator, &get_allocator);
  table.set(Slot::KernelContext_GetScratchBuffer, &scratch_buffer);
  table.set(Slot::KernelContext_GetLogger, &get_logger);
  table.set(Slot::KernelContext_ParallelFor, &run_parallel);
}

}  // namespace sdx::dropin
