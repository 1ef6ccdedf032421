#include <algorithm>
#include <utility>

#include "base/arena/arena.h"
#include "base/poison.h"
#include "ops/infer.h"
#include "plan/adapt_plan.h"
#include "plan/frame.h"
#include "plan/plan.h"
#include "plan/program.h"

namespace sdx::plan {
namespace {

constexpr std::uint32_t kForever = 0xFFFFFFFF;
constexpr std::uint32_t kNever = 0xFFFFFFFE;
constexpr std::size_t kVector = 32;  // parts of a buffer begin where vectors do

ValueFacts facts_of(const Type& type) {
  ValueFacts facts;
  facts.type = std::make_shared<const Type>(type);
  facts.fixed = has_fixed_size(type);
  if (facts.fixed) facts.bytes = fixed_size(type);
  return facts;
}

}  // namespace

bool has_fixed_inputs(const Graph& graph) {
  return std::all_of(graph.inputs().begin(), graph.inputs().end(),
                     [&](ValueId v) { return graph.value(v).type.has_static_shape(); });
}

class PlanBuilder {
 public:
  // `base`: the previous plan, or null; `changed`: the values whose types differ from it.
  PlanBuilder(const Program& program, const std::vector<ValueFacts>& facts, const Plan* base, const std::vector<char>& changed)
      : program_(program), graph_(program.graph()), facts_(facts), base_(base), changed_(changed) {
    plan_ = std::make_shared<Plan>();
  }

  std::shared_ptr<Plan> build(const ops::InferResult& inferred);

 private:
  void place_given(const ops::InferResult& inferred);
  void choose_steps();
  void place_results();
  void find_last_uses();
  void share_input(std::uint32_t index);
  bool merge_in_place(std::uint32_t index);
  struct Stretches {
    ValueId whole;
    std::size_t bytes;
    std::size_t inputs;
  };
  void join_inputs(std::uint32_t index);
  Stretches stretches_from(const Node& node, std::size_t i);
  bool takes_over(StepPlan& s, BufferRequest& workspace, std::size_t& at) const;
  void resolve_kernels();
  void lay_out();
  void place_buffers(std::vector<BufferRequest>& requests);
  void find_releases();
  std::size_t bytes_of(ValueId v) const { return facts_[v].bytes; }
  template <class F>
  void for_each_use(const Node& node, F&& fn) const {
    for (const ValueId v : node.inputs) {
      if (v != kNoValue) fn(v);
    }
    for (const Subgraph& s : node.subgraphs) {
      for (const ValueId v : s.captures) fn(v);
    }
  }
  const Node& node_of(const StepPlan& s) const { return graph_.node(program_.steps()[s.step].node); }
  const Kernel& kernel_of(const StepPlan& s) const { return *program_.steps()[s.step].kernel; }

  const Program& program_;
  const Graph& graph_;
  const std::vector<ValueFacts>& facts_;
  const Plan* base_;
  const std::vector<char>& changed_;
  std::shared_ptr<Plan> plan_;
  ValueId root(ValueId v) {
    while (root_[v] != v) v = root_[v] = root_[root_[v]];
    return v;
  }

  // Of a root.
  ValueId outermost(ValueId v) {
    while (parts_[v].whole != kNoValue) v = root(parts_[v].whole);
    return v;
  }

  std::vector<ValueId> root_;                // towards the value whose buffer this one uses: see root()
  std::vector<std::uint32_t> first_, last_;  // by root: index into plan_->steps
  std::vector<std::uint32_t> lent_;          // by root: the first step whose results may share this memory
  std::vector<BufferRequest> workspaces_;    // parallel to plan_->steps

