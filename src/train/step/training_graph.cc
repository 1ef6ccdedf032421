#include "train/step/training_graph.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <span>

#include "base/error.h"
#include "base/suggest.h"
#include "onnx/reader.h"
#include "ops/infer.h"
#include "session/pipeline.h"

namespace sdx::train {
namespace {

constexpr std::string_view kBuffer = "_grad.accumulation.buffer", kAccumulated = "_grad.accumulation.out";
constexpr std::string_view kReset = "lazy_reset_grad";

const std::string& input_name(const Graph& graph, std::size_t i) { return graph.value(graph.inputs()[i]).name; }

std::optional<std::size_t> number_in(const CheckpointState& state, std::string_view name) {
  const auto it =
      std::find_if(state.parameters.begin(), state.parameters.end(), [&](const Parameter& p) { return p.name == name; });
  if (it == state.parameters.end()) return std::nullopt;
  return static_cast<std::size_t>(it - state.parameters.begin());
}

void check_parameter(const ValueInfo& declared, const Parameter& p) {
  if (compatible(declared.declared, Type::tensor(p.value.dtype(), to_sym(p.value.shape())))) return;
  fail(ErrorCode::invalid_argument,
       "parameter '{}' is {} in the model and {} in the checkpoint; take both from one set of artifacts", p.name,
       declared.declared.str(), p.value.type_string());
}

// Separates the graph's inputs into the user's and the parameters of the state.
struct Roles {
  std::vector<std::size_t> user, parameters;            // numbers of inputs
  std::vector<std::size_t> numbers;                     // of those parameters in the state
  std::map<std::string, ValueId, std::less<>> buffers;  // by parameter
};

Roles roles_of(const Graph& graph, const CheckpointState& state) {
  Roles roles;
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
    const std::string& name = input_name(graph, i);
    if (const auto number = number_in(state, name)) {
      check_parameter(graph.value(graph.inputs()[i]), state.parameters[*number]);
      roles.parameters.push_back(i);
      roles.numbers.push_back(*number);
    } else if (name.ends_with(kBuffer)) {
      roles.buffers.emplace(name.substr(0, name.size() - kBuffer.size()), graph.inputs()[i]);
    } else if (name != kReset) {
      roles.user.push_back(i);
    }
  }
  return roles;
}

// A parameter that the checkpoint lacks looks like an input of the user's, but has a buffer for its gradient.
void check_buffers(const Graph& graph, const Roles& roles) {
  for (const auto& [name, buffer] : roles.buffers) {
    const bool known = std::any_of(roles.parameters.begin(), roles.parameters.end(),
                                   [&, &wanted = name](std::size_t i) { return input_name(graph, i) == wanted; });
    if (!known) {
      fail(ErrorCode::invalid_argument,
           "the checkpoint has no parameter '{}', which the model trains; take both from one set of artifacts", name);
    }
  }
}

// Takes the accumulators out; returns the gradient of each buffer.
std::map<ValueId, ValueId> remove_accumulators(Graph& graph) {
  std::map<ValueId, ValueId> gradients;
  std::vector<ValueId> flags;
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    const Node& node = graph.node(id);
    if (node.removed || node.domain != "com.microsoft" || node.op_type != "InPlaceAccumulatorV2") continue;
    if (node.inputs.size() < 2 || node.inputs[0] == kNoValue || node.inputs[1] == kNoValue) {
      fail(ErrorCode::invalid_model, "in {}: expected a buffer and a gradient as inputs", graph.describe(id));
    }
    gradients[node.inputs[0]] = node.inputs[1];
    flags.insert(flags.end(), node.outputs.begin(), node.outputs.end());
    graph.remove_node(id);
  }
  for (std::size_t i = graph.outputs().size(); i-- > 0;) {
    if (std::find(flags.begin(), flags.end(), graph.outputs()[i]) != flags.end()) graph.remove_output(i);
  }
  return gradients;
}

