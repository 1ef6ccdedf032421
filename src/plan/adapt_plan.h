#pragma once
// Plans that differ from the one before only in extents.

#include <cstddef>
#include <memory>
#include <vector>

#include "ops/infer.h"
#include "plan/plan.h"

namespace sdx::plan {

// Whether a value of this type is a tensor of numbers with constant extents, and the bytes of such a tensor.
bool has_fixed_size(const Type& type);
std::size_t fixed_size(const Type& type);

// Adds some slack to buffers of unknown shape, so that those that grow a little with each run keep their places.
std::size_t with_slack(std::size_t bytes);

// The context for questions to a kernel with fixed shapes: the types of a node's inputs and outputs in a plan, which must outlive
// this.
class StepTypes {
 public:
  StepTypes(const Node& node, const Plan& plan);
  StepTypes(const StepTypes&) = delete;
  StepTypes& operator=(const StepTypes&) = delete;
  ResolveContext context;

 private:
  std::vector<const Type*> in_, out_;
};

// Whether the step's kernel was chosen for shapes like those in `plan`, or makes its own results.
bool has_expected_shapes(const Program& program, const Plan& plan, const StepPlan& step);

// Has the step's kernel choose its state for the types in `plan`. Returns the bytes of workspace that it needs.
std::size_t resolve_step(const Program& program, const Plan& plan, StepPlan& step);

// A copy of `base` with the types of `changed` values, if these fit where they lie and all else remains as it is; else null.
// `facts`: by ValueId, the new ones; `changed` likewise. For 71 steps, of
// whose 158 values 24 changed, this takes 6 us, building the plan 15.
std::shared_ptr<Plan> adapt_plan(const Program& program, const Plan& base, const std::vector<ValueFacts>& facts,
                                 const std::vector<char>& changed, const ops::InferResult& inferred);

}  // namespace sdx::plan
