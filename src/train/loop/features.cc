#include "train/loop/features.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/words.h"
#include "train/loop/task.h"

namespace sdx::train::loop {
namespace {

// The inputs that a value depends on.
struct Origin {
  bool data = false;   // of the samples
  bool apart = false;  // of a trained parameter, the labels or the gradients' buffers
};

bool takes_shapes(const Node& n) { return has_word("Shape Size", n.op_type); }

std::vector<ValueId> inputs_of(const Node& n) {
  std::vector<ValueId> all;
  for (const ValueId v : n.inputs) {
    if (v != kNoValue) all.push_back(v);
  }
  for (const Subgraph& s : n.subgraphs) all.insert(all.end(), s.captures.begin(), s.captures.end());
  return all;
}

std::vector<Origin> origins(const Graph& graph, const CheckpointState& state, const std::string& label,
                            const std::set<ValueId>& moved) {
  std::vector<Origin> of(graph.values().size());
  for (const ValueId v : graph.inputs()) {
    const std::string& name = graph.value(v).name;
    const Parameter* p = state.find(name);
    if (p != nullptr) {
      of[v].apart = p->requires_grad;
    } else if (name == label || !is_users_input(name, state)) {
      of[v].apart = true;
    } else {
      of[v].data = true;
    }
  }
  for (const Node& n : graph.nodes()) {
    if (n.removed) continue;
    Origin all;
    for (const ValueId v : inputs_of(n)) {
      all.data = all.data || of[v].data;
      all.apart = all.apart || of[v].apart;
    }
    for (const ValueId v : n.outputs) {
      if (v == kNoValue) continue;
      of[v] = all;
      if (all.data && (takes_shapes(n) || moved.contains(v))) of[v].apart = true;
    }
  }
  return of;
}

// The values of the frozen part that the trained part reads.
std::vector<ValueId> frontier(const Graph& graph, const std::vector<Origin>& of) {
  std::vector<ValueId> out;
  const auto take = [&](ValueId v) {
    if (of[v].data && !of[v].apart && std::find(out.begin(), out.end(), v) == out.end()) out.push_back(v);
  };
  for (const Node& n : graph.nodes()) {
    if (n.removed || n.outputs.empty()) continue;
    const bool apart = std::any_of(n.outputs.begin(), n.outputs.end(), [&](ValueId v) { return v != kNoValue && of[v].apart; });
    if (!apart) continue;
    for (const ValueId v : inputs_of(n)) take(v);
  }
  for (const ValueId v : graph.outputs()) take(v);
  return out;
}

// Whether the value has a row for each sample, as far as its type tells.
bool by_sample(const Type& type, const Type& data) {
  if (!type.is_tensor() || !type.shape || type.shape->empty()) return false;
  if (!data.shape || data.shape->empty()) return true;
  const Dim& have = type.shape->front();
  const Dim& want = data.shape->front();
  return have.is_unknown() || want.is_unknown() || have == want;
}

// Only what the outputs need stays, of nodes and of inputs.
void trim(Graph& graph) {
  std::vector<bool> needed(graph.values().size(), false);
  for (const ValueId v : graph.outputs()) needed[v] = true;
  for (NodeId id = static_cast<NodeId>(graph.nodes().size()); id-- > 0;) {
    const Node& n = graph.node(id);
    if (n.removed) continue;
    if (!std::any_of(n.outputs.begin(), n.outputs.end(), [&](ValueId v) { return v != kNoValue && needed[v]; })) {
      graph.remove_node(id);
      continue;
    }
    for (const ValueId v : inputs_of(n)) needed[v] = true;
  }
  for (std::size_t i = graph.inputs().size(); i-- > 0;) {
    if (!needed[graph.inputs()[i]]) graph.remove_input(i);
  }
  graph.compact();
  graph.drop_unused_values();
}

Model with_outputs(const Model& model, const CheckpointState& state, const std::vector<std::string>& features) {
  Model out = model;
  Graph& graph = out.graph;
  while (!graph.outputs().empty()) graph.remove_output(graph.outputs().size() - 1);
  for (const std::string& name : features) graph.add_output(*graph.find(name), name);
  for (std::size_t i = graph.inputs().size(); i-- > 0;) {
    ValueInfo& value = graph.value(graph.inputs()[i]);
    const Parameter* const p = state.find(value.name);
    if (p == nullptr) continue;
    graph.remove_input(i);
    value.constant = p->value.clone();  // the state's own tensors change
    value.is_input = false;
  }
  trim(graph);
  return out;
}

Model with_inputs(const Model& model, const std::vector<std::string>& features) {
  Model out = model;
  Graph& graph = out.graph;
  for (const std::string& name : features) {
    const ValueId old = *graph.find(name);
    if (graph.value(old).is_input) continue;
    Type type = graph.value(old).type;
    graph.rename(old, name + ".computed");
    const ValueId input = graph.add_input(name, type);
    graph.value(input).declared = std::move(type);
    graph.replace_uses(old, input);
  }
  trim(graph);
  return out;
}

void check_frozen(const Graph& frozen) {
  for (NodeId id = 0; id < frozen.nodes().size(); ++id) {
    const Node& n = frozen.node(id);
    if (n.removed) continue;
    const bool statistics =
        (n.op_type == "BatchNormalization" && n.attributes.get_int("training_mode", 0) == 1) || n.op_type == "BatchNormInternal";
    if (statistics) {
      fail(ErrorCode::invalid_argument,
           "--cache-features: {} lies before the trained part and takes the statistics of each batch; create the artifacts with "
           "--fixed-statistics",
           frozen.describe(id));
    }
    if (has_word("Dropout BiasDropout BitmaskDropout RandomUniform RandomNormal RandomUniformLike RandomNormalLike Bernoulli "
                 "Multinomial",
                 n.op_type)) {
      fail(ErrorCode::invalid_argument,
           "--cache-features: {} lies before the trained part and draws other random numbers in each epoch", frozen.describe(id));
    }
  }
}

}  // namespace

SplitModel split_model(const Model& training, const CheckpointState& state, const std::string& label) {
  const Graph& graph = training.graph;
  Type data;
  for (const ValueId v : graph.inputs()) {
    const std::string& name = graph.value(v).name;
    if (!data.known() && name != label && is_users_input(name, state)) data = graph.value(v).type;
  }
  std::set<ValueId> moved;
  std::vector<ValueId> cut;
  // Values without a row for each sample are computed with the trained part: shapes, and values computed from them.
  while (true) {
    const std::vector<Origin> of = origins(graph, state, label, moved);
    cut = frontier(graph, of);
    const std::size_t before = moved.size();
    for (const ValueId v : cut) {
      if (graph.value(v).producer != kNoNode && !by_sample(graph.value(v).type, data)) moved.insert(v);
    }
    if (moved.size() == before) break;
  }
  SplitModel out;
  bool computed = false;
  for (const ValueId v : cut) {
    out.features.push_back(graph.value(v).name);
    computed = computed || graph.value(v).producer != kNoNode;
  }
  if (!computed) {
    fail(ErrorCode::invalid_argument,
         "--cache-features: nothing is computed before the first trained parameter; freeze the layers before it when creating "
         "the artifacts");
  }
  out.frozen = with_outputs(training, state, out.features);
  check_frozen(out.frozen.graph);
  out.rest = with_inputs(training, out.features);
  return out;
}

SplitModel split_model_at(const Model& eval, const CheckpointState& state, const std::vector<std::string>& features) {
  for (const std::string& name : features) {
    if (eval.graph.find(name)) continue;
    fail(ErrorCode::invalid_argument,
         "--cache-features: the eval model has no value '{}', at which the training model can be cut", name);
  }
  SplitModel out;
  out.features = features;
  out.frozen = with_outputs(eval, state, features);
  out.rest = with_inputs(eval, features);
  return out;
}

}  // namespace sdx::train::loop
