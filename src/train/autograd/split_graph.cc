#include "train/autograd/split_graph.h"

#include <algorithm>
#include <map>
#include <utility>

#include "graph/edit.h"
#include "ops/infer.h"
#include "passes/expand_gradients.h"
#include "passes/pass.h"

namespace sdx::train {
namespace {

// Inferred values, mostly shapes, become constants, so that they need not be kept.
void settle_known(Graph& graph) {
  std::vector<Type> types;
  for (const ValueId v : graph.inputs()) types.push_back(graph.value(v).type);
  const ops::InferResult known = ops::infer(graph, types);
  std::vector<NodeId> done;
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    const Node& n = graph.node(id);
    if (n.removed) continue;
    const auto settled = [&](ValueId v) { return v == kNoValue || (known.values.contains(v) && !is_output(graph, v)); };
    if (std::all_of(n.outputs.begin(), n.outputs.end(), settled)) done.push_back(id);
  }
  for (const NodeId id : done) {
    const std::vector<ValueId> outputs = graph.node(id).outputs;
    graph.remove_node(id);
    for (const ValueId v : outputs) {
      if (v != kNoValue) graph.value(v).constant = known.values.at(v);
    }
  }
}

template <class F>
void for_each_operand(const Node& n, F&& fn) {
  for (const ValueId v : n.inputs) {
    if (v != kNoValue) fn(v);
  }
  for (const Subgraph& s : n.subgraphs) std::for_each(s.captures.begin(), s.captures.end(), fn);
}

// For each node, whether one of `values` needs it.
std::vector<bool> needed_by(const Graph& graph, const std::vector<ValueId>& values) {
  std::vector<bool> wanted(graph.values().size(), false), nodes(graph.nodes().size(), false);
  for (const ValueId v : values) wanted[v] = true;
  for (NodeId id = static_cast<NodeId>(graph.nodes().size()); id-- > 0;) {
    const Node& n = graph.node(id);
    if (n.removed) continue;
    nodes[id] = std::any_of(n.outputs.begin(), n.outputs.end(), [&](ValueId v) { return v != kNoValue && wanted[v]; });
    if (nodes[id]) for_each_operand(n, [&](ValueId v) { wanted[v] = true; });
  }
  return nodes;
}

// Part of a graph as a graph of its own.
class Part {
 public:
  explicit Part(const Graph& from) : from_(from) {}

  void add_input(ValueId v) { inner_[v] = part_.add_input(from_.value(v).name, from_.value(v).type); }
  void add_node(NodeId id) {
    Node copy = from_.node(id);
    for (ValueId& v : copy.inputs) v = v == kNoValue ? v : operand(v);
    for (Subgraph& s : copy.subgraphs) {
      for (ValueId& v : s.captures) v = operand(v);
    }
    for (ValueId& v : copy.outputs) {
      if (v == kNoValue) continue;
      const ValueId made = part_.add_value(from_.value(v).name, from_.value(v).type);
      inner_[v] = made;
      v = made;
    }
    part_.add_node(std::move(copy));
  }
  void add_output(ValueId v) { part_.add_output(operand(v)); }
  // A value that no other output shares memory with.
  void add_copied_output(ValueId v) {
    part_.add_output(sdx::add_node(part_, make_node({}, "Identity", 21, {operand(v)}), "copy", from_.value(v).type));
  }
  bool has(ValueId v) const { return inner_.contains(v); }
  Graph take() { return std::move(part_); }

 private:
  ValueId operand(ValueId v) {
    const auto it = inner_.find(v);
    if (it != inner_.end()) return it->second;
    return inner_[v] = part_.add_constant(from_.value(v).name, *from_.value(v).constant);
  }

  const Graph& from_;
  Graph part_;
  std::map<ValueId, ValueId> inner_;
};

bool is_constant(const Graph& graph, ValueId v) { return constant_of(graph, v) != nullptr; }

// The values that nodes of the second program read and the first computes, or that are the model's inputs.
std::vector<ValueId> read_by_others(const Graph& graph, const std::vector<bool>& in_first, const std::vector<bool>& in_second,
                                    const std::vector<ValueId>& results) {
  std::vector<ValueId> out;
  std::vector<bool> seen(graph.values().size(), false);
  const auto look = [&](ValueId v) {
    const NodeId producer = graph.value(v).producer;
    const bool own = producer != kNoNode && !in_first[producer];
    if (seen[v] || own || is_constant(graph, v)) return;
    seen[v] = true;
    out.push_back(v);
  };
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    if (in_second[id] && !in_first[id]) for_each_operand(graph.node(id), look);
  }
  std::for_each(results.begin(), results.end(), look);
  return out;
}

