#include "train/autograd/autograd_model.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/error.h"
#include "base/thread_pool.h"
#include "graph/edit.h"
#include "onnx/functions.h"
#include "ops/infer.h"
#include "ops/norm/signatures.h"
#include "ops/op.h"
#include "plan/program.h"
#include "session/graphs/compile.h"
#include "tensor/element.h"
#include "train/artifacts/training_form.h"
#include "train/autograd/own_memory.h"
#include "train/autograd/split_graph.h"

namespace sdx::train {
namespace {

constexpr std::size_t kMostPrograms = 8;
constexpr std::size_t kMostKept = std::size_t{2} << 30, kMostBlocks = 1024;

bool is_float(const Type& t) { return t.is_tensor() && (ops::types::floats & ops::bit(t.elem)) != 0; }

ValueId emit(Graph& graph, const char* op, ValueId a, ValueId b) {
  return add_node(graph, make_node({}, op, 21, {a, b}), "statistics");
}

// The new variance with that of the sample in place of the population's, which ONNX's operator takes: times n / (n - 1).
ValueId sample_variance(Graph& graph, const Node& node, ValueId updated) {
  const Type& x = graph.value(node.inputs[0]).type;
  if (!x.is_tensor() || !x.has_static_shape() || x.shape->size() < 2) return updated;
  const Shape shape = to_shape(*x.shape);
  const double count = static_cast<double>(element_count(shape)) / static_cast<double>(std::max<std::int64_t>(1, shape[1]));
  if (count < 2) return updated;
  const double factor = count / (count - 1);
  const double momentum = static_cast<double>(node.attributes.get_float("momentum", 0.9F));
  const auto constant = [&](double v) {
    Tensor t(graph.value(node.inputs[4]).type.elem, {});
    set_element(t, 0, v);
    return graph.add_constant("statistics", std::move(t));
  };
  return emit(graph, "Add", emit(graph, "Mul", updated, constant(factor)),
              emit(graph, "Mul", node.inputs[4], constant(momentum * (1 - factor))));
}

bool is_random(const Node& node) {
  const ops::OpDef* def = ops::table().find(node.domain, node.op_type, node.version);
  return (def != nullptr && !def->deterministic) ||
         std::any_of(node.subgraphs.begin(), node.subgraphs.end(), [](const Subgraph& s) {
           const auto& nodes = s.graph->nodes();
           return std::any_of(nodes.begin(), nodes.end(), is_random);
         });
}

std::vector<std::int64_t> key_of(std::span<const Tensor> inputs, const std::vector<bool>& wanted, bool keeps) {
  std::vector<std::int64_t> key{keeps ? 1 : 0};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    key.push_back(keeps && wanted[i] ? 1 : 0);
    key.push_back(static_cast<std::int64_t>(inputs[i].dtype()));
    key.push_back(static_cast<std::int64_t>(inputs[i].rank()));
    key.insert(key.end(), inputs[i].shape().begin(), inputs[i].shape().end());
  }
  return key;
}

std::vector<Value> run(const plan::Program& program, std::vector<Value> inputs, std::uint64_t seed) {
  const PoolScope awake(current_pool());
  std::atomic<std::uint64_t> state = seed;
  plan::RunEnv env;
  env.seed = &state;
  return program.run(std::move(inputs), env);
}

}  // namespace

struct AutogradModel::Compiled {
  std::vector<std::int64_t> key;
  std::unique_ptr<plan::Program> forward, backward;  // without `keeps`: no backward
  std::vector<std::size_t> from_inputs, from_outputs, seeded, results;
  std::vector<std::size_t> shown;  // of from_outputs, those that are the model's
  std::vector<Type> gradients;     // by output that is differentiated
};

struct AutogradModel::Kept {
  std::shared_ptr<const Compiled> compiled;
  std::vector<Tensor> values;                   // by from_outputs
  std::vector<std::size_t> from_inputs, shown;  // which inputs and outputs of the model hold what is kept, or a part of it
};

