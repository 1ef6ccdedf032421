#include "plan/frame.h"

#include <algorithm>
#include <cstddef>

#include "plan/program.h"

namespace sdx::plan {
namespace {

void bind_known(const Plan& plan, Frame& frame) {
  for (const auto& [v, tensor] : plan.known) {
    if (plan.values[v].place == Place::known) frame.values[v] = tensor;
  }
}

void collect_pointers(const Program& program, const Plan& plan, Frame& frame) {
  for (const StepPlan& s : plan.steps) {
    const Node& node = program.graph().node(program.steps()[s.step].node);
    frame.input_at.push_back(static_cast<std::uint32_t>(frame.inputs.size()));
    frame.output_at.push_back(static_cast<std::uint32_t>(frame.outputs.size()));
    const Kernel& kernel = *program.steps()[s.step].kernel;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId v = node.inputs[i];
      // A constant that is packed may have been dropped, which leaves nothing that makes the value.
      const bool unmade = v != kNoValue && (plan.values[v].place == Place::constant || plan.values[v].place == Place::absent);
      const bool gone = unmade && !kernel.uses_input(i);
      frame.inputs.push_back(v == kNoValue || gone ? nullptr : &frame.values[v]);
    }
    for (const ValueId v : node.outputs) frame.outputs.push_back(v == kNoValue ? nullptr : &frame.values[v]);
  }
}

bool same_memory(const Plan& a, const Plan& b) {
  const auto same_value = [](const ValuePlan& x, const ValuePlan& y) { return x.place == y.place && x.offset == y.offset; };
  const auto same_step = [](const StepPlan& x, const StepPlan& y) { return x.step == y.step; };
  return std::equal(a.values.begin(), a.values.end(), b.values.begin(), b.values.end(), same_value) &&
         std::equal(a.steps.begin(), a.steps.end(), b.steps.begin(), b.steps.end(), same_step);
}

}  // namespace

std::unique_ptr<Frame> make_frame(const Program& program, const Plan& plan, const std::vector<Value>& constants) {
  auto frame = std::make_unique<Frame>();
  frame->values.resize(plan.values.size());
  for (ValueId v = 0; v < plan.values.size(); ++v) {
    if (plan.values[v].place == Place::constant) frame->values[v] = constants[v];
  }
  bind_known(plan, *frame);
  collect_pointers(program, plan, *frame);
  return frame;
}

void bind_arena(const Plan& plan, Frame& frame) {
  auto* base = static_cast<std::byte*>(frame.arena.memory.get());
  const bool same_block = base != nullptr && frame.bound_to == base;
  if (same_block && frame.bound_whole) return;
  for (ValueId v = 0; v < plan.values.size(); ++v) {
    const ValuePlan& p = plan.values[v];
    if (p.place != Place::arena || (same_block && !frame.values[v].empty())) continue;
    frame.values[v] = Tensor::view_mutable(base + p.offset, p.type->elem, to_shape(*p.type->shape));
  }
  frame.bound_to = base;
  frame.bound_whole = true;
}

void hand_on_frame(const Plan& from, const Plan& to, const std::vector<char>& changed) {
  if (!same_memory(from, to)) return;
  std::unique_ptr<Frame> frame;
  {
    const std::lock_guard lock(from.mutex);
    if (from.frames.empty()) return;
    frame = std::move(from.frames.back());
    from.frames.pop_back();
  }
  for (ValueId v = 0; v < to.values.size(); ++v) {
    if (changed[v] == 0 || to.values[v].place != Place::arena) continue;
    frame->values[v] = Value();
    frame->bound_whole = false;
  }
  bind_known(to, *frame);
  to.frames.push_back(std::move(frame));
}

}  // namespace sdx::plan
