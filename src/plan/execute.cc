#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/memory.h"
#include "base/poison.h"
#include "base/system/interruption.h"
#include "ops/check_values.h"
#include "ops/last_use.h"
#include "ops/op.h"
#include "plan/frame.h"
#include "plan/program.h"
#include "tensor/own.h"
#include "tensor/poison.h"

namespace sdx::plan {
namespace {

// Deeper nesting than any real model: a subgraph call takes some kilobytes of stack.
constexpr int kMaxDepth = 200;
// Frames (and with them shapes and pointers, not memory blocks) kept per plan for concurrent runs.
constexpr std::size_t kMaxFrames = 16;

std::size_t count_of(const std::vector<ValueId>& list, ValueId v) {
  return static_cast<std::size_t>(std::count(list.begin(), list.end(), v));
}

std::uint64_t bytes_of(DataType dtype, const Shape& shape) {
  return dtype == DataType::string ? 0 : byte_size(dtype, element_count(shape));
}

// `value`: its state after the step. A constant that a kernel has packed is gone; its type remains.
ProfileEvent::TensorFacts facts_of(const Value& value, const ValueInfo& info) {
  const bool is_constant = info.producer == kNoNode && !info.is_input;
  if (value.is_tensor() && value.tensor().dtype() != DataType::undefined) {
    const Tensor& t = value.tensor();
    return {t.dtype(), t.shape(), bytes_of(t.dtype(), t.shape()), is_constant};
  }
  if (!is_constant || !info.type.is_tensor() || !info.type.shape || !all_const(*info.type.shape)) return {};
  const Shape shape = to_shape(*info.type.shape);
  return {info.type.elem, shape, bytes_of(info.type.elem, shape), is_constant};
}

}  // namespace

// One run of one program.
class Execution : public ops::RunServices, public ops::LastUses {
 public:
  Execution(const Program& program, const Plan& plan, Frame& frame, RunEnv& env)
      : program_(program), plan_(plan), frame_(frame), env_(env) {}

  void run_steps();

  std::vector<Value> run_subgraph(const Node& node, std::size_t index, std::vector<Value> formal_inputs) override {
    const Subgraph& sub = node.subgraphs.at(index);
    for (const ValueId v : sub.captures) formal_inputs.push_back(captured(node, v));
    if (env_.depth >= kMaxDepth) fail(ErrorCode::runtime_failure, "subgraphs are nested more than {} deep", kMaxDepth);
    ++env_.depth;
    struct Leave {
      int& depth;
      ~Leave() { --depth; }
    } leave{env_.depth};
    return program_.children(current_->step)[index]->run(std::move(formal_inputs), env_);
  }
  const StopCondition& stop() const override { return env_.stop; }
  Value* last_use(const Value* input) override;
  std::uint64_t next_seed() override { return env_.seed != nullptr ? env_.seed->fetch_add(0x9E3779B97F4A7C15ULL) : 0; }

 private:
  Value captured(const Node& node, ValueId v);
  bool is_released(ValueId v) const { return count_of(current_->release, v) != 0; }
  void record(const StepPlan& s, std::int64_t start);
  void run_step(std::size_t index);
  void run_static(const StepPlan& s, const Kernel& kernel, std::span<const Value* const> in, std::span<Value* const> out);
  void run_dynamic(const StepPlan& s, const Kernel& kernel, std::span<const Value* const> in, std::span<Value* const> out);
  void run_allocating(const Kernel& kernel, const KernelContext& context, const Node& node);
  void keep_place(ValueId v, const void* planned, std::shared_ptr<const void> owner);
  void poison_before(const StepPlan& s, std::span<const Value* const> in, std::span<Value* const> out) const;
  bool settle_outputs(const Node& node, const ops::OpDef& def, std::span<const Value* const> in, std::span<Value* const> out,
                      std::vector<Type>& in_types, std::vector<Type>& out_types);
  void check_shapes(const Node& node) const;
  bool types_are_expected(const Node& node, std::span<const Value* const> in) const;
  void run_reference(const Node& node, const ops::OpDef& def, std::span<const Value* const> in, std::span<Value* const> out);

