#include "plan/adapt_plan.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "plan/program.h"

namespace sdx::plan {
namespace {

// Whether a value of the new type may take the place of one of the old.
bool fits(const ValuePlan& p, const ValueFacts& now) {
  const Type& before = *p.type;
  if (has_fixed_size(before) != now.fixed || before.elem != now.type->elem || before.is_tensor() != now.type->is_tensor())
    return false;
  return p.place != Place::arena || with_slack(fixed_size(before)) == with_slack(now.bytes);
}

// Values that share memory still have the same size.
bool shares_still(const std::vector<ValuePlan>& values, const std::vector<ValueFacts>& facts, ValueId v) {
  const ValueId root = values[v].root;
  return root == kNoValue || facts[v].bytes == facts[root].bytes;
}

bool known_still(const ValuePlan& p, bool known) {
  return p.place == Place::input || p.place == Place::constant || known == (p.place == Place::known);
}

std::shared_ptr<Plan> copy_of(const Plan& base) {
  auto made = std::make_shared<Plan>();
  made->values = base.values;
  made->steps = base.steps;
  made->fresh = base.fresh;
  made->views = base.views;
  made->arena_bytes = base.arena_bytes;
  made->buffers = base.buffers;
  return made;
}

}  // namespace

bool has_fixed_size(const Type& type) {
  return type.has_static_shape() && type.elem != DataType::undefined && type.elem != DataType::string;
}

std::size_t fixed_size(const Type& type) { return byte_size(type.elem, element_count(to_shape(*type.shape))); }

std::size_t with_slack(std::size_t bytes) {
  const std::size_t step = std::max<std::size_t>(std::bit_floor(bytes) / 16, 64);
  return bytes < SIZE_MAX / 4 ? (bytes + step - 1) / step * step : bytes;
}

StepTypes::StepTypes(const Node& node, const Plan& plan) {
  for (const ValueId v : node.inputs) in_.push_back(v == kNoValue ? nullptr : plan.values[v].type.get());
  for (const ValueId v : node.outputs) out_.push_back(v == kNoValue ? nullptr : plan.values[v].type.get());
  context.inputs = in_;
  context.outputs = out_;
}

bool has_expected_shapes(const Program& program, const Plan& plan, const StepPlan& step) {
  const Step& s = program.steps()[step.step];
  if (s.kernel->allocates_outputs()) return true;
  const StepTypes types(program.graph().node(s.node), plan);
  return program.expected_shapes().hold(step.step, types.context.inputs, types.context.outputs);
}

std::size_t resolve_step(const Program& program, const Plan& plan, StepPlan& step) {
  const Step& s = program.steps()[step.step];
  const Node& node = program.graph().node(s.node);
  StepTypes types(node, plan);
  ResolveContext& context = types.context;
  try {
    step.state = s.kernel->resolve(context);
  } catch (Error& e) {
    e.add_context("in " + program.graph().describe(s.node));
    throw;
  }
  return context.workspace_bytes;
}

std::shared_ptr<Plan> adapt_plan(const Program& program, const Plan& base, const std::vector<ValueFacts>& facts,
                                 const std::vector<char>& changed, const ops::InferResult& inferred) {
  if (base.joins) return nullptr;
  for (ValueId v = 0; v < base.values.size(); ++v) {
    const ValuePlan& p = base.values[v];
    const bool root_changed = p.root != kNoValue && changed[p.root] != 0;
    if ((changed[v] != 0 || root_changed) && !shares_still(base.values, facts, v)) return nullptr;
    if (changed[v] == 0) continue;
    if (!fits(p, facts[v]) || !known_still(p, inferred.values.contains(v))) return nullptr;
  }
  std::shared_ptr<Plan> made = copy_of(base);
  for (ValueId v = 0; v < made->values.size(); ++v) {
    if (changed[v] != 0) made->values[v].type = facts[v].type;
  }
  for (const auto& [v, tensor] : base.known) made->known.emplace_back(v, changed[v] != 0 ? inferred.values.at(v) : tensor);
  const auto differs = [&](ValueId v) { return v != kNoValue && changed[v] != 0; };
  for (StepPlan& s : made->steps) {
    const Step& step = program.steps()[s.step];
    const Node& node = program.graph().node(step.node);
    if (s.dynamic || step.kernel->allocates_outputs()) continue;
    if (std::none_of(node.inputs.begin(), node.inputs.end(), differs) &&
        std::none_of(node.outputs.begin(), node.outputs.end(), differs)) {
      continue;
    }
    if (!has_expected_shapes(program, *made, s)) return nullptr;
    const std::size_t bytes = resolve_step(program, *made, s);
    if ((bytes == 0) != (s.workspace_bytes == 0) || with_slack(bytes) != with_slack(s.workspace_bytes)) return nullptr;
    s.workspace_bytes = bytes;
  }
  return made;
}

}  // namespace sdx::plan
