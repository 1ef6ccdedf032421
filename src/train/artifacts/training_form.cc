#include "train/artifacts/training_form.h"

#include "base/log.h"
#include "graph/edit.h"
#include "ops/norm/signatures.h"
#include "tensor/element.h"

namespace sdx::train {
namespace {

using ops::BatchNormIn;

bool is_batch_norm(const Node& n) { return !n.removed && n.domain.empty() && n.op_type == "BatchNormalization"; }

// Drops unused outputs after the first. False if one of them is used.
bool keep_first_output(Graph& graph, NodeId id, const Readers& readers) {
  Node& n = graph.node(id);
  for (std::size_t i = 1; i < n.outputs.size(); ++i) {
    const ValueId v = n.outputs[i];
    if (v == kNoValue) continue;
    if (readers.is_read(v)) return false;
  }
  for (std::size_t i = 1; i < n.outputs.size(); ++i) {
    if (n.outputs[i] != kNoValue) graph.value(n.outputs[i]).producer = kNoNode;
  }
  n.outputs.resize(1);
  return true;
}

bool changes_in_place(const Graph& graph, ValueId statistics) {
  const ValueInfo& info = graph.value(statistics);
  return info.is_input || info.constant;
}

void batch_norm_to_training(Graph& graph, NodeId id, const Readers& readers) {
  const Node before = graph.node(id);
  if (before.attributes.get_int("spatial", 1) == 0) return;
  if (!changes_in_place(graph, before.inputs.at(BatchNormIn::kMean)) ||
      !changes_in_place(graph, before.inputs.at(BatchNormIn::kVariance))) {
    return;
  }
  if (!keep_first_output(graph, id, readers)) {
    log::warning("{} has its statistics as outputs: it keeps its form", graph.describe(id));
    return;
  }
  to_batch_norm_internal(graph, id);
}

void dropout_to_training(Graph& graph, NodeId id) {
  constexpr std::size_t kMode = 2;
  const std::vector<ValueId>& inputs = graph.node(id).inputs;
  if (inputs.size() > kMode && inputs[kMode] != kNoValue) return;
  Tensor on(DataType::boolean, {});
  set_element(on, 0, 1);
  const ValueId mode = graph.add_constant(graph.value(graph.node(id).outputs.at(0)).name + "/training_mode", std::move(on));
  Node& n = graph.node(id);
  n.inputs.resize(kMode + 1, kNoValue);
  n.inputs[kMode] = mode;
}

}  // namespace

void to_batch_norm_internal(Graph& graph, NodeId id) {
  Node& n = graph.node(id);
  const Attributes before = std::move(n.attributes);
  n.domain = "com.microsoft";
  n.op_type = "BatchNormInternal";
  n.version = 1;
  n.attributes = {};
  n.attributes.set("epsilon", before.get_float("epsilon", 1e-5F));
  n.attributes.set("momentum", before.get_float("momentum", 0.9F));
  n.attributes.set("training_mode", std::int64_t{1});
  const std::string name = graph.value(n.outputs.at(0)).name;
  const char* const extra[] = {"running_mean", "running_var", "saved_mean", "saved_inv_std"};
  n.outputs.resize(1 + std::size(extra), kNoValue);
  for (std::size_t i = 0; i < std::size(extra); ++i) {
    if (graph.node(id).outputs[i + 1] != kNoValue) continue;
    const ValueId v = graph.add_value(name + "/" + extra[i]);
    graph.node(id).outputs[i + 1] = v;
    graph.value(v).producer = id;
  }
}

void to_training_form(Graph& graph, bool batch_statistics) {
  const Readers readers(graph);
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    const Node& n = graph.node(id);
    if (n.removed || !n.domain.empty()) continue;
    if (n.op_type == "Dropout") dropout_to_training(graph, id);
    if (n.op_type != "BatchNormalization") continue;
    if (batch_statistics) {
      batch_norm_to_training(graph, id, readers);
    } else if (keep_first_output(graph, id, readers)) {
      graph.node(id).attributes.erase("training_mode");
    }
  }
}

void to_inference_form(Graph& graph) {
  const Readers readers(graph);
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    Node& n = graph.node(id);
    for (Subgraph& s : n.subgraphs) to_inference_form(*s.graph);
    if (n.removed || !n.domain.empty()) continue;
    if (n.op_type == "Dropout" && n.inputs.size() > 2) n.inputs.resize(2);
    if (is_batch_norm(n) && keep_first_output(graph, id, readers)) n.attributes.erase("training_mode");
  }
}

std::vector<ValueId> running_statistics(const Graph& graph) {
  std::vector<ValueId> out;
  for (const Node& n : graph.nodes()) {
    if (!is_batch_norm(n)) continue;
    out.push_back(n.inputs.at(BatchNormIn::kMean));
    out.push_back(n.inputs.at(BatchNormIn::kVariance));
  }
  return out;
}

}  // namespace sdx::train