  const Program& program_;
  const Plan& plan_;
  Frame& frame_;
  RunEnv& env_;
  const StepPlan* current_ = nullptr;
  std::vector<std::pair<const void*, std::shared_ptr<const void>>> planned_;  // of the current step's outputs, and who keeps it
};

// A branch runs once, so it may change a sequence that nothing reads after it.
Value Execution::captured(const Node& node, ValueId v) {
  Value& value = frame_.values[v];
  const bool once = node.op_type == "If" && node.domain.empty() && value.is_sequence();
  return once && is_released(v) && count_of(node.inputs, v) == 0 ? std::exchange(value, Value()) : value;
}

// A node may read a value more than once, also from within its subgraphs.
Value* Execution::last_use(const Value* input) {
  const auto at =
      std::find_if(current_->release.begin(), current_->release.end(), [&](ValueId v) { return &frame_.values[v] == input; });
  if (at == current_->release.end()) return nullptr;
  const Node& node = program_.graph().node(program_.steps()[current_->step].node);
  std::size_t uses = count_of(node.inputs, *at);
  for (const Subgraph& s : node.subgraphs) uses += count_of(s.captures, *at);
  return uses == 1 ? &frame_.values[*at] : nullptr;
}

void Execution::run_steps() {
  for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
    env_.stop.check();
    check_interruption();
    const StepPlan& s = plan_.steps[i];
    current_ = &s;
    env_.provider.store(&program_.steps()[s.step].provider, std::memory_order_relaxed);
    const std::int64_t start = env_.profiler != nullptr ? env_.profiler->now() : 0;
    try {
      run_step(i);
    } catch (Error& e) {
      const Node& node = program_.graph().node(program_.steps()[s.step].node);
      std::string types;
      for (const ValueId v : node.inputs) {
        types += (types.empty() ? "" : ", ") + (v == kNoValue ? std::string("_") : frame_.values[v].type_string());
      }
      e.add_context("in " + program_.graph().describe(program_.steps()[s.step].node) + " with inputs " + types);
      throw;
    }
    if (env_.profiler != nullptr) record(s, start);
    for (const ValueId v : s.release) frame_.values[v] = Value();
    for (const ValueId v : s.dead) poison(frame_.values[v].tensor());
  }
}

void Execution::record(const StepPlan& s, std::int64_t start) {
  ProfileEvent event;
  event.duration_ns = env_.profiler->now() - start;
  const Step& step = program_.steps()[s.step];
  const Graph& graph = program_.graph();
  const Node& node = graph.node(step.node);
  const bool nameless = node.name.empty() && !node.outputs.empty() && node.outputs[0] != kNoValue;
  event.name = nameless ? graph.value(node.outputs[0]).name : node.name;
  event.op = node.op_type;
  event.kernel = step.kernel->name();
  event.provider = step.provider;
  event.start_ns = start;
  event.thread = std::hash<std::thread::id>{}(std::this_thread::get_id());
  event.run = env_.run;
  const auto add = [&](const std::vector<ValueId>& values, std::vector<ProfileEvent::TensorFacts>& to) {
    for (const ValueId v : values) {
      to.emplace_back();
      if (v != kNoValue) to.back() = facts_of(frame_.values[v], graph.value(v));
    }
  };
  add(node.inputs, event.inputs);
  add(node.outputs, event.outputs);
  env_.profiler->record(std::move(event));
}

void Execution::run_step(std::size_t index) {
  const StepPlan& s = plan_.steps[index];
  const Kernel& kernel = *program_.steps()[s.step].kernel;
  const std::size_t in_end = index + 1 < plan_.steps.size() ? frame_.input_at[index + 1] : frame_.inputs.size();
  const std::size_t out_end = index + 1 < plan_.steps.size() ? frame_.output_at[index + 1] : frame_.outputs.size();
  const std::span<const Value* const> in(frame_.inputs.data() + frame_.input_at[index], in_end - frame_.input_at[index]);
  const std::span<Value* const> out(frame_.outputs.data() + frame_.output_at[index], out_end - frame_.output_at[index]);
  if (!s.dynamic) return run_static(s, kernel, in, out);
  run_dynamic(s, kernel, in, out);
  // A result may lie in memory that later steps reuse: a subgraph or a kernel returned one of its inputs.
  for (Value* v : out) {
    if (v != nullptr && !owns_memory(*v)) *v = owned(*v);
  }
}

