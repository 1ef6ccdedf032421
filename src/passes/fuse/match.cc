#include "passes/fuse/match.h"

#include <algorithm>
#include <span>

#include "ops/tensor/signatures.h"
#include "tensor/element.h"

namespace sdx::fuse {

const Tensor* constant_value(const Graph& g, ValueId v) {
  if (v == kNoValue) return nullptr;
  const ValueInfo& info = g.value(v);
  return info.constant && !info.is_input ? &*info.constant : nullptr;
}

const Tensor* constant_input(const Graph& g, const Node& n, std::size_t i) {
  return i < n.inputs.size() ? constant_value(g, n.inputs[i]) : nullptr;
}

std::optional<double> scalar_value(const Graph& g, ValueId v) {
  const Tensor* t = constant_value(g, v);
  if (t == nullptr || t->size() != 1) return std::nullopt;
  if (t->dtype() != DataType::float32 && t->dtype() != DataType::float64) return std::nullopt;
  return element_as_double(*t, 0);
}

bool is_output(const Graph& g, ValueId v) { return std::find(g.outputs().begin(), g.outputs().end(), v) != g.outputs().end(); }

NodeId only_reader(const Graph& g, ValueId v, const Uses& uses) {
  if (v >= uses.size() || uses[v].size() != 1 || is_output(g, v)) return kNoNode;
  const Node& reader = g.node(uses[v][0]);
  return reader.removed || !reader.subgraphs.empty() ? kNoNode : uses[v][0];
}

namespace {

void replace_in(Graph& g, ValueId from, ValueId to, const std::vector<NodeId>& readers) {
  for (const NodeId id : readers) {
    Node& n = g.node(id);
    std::replace(n.inputs.begin(), n.inputs.end(), from, to);
    for (Subgraph& s : n.subgraphs) std::replace(s.captures.begin(), s.captures.end(), from, to);
  }
}

}  // namespace

void replace_readers(Graph& g, ValueId from, ValueId to, const std::vector<NodeId>& readers) {
  if (is_output(g, from)) return g.replace_uses(from, to);  // only this replaces an output
  replace_in(g, from, to, readers);
}

void replace_nodes_uses(Graph& g, ValueId from, ValueId to, Uses& uses) {
  if (std::max(from, to) >= uses.size()) uses.resize(std::max(from, to) + 1);
  const std::vector<NodeId> readers = std::move(uses[from]);
  uses[from].clear();
  replace_in(g, from, to, readers);
  // Each once; those that are gone read nothing.
  for (const NodeId id : readers) {
    if (!g.node(id).removed && (uses[to].empty() || uses[to].back() != id)) uses[to].push_back(id);
  }
}

void replace_uses(Graph& g, ValueId from, ValueId to, Uses& uses) {
  if (is_output(g, from)) g.replace_uses(from, to);
  replace_nodes_uses(g, from, to, uses);
}

void replace_outputs(Graph& g, const std::map<ValueId, ValueId>& by) {
  if (by.empty()) return;
  const std::vector<ValueId> values = g.outputs();
  const std::vector<std::string> names = g.output_names();
  for (std::size_t i = values.size(); i-- > 0;) g.remove_output(i);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto other = by.find(values[i]);
    g.add_output(other == by.end() ? values[i] : other->second, names[i]);
  }
}

const Node* made_by(const Graph& g, ValueId v, std::string_view op, std::size_t inputs) {
  if (v == kNoValue || g.value(v).producer == kNoNode) return nullptr;
  const Node& n = g.node(g.value(v).producer);
  const bool fits = !n.removed && n.domain.empty() && n.op_type == op && n.inputs.size() == inputs;
  return fits ? &n : nullptr;
}

bool is_f32(const Graph& g, ValueId v) {
  if (v == kNoValue) return false;
  const Type& t = g.value(v).type;
  return t.is_tensor() && t.elem == DataType::float32;
}

const SymShape* shape_of(const Graph& g, ValueId v) {
  if (v == kNoValue) return nullptr;
  const Type& t = g.value(v).type;
  return t.is_tensor() && t.shape ? &*t.shape : nullptr;
}

bool same_shape(const Graph& g, ValueId a, ValueId b) {
  const SymShape *x = shape_of(g, a), *y = shape_of(g, b);
  return x != nullptr && y != nullptr && x->size() == y->size() && std::equal(x->begin(), x->end(), y->begin());
}

bool has_perm(const Node& n, std::initializer_list<std::int64_t> wanted) { return ops::parse<ops::TransposeAttrs>(n).is(wanted); }

bool is_binary(const Node& n, std::string_view op) {
  return !n.removed && n.domain.empty() && n.op_type == op && n.version >= 7 && n.inputs.size() == 2 && n.outputs.size() == 1;
}

ValueId shape_constant(Graph& g, const std::string& name, const std::vector<std::int64_t>& extents) {
  const auto rank = static_cast<std::int64_t>(extents.size());
  return g.add_constant(name, Tensor::of<std::int64_t>({rank}, std::span<const std::int64_t>(extents)));
}

ValueId add_reshape(Graph& g, const std::string& name, int version, ValueId v, const std::string& shape_name,
                    const std::vector<std::int64_t>& to, ValueId out) {
  Node n;
  n.name = name;
  n.op_type = "Reshape";
  n.version = version;
  n.inputs = {v, shape_constant(g, shape_name, to)};
  n.outputs = {out};
  g.add_node(std::move(n));
  return out;
}

}  // namespace sdx::fuse
