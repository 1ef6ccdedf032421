#include "ops/gradients/flow/decompose.h"

#include "ops/backward.h"
#include "ops/infer.h"

namespace sdx::ops::flow {
namespace {

// Takes over the nodes of `from` that `wanted` needs. `known`: by value of `from` the one that stands for it.
void take_over(Graph& graph, const Graph& from, std::vector<ValueId> known, std::vector<ValueId>& wanted) {
  const std::vector<bool> needed = needed_for(from, wanted);
  known.resize(from.values().size(), kNoValue);
  const auto map = [&](ValueId v) {
    if (v == kNoValue || known[v] != kNoValue) return v == kNoValue ? v : known[v];
    const ValueInfo& info = from.value(v);
    known[v] = info.constant ? graph.add_constant(info.name, *info.constant) : graph.add_value(info.name, info.type);
    return known[v];
  };
  for (const Node& n : from.nodes()) {
    bool used = false;
    for (const ValueId v : n.outputs) used = used || (v != kNoValue && needed[v]);
    if (n.removed || !used) continue;
    Node copy = n;
    for (ValueId& v : copy.inputs) v = map(v);
    for (Subgraph& s : copy.subgraphs) {
      for (ValueId& v : s.captures) v = map(v);
    }
    for (ValueId& v : copy.outputs) v = map(v);
    graph.add_node(std::move(copy));
  }
  for (ValueId& v : wanted) v = map(v);
}

}  // namespace

void differentiate(GradientContext& c, const Formula& formula) {
  Graph apart;
  std::vector<ValueId> known;  // by value of `apart`, whose first values are its inputs
  const auto input = [&](Expr e) {
    if (!e) return kNoValue;
    const ValueInfo& info = c.graph().value(e.id);
    if (info.constant && !info.is_input) {
      known.push_back(e.id);
      return apart.add_constant(info.name, *info.constant);
    }
    known.push_back(e.id);
    return apart.add_input(info.name, info.type);
  };
  std::vector<ValueId> inputs, arrived;
  for (std::size_t i = 0; i < c.num_inputs(); ++i) inputs.push_back(input(c.in(i)));
  for (std::size_t i = 0; i < c.node().outputs.size(); ++i) arrived.push_back(input(c.dy(i)));
  DataType elem = DataType::undefined;
  std::vector<ValueId> sources;
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!c.wants(i)) continue;
    if (sources.empty()) elem = c.graph().value(c.in(i).id).type.elem;
    sources.push_back(inputs[i]);
    numbers.push_back(i);
  }
  GradientContext writer(apart, elem);
  std::vector<Expr> given;
  for (const ValueId v : inputs) given.push_back(v == kNoValue ? Expr{} : writer.expr(v));
  const std::vector<Expr> outputs = formula(writer, given);
  infer_in_place(apart);
  std::vector<Seed> seeds;
  for (std::size_t i = 0; i < arrived.size() && i < outputs.size(); ++i) {
    if (arrived[i] != kNoValue && outputs[i]) seeds.push_back({outputs[i].id, arrived[i]});
  }
  std::vector<ValueId> found;
  std::vector<std::size_t> of;
  const std::vector<ValueId> gradients = append_backward(apart, seeds, sources, c.fused());
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i] == kNoValue) continue;
    found.push_back(gradients[i]);
    of.push_back(numbers[i]);
  }
  take_over(c.graph(), apart, known, found);
  for (std::size_t i = 0; i < found.size(); ++i) c.set(of[i], c.expr(found[i]));
}

}  // namespace sdx::ops::flow