AutogradModel::AutogradModel(Model model)
    : model_(std::move(model)), memory_(std::make_shared<BlockKeep>(kMostKept, kMostBlocks)) {
  inline_functions(model_);
  for (const ValueId v : model_.graph.inputs()) inputs_.push_back(model_.graph.value(v).name);
  outputs_ = model_.graph.output_names();
  for (const Node& n : model_.graph.nodes()) random_ = random_ || is_random(n);
  find_updates();
}

AutogradModel::~AutogradModel() = default;

void AutogradModel::find_updates() {
  Graph& graph = model_.graph;
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    Node& n = graph.node(id);
    if (n.domain != "" || n.op_type != "BatchNormalization" || n.version < 14) continue;
    if (!ops::parse<ops::BatchNormAttrs>(n).training_mode) continue;
    for (const std::size_t output : {std::size_t{1}, std::size_t{2}}) {
      const auto at = std::find(graph.inputs().begin(), graph.inputs().end(), n.inputs[output + 2]);
      if (at == graph.inputs().end()) continue;
      while (n.outputs.size() <= output) n.outputs.push_back(kNoValue);
      if (n.outputs[output] == kNoValue) {
        n.outputs[output] = graph.add_value("statistics");
        graph.value(n.outputs[output]).producer = id;
      }
      updates_.push_back(static_cast<std::size_t>(at - graph.inputs().begin()));
      statistics_.push_back({id, output});
    }
  }
}

std::shared_ptr<const AutogradModel::Compiled> AutogradModel::compiled_for(std::span<const Tensor> inputs,
                                                                           const std::vector<bool>& wanted, bool keeps) {
  std::vector<std::int64_t> key = key_of(inputs, wanted, keeps);
  const std::lock_guard lock(mutex_);
  for (auto it = recent_.begin(); it != recent_.end(); ++it) {
    if ((*it)->key != key) continue;
    recent_.splice(recent_.begin(), recent_, it);
    return recent_.front();
  }
  Graph graph = model_.graph;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    ValueInfo& info = graph.value(graph.inputs()[i]);
    info.type = info.declared = Type::tensor(inputs[i].dtype(), to_sym(inputs[i].shape()));
    info.constant.reset();
  }
  // Statistics nodes get a form whose gradient is also one operator.
  for (const Statistics& s : statistics_) {
    if (graph.node(s.node).domain.empty()) to_batch_norm_internal(graph, s.node);
  }
  ops::infer_in_place(graph);
  for (const Statistics& s : statistics_) {
    const Node node = graph.node(s.node);
    graph.add_output(s.output == 2 ? sample_variance(graph, node, node.outputs[2]) : node.outputs[1]);
  }
  if (!statistics_.empty()) {
    graph.compact();
    ops::infer_in_place(graph);
  }
  auto made = std::make_shared<Compiled>();
  made->key = std::move(key);
  std::vector<std::size_t> differentiable;
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (is_float(graph.value(graph.outputs()[i]).type)) differentiable.push_back(i);
  }
  if (!keeps || differentiable.empty()) {
    made->forward = session::compile_for_cpu(std::move(graph));
  } else {
    for (const std::size_t i : differentiable) made->gradients.push_back(graph.value(graph.outputs()[i]).type);
    SplitGraphs j = split_for_autograd(std::move(graph), differentiable, wanted);
    ops::infer_in_place(j.forward);
    made->forward = session::compile_for_cpu(std::move(j.forward));
    ops::infer_in_place(j.backward);
    made->backward = session::compile_for_cpu(std::move(j.backward));
    made->from_inputs = std::move(j.from_inputs);
    made->from_outputs = std::move(j.from_outputs);
    made->seeded = std::move(j.seeded);
    made->results = std::move(j.results);
    for (const std::size_t i : made->from_outputs) {
      if (i < outputs_.size()) made->shown.push_back(i);
    }
  }
  recent_.push_front(std::move(made));
  if (recent_.size() > kMostPrograms) recent_.pop_back();
  return recent_.front();
}

