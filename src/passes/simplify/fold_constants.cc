#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "ops/evaluate.h"
#include "ops/op.h"
#include "passes/pass.h"
#include "passes/simplify/simplify.h"

namespace sdx::simplify {
namespace {

constexpr std::size_t kAlwaysFold = std::size_t{16} << 20;

bool may_fold(const Graph& graph, const Node& node) {
  if (node.removed || !node.subgraphs.empty() || node.outputs.empty()) return false;
  const ops::OpDef* def = ops::find(node);
  if (def == nullptr || !def->deterministic) return false;
  std::size_t in_bytes = 0;
  for (const ValueId v : node.inputs) {
    if (v == kNoValue) continue;
    const ValueInfo& info = graph.value(v);
    if (!info.constant || info.is_input) return false;
    in_bytes += info.constant->bytes();
  }
  std::size_t out_bytes = 0;
  for (const ValueId v : node.outputs) {
    if (v == kNoValue) continue;
    const Type& type = graph.value(v).type;
    if (!type.has_static_shape() || type.elem == DataType::undefined) return false;
    out_bytes += byte_size(type.elem, element_count(to_shape(*type.shape)));
  }
  // Dequantised weights stay for fold-dequantized: integer kernels want the integers.
  if (node.op_type == "DequantizeLinear" && in_bytes > 1024) return false;
  return out_bytes <= kAlwaysFold || out_bytes <= in_bytes;
}

bool fold(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  std::vector<Value> inputs(node.inputs.size());
  std::vector<const Value*> in(node.inputs.size(), nullptr);
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (node.inputs[i] == kNoValue) continue;
    inputs[i] = graph.value(node.inputs[i]).constant->aligned();
    in[i] = &inputs[i];
  }
  std::vector<Value> outputs;
  try {
    outputs = ops::evaluate(node, *ops::find(node), in);
  } catch (Error& e) {
    if (e.code() != ErrorCode::not_implemented && e.code() != ErrorCode::runtime_failure) {
      e.add_context("in " + graph.describe(id));
      throw;
    }
    return false;  // it may never run: left for run time to report
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (node.outputs[i] != kNoValue && !outputs[i].is_tensor()) return false;
  }
  const std::vector<ValueId> results = node.outputs;
  graph.remove_node(id);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i] == kNoValue) continue;
    ValueInfo& info = graph.value(results[i]);
    info.constant = outputs[i].tensor();
    info.type = Type::tensor(info.constant->dtype(), to_sym(info.constant->shape()));
  }
  return true;
}

}  // namespace

bool fold_constants(Graph& graph) {
  bool changed = false;
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    if (may_fold(graph, graph.node(id))) changed = fold(graph, id) || changed;
  }
  if (changed) sink_constants(graph);
  return changed;
}

bool fold_dequantized(Graph& graph) {
  bool changed = false;
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    const Node& node = graph.node(id);
    if (node.removed || node.op_type != "DequantizeLinear" || !node.domain.empty()) continue;
    const bool constant = std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) {
      return v == kNoValue || (graph.value(v).constant && !graph.value(v).is_input);
    });
    // Weights of less than a byte are those of models that would not fit memory as floats.
    if (!constant || is_sub_byte(graph.value(node.inputs[0]).type.elem)) continue;
    changed = fold(graph, id) || changed;
  }
  if (changed) sink_constants(graph);
  return changed;
}

}  // namespace sdx::simplify
