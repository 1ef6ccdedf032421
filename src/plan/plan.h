#pragma once
// Everything about a program that depends on the input shapes.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <sdx/tensor.hpp>

#include "base/arena/arena.h"
#include "graph/graph.h"
#include "ops/infer.h"
#include "providers/interface/kernel.h"

namespace sdx::plan {

class Program;

struct ArenaBlock {
  std::shared_ptr<void> memory;
  std::size_t bytes = 0;
};

// The way in which a value gets its memory.
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
  ValueId root = kNoValue;           // of a view: whose memory (arena, output or input)
  std::size_t offset = 0;            // arena, and views of arena
  bool shared = false;               // output: other values lie in the same memory
  std::shared_ptr<const Type> type;  // shared by plans in which it is the same
};

struct StepPlan {
  std::uint32_t step = 0;                    // index into Program::steps()
  bool dynamic = false;                      // shapes are settled when it runs
  std::shared_ptr<const KernelState> state;  // shared by plans in which the step's types are the same
  std::size_t workspace_offset = SIZE_MAX;
  std::size_t workspace_bytes = 0;
  std::vector<ValueId> release;  // dynamic values that are not needed after this step
  std::vector<ValueId> dead;     // when poisoning: arena values whose memory is not needed after this step
};

// The facts about a value's type that planning needs.
struct ValueFacts {
  std::shared_ptr<const Type> type;
  bool fixed = false;     // has_fixed_size()
  std::size_t bytes = 0;  // fixed_size(), or 0
};

// Memory of one run in progress; reused by later runs.
struct Frame {
  ArenaBlock arena;
  const void* bound_to = nullptr;    // arena address that the values below point into
  bool bound_whole = true;           // false: values of the arena that are empty have to be bound yet
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
  std::vector<BufferRequest> buffers;  // of the arena, laid out
  bool joins = false;                  // some value lies inside the buffer of another, larger one

  mutable std::mutex mutex;
  mutable std::vector<std::unique_ptr<Frame>> frames;  // not in use
};

// Whether one plan serves every run.
bool has_fixed_inputs(const Graph& graph);

// Makes the plans of one program. Consecutive plans often differ in little, such as the length of a cache that grows by one with
// each token: what depends on no input that changed is taken from the plan before. Thread-safe: a caller who finds another one
// planning makes a plan from nothing.
class Planner {
 public:
  explicit Planner(const Program& program) : program_(program) {}

  // Resolves the program for inputs of the given types (tensors with constant extents, or anything else: then what depends on
  // them is settled while running).
  std::shared_ptr<const Plan> plan(std::vector<std::int64_t> signature, const std::vector<Type>& inputs);

 private:
  const Program& program_;
  std::mutex mutex_;
  std::unique_ptr<ops::Inference> inference_;
  std::vector<ValueFacts> facts_;     // by ValueId, as of the last inference
  std::shared_ptr<const Plan> last_;  // the plan for these
};

}  // namespace sdx::plan