void Execution::run_static(const StepPlan& s, const Kernel& kernel, std::span<const Value* const> in,
                           std::span<Value* const> out) {
  KernelContext context;
  context.inputs = in;
  context.outputs = out;
  context.state = s.state.get();
  context.services = this;
  if (s.workspace_offset != SIZE_MAX) context.workspace = static_cast<std::byte*>(frame_.arena.memory.get()) + s.workspace_offset;
  if (poisoning()) poison_before(s, in, out);
  if (!kernel.allocates_outputs()) return kernel.run(context);
  run_allocating(kernel, context, program_.graph().node(program_.steps()[s.step].node));
}

// A kernel that allocates may write to the planned place, or replace the given tensors by its own.
void Execution::run_allocating(const Kernel& kernel, const KernelContext& context, const Node& node) {
  planned_.clear();
  for (const Value* v : context.outputs) {
    const Tensor* t = v != nullptr && v->is_tensor() ? &v->tensor() : nullptr;
    planned_.emplace_back(t != nullptr ? t->data() : nullptr, t != nullptr ? t->owner() : nullptr);
  }
  kernel.run(context);
  check_shapes(node);
  for (std::size_t i = 0; i < planned_.size(); ++i) {
    if (node.outputs[i] != kNoValue) keep_place(node.outputs[i], planned_[i].first, std::move(planned_[i].second));
  }
  planned_.clear();
}

// Views of a value, and values that lie in its memory, were bound before the run: a result that was made elsewhere goes where the
// plan says. One that leaves with the caller and shares its memory with none may stay where it is.
void Execution::keep_place(ValueId v, const void* planned, std::shared_ptr<const void> owner) {
  Tensor& made = frame_.values[v].tensor();
  const ValuePlan& p = plan_.values[v];
  if (made.data() == planned || p.place == Place::kept) return;
  if (p.place == Place::output && !p.shared && made.owner() != nullptr) return;
  void* to = const_cast<void*>(planned);
  if (made.bytes() != 0) std::memcpy(to, made.data(), made.bytes());
  made = Tensor::view_mutable(to, made.dtype(), made.shape(), std::const_pointer_cast<void>(std::move(owner)));
}

// Results that overlay an input, in whole or in part, hold what the kernel is to read.
void Execution::poison_before(const StepPlan& s, std::span<const Value* const> in, std::span<Value* const> out) const {
  const auto overlap = [](const Tensor& a, const Tensor& b) {
    const auto* from = static_cast<const std::byte*>(a.data());
    const auto* at = static_cast<const std::byte*>(b.data());
    return at < from + a.bytes() && from < at + b.bytes();
  };
  for (Value* v : out) {
    if (v == nullptr || !v->is_tensor() || !v->tensor().writable()) continue;
    const bool overlays = std::any_of(in.begin(), in.end(), [&](const Value* i) {
      return i != nullptr && i->is_tensor() && overlap(i->tensor(), v->tensor());
    });
    if (!overlays) poison(v->tensor());
  }
  if (s.workspace_bytes != 0) poison(static_cast<std::byte*>(frame_.arena.memory.get()) + s.workspace_offset, s.workspace_bytes);
}

// Later steps rely on the shapes that inference predicted.
void Execution::check_shapes(const Node& node) const {
  for (const ValueId v : node.outputs) {
    if (v == kNoValue) continue;
    const Type& type = *plan_.values[v].type;
    const Value& value = frame_.values[v];
    if (!value.is_tensor() || value.tensor().dtype() != type.elem || value.tensor().shape() != to_shape(*type.shape)) {
      fail(node.custom ? ErrorCode::runtime_failure : ErrorCode::internal,
           "inference predicted {} for '{}', the kernel produced {}", type.str(), program_.graph().value(v).name,
           value.type_string());
    }
  }
}