void AutogradModel::check_inputs(std::span<const Tensor> inputs) const {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ValueInfo& info = model_.graph.value(model_.graph.inputs()[i]);
    const bool open = !info.declared.is_tensor() || info.declared.elem == DataType::undefined;
    if (inputs[i].defined() && (open || info.declared.elem == inputs[i].dtype())) continue;
    fail(ErrorCode::invalid_argument, "input '{}' is {}, expected {}", info.name,
         inputs[i].defined() ? inputs[i].type_string() : "missing", info.declared.str());
  }
}

std::vector<Tensor> AutogradModel::forward(std::span<const Tensor> inputs, const std::vector<bool>& wanted, std::uint64_t seed,
                                           std::shared_ptr<const Kept>* kept) {
  if (inputs.size() != inputs_.size() || wanted.size() != inputs_.size()) {
    fail(ErrorCode::invalid_argument, "the model takes {} inputs, received {}", inputs_.size(), inputs.size());
  }
  check_inputs(inputs);
  const bool keeps = kept != nullptr && std::find(wanted.begin(), wanted.end(), true) != wanted.end();
  const auto compiled = compiled_for(inputs, wanted, keeps);
  const KeepScope memory(memory_);
  std::vector<Value> results = run(*compiled->forward, std::vector<Value>(inputs.begin(), inputs.end()), seed);
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < outputs_.size() + updates_.size(); ++i) out.push_back(results[i].tensor());
  const std::span<const Tensor> given[] = {inputs};
  own_memory(out, given);
  if (keeps) {
    auto made = std::make_shared<Kept>();
    made->compiled = compiled;
    for (const std::size_t i : compiled->from_outputs) {
      made->values.push_back(i < outputs_.size() ? out[i] : std::move(results[i].tensor()));
    }
    made->from_inputs = with_shared(compiled->from_inputs, inputs, made->values);
    made->shown = with_shared(compiled->shown, std::span(out).first(outputs_.size()), made->values);
    *kept = std::move(made);
  }
  return out;
}

std::vector<Tensor> AutogradModel::backward(const Kept& kept, std::span<const Tensor> inputs,
                                            std::span<const Tensor> gradients) const {
  std::vector<Tensor> out(inputs_.size());
  const Compiled& c = *kept.compiled;
  if (!c.backward) return out;
  if (inputs.size() != inputs_.size() || gradients.size() != c.gradients.size()) {
    fail(ErrorCode::invalid_argument, "a backward pass takes {} inputs and {} gradients, received {} and {}", inputs_.size(),
         c.gradients.size(), inputs.size(), gradients.size());
  }
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const Type& expected = c.gradients[i];
    const Tensor& given = gradients[i];
    if (given.defined() && compatible(expected, Type::tensor(given.dtype(), to_sym(given.shape())))) continue;
    fail(ErrorCode::invalid_argument, "gradient {} is {}, expected {}", i, given.defined() ? given.type_string() : "missing",
         expected.str());
  }
  std::vector<Value> values;
  for (const std::size_t i : c.from_inputs) values.emplace_back(inputs[i]);
  for (const Tensor& t : kept.values) values.emplace_back(t);
  for (const std::size_t i : c.seeded) values.emplace_back(gradients[i]);
  const KeepScope memory(memory_);
  std::vector<Value> results = run(*c.backward, std::move(values), 0);
  for (std::size_t i = 0; i < results.size(); ++i) out[c.results[i]] = std::move(results[i].tensor());
  const std::span<const Tensor> others[] = {inputs, kept.values, gradients};
  own_memory(out, others);
  return out;
}

const std::vector<std::size_t>& AutogradModel::reads_inputs(const Kept& kept) { return kept.from_inputs; }
const std::vector<std::size_t>& AutogradModel::reads_outputs(const Kept& kept) { return kept.shown; }

std::size_t AutogradModel::programs() const {
  const std::lock_guard lock(mutex_);
  return recent_.size();
}

}  // namespace sdx::train