  // By root, the value in whose buffer this one lies, and its distance from the beginning. A stretch of an input is a part of a
  // value written before it; an input of a join is written into a value that comes later.
  struct Part {
    ValueId whole = kNoValue;
    std::size_t offset = 0;
    bool stretch = false;
    bool holds = false;  // stretches lie in this one
  };
  std::vector<Part> parts_;
};

void PlanBuilder::place_given(const ops::InferResult& inferred) {
  plan_->values.resize(graph_.values().size());
  root_.resize(graph_.values().size());
  for (ValueId v = 0; v < graph_.values().size(); ++v) {
    ValuePlan& p = plan_->values[v];
    root_[v] = v;
    p.type = facts_[v].type;
    if (graph_.value(v).is_input) {
      p.place = Place::input;
    } else if (graph_.value(v).constant || !program_.constants_[v].empty()) {
      p.place = Place::constant;
    }
  }
  for (const auto& [v, tensor] : inferred.values) {
    if (plan_->values[v].place != Place::absent) continue;
    plan_->values[v].place = Place::known;
    plan_->known.emplace_back(v, tensor);
  }
}

// Steps whose results are all known already do not run.
void PlanBuilder::choose_steps() {
  for (std::uint32_t i = 0; i < program_.steps().size(); ++i) {
    const Node& node = graph_.node(program_.steps()[i].node);
    const bool known = !node.outputs.empty() && std::all_of(node.outputs.begin(), node.outputs.end(), [&](ValueId v) {
      return v == kNoValue || plan_->values[v].place == Place::known;
    });
    if (known) continue;
    StepPlan s;
    s.step = i;
    plan_->steps.push_back(std::move(s));
  }
}

void PlanBuilder::place_results() {
  for (StepPlan& s : plan_->steps) {
    const Node& node = node_of(s);
    const Kernel& kernel = kernel_of(s);
    for (const ValueId v : node.inputs) {
      if (v == kNoValue) continue;
      const ValuePlan& p = plan_->values[v];
      s.dynamic = s.dynamic || p.place == Place::dynamic || (p.place == Place::input && !facts_[v].fixed);
      // The kernel was chosen for another type: the run decides what to do about it.
      s.dynamic = s.dynamic || (p.type->is_tensor() && p.type->elem != graph_.value(v).type.elem);
    }
    for (const ValueId v : node.outputs) {
      if (v != kNoValue) s.dynamic = s.dynamic || !facts_[v].fixed;
    }
    // Or for other shapes.
    s.dynamic = s.dynamic || !has_expected_shapes(program_, *plan_, s);
    // Results of subgraph calls are made by the subgraph.
    s.dynamic = s.dynamic || !node.subgraphs.empty();
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNoValue) continue;
      plan_->values[node.outputs[i]].place = s.dynamic ? Place::dynamic : kernel.keeps_output(i) ? Place::kept : Place::arena;
    }
    const int source = kernel.view_of();
    if (s.dynamic || source < 0 || node.outputs.empty() || node.outputs[0] == kNoValue) continue;
    const ValueId from = node.inputs[static_cast<std::size_t>(source)];
    const Place place = plan_->values[from].place;
    if (place == Place::known || place == Place::constant || place == Place::kept) continue;
    const ValueId out = node.outputs[0];
    if (bytes_of(out) != bytes_of(from)) continue;
    root_[out] = root(from);
    plan_->values[out].place = Place::view;
  }
  // Views need no step.
  std::erase_if(plan_->steps, [&](const StepPlan& s) {
    const Node& node = node_of(s);
    return !s.dynamic && !node.outputs.empty() && node.outputs[0] != kNoValue &&
           plan_->values[node.outputs[0]].place == Place::view;
  });
}

void PlanBuilder::find_last_uses() {
  first_.assign(graph_.values().size(), kNever);
  last_.assign(graph_.values().size(), 0);
  lent_.assign(graph_.values().size(), kNever);
  for (std::uint32_t i = 0; i < plan_->steps.size(); ++i) {
    const StepPlan& s = plan_->steps[i];
    const Node& node = node_of(s);
    // A step that allocates its own results may return one of its inputs: subgraphs do.
    const bool lends = s.dynamic || kernel_of(s).allocates_outputs();
    for_each_use(node, [&](ValueId v) {
      last_[root(v)] = std::max(last_[root(v)], i);
      if (lends) lent_[root(v)] = std::min(lent_[root(v)], i);
    });
    for (const ValueId v : node.outputs) {
      if (v == kNoValue) continue;
      first_[root(v)] = std::min(first_[root(v)], i);
      last_[root(v)] = std::max(last_[root(v)], i);
    }
  }
  for (const ValueId v : graph_.outputs()) last_[root(v)] = kForever;
}

