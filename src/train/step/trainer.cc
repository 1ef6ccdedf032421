#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "session/graphs/compile.h"
#include "train/step/artifact_files.h"
#include "train/step/in_place.h"
#include "train/step/module_impl.h"
#include "train/step/rule.h"

namespace sdx::train {
namespace {

constexpr const char* kRandomState = "sardonyx_random_state";

// Smaller parameters are updated together, at the end: their gradients take no memory worth freeing. So are all where a step
// that is not finite is refused, for then all gradients are looked at before the first parameter changes.
constexpr std::int64_t kLeastAlone = 16'384;  // elements

bool is_finite(const Tensor& number) { return std::isfinite(number.values<float>()[0]); }

// The use of gradients in a program.
enum class Batch : std::uint8_t {
  alone,  // the update, of this batch's gradients
  first,  // adds them up
  last,   // adds them up, and the update
};

}  // namespace

struct Trainer::Impl {
  Impl(const std::filesystem::path& artifacts, CheckpointState& state, const TrainerOptions& given);

  float train_step(std::span<const Tensor> inputs);
  float rate() const;
  OptimizerState& group() const { return module.state->optimizers[kGroup]; }

  TrainerOptions options;
  OptimizerOptions optimizer;
  Module::Impl module;
  std::vector<std::size_t> trained;  // numbers in the state
  std::optional<float> fixed_rate;
  std::vector<Tensor> last_outputs;
  std::int64_t waiting = 0;  // batches since the last update

 private:
  bool needs_norm() const { return options.refuse_non_finite || optimizer.clip_norm > 0; }
  std::unique_ptr<plan::Program> compile(std::span<const Tensor> inputs, Batch batch) const;
  void add_batch_nodes(Graph& graph, Batch batch) const;
  void add_extra_values(Batch batch, std::vector<Value>& values);
  void check_finite(const Tensor& loss, const Value* norm) const;
  void clear_sums();
};

Trainer::Impl::Impl(const std::filesystem::path& artifacts, CheckpointState& state, const TrainerOptions& given)
    : options(given), module(training_file(artifacts), state, eval_file(artifacts), given) {
  if (options.accumulate < 1) fail(ErrorCode::invalid_argument, "accumulate is {}; expected at least 1", options.accumulate);
  if (!std::isfinite(options.learning_rate)) {
    fail(ErrorCode::invalid_argument, "the learning rate is {}; it must be a finite number", options.learning_rate);
  }
  if (options.optimizer) {
    optimizer = *options.optimizer;
    check_options(optimizer);
  } else if (const auto file = optimizer_file(artifacts); !file.empty()) {
    optimizer = read_optimizer_model(file);
  }
  for (const std::size_t i : module.training.trained) trained.push_back(module.training.parameters[i]);
  own_parameters(module.training, state);
  prepare_moments(state, trained, optimizer).initial_learning_rate = options.learning_rate;
  const auto random = state.properties.find(kRandomState);
  if (random != state.properties.end() && std::holds_alternative<std::int64_t>(random->second)) {
    module.runner.set_random_state(static_cast<std::uint64_t>(std::get<std::int64_t>(random->second)));
  }
}

float Trainer::Impl::rate() const {
  if (fixed_rate) return *fixed_rate;
  return static_cast<float>(static_cast<double>(options.learning_rate) * factor_at(options.schedule, group().step));
}

namespace {

// The loss, where a step that is not finite is refused.
ValueId guard_of(const Graph& graph) {
  const Type& t = graph.value(graph.outputs()[0]).type;
  if (t.elem == DataType::float32 && t.has_static_shape() && element_count(to_shape(*t.shape)) == 1) return graph.outputs()[0];
  fail(ErrorCode::not_implemented, "the loss '{}' is {}; expected a float32 scalar", graph.output_names()[0], t.str());
}

ValueId extra_input(Graph& graph, const std::string& name, DataType type, const Shape& shape) {
  return graph.add_input(name, Type::tensor(type, to_sym(shape)));
}

// One update for each large parameter, and one for all others.
std::vector<InPlaceNode> update_nodes(ValueId guard, ValueId rule, const std::vector<UpdateValues>& values,
                                      const std::vector<std::int64_t>& sizes, const std::vector<std::size_t>& after) {
  std::vector<InPlaceNode> nodes;
  std::vector<UpdateValues> together;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (sizes[i] < kLeastAlone) {
      together.push_back(values[i]);
      continue;
    }
    nodes.push_back(update_node(guard, rule, {values[i]}, 0));
    nodes.back().after = after[i];
  }
  if (together.empty()) return nodes;
  nodes.push_back(update_node(guard, rule, together, 0));
  nodes.back().last = true;
  return nodes;
}

}  // namespace