// Infers types from the actual inputs, and allocates the outputs if that determines all of them.
bool Execution::settle_outputs(const Node& node, const ops::OpDef& def, std::span<const Value* const> in,
                               std::span<Value* const> out, std::vector<Type>& in_types, std::vector<Type>& out_types) {
  if (!node.subgraphs.empty()) return false;
  in_types.resize(in.size());
  ops::InferContext context(node, nullptr);
  for (std::size_t i = 0; i < in.size(); ++i) {
    ops::InferContext::Input input;
    if (node.inputs[i] != kNoValue) {
      if (in[i] != nullptr && !in[i]->is_tensor()) return false;
      if (in[i] == nullptr) {
        in_types[i] = *plan_.values[node.inputs[i]].type;  // a constant that was packed away
      } else {
        in_types[i] = Type::tensor(in[i]->tensor().dtype(), to_sym(in[i]->tensor().shape()));
        if (in[i]->tensor().is_aligned()) input.value = &in[i]->tensor();
      }
      input.type = &in_types[i];
    }
    context.inputs.push_back(input);
  }
  context.outputs.resize(node.outputs.size());
  context.output_syms.resize(node.outputs.size());
  def.infer(context);
  out_types = std::move(context.outputs);
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i] != nullptr && (!out_types[i].has_static_shape() || out_types[i].elem == DataType::undefined)) return false;
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i] != nullptr) *out[i] = Tensor(out_types[i].elem, to_shape(*out_types[i].shape));
  }
  return true;
}

// Kernels were chosen for the element types that the graph knows. Others may come where it knows none and believes the file's
// declarations: from If with branches of two types, or from a body that changes the type of a state.
bool Execution::types_are_expected(const Node& node, std::span<const Value* const> in) const {
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in[i] == nullptr || !in[i]->is_tensor()) continue;
    const Type& type = program_.graph().value(node.inputs[i]).type;
    if (!type.is_tensor() || type.elem != in[i]->tensor().dtype()) return false;
  }
  return true;
}

// For inputs that the node's kernel was not chosen for. A constant that the kernel has packed is taken from the graph if it is
// kept there: without it, the operator could take an optional input for one that is left out.
void Execution::run_reference(const Node& node, const ops::OpDef& def, std::span<const Value* const> in,
                              std::span<Value* const> out) {
  std::vector<const Value*> all(in.begin(), in.end());
  std::vector<Value> packed(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in[i] != nullptr || node.inputs[i] == kNoValue) continue;
    const ValueInfo& info = program_.graph().value(node.inputs[i]);
    if (!info.constant) {
      fail(ErrorCode::runtime_failure,
           "the graph foresees other types or shapes here, and the constant '{}' was packed for those: correct what the model "
           "declares of its inputs, branches and loop bodies",
           info.name);
    }
    packed[i] = info.constant->is_aligned() ? *info.constant : info.constant->aligned();
    all[i] = &packed[i];
  }
  ops::OpContext reference(node, all, out, *this);
  def.run(reference);
}

void Execution::run_dynamic(const StepPlan& s, const Kernel& kernel, std::span<const Value* const> in,
                            std::span<Value* const> out) {
  for (Value* v : out) {
    if (v != nullptr) *v = Value();
  }
  KernelContext context;
  context.inputs = in;
  context.outputs = out;
  context.services = this;
  const Node& node = program_.graph().node(program_.steps()[s.step].node);
  const bool expected = types_are_expected(node, in);
  const ops::OpDef* def = expected && kernel.allocates_outputs() ? nullptr : ops::find(node);
  if (!expected && def != nullptr) ops::check_values(*def, in);
  if (kernel.allocates_outputs()) return kernel.run(context);
  if (def == nullptr) fail(ErrorCode::internal, "the shape of a result is not known when it is needed");
  std::vector<Type> in_types, out_types;
  if (!expected || !settle_outputs(node, *def, in, out, in_types, out_types)) return run_reference(node, *def, in, out);
  std::vector<const Type*> in_pointers, out_pointers;
  for (std::size_t i = 0; i < in.size(); ++i) in_pointers.push_back(node.inputs[i] == kNoValue ? nullptr : &in_types[i]);
  for (std::size_t i = 0; i < out.size(); ++i) out_pointers.push_back(out[i] == nullptr ? nullptr : &out_types[i]);
  ResolveContext resolve;
  resolve.inputs = in_pointers;
  resolve.outputs = out_pointers;
  if (!program_.expected_shapes().hold(s.step, in_pointers, out_pointers)) return run_reference(node, *def, in, out);
  const std::unique_ptr<KernelState> state = kernel.resolve(resolve);
  context.state = state.get();
  std::shared_ptr<void> workspace;
  if (resolve.workspace_bytes != 0) {
    workspace = allocate(resolve.workspace_bytes);
    context.workspace = workspace.get();
  }
  kernel.run(context);
}