// Lets outputs that are stretches of input 0 lie in its memory, which then stays until none of them is needed. The memory of
// small stretches is not worth that.
void PlanBuilder::share_input(std::uint32_t index) {
  const StepPlan& s = plan_->steps[index];
  const Node& node = node_of(s);
  if (s.dynamic || node.inputs.empty() || node.inputs[0] == kNoValue) return;
  const ValueId whole = root(node.inputs[0]);
  if (plan_->values[whole].place != Place::arena || last_[whole] == kForever) return;
  const StepTypes types(node, *plan_);
  std::size_t bytes = 0;
  for (const ValueId v : node.outputs) bytes += v == kNoValue ? 0 : bytes_of(v);
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const ValueId v = node.outputs[i];
    if (v == kNoValue || plan_->values[v].place != Place::arena || last_[v] == kForever || bytes_of(v) == 0) continue;
    const std::int64_t begin = kernel_of(s).begins_at(types.context, i);
    if (begin < 0 || 2 * bytes < bytes_of(whole)) return;
    const std::size_t offset = byte_size(plan_->values[v].type->elem, begin);
    if (offset % kVector != 0) continue;
    parts_[v] = {whole, offset, true, parts_[v].holds};
    parts_[whole].holds = true;
    for (ValueId w = whole; w != kNoValue; w = parts_[w].whole) {
      last_[w] = std::max(last_[w], last_[v]);
      lent_[w] = std::min(lent_[w], lent_[v]);
    }
  }
}

// Lets the output of step `index` take over the buffer of an input that dies there.
bool PlanBuilder::merge_in_place(std::uint32_t index) {
  const StepPlan& s = plan_->steps[index];
  const int source = kernel_of(s).in_place();
  if (s.dynamic || source < 0) return false;
  const Node& node = node_of(s);
  const ValueId out = node.outputs[0];
  const ValueId in = node.inputs[static_cast<std::size_t>(source)];
  if (out == kNoValue || in == kNoValue || root_[out] != out || plan_->values[out].place != Place::arena) return false;
  const ValueId owner = root(in);
  if (plan_->values[owner].place != Place::arena || last_[owner] != index || bytes_of(out) != bytes_of(in)) return false;
  // Other values may need the memory around a stretch, and stretches need the memory that they lie in.
  if (parts_[owner].whole != kNoValue) return false;
  if ((parts_[owner].holds || parts_[out].holds) && last_[out] == kForever) return false;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId other = node.inputs[i];
    if (other != kNoValue && other != in && outermost(root(other)) == owner) return false;
  }
  // Memory that the caller receives has an owner, so a result that shares it is not copied and would be overwritten here.
  // What shares the arena was copied when it was made (Execution::run_dynamic).
  if (lent_[owner] < index && last_[out] == kForever) return false;
  root_[out] = owner;
  plan_->values[out].place = Place::view;
  last_[owner] = std::max(last_[owner], last_[out]);
  lent_[owner] = std::min(lent_[owner], lent_[out]);
  parts_[owner].holds = parts_[owner].holds || parts_[out].holds;
  return true;
}

// Places inputs that die where they are joined inside the result from the beginning, so that nothing is copied.
void PlanBuilder::join_inputs(std::uint32_t index) {
  const StepPlan& s = plan_->steps[index];
  const int axis = kernel_of(s).joins_along();
  if (s.dynamic || axis < 0) return;
  const Node& node = node_of(s);
  const ValueId out = node.outputs[0];
  if (out == kNoValue || root_[out] != out || plan_->values[out].place != Place::arena || last_[out] == kForever) return;
  const Shape shape = to_shape(*plan_->values[out].type->shape);
  for (std::size_t i = 0; i < static_cast<std::size_t>(axis); ++i) {
    if (shape[i] != 1) return;
  }
  std::size_t at = 0;
  for (std::size_t i = 0; i < node.inputs.size();) {
    const Stretches found = stretches_from(node, i);
    const ValueId owner = found.whole;
    const bool own = plan_->values[owner].place == Place::arena && parts_[owner].whole == kNoValue && last_[owner] == index;
    if (own && owner != out && at % kVector == 0 && bytes_of(owner) == found.bytes) {
      parts_[owner].whole = out;
      parts_[owner].offset = at;
      first_[out] = std::min(first_[out], first_[owner]);
    }
    at += found.bytes;
    i += found.inputs;
  }
}