// The gradients are the graph's outputs behind the user's. Inputs are added in the order of add_extra_values().
void Trainer::Impl::add_batch_nodes(Graph& graph, Batch batch) const {
  const TrainingGraph& model = module.training;
  const std::size_t first = model.outputs.size(), moments = batch == Batch::first ? 0 : moments_of(optimizer);
  const ValueId guard = needs_norm() ? guard_of(graph) : kNoValue;
  const ValueId rule = batch == Batch::first ? kNoValue : extra_input(graph, "rule", DataType::uint8, {sizeof(cpu::UpdateRule)});
  std::vector<InPlaceNode> nodes;
  std::vector<UpdateValues> values;
  std::vector<std::int64_t> sizes;
  std::vector<std::size_t> after;
  for (std::size_t i = 0; i < trained.size(); ++i) {
    values.push_back({graph.inputs()[model.inputs.size() + model.trained[i]], graph.outputs()[first + i], kNoValue, kNoValue});
  }
  own_gradients(graph, values);
  for (std::size_t i = 0; i < trained.size(); ++i) {
    const Parameter& p = module.state->parameters[trained[i]];
    UpdateValues& u = values[i];
    if (moments > 0) u.m = extra_input(graph, p.name + ".m", DataType::float32, p.value.shape());
    if (moments > 1) u.v = extra_input(graph, p.name + ".v", DataType::float32, p.value.shape());
    after.push_back(SIZE_MAX);
    if (batch != Batch::alone) {
      const ValueId sum = extra_input(graph, p.name + ".accumulated", DataType::float32, p.value.shape());
      after.back() = nodes.size();
      nodes.push_back(accumulate_node(guard, u.gradient, sum));
      u.gradient = sum;
    }
    sizes.push_back(p.value.size());
  }
  for (std::size_t i = trained.size(); i-- > 0;) graph.remove_output(first + i);
  if (batch != Batch::first && needs_norm()) {
    // All gradients are known before the first parameter changes.
    std::vector<ValueId> gradients;
    for (const UpdateValues& u : values) gradients.push_back(u.gradient);
    const ValueId norm = graph.add_value("norm", Type::tensor(DataType::float32, {Dim(1)}));
    nodes.push_back(norm_node(guard, gradients, norm));
    nodes.back().last = true;
    graph.add_output(norm, "norm");
    nodes.push_back(update_node(norm, rule, values, optimizer.clip_norm));
    nodes.back().last = true;
  } else if (batch != Batch::first) {
    for (InPlaceNode& n : update_nodes(guard, rule, values, sizes, after)) nodes.push_back(std::move(n));
  }
  insert_in_place(graph, std::move(nodes));
}

std::unique_ptr<plan::Program> Trainer::Impl::compile(std::span<const Tensor> inputs, Batch batch) const {
  Graph graph = module.optimized(module.training, inputs);
  add_batch_nodes(graph, batch);
  return session::lower_for_cpu(std::move(graph));
}

void Trainer::Impl::add_extra_values(Batch batch, std::vector<Value>& values) {
  const std::size_t moments = batch == Batch::first ? 0 : moments_of(optimizer);
  OptimizerState& state = prepare_moments(*module.state, trained, optimizer);
  if (batch != Batch::first) {
    cpu::UpdateRule rule = rule_for(optimizer, rate(), state.step + 1);
    rule.clear = batch == Batch::last;
    Tensor bytes(DataType::uint8, {sizeof rule});
    std::memcpy(bytes.mutable_data(), &rule, sizeof rule);
    values.emplace_back(std::move(bytes));
  }
  if (batch != Batch::alone && module.gradients.empty()) {
    std::vector<Tensor> made;
    for (const std::size_t number : trained) {
      made.emplace_back(DataType::float32, module.state->parameters[number].value.shape());
      std::memset(made.back().mutable_data(), 0, made.back().bytes());
    }
    module.gradients = std::move(made);
  }
  for (std::size_t i = 0; i < trained.size(); ++i) {
    if (moments > 0) {
      const auto& of = state.moments.at(module.state->parameters[trained[i]].name);
      for (std::size_t k = 0; k < moments; ++k) values.emplace_back(of.at(kMoments[k]));
    }
    if (batch != Batch::alone) values.emplace_back(module.gradients[i]);
  }
}

