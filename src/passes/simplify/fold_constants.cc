#include "base/error.h"
#include "base/log.h"
#include "ops/context.h"
#include "ops/op.h"
#include "passes/pass.h"
#include "passes/simplify/simplify.h"

namespace sdx::simplify {
namespace {

constexpr std::size_t kAlwaysFold = std::size_t{16} << 20;

class FoldServices : public ops::RunServices {
 public:
  std::vector<Value> run_subgraph(const Node&, std::size_t, std::vector<Value>) override {
    fail(ErrorCode::internal, "operators with subgraphs are not folded");
  }
  const StopCondition& stop() const override { return stop_; }
  std::uint64_t next_seed() override { return 0; }

 private:
  StopCondition stop_;
};

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
  // Dequantised weights stay as they are: integer kernels want the integers, and the file is four times smaller.
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
  std::vector<Value> outputs(node.outputs.size());
  std::vector<Value*> out(node.outputs.size(), nullptr);
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (node.outputs[i] != kNoValue) out[i] = &outputs[i];
  }
  FoldServices services;
  ops::OpContext context(node, in, out, services);
  try {
    ops::find(node)->run(context);
  } catch (Error& e) {
    if (e.code() == ErrorCode::internal || e.code() == ErrorCode::out_of_memory) {
      e.add_context("in " + graph.describe(id));
      throw;
    }
    return false;  // it may stand in a branch that is never taken: left for run time to report
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i] != nullptr && !outputs[i].is_tensor()) return false;
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

}  // namespace sdx::simplify