// Input i, or, if it begins what several inputs are stretches of in their order, all of these.
PlanBuilder::Stretches PlanBuilder::stretches_from(const Node& node, std::size_t i) {
  const ValueId first = root(node.inputs[i]);
  const Stretches one{first, bytes_of(node.inputs[i]), 1};
  if (!parts_[first].stretch || parts_[first].offset != 0) return one;
  Stretches all{root(parts_[first].whole), 0, 0};
  for (; i < node.inputs.size(); ++i, ++all.inputs) {
    const Part& p = parts_[root(node.inputs[i])];
    if (!p.stretch || root(p.whole) != all.whole || p.offset != all.bytes) break;
    all.bytes += bytes_of(node.inputs[i]);
  }
  return all.bytes == bytes_of(all.whole) ? all : one;
}

// The state that the step has in the plan before, if its types are the same there. `at`: where to look on, since both plans have
// their steps in the program's order.
bool PlanBuilder::takes_over(StepPlan& s, BufferRequest& workspace, std::size_t& at) const {
  if (base_ == nullptr) return false;
  while (at < base_->steps.size() && base_->steps[at].step < s.step) ++at;
  if (at == base_->steps.size() || base_->steps[at].step != s.step || base_->steps[at].dynamic) return false;
  const Node& node = node_of(s);
  const auto changed = [&](ValueId v) { return v != kNoValue && changed_[v] != 0; };
  if (std::any_of(node.inputs.begin(), node.inputs.end(), changed)) return false;
  if (std::any_of(node.outputs.begin(), node.outputs.end(), changed)) return false;
  s.state = base_->steps[at].state;
  workspace.bytes = base_->steps[at].workspace_bytes;
  return true;
}

void PlanBuilder::resolve_kernels() {
  workspaces_.resize(plan_->steps.size());
  std::size_t at = 0;
  for (std::uint32_t i = 0; i < plan_->steps.size(); ++i) {
    StepPlan& s = plan_->steps[i];
    workspaces_[i].first = workspaces_[i].last = i;
    if (s.dynamic || kernel_of(s).allocates_outputs()) continue;
    if (!takes_over(s, workspaces_[i], at)) workspaces_[i].bytes = resolve_step(program_, *plan_, s);
  }
}

void PlanBuilder::place_buffers(std::vector<BufferRequest>& requests) {
  if (!has_fixed_inputs(graph_)) {
    for (BufferRequest& r : requests) r.bytes = with_slack(r.bytes);
  }
  if (base_ != nullptr) {
    const auto same = [](const BufferRequest& a, const BufferRequest& b) {
      return a.bytes == b.bytes && a.first == b.first && a.last == b.last;
    };
    if (std::equal(requests.begin(), requests.end(), base_->buffers.begin(), base_->buffers.end(), same)) {
      requests = base_->buffers;
      plan_->arena_bytes = base_->arena_bytes;
      return;
    }
  }
  plan_->arena_bytes = assign_offsets(requests);
}

