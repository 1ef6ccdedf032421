#pragma once
// Everything about a program that depends on the input shapes.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <sdx/tensor.hpp>

#include "graph/graph.h"
#include "providers/interface/kernel.h"

namespace sdx::plan {

class Program;

struct ArenaBlock {
  std::shared_ptr<void> memory;
  std::size_t bytes = 0;
};

// How a value gets its memory.
enum class Place : std::uint8_t {
  absent,    // never produced in this plan, or an empty optional input
  constant,  // of the program
  known,     // computed while resolving (shape computations)
  input,     // handed in
  arena,     // fixed offset in the block
  output,    // allocated afresh for each run, because it leaves with the caller
  kept,      // made by its kernel on each run, in memory that only kernels of its family read
  view,      // other shape over another value's memory, bound at the start of each run
  dynamic,   // shape not known before it is computed
};

struct ValuePlan {
  Place place = Place::absent;
  ValueId root = kNoValue;  // of a view: whose memory (arena, output or input)
  std::size_t offset = 0;   // arena, and views of arena
  bool shared = false;      // output: other values lie in the same memory
  Type type;
};

struct StepPlan {
  std::uint32_t step = 0;  // index into Program::steps()
  bool dynamic = false;    // shapes are settled when it runs
  std::unique_ptr<KernelState> state;
  std::size_t workspace_offset = SIZE_MAX;
  std::size_t workspace_bytes = 0;
  std::vector<ValueId> release;  // dynamic values that nobody needs after this step
  std::vector<ValueId> dead;     // when poisoning: arena values whose memory nobody needs after this step
};

// Memory of one run in progress; reused by later runs.
struct Frame {
  ArenaBlock arena;
  const void* bound_to = nullptr;    // arena address that the values below point into
  std::vector<Value> values;         // by ValueId
  std::vector<const Value*> inputs;  // of all steps, one after the other
  std::vector<Value*> outputs;
  std::vector<std::uint32_t> input_at, output_at;  // per StepPlan: where its part begins
};

struct Plan {
  std::vector<std::int64_t> signature;
  std::vector<ValuePlan> values;  // by ValueId
  std::vector<std::pair<ValueId, Tensor>> known;
  std::vector<StepPlan> steps;
  std::vector<ValueId> fresh;  // Place::output, allocated at the start of each run
  std::vector<ValueId> views;  // of inputs and outputs, in an order in which they can be bound
  std::size_t arena_bytes = 0;

  mutable std::mutex mutex;
  mutable std::vector<std::unique_ptr<Frame>> frames;  // not in use
};

// Resolves the program for inputs of the given types (tensors with constant extents, or anything else: then what depends on them
// is settled while running).
std::shared_ptr<const Plan> build_plan(const Program& program, std::vector<std::int64_t> signature,
                                       const std::vector<Type>& inputs);

}  // namespace sdx::plan