void Trainer::Impl::check_finite(const Tensor& loss, const Value* norm) const {
  if (!options.refuse_non_finite) return;
  const auto step = group().step + 1;
  const double value = static_cast<double>(loss.values<float>()[0]);
  if (!std::isfinite(value)) {
    if (const Parameter* lost = first_not_finite(*module.state)) {
      fail(ErrorCode::runtime_failure,
           "the loss of step {} is {}, and the parameter '{}' is not finite since an earlier update: continue from the last "
           "checkpoint, with a lower learning rate, or with clipped gradients",
           step, value, lost->name);
    }
    fail(ErrorCode::runtime_failure,
         "the loss of step {} is {}; the parameters are those from before it. Check the inputs, or use a lower learning rate",
         step, value);
  }
  if (norm == nullptr || std::isfinite(static_cast<double>(norm->tensor().values<float>()[0]))) return;
  fail(
      ErrorCode::runtime_failure,
      "the norm of the gradients of step {} is not finite, though its loss is {}; the parameters are those from before it. Check "
      "the inputs, and the loss: roots, logarithms and quotients have infinite gradients at 0",
      step, value);
}

void Trainer::Impl::clear_sums() {
  for (Tensor& sum : module.gradients) {
    if (sum.bytes() != 0) std::memset(sum.mutable_data(), 0, sum.bytes());
  }
  waiting = 0;
}

float Trainer::Impl::train_step(std::span<const Tensor> inputs) {
  const TrainingGraph& model = module.training;
  check_inputs(model, inputs);
  own_parameters(model, *module.state);
  const bool updates = waiting + 1 >= options.accumulate;
  const Batch batch = options.accumulate == 1 ? Batch::alone : updates ? Batch::last : Batch::first;
  std::vector<Value> values = input_values(model, inputs, *module.state);
  const plan::Program& program =
      module.programs.get(inputs, static_cast<std::int64_t>(batch), [&] { return compile(inputs, batch); });
  add_extra_values(batch, values);
  const std::uint64_t random = module.runner.random_state();
  std::vector<Value> results = module.runner.run(program, std::move(values));
  const std::size_t shown = model.outputs.size();
  const bool has_norm = results.size() > shown + model.replaced.size();
  // Sums of gradients that are not finite would stay so. Those before a loss that is not are good.
  const bool spoilt =
      has_norm && !is_finite(results.back().tensor()) && (is_finite(results[0].tensor()) || !options.refuse_non_finite);
  if (spoilt) clear_sums();
  try {
    check_finite(results[0].tensor(), has_norm ? &results.back() : nullptr);
  } catch (const Error&) {
    module.runner.set_random_state(random);
    throw;
  }
  module.replace_statistics(std::span(results).subspan(shown));
  waiting = updates ? 0 : waiting + 1;
  if (updates) ++group().step;
  last_outputs.clear();
  for (std::size_t i = 0; i < shown; ++i) {
    if (results[i].is_tensor()) last_outputs.push_back(std::move(results[i].tensor()));
  }
  return last_outputs[0].values<float>()[0];
}

Trainer::Trainer(const std::filesystem::path& artifacts, CheckpointState& state, const TrainerOptions& options)
    : impl_(std::make_unique<Impl>(artifacts, state, options)) {}
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;
Trainer::~Trainer() = default;

const std::vector<std::string>& Trainer::input_names() const { return impl_->module.training.input_names; }
const std::vector<std::string>& Trainer::output_names() const { return impl_->module.training.outputs; }
float Trainer::train_step(std::span<const Tensor> inputs) { return impl_->train_step(inputs); }
const std::vector<Tensor>& Trainer::last_outputs() const { return impl_->last_outputs; }
std::vector<Tensor> Trainer::eval_step(std::span<const Tensor> inputs) { return impl_->module.eval_step(inputs); }
float Trainer::learning_rate() const { return impl_->rate(); }
std::int64_t Trainer::steps() const { return impl_->group().step; }
CheckpointState& Trainer::state() { return *impl_->module.state; }

void Trainer::set_learning_rate(float rate) {
  if (!std::isfinite(rate)) fail(ErrorCode::invalid_argument, "the learning rate is {}; it must be a finite number", rate);
  impl_->fixed_rate = rate;
}

void Trainer::save_checkpoint(const std::filesystem::path& path) const {
  CheckpointState& state = *impl_->module.state;
  if (const Parameter* lost = impl_->options.refuse_non_finite ? first_not_finite(state) : nullptr) {
    fail(ErrorCode::runtime_failure,
         "the parameter '{}' is not finite after {} updates: no checkpoint is written. Continue from the last one, with a lower "
         "learning rate, or with clipped gradients",
         lost->name, steps());
  }
  state.properties[kRandomState] = static_cast<std::int64_t>(impl_->module.runner.random_state());
  state.save(path, true);
}

void Trainer::export_model_for_inferencing(const std::filesystem::path& path, std::span<const std::string> outputs) const {
  impl_->module.export_for_inference(path, outputs);
}

}  // namespace sdx::train
