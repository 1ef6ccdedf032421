#include "train/step/in_place.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "graph/edit.h"
#include "ops/context.h"
#include "ops/custom.h"

namespace sdx::train {
namespace {

// Inputs of this room's operators are memory of its own, which is written though operators are given it to read.
float* writable(const ops::OpContext& c, std::size_t i) { return static_cast<float*>(const_cast<void*>(c.input(i).data())); }

bool guarded_off(const ops::OpContext& c) { return c.has_input(0) && !std::isfinite(static_cast<double>(*c.data<float>(0))); }

void infer_nothing(ops::InferContext&) {}
void infer_norm(ops::InferContext& c) { c.output(0, DataType::float32, SymShape{1}); }

void run_accumulate(ops::OpContext& c) {
  if (guarded_off(c)) return;
  cpu::accumulate_f32(c.data<float>(1), writable(c, 2), c.input(2).size());
}

void run_update(ops::OpContext& c) {
  if (guarded_off(c)) return;
  cpu::UpdateRule rule;
  std::memcpy(&rule, c.input(1).data(), sizeof rule);
  const float clip = c.attrs().get_float("clip", 0);
  if (clip > 0) rule.scale = clip_factor(static_cast<double>(*c.data<float>(0)), clip);
  std::vector<cpu::UpdateSlice> slices;
  for (std::size_t i = 2; i + 3 < c.num_inputs(); i += 4) {
    cpu::UpdateSlice s{writable(c, i), writable(c, i + 1), nullptr, nullptr, c.input(i).size()};
    if (c.has_input(i + 2)) s.m = writable(c, i + 2);
    if (c.has_input(i + 3)) s.v = writable(c, i + 3);
    slices.push_back(s);
  }
  cpu::update_f32(rule, slices);
}

void run_norm(ops::OpContext& c) {
  float norm = NAN;
  if (!guarded_off(c)) {
    std::vector<cpu::FloatSpan> spans;
    for (std::size_t i = 1; i < c.num_inputs(); ++i) spans.push_back({c.data<float>(i), c.input(i).size()});
    norm = norm_of(spans);
  }
  c.output(0, DataType::float32, {1}).mutable_values<float>()[0] = norm;
}

void infer_copy(ops::InferContext& c) { c.output(0, c.type(0)); }

void run_copy(ops::OpContext& c) {
  const Tensor& from = c.input(0);
  Tensor& to = c.output(0, from.dtype(), from.shape());
  if (from.bytes() != 0) std::memcpy(to.mutable_data(), from.data(), from.bytes());
}

using Op = std::shared_ptr<const ops::CustomOp>;

Op make_op(const char* name, ops::InferFn infer, ops::RunFn run) {
  auto op = std::make_shared<ops::CustomOp>(ops::CustomOp{ops::OpDef("sdx.train", name, 1), {}, {}, {}});
  op->def.in("inputs", "", ops::types::any_tensor, ops::Arity::variadic);
  op->def.out("outputs", "", ops::types::any_tensor, ops::Arity::optional);
  op->def.infer = infer;
  op->def.run = run;
  return op;
}

Node node_of(const Op& op, std::vector<ValueId> inputs) {
  Node node;
  node.domain = op->def.domain;
  node.op_type = node.name = op->def.name;
  node.version = 1;
  node.custom = op;
  node.inputs = std::move(inputs);
  return node;
}

// Whether the node's results may share the memory of its inputs.
bool may_share(const Graph& graph, const Node& node) {
  const bool known = node.domain.empty() || node.domain == "com.microsoft" || node.domain == "sdx";
  if (!node.subgraphs.empty() || !known) return true;
  for (const char* op : {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Transpose", "Dropout", "DropoutGrad",
                         "PassThrough", "UnblockChannels"}) {
    if (node.op_type == op) return true;
  }
  return std::any_of(node.outputs.begin(), node.outputs.end(),
                     [&](ValueId v) { return v != kNoValue && !graph.value(v).type.is_tensor(); });
}

// Finds the last read of a value's memory.
class LastReads {
 public:
  explicit LastReads(const Graph& graph) : graph_(graph), readers_(graph), before_(graph.values().size(), SIZE_MAX) {}

  // The number of nodes that must precede one that writes there.
  std::size_t before_writing(ValueId v) {
    if (before_[v] != SIZE_MAX) return before_[v];
    std::size_t at = made_before(v);
    for (const NodeId id : readers_.of(v)) {
      const Node& node = graph_.node(id);
      at = std::max<std::size_t>(at, id + 1);
      if (!may_share(graph_, node)) continue;
      for (const ValueId made : node.outputs) {
        if (made != kNoValue) at = std::max(at, before_writing(made));
      }
    }
    return before_[v] = at;
  }
  std::size_t made_before(ValueId v) const {
    const NodeId producer = graph_.value(v).producer;
    return producer == kNoNode ? 0 : producer + 1;
  }

