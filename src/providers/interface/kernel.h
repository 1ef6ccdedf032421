#pragma once
// The executable form of a node.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sdx/tensor.hpp>

#include "cache/tuned.h"
#include "graph/graph.h"
#include "ops/context.h"

namespace sdx {

// Parameters that a kernel derives from shapes, made once per input-shape signature. Immutable while runs use it.
struct KernelState {
  virtual ~KernelState() = default;
};

// Everything known when a step's shapes are fixed. All types are tensors with constant extents.
struct ResolveContext {
  std::span<const Type* const> inputs;  // null: left out
  std::span<const Type* const> outputs;
  std::size_t workspace_bytes = 0;  // set by the kernel: 64-byte aligned scratch memory for each run

  Shape input_shape(std::size_t i) const { return to_shape(*inputs[i]->shape); }
  Shape output_shape(std::size_t i) const { return to_shape(*outputs[i]->shape); }
  bool has_input(std::size_t i) const { return i < inputs.size() && inputs[i] != nullptr; }
};

// One run of one step.
struct KernelContext {
  std::span<const Value* const> inputs;  // null: left out; constants that uses_input() denies may be null as well
  std::span<Value* const> outputs;       // null: nobody wants it. Allocated with the resolved shape, except for kernels that
                                         // allocate their own outputs
  const KernelState* state = nullptr;
  void* workspace = nullptr;
  ops::RunServices* services = nullptr;

  const Tensor& input(std::size_t i) const { return inputs[i]->tensor(); }
  Tensor& output(std::size_t i) const { return outputs[i]->tensor(); }
  bool has_input(std::size_t i) const { return i < inputs.size() && inputs[i] != nullptr; }
  bool has_output(std::size_t i) const { return i < outputs.size() && outputs[i] != nullptr; }
  template <class T>
  const T* in(std::size_t i) const {
    return static_cast<const T*>(inputs[i]->tensor().data());
  }
  template <class T>
  T* out(std::size_t i) const {
    return static_cast<T*>(outputs[i]->tensor().mutable_data());
  }
};

// A node compiled for one provider: chosen and packed once, then run with any shapes. Thread-safe: run() is called concurrently.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual std::string_view name() const = 0;

  // Input whose memory output 0 merely renames (same elements, another shape), or -1. Such a step costs nothing where shapes are
  // known; run() must still work for where they are not.
  virtual int view_of() const { return -1; }
  // The input that output 0 may overwrite because element i of the output depends on nothing but element i of it, or -1. The
  // planner uses it if nothing else needs the input and both have the same number of bytes.
  virtual int in_place() const { return -1; }
  // The axis along which output 0 consists of all inputs one after the other, or -1. If everything before that axis has extent 1,
  // the planner may place inputs in the output's memory: run() then need not copy them.
  virtual int joins_along() const { return -1; }
  // The element of input 0 at which an output begins that is a stretch of it, or -1. The planner may place such outputs in the
  // input's memory: run() then need not copy them.
  virtual std::int64_t begins_at(const ResolveContext&, std::size_t /*output*/) const { return -1; }
  // False for constants that were packed at compile time: their memory may be released.
  virtual bool uses_input(std::size_t) const { return true; }
  // True if input i, when constant, may be an unaligned view of the model file.
  virtual bool accepts_unaligned(std::size_t) const { return false; }
  // True for kernels that make their own outputs (data-dependent shapes, sequences, …): resolve() may not be called for them.
  virtual bool allocates_outputs() const { return false; }
  // True for outputs that such a kernel leaves in a device's memory, for kernels of its own family alone: they get no place in
  // the plan.
  virtual bool keeps_output(std::size_t) const { return false; }

  virtual std::unique_ptr<KernelState> resolve(ResolveContext&) const { return nullptr; }
  virtual void run(const KernelContext& context) const = 0;
};

// A kernel that did not take a node, and why.
struct Refusal {
  std::string kernel;
  std::string reason;
};

// A node with its kernel.
struct Step {
  NodeId node = kNoNode;
  std::unique_ptr<Kernel> kernel;
  std::string provider;
  std::vector<Refusal> refused;
  std::vector<cache::KernelTime> timed;  // where the choice was measured: the chosen and its alternatives
};

}  // namespace sdx
