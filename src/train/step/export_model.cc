#include "train/step/export_model.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/suggest.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "ops/infer.h"
#include "session/pipeline.h"
#include "train/artifacts/lora.h"

namespace sdx::train {
namespace {

ValueId value_named(const Graph& graph, const std::string& name, const std::string& file) {
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    if (graph.output_names()[i] == name) return graph.outputs()[i];
  }
  if (const auto found = graph.find(name)) return *found;
  std::vector<std::string> names;
  for (const ValueInfo& v : graph.values()) names.push_back(v.name);
  const std::string near = closest(name, names);
  fail(ErrorCode::invalid_argument, "'{}' has no value '{}'{}", file, name, near.empty() ? "" : "; did you mean '" + near + "'?");
}

void set_outputs(Graph& graph, std::span<const std::string> outputs, const std::string& file) {
  std::vector<ValueId> values;
  for (const std::string& name : outputs) values.push_back(value_named(graph, name, file));
  while (!graph.outputs().empty()) graph.remove_output(graph.outputs().size() - 1);
  for (std::size_t i = 0; i < values.size(); ++i) graph.add_output(values[i], outputs[i]);
}

void drop_unneeded_nodes(Graph& graph) {
  std::vector<bool> needed(graph.values().size(), false);
  for (const ValueId v : graph.outputs()) needed[v] = true;
  const auto need = [&](ValueId v) {
    if (v != kNoValue) needed[v] = true;
  };
  for (NodeId id = static_cast<NodeId>(graph.nodes().size()); id-- > 0;) {
    const Node& node = graph.node(id);
    if (node.removed) continue;
    const bool used =
        std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId v) { return v != kNoValue && needed[v]; });
    if (!used) {
      graph.remove_node(id);
      continue;
    }
    std::for_each(node.inputs.begin(), node.inputs.end(), need);
    for (const Subgraph& s : node.subgraphs) std::for_each(s.captures.begin(), s.captures.end(), need);
  }
  for (std::size_t i = graph.inputs().size(); i-- > 0;) {
    const ValueId v = graph.inputs()[i];
    if (needed[v]) continue;
    graph.remove_input(i);
    graph.value(v).is_input = false;
  }
  graph.compact();
}

// Inputs of the parameters' names become constants.
void place_parameters(Graph& graph, const CheckpointState& state) {
  for (std::size_t i = graph.inputs().size(); i-- > 0;) {
    ValueInfo& v = graph.value(graph.inputs()[i]);
    const Parameter* p = state.find(v.name);
    if (p == nullptr) continue;
    if (!compatible(v.declared, Type::tensor(p->value.dtype(), to_sym(p->value.shape())))) {
      fail(ErrorCode::invalid_argument, "parameter '{}' is {}; the eval model takes {}", p->name, p->value.type_string(),
           v.declared.str());
    }
    v.constant = p->value;
    v.type = v.declared = Type::tensor(p->value.dtype(), to_sym(p->value.shape()));
    v.is_input = false;
    graph.remove_input(i);
  }
}

}  // namespace

void export_for_inference(const std::filesystem::path& eval_model, const CheckpointState& state,
                          const std::filesystem::path& path, std::span<const std::string> outputs) {
  if (outputs.empty()) fail(ErrorCode::invalid_argument, "name at least one output that the model for inference should have");
  if (state.nominal) fail(ErrorCode::invalid_argument, "a nominal checkpoint contains no values to export");
  Model model = read_model(eval_model);
  session::prepare(model, SessionOptions(), true);
  set_outputs(model.graph, outputs, eval_model.string());
  place_parameters(model.graph, state);
  drop_unneeded_nodes(model.graph);
  if (merge_lora(model)) {
    ops::infer_in_place(model.graph);
    drop_unneeded_nodes(model.graph);
  }
  model.graph.drop_unused_values();
  model.producer_name = "sardonyx";
  model.producer_version = SDX_VERSION;
  write_model(model, path);
}

}  // namespace sdx::train
