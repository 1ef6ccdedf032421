// Source: SiLU as exporters write it, x * Sigmoid(x): two steps that read and write the whole tensor become one.

#include "graph/edit.h"
#include "passes/fuse/fuse.h"

namespace sdx::fuse {
namespace {

constexpr int kSwishOpset = 24;

// Turns the multiplication that follows Sigmoid `id` into the fused node.
bool fuse_sigmoid(Graph& g, NodeId id, const Readers& readers) {
  const Node& sigmoid = g.node(id);
  if (sigmoid.removed || sigmoid.op_type != "Sigmoid" || !sigmoid.domain.empty()) return false;
  const ValueId x = sigmoid.inputs.at(0), s = sigmoid.outputs.at(0);
  if (x == kNoValue || s == kNoValue || is_output(g, s) || readers.of(s).size() != 1) return false;
  const Type& type = g.value(x).type;
  if (!type.is_tensor() || type.elem != DataType::float32) return false;
  const int version = sigmoid.version;
  Node& mul = g.node(readers.of(s)[0]);
  if (mul.removed || mul.op_type != "Mul" || !mul.domain.empty() || mul.version < 7 || mul.inputs.size() != 2) return false;
  const bool fits = (mul.inputs[0] == x && mul.inputs[1] == s) || (mul.inputs[0] == s && mul.inputs[1] == x);
  if (!fits) return false;
  mul.inputs = {x};
  mul.attributes = {};
  mul.attributes.set("alpha", 1.0F);
  if (version >= kSwishOpset) {
    mul.op_type = "Swish";
  } else {
    mul.op_type = "QuickGelu";
    mul.domain = "com.microsoft";
    mul.version = 1;
  }
  g.remove_node(id);
  return true;
}

}  // namespace

bool fuse_silu(Graph& graph) {
  bool changed = false;
  const Readers readers(graph);
  for (NodeId id = 0; id < graph.nodes().size(); ++id) changed = fuse_sigmoid(graph, id, readers) || changed;
  return changed;
}

}  // namespace sdx::fuse
