#pragma once
// A model with further readers behind each of its outputs: views (Reshape, Unsqueeze, a Transpose that moves nothing), Identity,
// a reader that copies, one that computes in place, and a subgraph that captures it. What they give must be what the output
// holds: it is not where memory is handed out too early, or results are left elsewhere than where readers look.

#include <cstdint>
#include <functional>
#include <vector>

#include <sdx/session.hpp>

#include "graph/graph.h"

namespace sdx::testing {

enum class Readers : std::uint8_t {
  none,
  kept,   // the model's outputs stay outputs
  alone,  // only what the readers give is an output
};

// Runs a model on inputs by name.
using RunModel = std::function<NamedValues(const Model& model, const NamedValues& inputs)>;

// Runs `model` (inferred, functions expanded) with readers on `inputs`, which are for model.graph.inputs(), and returns the
// values of the model's own outputs. Throws Error(runtime_failure) where a reader saw something else than its output.
std::vector<Value> run_with_readers(Model model, std::vector<Value> inputs, Readers readers, const RunModel& run);

}  // namespace sdx::testing