bool is_random(const Node& node) {
  if (!node.domain.empty() && node.domain != "com.microsoft") return false;
  for (const char* name : {"Dropout", "BiasDropout", "BitmaskDropout", "RandomUniform", "RandomNormal", "RandomUniformLike",
                           "RandomNormalLike", "Bernoulli", "Multinomial"}) {
    if (node.op_type == name) return true;
  }
  return false;
}

// A float seed counts by its whole part, if that fits.
std::uint64_t own_seed(const Node& node) {
  if (std::holds_alternative<std::int64_t>(*node.attributes.find("seed"))) {
    return static_cast<std::uint64_t>(node.attributes.get_int("seed"));
  }
  constexpr float kMost = 9e18F;
  const float seed = node.attributes.get_float("seed", 0);
  if (!(std::abs(seed) < kMost)) return std::bit_cast<std::uint32_t>(seed);
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(seed));
}

// A seed of its own would give a node the same numbers in every step.
void take_seeds(TrainingGraph& model) {
  for (NodeId id = 0; id < model.graph.nodes().size(); ++id) {
    Node& node = model.graph.node(id);
    if (!is_random(node)) continue;
    model.random = true;
    if (node.attributes.find("seed") == nullptr) continue;
    model.seed = model.seed * 0x9E3779B97F4A7C15ULL + own_seed(node) + 1;
    node.attributes.erase("seed");
  }
}

// Running statistics: outputs 1 and 2 of batch normalisation in training, which replace inputs 3 and 4.
void add_statistics(TrainingGraph& model) {
  const std::span parameters = std::span(model.graph.inputs()).subspan(model.inputs.size());
  for (NodeId id = 0; id < model.graph.nodes().size(); ++id) {
    const Node node = model.graph.node(id);
    const bool internal = node.domain == "com.microsoft" && node.op_type == "BatchNormInternal";
    const bool plain =
        node.domain.empty() && node.op_type == "BatchNormalization" && node.attributes.get_int("training_mode", 0) == 1;
    if ((!internal && !plain) || node.inputs.size() < 5) continue;
    for (std::size_t i = 1; i < 3 && i < node.outputs.size(); ++i) {
      const auto at = std::find(parameters.begin(), parameters.end(), node.inputs[i + 2]);
      if (node.outputs[i] == kNoValue || at == parameters.end()) continue;
      model.replaced.push_back(static_cast<std::size_t>(at - parameters.begin()));
      model.graph.add_output(node.outputs[i]);
    }
  }
}

// The inputs that stay come in this order; the others go.
void order_inputs(Graph& graph, const Roles& roles) {
  std::vector<std::size_t> order = roles.user;
  order.insert(order.end(), roles.parameters.begin(), roles.parameters.end());
  const std::size_t kept = order.size();
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
    if (std::find(order.begin(), order.end(), i) == order.end()) order.push_back(i);
  }
  graph.permute_inputs(order);
  for (std::size_t i = graph.inputs().size(); i-- > kept;) graph.remove_input(i);
}

void add_gradients(TrainingGraph& model, Graph& graph, const Roles& roles, const CheckpointState& state) {
  const std::map<ValueId, ValueId> gradients = remove_accumulators(graph);
  for (std::size_t i = 0; i < model.parameters.size(); ++i) {
    const Parameter& p = state.parameters[model.parameters[i]];
    const auto buffer = roles.buffers.find(p.name);
    if (buffer == roles.buffers.end()) continue;
    const auto gradient = gradients.find(buffer->second);
    if (gradient == gradients.end()) {
      fail(ErrorCode::invalid_model, "in '{}': nothing is added up in '{}{}'", model.file, p.name, kBuffer);
    }
    if (p.value.dtype() != DataType::float32) {
      fail(ErrorCode::not_implemented, "parameter '{}' is {}; parameters that are trained are float32", p.name,
           p.value.type_string());
    }
    model.trained.push_back(i);
    graph.add_output(gradient->second);
  }
}

