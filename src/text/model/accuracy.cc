#include "text/model/accuracy.h"

#include <cstdint>

#include "base/error.h"

namespace sdx::text {
namespace {

bool has_blocks(const Node& n) {
  if (n.domain == "sdx") return n.op_type == "GgmlMatMul" || n.op_type == "GgmlExperts";
  return n.domain == "com.microsoft" && n.op_type == "MatMulNBits";
}

}  // namespace

void check_accuracy_level(int level) {
  if (level >= 0 && level <= 4) return;
  fail(ErrorCode::invalid_argument,
       "accuracy_level must be 0 (what the model's files ask for), 1 (float32), 2 (float16), 3 (bfloat16) or 4 (int8), received "
       "{}",
       level);
}

void set_accuracy_level(Graph& graph, int level) {
  if (level == 0) return;
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    Node& node = graph.node(id);
    if (has_blocks(node)) node.attributes.set("accuracy_level", std::int64_t{level});
    for (Subgraph& s : node.subgraphs) set_accuracy_level(*s.graph, level);
  }
}

}  // namespace sdx::text
