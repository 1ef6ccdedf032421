#include "onnx/graph_reader.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/suggest.h"
#include "onnx/attributes.h"
#include "onnx/types.h"
#include "ops/op.h"
#include "tensor/wire.h"

namespace sdx::reading {
namespace {

using wire::bytes;

// Finding duplicates takes time quadratic in the number of attributes.
constexpr std::size_t kMaxAttributes = 1024;

struct NodeMessage {
  std::string_view name, op_type, domain, overload;
  std::vector<std::string_view> inputs, outputs, attributes;
};

struct ValueMessage {
  std::string_view name, type;
};

struct GraphMessage {
  std::string_view name;
  std::vector<std::string_view> nodes, initializers, sparse, inputs, outputs, infos;
};

NodeMessage scan_node(std::string_view message) {
  NodeMessage m;
  wire::Reader r = wire::open(message);
  while (r.next()) {
    switch (r.tag_and_type()) {
      case bytes(1): m.inputs.push_back(wire::text(r)); break;
      case bytes(2): m.outputs.push_back(wire::text(r)); break;
      case bytes(3): m.name = wire::text(r); break;
      case bytes(4): m.op_type = wire::text(r); break;
      case bytes(5): m.attributes.push_back(wire::text(r)); break;
      case bytes(7): m.domain = wire::text(r); break;
      case bytes(8): m.overload = wire::text(r); break;
      default: r.skip();
    }
  }
  return m;
}

ValueMessage scan_value(std::string_view message) {
  ValueMessage m;
  wire::Reader r = wire::open(message);
  while (r.next()) {
    switch (r.tag_and_type()) {
      case bytes(1): m.name = wire::text(r); break;
      case bytes(2): m.type = wire::text(r); break;
      default: r.skip();
    }
  }
  return m;
}

GraphMessage scan_graph(std::string_view message) {
  GraphMessage m;
  wire::Reader r = wire::open(message);
  while (r.next()) {
    switch (r.tag_and_type()) {
      case bytes(1): m.nodes.push_back(wire::text(r)); break;
      case bytes(2): m.name = wire::text(r); break;
      case bytes(5): m.initializers.push_back(wire::text(r)); break;
      case bytes(11): m.inputs.push_back(wire::text(r)); break;
      case bytes(12): m.outputs.push_back(wire::text(r)); break;
      case bytes(13): m.infos.push_back(wire::text(r)); break;
      case bytes(15): m.sparse.push_back(wire::text(r)); break;
      default: r.skip();
    }
  }
  return m;
}

std::string describe(const NodeMessage& m) {
  const std::string type = (m.domain.empty() ? "" : std::string(m.domain) + ".") + std::string(m.op_type);
  if (!m.name.empty()) return fmt::format("node '{}' ({})", m.name, type);
  for (const std::string_view o : m.outputs) {
    if (!o.empty()) return fmt::format("node ({}) producing '{}'", type, o);
  }
  return fmt::format("node ({})", type);
}

// Graphs may be nested deep; the innermost places say enough.
void add_place(Error& e, std::string place) {
  if (e.context().size() < 8) e.add_context(std::move(place));
}

Type declared_type(const Scope& scope, std::string_view name) {
  const auto it = scope.declared.find(name);
  if (it == scope.declared.end()) return {};
  try {
    return read_type(it->second);
  } catch (Error& e) {
    e.add_context(fmt::format("in the type of value '{}'", name));
    throw;
  }
}

[[noreturn]] void undefined_value(const Scope& scope, std::string_view name, std::string_view reader) {
  std::vector<std::string> names;
  for (const Scope* s = &scope; s != nullptr && names.size() < 1000; s = s->parent) {
    for (const auto& [known, id] : s->names) {
      if (names.size() < 1000) names.emplace_back(known);
    }
  }
  const std::string near = closest(name, names);
  fail(ErrorCode::invalid_model, "{} '{}', which is not a graph input, an initializer, or an output of any node{}", reader, name,
       near.empty() ? "" : "; did you mean '" + near + "'?");
}

// --- nodes -------------------------------------------------------------------------------------------------------------

int version_of(State& state, const Scope& scope, const std::string& domain) {
  if (scope.instance != nullptr) {
    const auto& own = scope.instance->function->opsets;
    const auto it = own.find(domain);
    if (it != own.end()) return it->second;
  }
  const auto it = state.opsets->find(domain);
  if (it != state.opsets->end()) return it->second;
  // Domains that only a program's own operators are of start at 1.
  const int newest = state.function_domains.contains(domain) ? 1 : std::max(ops::newest_version(domain), 1);
  state.warnings->push_back(fmt::format("the model imports no opset of domain '{}'; version {} is assumed",
                                        domain.empty() ? "ai.onnx" : domain, newest));
  state.opsets->emplace(domain, newest);
  return newest;
}

void declare_outputs(Scope& scope, const NodeMessage& m) {
  for (const std::string_view name : m.outputs) {
    if (name.empty()) continue;
    if (scope.names.contains(name)) {
      fail(ErrorCode::invalid_model, "value '{}' is defined twice; every name may be assigned once (single static assignment)",
           name);
    }
    Instance* const instance = scope.parent == nullptr ? scope.instance : nullptr;
    ValueId id = kNoValue;
    if (instance == nullptr) {
      id = scope.graph.add_value(std::string(name), declared_type(scope, name));
    } else if (const auto bound = instance->outputs.find(name); bound != instance->outputs.end()) {
      id = bound->second;
    } else {
      id = scope.graph.add_value(instance->prefix + "/" + std::string(name));
    }
    scope.names.emplace(name, id);
  }
}

void charge(State& state, std::size_t bytes) {
  if (bytes > state.copies_left) {
    fail(ErrorCode::out_of_memory, "the model's functions and nested graphs take too much memory once they are expanded");
  }
  state.copies_left -= bytes;
}

ValueId add_capture(State& state, Scope& scope, ValueId outer, std::string_view name) {
  const Type& type = scope.parent->graph.value(outer).type;
  charge(state, 400 + 2 * name.size() + (type.shape ? type.shape->size() * sizeof(Dim) : 0));
  scope.subgraph->captures.push_back(outer);
  return scope.graph.add_input(std::string(name), type);
}

// Makes a value of the function's caller visible at `scope`, through every graph between.
ValueId thread_capture(State& state, Scope& scope, ValueId outer) {
  if (scope.parent == nullptr) return outer;
  const ValueId from = thread_capture(state, *scope.parent, outer);
  return add_capture(state, scope, from, scope.parent->graph.value(from).name);
}

// The approximate size of a copy.
std::size_t cost(const AttributeValue& value) {
  struct Visitor {
    std::size_t operator()(std::int64_t) const { return 0; }
    std::size_t operator()(float) const { return 0; }
    std::size_t operator()(const std::string& v) const { return v.size(); }
    std::size_t operator()(const Tensor& v) const { return v.rank() * 8; }
    std::size_t operator()(const Type& v) const { return v.shape ? v.shape->size() * sizeof(Dim) : 0; }
    std::size_t operator()(const std::vector<std::int64_t>& v) const { return v.size() * 8; }
    std::size_t operator()(const std::vector<float>& v) const { return v.size() * 4; }
    std::size_t operator()(const std::vector<std::string>& v) const {
      std::size_t n = v.size() * sizeof(std::string);
      for (const std::string& s : v) n += s.size();
      return n;
    }
    std::size_t operator()(const std::vector<Tensor>& v) const {
      std::size_t n = v.size() * sizeof(Tensor);
      for (const Tensor& t : v) n += t.rank() * 8;
      return n;
    }
    std::size_t operator()(const std::vector<Type>& v) const {
      std::size_t n = v.size() * sizeof(Type);
      for (const Type& t : v) n += (*this)(t);
      return n;
    }
  };
  return sizeof(AttributeValue) + std::visit(Visitor{}, value);
}

std::size_t cost(const Graph& g, int depth) {
  if (depth > kMaxGraphDepth) {
    fail(ErrorCode::invalid_model, "graphs are nested more than {} deep", kMaxGraphDepth);
  }
  std::size_t total = sizeof(Graph);
  for (const ValueInfo& v : g.values()) {
    total += 400 + 2 * v.name.size() + (v.type.shape ? v.type.shape->size() * 2 * sizeof(Dim) : 0);
  }
  for (const Node& n : g.nodes()) {
    total += sizeof(Node) + n.name.size() + (n.inputs.size() + n.outputs.size()) * sizeof(ValueId);
    for (const auto& [name, value] : n.attributes.items()) total += name.size() + cost(value);
    for (const Subgraph& s : n.subgraphs) total += cost(*s.graph, depth + 1);
  }
  return total;
}

// An attribute of a function body that stands for one of the call's.
void take_reference(State& state, Scope& scope, const AttributeMessage& m, Node& node) {
  if (scope.instance == nullptr) {
    fail(ErrorCode::invalid_model, "attribute '{}' refers to '{}', but only nodes in functions may refer to attributes", m.name,
         m.reference);
  }
  const Node& call = *scope.instance->call;
  const AttributeValue* value = call.attributes.find(m.reference);
  if (const Subgraph* given = call.subgraph(m.reference)) {
    charge(state, cost(*given->graph, scope.depth + 1));
    Subgraph copy = *given;
    copy.attribute = std::string(m.name);
    for (ValueId& v : copy.captures) v = thread_capture(state, scope, v);
    node.subgraphs.push_back(std::move(copy));
    return;
  }
  for (const auto& [name, otherwise] : scope.instance->function->defaults) {
    if (value == nullptr && name == m.reference) value = &otherwise;
  }
  if (value == nullptr) return;  // left out by the call: left out here
  if (m.type != AttributeType::undefined && m.type != type_of(*value) && m.type != AttributeType::sparse_tensor &&
      m.type != AttributeType::sparse_tensors) {
    fail(ErrorCode::invalid_model, "attribute '{}' of the function call has the wrong type ({})", m.reference, kind_name(*value));
  }
  charge(state, cost(*value));
  node.attributes.set(std::string(m.name), *value);
}

void read_subgraph(State& state, Scope& scope, const AttributeMessage& m, Node& node) {
  if (scope.depth >= kMaxGraphDepth) {
    fail(ErrorCode::invalid_model, "graphs are nested more than {} deep", kMaxGraphDepth);
  }
  Subgraph sub;
  sub.attribute = std::string(m.name);
  sub.graph = std::make_unique<Graph>();
  Scope inner(*sub.graph);
  inner.parent = &scope;
  inner.subgraph = &sub;
  inner.instance = scope.instance;
  inner.depth = scope.depth + 1;
  try {
    read_graph(state, inner, m.messages.at(0));
  } catch (Error& e) {
    add_place(e, fmt::format("in graph '{}'", m.name));
    throw;
  }
  node.subgraphs.push_back(std::move(sub));
}

void read_attributes(State& state, Scope& scope, const NodeMessage& m, Node& node) {
  if (m.attributes.size() > kMaxAttributes) {
    fail(ErrorCode::invalid_model, "the node has {} attributes; at most {} are read", m.attributes.size(), kMaxAttributes);
  }
  for (const std::string_view message : m.attributes) {
    const AttributeMessage a = scan_attribute(message);
    if (node.attributes.has(a.name) || node.subgraph(a.name) != nullptr) {
      fail(ErrorCode::invalid_model, "attribute '{}' is given twice", a.name);
    }
    if (!a.reference.empty()) {
      take_reference(state, scope, a, node);
    } else if (a.type == AttributeType::g) {
      read_subgraph(state, scope, a, node);
    } else {
      node.attributes.set(std::string(a.name), attribute_value(a, state.source));
    }
  }
}

// The file may leave out an output that the operator always makes. It gets a value that nothing reads, because kernels and passes
// rely on it.
void name_left_out(Scope& scope, Node& node) {
  const ops::OpDef* const def = ops::find(node);
  if (def == nullptr) return;
  for (std::size_t i = 0; i < std::min(node.outputs.size(), def->outputs.size()); ++i) {
    if (node.outputs[i] != kNoValue || def->outputs[i].arity != ops::Arity::required) continue;
    node.outputs[i] = scope.graph.add_value((node.name.empty() ? node.op_type : node.name) + "_unread");
  }
}

void link_node(State& state, Scope& scope, const NodeMessage& m) {
  if (m.op_type.empty()) fail(ErrorCode::invalid_model, "the node names no operator (op_type is empty)");
  Node node;
  node.name = std::string(m.name);
  node.op_type = std::string(m.op_type);
  node.domain = m.domain == "ai.onnx" ? std::string() : std::string(m.domain);
  node.overload = std::string(m.overload);
  node.version = version_of(state, scope, node.domain);
  node.inputs.reserve(m.inputs.size());
  for (const std::string_view name : m.inputs) {
    const auto id = name.empty() ? std::optional(kNoValue) : resolve(state, scope, name);
    if (!id) undefined_value(scope, name, "the node reads");
    node.inputs.push_back(*id);
  }
  node.outputs.reserve(m.outputs.size());
  for (const std::string_view name : m.outputs) node.outputs.push_back(name.empty() ? kNoValue : scope.names.at(name));
  read_attributes(state, scope, m, node);
  if (state.expander != nullptr && state.expander->expand(scope, node)) return;
  name_left_out(scope, node);
  scope.graph.add_node(std::move(node));
}

template <class F>
void in_node(const NodeMessage& m, F&& body) {
  try {
    body();
  } catch (Error& e) {
    add_place(e, "in " + describe(m));
    throw;
  } catch (const protozero::exception& e) {
    Error error(ErrorCode::invalid_model, fmt::format("the model is damaged: {}", wire::damage(e)));
    error.add_context("in " + describe(m));
    throw error;
  }
}

// --- graphs ------------------------------------------------------------------------------------------------------------

struct Constants {
  std::vector<NamedTensor> items;
  std::unordered_map<std::string_view, std::size_t> by_name;
};

// Tools that merge models write shared initializers twice. The last one counts, as in ONNX Runtime, where both have one type. It
// takes the place of the one before, and is left without a name.
void replace_constant(State& state, NamedTensor& before, NamedTensor&& again) {
  if (before.tensor.dtype() != again.tensor.dtype() || before.tensor.shape() != again.tensor.shape()) {
    fail(ErrorCode::invalid_model, "initializer '{}' is given twice, as {} and as {}: give each its own name", again.name,
         before.tensor.type_string(), again.tensor.type_string());
  }
  state.warnings->push_back(fmt::format("initializer '{}' is given twice; the last one is used", again.name));
  before.tensor = std::move(again.tensor);
  again.name.clear();
}

Constants read_constants(State& state, const GraphMessage& m) {
  Constants out;
  out.items.reserve(m.initializers.size() + m.sparse.size());
  const auto add = [&](NamedTensor t) {
    if (t.name.empty()) fail(ErrorCode::invalid_model, "an initializer ({}) has no name", t.tensor.type_string());
    out.items.push_back(std::move(t));
  };
  for (const std::string_view t : m.initializers) add(decode_tensor(t, state.source));
  for (const std::string_view t : m.sparse) add(decode_sparse_tensor(t, state.source));
  out.by_name.reserve(out.items.size());
  for (std::size_t i = 0; i < out.items.size(); ++i) {
    const auto [before, added] = out.by_name.emplace(out.items[i].name, i);
    if (!added) replace_constant(state, out.items[before->second], std::move(out.items[i]));
  }
  if (std::erase_if(out.items, [](const NamedTensor& t) { return t.name.empty(); }) == 0) return out;
  out.by_name.clear();
  for (std::size_t i = 0; i < out.items.size(); ++i) out.by_name.emplace(out.items[i].name, i);
  return out;
}

void check_main_input(const std::string_view name, const Type& type) {
  const bool tensor = type.kind == Type::Kind::tensor || type.kind == Type::Kind::sparse_tensor;
  if (!type.known() || (tensor && type.elem == DataType::undefined)) {
    fail(ErrorCode::invalid_model, "graph input '{}' has no {} that is supported", name, tensor ? "element type" : "type");
  }
}

void add_inputs(State& state, Scope& scope, const GraphMessage& m, Constants& constants) {
  for (const std::string_view message : m.inputs) {
    const ValueMessage v = scan_value(message);
    if (v.name.empty()) fail(ErrorCode::invalid_model, "a graph input has no name");
    if (scope.names.contains(v.name)) fail(ErrorCode::invalid_model, "graph input '{}' is given twice", v.name);
    const auto initial = constants.by_name.find(v.name);
    const bool main = scope.parent == nullptr;
    if (initial != constants.by_name.end() && main && state.ir_version < 4) continue;
    scope.declared[v.name] = v.type;
    Type type = declared_type(scope, v.name);
    Tensor* const value = initial == constants.by_name.end() ? nullptr : &constants.items[initial->second].tensor;
    if (value != nullptr && main) {
      const Type actual = Type::tensor(value->dtype(), to_sym(value->shape()));
      if (!compatible(type, actual)) {
        state.warnings->push_back(
            fmt::format("graph input '{}' is declared as {} but its default is {}: the declaration is ignored", v.name,
                        type.str(), actual.str()));
        type = actual;
      }
      type = merge(type, Type::tensor(value->dtype()));
    } else if (main) {
      check_main_input(v.name, type);
    }
    const ValueId id = scope.graph.add_input(std::string(v.name), std::move(type));
    // The formal inputs of subgraphs are always given: a default would never be used.
    if (value != nullptr && main) scope.graph.value(id).constant = *value;
    scope.names.emplace(v.name, id);
  }
}

// Captures come in the order of their first use. They were met in the file's order, which sorting the nodes has changed.
void order_captures(Graph& graph, Subgraph& sub) {
  const std::size_t formals = graph.inputs().size() - sub.captures.size();
  std::unordered_map<ValueId, std::size_t> waiting;  // captured value -> number of its input
  for (std::size_t i = formals; i < graph.inputs().size(); ++i) waiting.emplace(graph.inputs()[i], i);
  std::vector<std::size_t> order(formals);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto use = [&](ValueId v) {
    const auto it = waiting.find(v);
    if (it == waiting.end()) return;
    order.push_back(it->second);
    waiting.erase(it);
  };
  for (const Node& n : graph.nodes()) {
    for (const ValueId v : n.inputs) use(v);
    for (const Subgraph& s : n.subgraphs) {
      for (const ValueId v : s.captures) use(v);
    }
  }
  for (const ValueId v : graph.outputs()) use(v);
  for (std::size_t i = formals; i < graph.inputs().size(); ++i) use(graph.inputs()[i]);
  std::vector<ValueId> captures;
  for (std::size_t i = formals; i < order.size(); ++i) captures.push_back(sub.captures[order[i] - formals]);
  graph.permute_inputs(order);
  sub.captures = std::move(captures);
}

}  // namespace

std::optional<ValueId> resolve(State& state, Scope& scope, std::string_view name) {
  const auto it = scope.names.find(name);
  if (it != scope.names.end()) return it->second;
  if (scope.parent == nullptr) return std::nullopt;
  const std::optional<ValueId> outer = resolve(state, *scope.parent, name);
  if (!outer || *outer == kNoValue) return outer;
  const ValueId id = add_capture(state, scope, *outer, name);
  scope.names.emplace(name, id);
  return id;
}

void read_nodes(State& state, Scope& scope, const std::vector<std::string_view>& messages) {
  if (messages.size() > state.nodes_left) {
    fail(ErrorCode::out_of_memory, "with its functions expanded, the model has too many nodes");
  }
  state.nodes_left -= messages.size();
  std::vector<NodeMessage> nodes;
  nodes.reserve(messages.size());
  for (const std::string_view message : messages) {
    nodes.push_back(scan_node(message));
    in_node(nodes.back(), [&] { declare_outputs(scope, nodes.back()); });
  }
  for (const NodeMessage& m : nodes) {
    in_node(m, [&] { link_node(state, scope, m); });
  }
}

void read_graph(State& state, Scope& scope, std::string_view message) {
  const GraphMessage m = scan_graph(message);
  Graph& graph = scope.graph;
  graph.name = std::string(m.name);
  Constants constants = read_constants(state, m);
  std::vector<ValueMessage> outputs;
  for (const std::string_view info : m.infos) {
    const ValueMessage v = scan_value(info);
    scope.declared[v.name] = v.type;
  }
  for (const std::string_view o : m.outputs) {
    outputs.push_back(scan_value(o));
    if (outputs.back().name.empty()) fail(ErrorCode::invalid_model, "a graph output has no name");
    if (!outputs.back().type.empty()) scope.declared[outputs.back().name] = outputs.back().type;
  }
  scope.names.reserve(m.inputs.size() + constants.items.size() + m.nodes.size());
  add_inputs(state, scope, m, constants);
  for (NamedTensor& t : constants.items) {
    if (scope.names.contains(t.name)) continue;
    const ValueId id = graph.add_constant(t.name, std::move(t.tensor));
    scope.names.emplace(t.name, id);
  }
  read_nodes(state, scope, m.nodes);
  for (const ValueMessage& o : outputs) {
    const auto id = resolve(state, scope, o.name);
    if (!id || *id == kNoValue) undefined_value(scope, o.name, "the graph returns");
    graph.add_output(*id, std::string(o.name));
  }
  const std::vector<NodeId> moved = graph.compact();
  if (scope.subgraph != nullptr && !std::is_sorted(moved.begin(), moved.end())) order_captures(graph, *scope.subgraph);
}

}  // namespace sdx::reading