std::size_t number_of(const std::vector<ValueId>& list, ValueId v) {
  return static_cast<std::size_t>(std::find(list.begin(), list.end(), v) - list.begin());
}

Graph backward_part(const Graph& graph, const std::vector<ValueId>& inputs, const std::vector<bool>& in_first,
                    const std::vector<bool>& in_second, const std::vector<ValueId>& results) {
  Part part(graph);
  for (const ValueId v : inputs) part.add_input(v);
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    if (in_second[id] && !in_first[id]) part.add_node(id);
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    const bool again = number_of(results, results[i]) < i || number_of(inputs, results[i]) < inputs.size();
    if (again || is_constant(graph, results[i])) {
      part.add_copied_output(results[i]);
    } else {
      part.add_output(results[i]);
    }
  }
  return part.take();
}

// After the passes many values are read for nothing but their shape or type. By input.
std::vector<bool> still_read(Graph& graph) {
  const std::vector<ValueId> inputs = graph.inputs();
  std::vector<std::string> names;
  for (const ValueId v : inputs) names.push_back(graph.value(v).name);
  ops::infer_in_place(graph);
  run_passes(graph);
  const Readers readers(graph);
  std::vector<bool> out;
  for (const ValueId v : graph.inputs()) out.push_back(readers.is_read(v));
  return out;
}

void drop_unread(Graph& graph, const std::vector<bool>& read) {
  for (std::size_t i = read.size(); i-- > 0;) {
    if (!read[i]) graph.remove_input(i);
  }
  graph.drop_unused_values();
}

}  // namespace

SplitGraphs split_for_autograd(Graph graph, const std::vector<std::size_t>& differentiable, const std::vector<bool>& wanted) {
  const std::vector<ValueId> inputs = graph.inputs(), outputs = graph.outputs();
  std::vector<ValueId> xs, seeds, results;
  SplitGraphs j;
  std::vector<std::size_t> x_numbers;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!wanted[i]) continue;
    xs.push_back(inputs[i]);
    x_numbers.push_back(i);
  }
  for (const std::size_t i : differentiable) seeds.push_back(graph.add_input("gradient_of_output", graph.value(outputs[i]).type));
  GradientOptions options;
  options.fused = true;
  options.seed = seeds.at(0);
  for (std::size_t i = 1; i < seeds.size(); ++i) options.also.emplace_back(outputs[differentiable[i]], seeds[i]);
  const std::vector<ValueId> gradients = append_gradients(graph, outputs[differentiable[0]], xs, options);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i] == kNoValue) continue;
    results.push_back(gradients[i]);
    j.results.push_back(x_numbers[i]);
  }
  for (const ValueId v : results) graph.add_output(v);  // so that they stay what they are
  settle_known(graph);
  const std::vector<bool> in_first = needed_by(graph, outputs), in_second = needed_by(graph, results);
  // In the order of SplitGraphs: inputs, outputs, other kept values, seeds.
  const std::vector<ValueId> reads = read_by_others(graph, in_first, in_second, results);
  std::vector<ValueId> order[4];
  for (const ValueId v : reads) {
    if (number_of(seeds, v) < seeds.size()) continue;
    const bool input = number_of(inputs, v) < inputs.size(), output = number_of(outputs, v) < outputs.size();
    order[input ? 0 : output ? 1 : 2].push_back(v);
  }
  order[3] = seeds;
  std::vector<ValueId> all;
  for (const auto& part : order) all.insert(all.end(), part.begin(), part.end());
  j.backward = backward_part(graph, all, in_first, in_second, results);
  const std::vector<bool> read = still_read(j.backward);
  drop_unread(j.backward, read);
  Part forward(graph);
  for (const ValueId v : inputs) forward.add_input(v);
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    if (in_first[id]) forward.add_node(id);
  }
  for (const ValueId v : outputs) forward.add_output(v);
  std::size_t kept = outputs.size();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!read[i]) continue;
    const ValueId v = all[i];
    if (const std::size_t seed = number_of(seeds, v); seed < seeds.size()) {
      j.seeded.push_back(seed);
    } else if (const std::size_t input = number_of(inputs, v); input < inputs.size()) {
      j.from_inputs.push_back(input);
    } else if (const std::size_t output = number_of(outputs, v); output < outputs.size()) {
      j.from_outputs.push_back(output);
    } else {
      j.from_outputs.push_back(kept++);
      forward.add_output(v);
    }
  }
  j.forward = forward.take();
  return j;
}

}  // namespace sdx::train