namespace {

// Memory is allocated for many values at once, so an error names the node whose result is the largest of them.
ValueId largest_in_arena(const Plan& plan) {
  ValueId largest = kNoValue;
  std::size_t most = 0;
  for (ValueId v = 0; v < plan.values.size(); ++v) {
    const ValuePlan& p = plan.values[v];
    if (p.place != Place::arena) continue;
    const std::size_t bytes = byte_size(p.type->elem, element_count(to_shape(*p.type->shape)));
    if (bytes >= most) {
      largest = v;
      most = bytes;
    }
  }
  return largest;
}

// When shapes outgrow a block, larger ones are likely to follow, and pages of a new block cost most when they are touched for the
// first time (7 of 17 ms of text detection on pictures that grow). The new block is therefore half as large again. Untouched
// pages cost nothing.
ArenaBlock allocate_arena(std::size_t bytes, std::size_t outgrown) {
  const std::size_t generous = std::max(bytes, outgrown + outgrown / 2);
  if (generous > bytes) {
    try {
      return {allocate(generous), generous};
    } catch (const Error& e) {
      if (e.code() != ErrorCode::out_of_memory) throw;
    }
  }
  return {allocate(bytes), bytes};
}

void add_producer(Error& e, const Graph& graph, ValueId value) {
  const NodeId producer = value == kNoValue ? kNoNode : graph.value(value).producer;
  if (producer != kNoNode) e.add_context("for the result of " + graph.describe(producer));
}

}  // namespace

std::unique_ptr<Frame> Program::take_frame(const Plan& plan) const {
  std::unique_ptr<Frame> frame;
  {
    const std::lock_guard lock(plan.mutex);
    if (!plan.frames.empty()) {
      frame = std::move(plan.frames.back());
      plan.frames.pop_back();
    }
  }
  if (!frame) {
    frame = make_frame(*this, plan, constants_);
  }
  if (plan.arena_bytes != 0) {
    std::size_t outgrown = 0;
    {
      // The block that this frame used last, if it is free: then nothing needs to be bound again.
      const std::lock_guard lock(mutex_);
      auto best = arenas_.end();
      for (auto it = arenas_.begin(); it != arenas_.end(); ++it) {
        if (it->bytes < plan.arena_bytes) continue;
        if (best == arenas_.end() || it->memory.get() == frame->bound_to) best = it;
      }
      if (best != arenas_.end()) {
        frame->arena = std::move(*best);
        arenas_.erase(best);
      } else if (!arenas_.empty()) {
        outgrown = arenas_.back().bytes;
        arenas_.pop_back();  // too small for these shapes: make room for a larger one
      }
    }
    if (!frame->arena.memory) {
      frame->bound_to = nullptr;
      try {
        frame->arena = allocate_arena(plan.arena_bytes, outgrown);
      } catch (Error& e) {
        add_producer(e, graph_, largest_in_arena(plan));
        throw;
      }
    }
  }
  bind_arena(plan, *frame);
  if (poisoning() && plan.arena_bytes != 0) poison(frame->arena.memory.get(), plan.arena_bytes);
  return frame;
}

void Program::give_back(const Plan& plan, std::unique_ptr<Frame> frame, bool intact) const {
  for (ValueId v = 0; v < plan.values.size(); ++v) {
    const Place p = plan.values[v].place;
    if (p != Place::constant && p != Place::known && p != Place::arena) frame->values[v] = Value();
  }
  if (frame->arena.memory) {
    const std::lock_guard lock(mutex_);
    arenas_.push_back(std::move(frame->arena));
    frame->arena = {};
  }
  if (!intact) return;
  const std::lock_guard lock(plan.mutex);
  if (plan.frames.size() < kMaxFrames) plan.frames.push_back(std::move(frame));
}