void PlanBuilder::lay_out() {
  std::vector<BufferRequest> requests;
  std::vector<ValueId> owners;
  for (ValueId v = 0; v < plan_->values.size(); ++v) {
    ValuePlan& p = plan_->values[v];
    if (p.place != Place::arena || root_[v] != v) continue;
    if (last_[v] == kForever) {
      p.place = Place::output;
      plan_->fresh.push_back(v);
      continue;
    }
    if (first_[v] == kNever || parts_[v].whole != kNoValue) continue;
    requests.push_back({bytes_of(v), first_[v], last_[v], 0});
    owners.push_back(v);
  }
  const std::size_t buffers = requests.size();
  std::vector<std::uint32_t> workspace_steps;
  for (std::uint32_t i = 0; i < workspaces_.size(); ++i) {
    if (workspaces_[i].bytes == 0) continue;
    requests.push_back(workspaces_[i]);
    workspace_steps.push_back(i);
  }
  place_buffers(requests);
  for (std::size_t i = 0; i < buffers; ++i) plan_->values[owners[i]].offset = requests[i].offset;
  for (ValueId v = 0; v < plan_->values.size(); ++v) {
    if (parts_[v].whole == kNoValue) continue;
    plan_->joins = true;
    ValueId whole = v;
    std::size_t offset = 0;
    for (; parts_[whole].whole != kNoValue; whole = root(parts_[whole].whole)) offset += parts_[whole].offset;
    plan_->values[v].offset = plan_->values[whole].offset + offset;
  }
  for (std::size_t i = 0; i < workspace_steps.size(); ++i) {
    StepPlan& s = plan_->steps[workspace_steps[i]];
    s.workspace_offset = requests[buffers + i].offset;
    s.workspace_bytes = workspaces_[workspace_steps[i]].bytes;
  }
  plan_->buffers = std::move(requests);
  // Views of arena memory have a fixed address too; the others are bound for each run.
  for (const Node& node : graph_.nodes()) {
    for (const ValueId v : node.outputs) {
      if (v == kNoValue || plan_->values[v].place != Place::view) continue;
      ValuePlan& p = plan_->values[v];
      p.root = root(v);
      const ValuePlan& root = plan_->values[p.root];
      if (root.place == Place::arena) {
        p.place = Place::arena;
        p.offset = root.offset;
      } else {
        plan_->values[p.root].shared = true;
        plan_->views.push_back(v);
      }
    }
  }
}

void PlanBuilder::find_releases() {
  for (ValueId v = 0; v < plan_->values.size(); ++v) {
    const Place place = plan_->values[v].place;
    // Inputs matter only if they are sequences: a tensor's memory may have views, but a step that changes a sequence must be its
    // only holder.
    const bool given = place == Place::input && plan_->values[v].type->kind == Type::Kind::sequence;
    if ((place != Place::dynamic && place != Place::kept && !given) || last_[v] >= plan_->steps.size()) continue;
    plan_->steps[last_[v]].release.push_back(v);
  }
  if (!poisoning()) return;
  for (ValueId v = 0; v < plan_->values.size(); ++v) {
    const bool own = plan_->values[v].place == Place::arena && root_[v] == v && parts_[v].whole == kNoValue;
    if (own && first_[v] != kNever && last_[v] < plan_->steps.size()) plan_->steps[last_[v]].dead.push_back(v);
  }
}

std::shared_ptr<Plan> PlanBuilder::build(const ops::InferResult& inferred) {
  place_given(inferred);
  choose_steps();
  place_results();
  find_last_uses();
  parts_.resize(plan_->values.size());
  // Plans that follow one another with other shapes are made from each other, unless buffers lie in buffers.
  if (has_fixed_inputs(graph_)) {
    for (std::uint32_t i = 0; i < plan_->steps.size(); ++i) share_input(i);
  }
  for (std::uint32_t i = 0; i < plan_->steps.size(); ++i) merge_in_place(i);
  for (std::uint32_t i = 0; i < plan_->steps.size(); ++i) join_inputs(i);
  resolve_kernels();
  lay_out();
  find_releases();
  return plan_;
}

std::shared_ptr<const Plan> Planner::plan(std::vector<std::int64_t> signature, const std::vector<Type>& inputs) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return Planner(program_).plan(std::move(signature), inputs);
  if (!inference_) inference_ = std::make_unique<ops::Inference>(program_.graph());
  const std::shared_ptr<const Plan> base = std::exchange(last_, nullptr);
  const ops::InferResult& inferred = inference_->update(inputs);
  const std::vector<char>& changed = inference_->changed();
  facts_.resize(inferred.types.size());
  for (ValueId v = 0; v < facts_.size(); ++v) {
    if (changed[v] != 0) facts_[v] = facts_of(inferred.types[v]);
  }
  std::shared_ptr<Plan> made = base ? adapt_plan(program_, *base, facts_, changed, inferred) : nullptr;
  if (!made) made = PlanBuilder(program_, facts_, base.get(), changed).build(inferred);
  made->signature = std::move(signature);
  if (base) hand_on_frame(*base, *made, changed);
  if (has_fixed_inputs(program_.graph())) {  // there will be no other plan
    inference_.reset();
    facts_ = {};
  } else {
    last_ = made;
  }
  return made;
}

}  // namespace sdx::plan