 private:
  const Graph& graph_;
  Readers readers_;
  std::vector<std::size_t> before_;  // by value; SIZE_MAX: not known yet
};

}  // namespace

InPlaceNode accumulate_node(ValueId guard, ValueId gradient, ValueId buffer) {
  static const Op& op = *new Op(make_op("Accumulate", infer_nothing, run_accumulate));
  return {node_of(op, {guard, gradient, buffer}), {buffer}, SIZE_MAX, false};
}

InPlaceNode update_node(ValueId guard, ValueId rule, const std::vector<UpdateValues>& values, float clip) {
  static const Op& op = *new Op(make_op("Update", infer_nothing, run_update));
  InPlaceNode made{node_of(op, {guard, rule}), {}, SIZE_MAX, false};
  for (const UpdateValues& u : values) {
    for (const ValueId v : {u.parameter, u.gradient, u.m, u.v}) made.node.inputs.push_back(v);
    for (const ValueId v : {u.parameter, u.m, u.v}) {
      if (v != kNoValue) made.written.push_back(v);
    }
  }
  if (clip > 0) made.node.attributes.set("clip", clip);
  return made;
}

InPlaceNode norm_node(ValueId guard, const std::vector<ValueId>& gradients, ValueId norm) {
  static const Op& op = *new Op(make_op("GradientNorm", infer_norm, run_norm));
  std::vector<ValueId> inputs{guard};
  inputs.insert(inputs.end(), gradients.begin(), gradients.end());
  InPlaceNode made{node_of(op, std::move(inputs)), {}, SIZE_MAX, false};
  made.node.outputs = {norm};
  return made;
}

float norm_of(std::span<const cpu::FloatSpan> gradients) {
  const auto quick = static_cast<float>(std::sqrt(cpu::sum_of_squares_f32(gradients)));
  if (std::isfinite(quick)) return quick;
  double squares = 0;  // of numbers whose squares are beyond float32
  for (const cpu::FloatSpan& g : gradients) {
    for (const float v : std::span(g.data, static_cast<std::size_t>(g.n))) squares += static_cast<double>(v) * v;
  }
  if (!std::isfinite(squares)) return NAN;
  return static_cast<float>(std::min(std::sqrt(squares), static_cast<double>(std::numeric_limits<float>::max())));
}

float clip_factor(double norm, float clip) {
  return static_cast<float>(std::min(1.0, static_cast<double>(clip) / (norm + 1e-6)));
}

void own_gradients(Graph& graph, std::vector<UpdateValues>& values) {
  static const Op& op = *new Op(make_op("Copy", infer_copy, run_copy));
  std::vector<bool> borrowed(graph.values().size(), false);
  for (const ValueId v : graph.inputs()) borrowed[v] = true;
  for (const Node& node : graph.nodes()) {  // in order
    const auto lent = [&](ValueId v) { return v != kNoValue && borrowed[v]; };
    bool any = std::any_of(node.inputs.begin(), node.inputs.end(), lent);
    for (const Subgraph& s : node.subgraphs) any = any || std::any_of(s.captures.begin(), s.captures.end(), lent);
    if (node.removed || !any || !may_share(graph, node)) continue;
    for (const ValueId v : node.outputs) {
      if (v != kNoValue) borrowed[v] = true;
    }
  }
  for (UpdateValues& u : values) {
    if (!borrowed[u.gradient]) continue;
    Node copy = node_of(op, {u.gradient});
    u.gradient = graph.add_value("gradient", graph.value(u.gradient).type);
    copy.outputs = {u.gradient};
    graph.add_node(std::move(copy));
  }
}

void insert_in_place(Graph& graph, std::vector<InPlaceNode> nodes) {
  LastReads reads(graph);
  const std::size_t count = graph.nodes().size();
  std::vector<std::size_t> at(nodes.size(), 0);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const ValueId v : nodes[i].node.inputs) {
      if (v != kNoValue) at[i] = std::max(at[i], reads.made_before(v));
    }
    for (const ValueId v : nodes[i].written) at[i] = std::max(at[i], reads.before_writing(v));
    if (nodes[i].after < i) at[i] = std::max(at[i], at[nodes[i].after]);
    if (nodes[i].last) at[i] = count;
  }
  std::vector<Node> order;
  for (std::size_t n = 0; n <= count; ++n) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (at[i] == n) order.push_back(std::move(nodes[i].node));
    }
    if (n == count) break;
    order.push_back(graph.node(static_cast<NodeId>(n)));
    graph.remove_node(static_cast<NodeId>(n));
  }
  for (Node& node : order) graph.add_node(std::move(node));
  graph.compact();
}

}  // namespace sdx::train