// The graph has its inputs in order.
void note_inputs(TrainingGraph& model, const Graph& graph, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const ValueInfo& v = graph.value(graph.inputs()[i]);
    model.inputs.push_back({v.name, v.declared});
    model.input_names.push_back(v.name);
  }
}

TrainingGraph read(const std::filesystem::path& path, const CheckpointState& state, bool training) {
  TrainingGraph model;
  model.file = path.string();
  Model file = read_model(path);
  const Roles roles = roles_of(file.graph, state);
  check_buffers(file.graph, roles);
  model.parameters = roles.numbers;
  for (const std::string& name : file.graph.output_names()) {
    if (!name.ends_with(kAccumulated)) model.outputs.push_back(name);
  }
  if (model.outputs.empty()) fail(ErrorCode::invalid_model, "'{}' has no output for the loss", model.file);
  if (training) add_gradients(model, file.graph, roles, state);
  order_inputs(file.graph, roles);
  note_inputs(model, file.graph, roles.user.size());
  file.graph.compact();
  try {
    session::prepare(file, SessionOptions());
  } catch (Error& e) {
    e.add_context("in '" + model.file + "'");
    throw;
  }
  model.graph = std::move(file.graph);
  if (training) {
    add_statistics(model);
    take_seeds(model);
  }
  return model;
}

}  // namespace

TrainingGraph read_training_model(const std::filesystem::path& path, const CheckpointState& state) {
  TrainingGraph model = read(path, state, true);
  if (model.trained.empty()) {
    fail(ErrorCode::invalid_argument,
         "'{}' trains no parameter of this checkpoint: it has no input '<parameter>{}'; it should be a training model that "
         "generate_artifacts() wrote",
         model.file, kBuffer);
  }
  return model;
}

TrainingGraph read_eval_model(const std::filesystem::path& path, const CheckpointState& state) {
  return read(path, state, false);
}

namespace {

std::string names_of(const std::vector<UserInput>& inputs) {
  std::vector<std::string> names;
  for (const UserInput& i : inputs) names.push_back("'" + i.name + "' " + i.type.str());
  return join(names);
}

}  // namespace

void check_inputs(const TrainingGraph& model, std::span<const Tensor> inputs) {
  if (inputs.size() != model.inputs.size()) {
    fail(ErrorCode::invalid_argument, "the model takes {} inputs ({}), received {}", model.inputs.size(), names_of(model.inputs),
         inputs.size());
  }
  std::map<std::string, std::pair<std::int64_t, const std::string*>> symbols;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto& [name, type] = model.inputs[i];
    const Tensor& given = inputs[i];
    if (!given.defined() || !compatible(type, Type::tensor(given.dtype(), to_sym(given.shape())))) {
      fail(ErrorCode::invalid_argument, "input '{}' must be {}, received {}", name, type.str(),
           given.defined() ? given.type_string() : "nothing");
    }
    for (std::size_t axis = 0; type.shape && axis < type.shape->size(); ++axis) {
      const std::string symbol = (*type.shape)[axis].symbol_name();
      if (symbol.empty()) continue;
      const auto [it, fresh] = symbols.try_emplace(symbol, given.shape()[axis], &name);
      if (fresh || it->second.first == given.shape()[axis]) continue;
      fail(ErrorCode::invalid_argument, "extent '{}' is {} in input '{}' and {} in input '{}'; it must be the same", symbol,
           it->second.first, *it->second.second, given.shape()[axis], name);
    }
  }
}

Graph bound_graph(const TrainingGraph& model, std::span<const Tensor> inputs, const CheckpointState& state) {
  Graph graph = model.graph;
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
    const Tensor& t = i < inputs.size() ? inputs[i] : state.parameters[model.parameters[i - inputs.size()]].value;
    ValueInfo& v = graph.value(graph.inputs()[i]);
    v.type = v.declared = Type::tensor(t.dtype(), to_sym(t.shape()));
  }
  try {
    ops::infer_in_place(graph);
  } catch (Error& e) {
    e.add_context("in '" + model.file + "'");
    throw;
  }
  return graph;
}

}  // namespace sdx::train
