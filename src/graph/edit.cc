#include "graph/edit.h"

#include <algorithm>
#include <span>

#include "tensor/element.h"

namespace sdx {
namespace {

void replace_in(Graph& g, ValueId from, ValueId to, const std::vector<NodeId>& readers) {
  for (const NodeId id : readers) {
    Node& n = g.node(id);
    std::replace(n.inputs.begin(), n.inputs.end(), from, to);
    for (Subgraph& s : n.subgraphs) std::replace(s.captures.begin(), s.captures.end(), from, to);
  }
}

template <class F>
void for_each_read(const Node& n, F&& fn) {
  for (const ValueId v : n.inputs) {
    if (v != kNoValue) fn(v);
  }
  for (const Subgraph& s : n.subgraphs) {
    for (const ValueId v : s.captures) fn(v);
  }
}

}  // namespace

bool is_binary(const Node& n, std::string_view op) {
  return is_op(n, op) && n.version >= 7 && n.inputs.size() == 2 && n.outputs.size() == 1;
}

const Tensor* constant_of(const Graph& g, ValueId v) {
  if (v == kNoValue) return nullptr;
  const ValueInfo& info = g.value(v);
  return info.constant && !info.is_input ? &*info.constant : nullptr;
}

const Tensor* fixed_value(const Graph& g, ValueId v) {
  if (v == kNoValue) return nullptr;
  const NodeId id = g.value(v).producer;
  if (id == kNoNode) return constant_of(g, v);
  if (!is_op(g.node(id), "Constant")) return nullptr;
  const AttributeValue* held = g.node(id).attributes.find("value");
  return held == nullptr ? nullptr : std::get_if<Tensor>(held);
}

std::optional<double> scalar_value(const Graph& g, ValueId v) {
  const Tensor* t = constant_of(g, v);
  if (t == nullptr || t->size() != 1) return std::nullopt;
  if (t->dtype() != DataType::float32 && t->dtype() != DataType::float64) return std::nullopt;
  return element_as_double(*t, 0);
}

bool is_output(const Graph& g, ValueId v) { return std::find(g.outputs().begin(), g.outputs().end(), v) != g.outputs().end(); }

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
  return x != nullptr && y != nullptr && *x == *y;
}

const Node* made_by(const Graph& g, ValueId v, std::string_view op, std::size_t inputs) {
  if (v == kNoValue || g.value(v).producer == kNoNode) return nullptr;
  const Node& n = g.node(g.value(v).producer);
  return is_op(n, op) && n.inputs.size() == inputs ? &n : nullptr;
}

Readers::Readers(const Graph& g) : g_(&g), nodes_(g.uses()), known_(static_cast<NodeId>(g.nodes().size())) {}

const std::vector<NodeId>& Readers::of(ValueId v) const {
  static const std::vector<NodeId> none;
  return v < nodes_.size() ? nodes_[v] : none;
}

NodeId Readers::only(ValueId v) const {
  const std::vector<NodeId>& all = of(v);
  if (all.size() != 1 || is_output(*g_, v)) return kNoNode;
  const Node& reader = g_->node(all[0]);
  return reader.removed || !reader.subgraphs.empty() ? kNoNode : all[0];
}

bool Readers::is_read(ValueId v) const {
  return is_output(*g_, v) || std::ranges::any_of(of(v), [&](NodeId id) { return !g_->node(id).removed; });
}

void Readers::add(ValueId v, NodeId reader) {
  if (v >= nodes_.size()) nodes_.resize(v + 1);
  if (nodes_[v].empty() || nodes_[v].back() != reader) nodes_[v].push_back(reader);
}

void Readers::clear(ValueId v) {
  if (v < nodes_.size()) nodes_[v].clear();
}

void Readers::update() {
  for (; known_ < g_->nodes().size(); ++known_) {
    for_each_read(g_->node(known_), [&](ValueId v) { add(v, known_); });
  }
}

void Readers::remove_node(Graph& g, NodeId id) {
  for_each_read(g.node(id), [&](ValueId v) {
    if (v < nodes_.size()) std::erase(nodes_[v], id);
  });
  g.remove_node(id);
}

void Readers::replace_in_nodes(Graph& g, ValueId from, ValueId to) {
  const std::vector<NodeId> readers = of(from);
  clear(from);
  replace_in(g, from, to, readers);
  for (const NodeId id : readers) {
    if (!g.node(id).removed) add(to, id);  // those that are gone read nothing
  }
}

void Readers::replace(Graph& g, ValueId from, ValueId to) {
  if (is_output(g, from)) g.replace_uses(from, to);  // only this replaces an output
  replace_in_nodes(g, from, to);
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

Attributes attributes_of(AttributeList list) {
  Attributes out;
  for (const auto& [name, value] : list) out.set(name, value);
  return out;
}

Node make_node(std::string name, std::string op, int version, std::vector<ValueId> inputs, Attributes attributes,
               std::string domain) {
  Node n;
  n.name = std::move(name);
  n.op_type = std::move(op);
  n.domain = std::move(domain);
  n.version = version;
  n.inputs = std::move(inputs);
  n.attributes = std::move(attributes);
  return n;
}

ValueId add_node(Graph& g, Node n, ValueId out) {
  n.outputs = {out};
  g.add_node(std::move(n));
  return out;
}

ValueId add_node(Graph& g, Node n, const std::string& out, Type type) {
  return add_node(g, std::move(n), g.add_value(out, std::move(type)));
}

ValueId shape_constant(Graph& g, const std::string& name, const std::vector<std::int64_t>& extents) {
  const auto rank = static_cast<std::int64_t>(extents.size());
  return g.add_constant(name, Tensor::of<std::int64_t>({rank}, std::span<const std::int64_t>(extents)));
}

ValueId add_reshape(Graph& g, const std::string& name, int version, ValueId v, const std::string& shape_name,
                    const std::vector<std::int64_t>& to, ValueId out) {
  return add_node(g, make_node(name, "Reshape", version, {v, shape_constant(g, shape_name, to)}), out);
}

}  // namespace sdx