namespace {

// The caller's memory for output i, if there is any.
const Tensor* bound_to(const std::vector<Value>& bound, std::size_t i) {
  return i < bound.size() && bound[i].is_tensor() ? &bound[i].tensor() : nullptr;
}

bool is_bound(const Graph& graph, const std::vector<Value>& bound, ValueId v) {
  for (std::size_t i = 0; i < bound.size(); ++i) {
    if (graph.outputs()[i] == v && bound_to(bound, i) != nullptr) return true;
  }
  return false;
}

void check_bound(const std::string& name, const Tensor& bound, DataType dtype, const Shape& shape) {
  if (bound.dtype() == dtype && bound.shape() == shape) return;
  fail(ErrorCode::invalid_argument, "output '{}' is {}{}, the tensor bound to it {}", name, sdx::name(dtype), to_string(shape),
       bound.type_string());
}

// Results that lie elsewhere: made by a vendor's provider, or views of another value.
Value into_bound(const std::string& name, const Value& made, const Tensor& bound) {
  if (!made.is_tensor())
    fail(ErrorCode::invalid_argument, "output '{}' is {}: no tensor can be bound to it", name, made.type_string());
  const Tensor& from = made.tensor();
  check_bound(name, bound, from.dtype(), from.shape());
  Tensor to = bound;
  if (from.data() != to.data() && from.bytes() != 0) std::memmove(to.mutable_data(), from.data(), from.bytes());
  return to;
}

}  // namespace

std::vector<Value> Program::run(std::vector<Value> inputs, RunEnv& env, const std::vector<bool>& wanted,
                                const std::vector<Value>& bound) const {
  if (inputs.size() != graph_.inputs().size()) {
    fail(ErrorCode::internal, "graph '{}' takes {} inputs, received {}", graph_.name, graph_.inputs().size(), inputs.size());
  }
  for (Value& v : inputs) {
    if (v.is_tensor() && !v.tensor().is_aligned()) v = v.tensor().aligned();
  }
  const std::shared_ptr<const Plan> plan = plan_for(inputs);
  std::unique_ptr<Frame> frame = take_frame(*plan);
  struct Return {
    const Program& program;
    const Plan& plan;
    std::unique_ptr<Frame>& frame;
    bool intact = false;  // a failed run may leave half-bound values behind: then only the memory block is kept
    ~Return() { program.give_back(plan, std::move(frame), intact); }
  } give_back_at_exit{*this, *plan, frame};

  for (std::size_t i = 0; i < inputs.size(); ++i) frame->values[graph_.inputs()[i]] = std::move(inputs[i]);
  for (const ValueId v : plan->fresh) {
    const Type& type = *plan->values[v].type;
    if (!bound.empty() && is_bound(graph_, bound, v)) continue;
    try {
      frame->values[v] = Tensor(type.elem, to_shape(*type.shape));
    } catch (Error& e) {
      add_producer(e, graph_, v);
      throw;
    }
  }
  for (std::size_t i = 0; i < bound.size(); ++i) {
    const Tensor* memory = bound_to(bound, i);
    const ValuePlan& p = plan->values[graph_.outputs()[i]];
    if (memory == nullptr || p.place != Place::output) continue;
    check_bound(graph_.output_names()[i], *memory, p.type->elem, to_shape(*p.type->shape));
    frame->values[graph_.outputs()[i]] = *memory;
  }
  for (const ValueId v : plan->views) {
    const ValuePlan& p = plan->values[v];
    Tensor& root = frame->values[p.root].tensor();
    Shape shape = to_shape(*p.type->shape);
    if (root.writable()) {
      frame->values[v] =
          Tensor::view_mutable(root.mutable_data(), p.type->elem, std::move(shape), std::const_pointer_cast<void>(root.owner()));
    } else {
      frame->values[v] = Tensor::view(root.data(), p.type->elem, std::move(shape), root.owner());
    }
  }
  Execution(*this, *plan, *frame, env).run_steps();
  std::vector<Value> outputs(graph_.outputs().size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Value& made = frame->values[graph_.outputs()[i]];
    if (const Tensor* memory = bound_to(bound, i)) {
      outputs[i] = into_bound(graph_.output_names()[i], made, *memory);
    } else if (wanted.empty() || wanted[i]) {
      outputs[i] = owned(made);
    }
  }
  give_back_at_exit.intact = true;
  return outputs;
}

}  // namespace sdx::plan
