#include "providers/vulkan/operators.h"

#include <algorithm>
#include <map>

namespace sdx::vulkan {
namespace {

// What computes extents from extents. Others may do so, too, but these are cheap and of few elements.
constexpr std::string_view kOnHost[] = {"Shape", "Size",     "Gather",  "Slice",     "Concat",  "Add",   "Sub",       "Mul",
                                        "Div",   "Cast",     "Squeeze", "Unsqueeze", "Reshape", "Where", "Min",       "Max",
                                        "Equal", "Identity", "Floor",   "Ceil",      "Neg",     "Mod",   "ReduceProd"};

const Operators& operators() {
  static const Operators& all = *new const Operators([] {
    Operators made;
    add_activations(made);
    add_arithmetic(made);
    add_attention(made);
    add_resize(made);
    add_convolutions(made);
    add_logic(made);
    add_movement(made);
    add_padding(made);
    add_pools(made);
    add_products(made);
    add_rows(made);
    add_views(made);
    return made;
  }());
  return all;
}

// At most one axis, and of few elements: inference keeps the elements of such values.
bool is_small(const Type& type) {
  return type.is_tensor() && type.shape && type.shape->size() <= 1 && type.elem != DataType::string;
}

}  // namespace

std::string NodeFacts::all_floats() const {
  for (std::size_t i = 0; i < inputs(); ++i) {
    if (has(i) && !is_float(i)) return "input " + std::to_string(i) + " is not float32";
  }
  return "";
}

std::string NodeFacts::all_floats_of_rank() const {
  for (std::size_t i = 0; i < inputs(); ++i) {
    if (has(i) && (rank(i) < 0 || rank(i) > static_cast<int>(kMostAxes))) {
      return "input " + std::to_string(i) + (rank(i) < 0 ? " has an unknown rank" : " has more than 6 axes");
    }
  }
  return all_floats();
}

const Operator* find_operator(const Node& node) {
  static const auto& by_name = *new const std::multimap<std::string_view, const Operator*>([] {
    std::multimap<std::string_view, const Operator*> made;
    for (const Operator& o : operators()) made.emplace(o.name, &o);
    return made;
  }());
  const auto [first, last] = by_name.equal_range(node.op_type);
  const auto it = std::find_if(first, last, [&](const auto& entry) { return entry.second->domain == node.domain; });
  return it == last ? nullptr : it->second;
}

std::vector<bool> values_on_host(const Graph& graph) {
  std::vector<bool> known(graph.values().size(), false);
  for (ValueId v = 0; v < known.size(); ++v) known[v] = graph.value(v).constant.has_value() && !graph.value(v).is_input;
  for (const Node& node : graph.nodes()) {
    if (node.removed || !node.domain.empty() || !node.subgraphs.empty() || node.custom) continue;
    if (std::find(std::begin(kOnHost), std::end(kOnHost), node.op_type) == std::end(kOnHost)) continue;
    const bool extents = node.op_type == "Shape" || node.op_type == "Size";
    const bool inputs =
        extents || std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return v == kNoValue || known[v]; });
    const bool outputs = std::all_of(node.outputs.begin(), node.outputs.end(),
                                     [&](ValueId v) { return v == kNoValue || is_small(graph.value(v).type); });
    if (!inputs || !outputs) continue;
    for (const ValueId v : node.outputs) {
      if (v != kNoValue) known[v] = true;
    }
  }
  return known;
}

bool runs_on_host(const Node& node, const std::vector<bool>& on_host) {
  return std::all_of(node.outputs.begin(), node.outputs.end(), [&](ValueId v) { return v == kNoValue || on_host[v]; });
}

std::vector<std::string> refusals(const Graph& graph) {
  const std::vector<bool> on_host = values_on_host(graph);
  std::vector<std::string> out(graph.nodes().size());
  for (NodeId id = 0; id < out.size(); ++id) {
    const Node& node = graph.node(id);
    if (node.removed || runs_on_host(node, on_host)) continue;
    const Operator* op = node.custom || !node.subgraphs.empty() ? nullptr : find_operator(node);
    out[id] = op == nullptr ? "vulkan has no shader for " + node.op_type : op->refusal(NodeFacts(graph, node, on_host));
  }
  return out;
}

}  // namespace sdx::vulkan
