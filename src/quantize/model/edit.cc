#include "quantize/model/edit.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/suggest.h"
#include "quantize/model/model_file.h"

namespace sdx::quantize {
namespace {

bool has(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

void collect_names(const Graph& graph, bool subgraphs, std::set<std::string>& names) {
  for (const Node& n : graph.nodes()) {
    if (n.removed) continue;
    names.insert(node_name(graph, n));
    if (!subgraphs) continue;
    for (const Subgraph& s : n.subgraphs) collect_names(*s.graph, true, names);
  }
}

void check_known(const std::vector<std::string>& asked, const std::vector<std::string>& known, const char* what) {
  for (const std::string& name : asked) {
    if (has(known, name)) continue;
    const std::string near = closest(name, known);
    fail(ErrorCode::invalid_argument, "{} '{}'{}", what, name, near.empty() ? "" : "; did you mean '" + near + "'?");
  }
}

}  // namespace

bool is_float(DataType type) {
  return type == DataType::float32 || type == DataType::float16 || type == DataType::float64 || type == DataType::bfloat16;
}

Editor::Editor(Graph& graph, int opset) : graph_(graph), opset_(opset) {
  for (const Node& n : graph.nodes()) {
    if (!n.removed) names_.insert(n.name);
  }
}

ValueId Editor::value(const std::string& name, DataType type) {
  const ValueId v = graph_.add_value(name);
  graph_.value(v).type = Type::tensor(type);
  return v;
}

NodeId Editor::node(const std::string& name, const char* op, std::vector<ValueId> inputs, std::vector<ValueId> outputs,
                    Attributes attributes, const char* domain) {
  Node n = make_node(name, op, *domain == '\0' ? opset_ : 1, std::move(inputs), std::move(attributes), domain);
  for (int i = 1; !n.name.empty() && !names_.insert(n.name).second; ++i) n.name = name + "_" + std::to_string(i);
  n.outputs = std::move(outputs);
  return graph_.add_node(std::move(n));
}

ValueId Editor::op(const char* op, std::vector<ValueId> inputs, const std::string& output, Attributes attributes) {
  const ValueId out = value(output, DataType::undefined);
  node(graph_.value(out).name, op, std::move(inputs), {out}, std::move(attributes));
  return out;
}

Choice::Choice(const Graph& graph, const QuantSelection& selection, std::vector<std::string> known, bool subgraphs)
    : ops_(selection.op_types_to_quantize), only_(selection.nodes_to_quantize), without_(selection.nodes_to_exclude) {
  if (!selection.ignore_unknown) check_known(ops_, known, "this mode does not quantise the operator");
  if (ops_.empty()) ops_ = std::move(known);
  if (selection.ignore_unknown || (only_.empty() && without_.empty())) return;
  std::set<std::string> found;
  collect_names(graph, subgraphs, found);
  const std::vector<std::string> names(found.begin(), found.end());
  check_known(only_, names, "the model has no node");
  check_known(without_, names, "the model has no node");
}

bool Choice::wants(const Graph& graph, const Node& node) const {
  if (node.removed || !has(ops_, node.op_type)) return false;
  if (only_.empty() && without_.empty()) return true;
  const std::string name = node_name(graph, node);
  return (only_.empty() || has(only_, name)) && !has(without_, name);
}

void note_kept(QuantReport& report, const Graph& graph, const Node& node, std::string why) {
  report.kept.push_back({node_name(graph, node), node.op_type, std::move(why)});
}

void note_quantized(QuantReport& report, const std::string& op) {
  ++report.quantized;
  const auto at = std::find_if(report.quantized_by_op.begin(), report.quantized_by_op.end(),
                               [&](const auto& entry) { return entry.first == op; });
  if (at != report.quantized_by_op.end()) {
    ++at->second;
  } else {
    report.quantized_by_op.emplace_back(op, 1);
  }
}

}  // namespace sdx::quantize
