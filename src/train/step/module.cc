#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "session/graphs/compile.h"
#include "train/step/bfloat16.h"
#include "train/step/export_model.h"
#include "train/step/in_place.h"
#include "train/step/module_impl.h"

namespace sdx::train {

Module::Impl::Impl(const std::filesystem::path& training_model, CheckpointState& given, const std::filesystem::path& eval_file,
                   const ModuleOptions& module_options)
    : state(&given),
      options(module_options),
      training(read_training_model(training_model, given)),
      eval_path(eval_file),
      runner(options.threads, options.seed != 0 ? options.seed : training.seed) {
  if (!eval_path.empty()) eval = read_eval_model(eval_path, given);
}

const TrainingGraph& Module::Impl::eval_graph() const {
  if (!eval) fail(ErrorCode::invalid_argument, "the module has no eval model; give its path when creating the module");
  return *eval;
}

void Module::Impl::export_for_inference(const std::filesystem::path& path, std::span<const std::string> outputs) const {
  eval_graph();
  train::export_for_inference(eval_path, *state, path, outputs);
}

Graph Module::Impl::optimized(const TrainingGraph& model, std::span<const Tensor> inputs) const {
  Graph graph = bound_graph(model, inputs, *state);
  session::optimize_for_cpu(graph);
  if (options.bfloat16 && has_bfloat16_products()) use_bfloat16(graph);
  return graph;
}

namespace {

// Input number i of those that come behind the parameters.
ValueId add_extra(Graph& graph, const std::string& name, DataType type, const Shape& shape) {
  return graph.add_input(name, Type::tensor(type, to_sym(shape)));
}

}  // namespace

std::unique_ptr<plan::Program> Module::Impl::compile_training(std::span<const Tensor> inputs, bool adds) const {
  Graph graph = optimized(training, inputs);
  if (!adds) return session::lower_for_cpu(std::move(graph));
  const std::size_t first = training.outputs.size();
  std::vector<InPlaceNode> nodes;
  for (std::size_t i = 0; i < training.trained.size(); ++i) {
    const Parameter& p = state->parameters[training.parameters[training.trained[i]]];
    const ValueId buffer = add_extra(graph, p.name + ".accumulated", DataType::float32, p.value.shape());
    nodes.push_back(accumulate_node(kNoValue, graph.outputs()[first + i], buffer));
  }
  for (std::size_t i = training.trained.size(); i-- > 0;) graph.remove_output(first + i);
  insert_in_place(graph, std::move(nodes));
  return session::lower_for_cpu(std::move(graph));
}

void Module::Impl::make_gradients() {
  if (!gradients.empty()) return;
  std::vector<Tensor> made;
  for (const std::size_t i : training.trained) {
    made.emplace_back(DataType::float32, state->parameters[training.parameters[i]].value.shape());
  }
  gradients = std::move(made);
}

void Module::Impl::replace_statistics(std::span<const Value> results) {
  for (std::size_t i = 0; i < training.replaced.size(); ++i) {
    const Tensor& made = results[i].tensor();
    Parameter& p = state->parameters[training.parameters[training.replaced[i]]];
    if (made.dtype() != p.value.dtype() || made.size() != p.value.size()) {
      fail(ErrorCode::invalid_model, "the new value of '{}' is {}; expected {}", p.name, made.type_string(),
           p.value.type_string());
    }
    if (made.bytes() != 0) std::memcpy(p.value.mutable_data(), made.data(), made.bytes());
  }
}

namespace {

std::vector<Tensor> tensors(std::vector<Value>& values, std::size_t count, const std::string& file) {
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < count; ++i) {
    if (!values[i].is_tensor()) fail(ErrorCode::not_implemented, "output {} of '{}' is not a tensor", i, file);
    out.push_back(std::move(values[i].tensor()));
  }
  return out;
}

}  // namespace

std::vector<Tensor> Module::Impl::train_step(std::span<const Tensor> inputs) {
  check_inputs(training, inputs);
  own_parameters(training, *state);
  std::vector<Value> values = input_values(training, inputs, *state);
  if (!reset && !accumulates) {
    accumulates = true;
    programs.keep_only(1);
  }
  const plan::Program& program = programs.get(inputs, accumulates ? 1 : 0, [&] { return compile_training(inputs, accumulates); });
  make_gradients();
  std::vector<Value> bound;
  if (accumulates) {
    for (Tensor& g : gradients) {
      if (reset && g.bytes() != 0) std::memset(g.mutable_data(), 0, g.bytes());
      values.emplace_back(g);
    }
  } else {
    bound.resize(training.outputs.size());
    bound.insert(bound.end(), gradients.begin(), gradients.end());
    bound.resize(bound.size() + training.replaced.size());
  }
  std::vector<Value> results = runner.run(program, std::move(values), bound);
  const std::size_t shown = training.outputs.size();
  replace_statistics(std::span(results).subspan(shown + (accumulates ? 0 : gradients.size())));
  reset = false;
  return tensors(results, shown, training.file);
}

std::unique_ptr<plan::Program> Module::Impl::compile_eval(std::span<const Tensor> inputs) {
  return session::lower_for_cpu(optimized(*eval, inputs));
}

std::vector<Tensor> Module::Impl::eval_step(std::span<const Tensor> inputs) {
  const TrainingGraph& model = eval_graph();
  check_inputs(model, inputs);
  own_parameters(model, *state);
  std::vector<Value> values = input_values(model, inputs, *state);
  const plan::Program& program = eval_programs.get(inputs, 0, [&] { return compile_eval(inputs); });
  std::vector<Value> results = runner.run(program, std::move(values));
  return tensors(results, model.outputs.size(), model.file);
}

Module::Module(const std::filesystem::path& training_model, CheckpointState& state, const std::filesystem::path& eval_model,
               const ModuleOptions& options)
    : impl_(std::make_unique<Impl>(training_model, state, eval_model, options)) {}
Module::Module(Module&&) noexcept = default;
Module& Module::operator=(Module&&) noexcept = default;
Module::~Module() = default;

const std::vector<std::string>& Module::input_names(bool eval) const {
  return eval ? impl_->eval_graph().input_names : impl_->training.input_names;
}
const std::vector<std::string>& Module::output_names(bool eval) const {
  return eval ? impl_->eval_graph().outputs : impl_->training.outputs;
}
std::vector<Tensor> Module::train_step(std::span<const Tensor> inputs) { return impl_->train_step(inputs); }
std::vector<Tensor> Module::eval_step(std::span<const Tensor> inputs) { return impl_->eval_step(inputs); }
void Module::lazy_reset_grad() { impl_->reset = true; }
CheckpointState& Module::state() { return *impl_->state; }

Tensor Module::gradient(std::string_view parameter) const {
  const CheckpointState& state = *impl_->state;
  const Parameter& wanted = state.at(parameter);
  for (std::size_t i = 0; i < impl_->training.trained.size(); ++i) {
    const Parameter& p = state.parameters[impl_->training.parameters[impl_->training.trained[i]]];
    if (&p == &wanted) return impl_->gradients.empty() ? Tensor() : impl_->gradients[i];
  }
  fail(ErrorCode::invalid_argument, "parameter '{}' is not trained: it has no gradient", parameter);
}

void Module::export_model_for_inferencing(const std::filesystem::path& path, std::span<const std::string> outputs) const {
  impl_->export_for_inference(path, outputs);
}

}  // namespace sdx::train
