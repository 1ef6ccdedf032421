// Changes of several nodes: what passes, plans and subgraphs are about.

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/error.h"
#include "mutate.h"
#include "passes/narrow.h"
#include "passes/pass.h"
#include "session/pipeline.h"
#include "tensor/element.h"

namespace sdx::fuzz {
namespace {

constexpr std::size_t kMostNodes = 60;  // more are spliced with nothing

Node new_node(const char* domain, const char* op, int version, std::vector<ValueId> inputs, std::vector<ValueId> outputs) {
  Node n;
  n.domain = domain;
  n.op_type = op;
  n.version = version;
  n.inputs = std::move(inputs);
  n.outputs = std::move(outputs);
  return n;
}

int version_of(const Graph& g, const std::string& domain) {
  for (const Node& n : g.nodes()) {
    if (!n.removed && n.domain == domain) return n.version;
  }
  return domain.empty() ? 0 : 1;
}

bool is_tensor(const Graph& g, ValueId v, DataType type) {
  return v != kNoValue && g.value(v).type.is_tensor() && g.value(v).type.elem == type;
}

std::size_t rank(const Graph& g, ValueId v) {
  const Type& t = g.value(v).type;
  return t.is_tensor() && t.shape ? t.shape->size() : 0;
}

void renew(Graph& g) {
  g.compact();
  g.drop_unused_values();
}

Tensor ints(const std::vector<std::int64_t>& values) { return from_ints(values); }

// One node as a graph of its own. `reads`: its inputs and captures, each once, in the order of the graph's inputs.
struct Body {
  Graph graph;
  std::vector<ValueId> reads;
  std::vector<ValueId> made;  // inside, for the outputs that are there
};

Body body_of(const Graph& g, const Node& node, const std::string& suffix) {
  Body b;
  std::map<ValueId, ValueId> inside;
  const auto map = [&](ValueId v) {
    if (v == kNoValue) return v;
    const auto [it, added] = inside.emplace(v, kNoValue);
    if (added) {
      it->second = b.graph.add_input(g.value(v).name + suffix, g.value(v).type);
      b.reads.push_back(v);
    }
    return it->second;
  };
  Node n = node;
  for (ValueId& v : n.inputs) v = map(v);
  for (Subgraph& s : n.subgraphs) {
    for (ValueId& v : s.captures) v = map(v);
  }
  for (ValueId& v : n.outputs) {
    if (v == kNoValue) continue;
    v = b.graph.add_value(g.value(v).name + suffix, g.value(v).type);
    b.made.push_back(v);
  }
  b.graph.add_node(std::move(n));
  return b;
}

Subgraph subgraph(const char* attribute, Graph graph, std::vector<ValueId> captures) {
  Subgraph s;
  s.attribute = attribute;
  s.graph = std::make_unique<Graph>(std::move(graph));
  s.captures = std::move(captures);
  return s;
}

}  // namespace

ValueId Mutator::floats(Graph& g) {
  std::vector<ValueId> found;
  for (ValueId v = 0; v < g.values().size(); ++v) {
    if (is_tensor(g, v, DataType::float32) && (g.value(v).producer != kNoNode || g.value(v).is_input)) found.push_back(v);
  }
  return found.empty() ? kNoValue : random_.pick(found);
}

ValueId Mutator::insert(Graph& g, ValueId v, const char* domain, const char* op, std::vector<ValueId> more, Attributes attributes,
                        Type type) {
  const ValueId out = g.add_value(g.value(v).name + "_" + op, std::move(type));
  more.insert(more.begin(), v);
  g.replace_uses(v, out);
  Node n = new_node(domain, op, std::max(1, version_of(g, domain)), std::move(more), {out});
  n.attributes = std::move(attributes);
  g.add_node(std::move(n));
  return out;
}

// The same elements under another shape, often in the same memory: between a node and its readers, or as a further output.
bool Mutator::view(Graph& g) {
  const std::vector<ValueId> all = readable(g, static_cast<NodeId>(g.nodes().size()));
  std::vector<ValueId> tensors;
  std::copy_if(all.begin(), all.end(), std::back_inserter(tensors), [&](ValueId v) { return g.value(v).type.is_tensor(); });
  const int version = version_of(g, "");
  if (tensors.empty() || version == 0) return false;
  const ValueId v = random_.pick(tensors);
  const Type type = Type::tensor(g.value(v).type.elem);
  Attributes none;
  ValueId out = kNoValue;
  switch (random_.below(5)) {
    case 0: out = insert(g, v, "", "Identity", {}, none, g.value(v).type); break;
    case 1: out = insert(g, v, "", "Reshape", {g.add_constant("all", ints({-1}))}, none, type); break;
    case 2: out = insert(g, v, "", "Transpose", {}, none, type); break;
    case 3: out = insert(g, v, "", "Flatten", {}, none, type); break;
    default:
      if (version < 13) return false;
      out = insert(g, v, "", "Unsqueeze", {g.add_constant("axis", ints({0}))}, none, type);
      if (random_.chance(60)) out = insert(g, out, "", "Squeeze", {g.add_constant("axis", ints({0}))}, none, type);
  }
  if (random_.chance(30)) g.add_output(v);
  if (random_.chance(20)) g.add_output(out);
  renew(g);
  return true;
}

// What fusions look for behind an operator.
bool Mutator::follow(Graph& g) {
  const ValueId v = floats(g);
  if (v == kNoValue) return false;
  const Type type = g.value(v).type;
  static constexpr std::array kUnary{"Relu",    "Sigmoid",   "Tanh",      "Erf",  "Exp",     "Neg",
                                     "Softmax", "HardSwish", "LeakyRelu", "Sqrt", "Softplus"};
  if (random_.chance(45)) {
    insert(g, v, "", random_.pick(kUnary), {}, {}, type);
  } else if (random_.chance(30)) {
    static constexpr std::array kMicrosoft{"Gelu", "FastGelu", "QuickGelu"};
    insert(g, v, "com.microsoft", random_.pick(kMicrosoft), {}, {}, type);
  } else {
    static constexpr std::array kBinary{"Add", "Mul", "Sub", "Div", "Max", "MatMul", "Sum", "Concat", "Pow"};
    std::vector<ValueId> others;
    for (const ValueId w : readable(g, g.value(v).producer == kNoNode ? 0 : g.value(v).producer)) {
      if (is_tensor(g, w, DataType::float32)) others.push_back(w);
    }
    ValueId other = others.empty() || random_.chance(20) ? v : random_.pick(others);
    if (random_.chance(50)) {
      const bool wide = type.has_static_shape() && !type.shape->empty() && type.shape->back().value() < 1000;
      other = g.add_constant("operand", random_tensor(random_, DataType::float32,
                                                      wide && random_.chance(60) ? Shape{type.shape->back().value()} : Shape{}));
    }
    const char* const op = random_.pick(kBinary);
    Attributes attributes;
    if (op == std::string_view("Concat")) attributes.set("axis", std::int64_t{0});
    insert(g, v, "", op, {other}, std::move(attributes), type);
  }
  renew(g);
  return true;
}

// QuantizeLinear and DequantizeLinear between a value and its readers.
bool Mutator::quantise(Graph& g) {
  if (version_of(g, "") < 10) return false;
  for (std::size_t i = 0, count = 1 + random_.below(4); i < count; ++i) {
    const ValueId v = floats(g);
    if (v == kNoValue) return i > 0;
    const DataType bytes = random_.chance(50) ? DataType::uint8 : DataType::int8;
    const Type type = g.value(v).type;
    const ValueId scale = g.add_constant("scale", Tensor::scalar(random_.chance(80) ? 0.0625F : 1.0F));
    std::vector<ValueId> more{scale};
    const bool zero = random_.chance(70);
    if (zero || bytes == DataType::int8) more.push_back(g.add_constant("zero", random_tensor(random_, bytes, {})));
    Type quantised = type;
    quantised.elem = bytes;
    const ValueId q = insert(g, v, "", "QuantizeLinear", more, {}, quantised);
    if (!zero) more.resize(1);
    insert(g, q, "", "DequantizeLinear", more, {}, type);
    renew(g);
  }
  return true;
}

// A constant of floats becomes a constant of bytes that is dequantised.
bool Mutator::quantised_weights(Graph& g) {
  if (version_of(g, "") < 10) return false;
  for (ValueId v = 0; v < g.values().size(); ++v) {
    const ValueInfo& info = g.value(v);
    if (!info.constant || info.is_input || info.constant->dtype() != DataType::float32 || random_.chance(40)) continue;
    const Shape shape = info.constant->shape();
    const bool by_axis = !shape.empty() && random_.chance(50);
    const std::size_t axis = by_axis ? random_.below(shape.size()) : 0;
    const DataType bytes = random_.chance(50) ? DataType::int8 : DataType::uint8;
    const Shape scales = by_axis ? Shape{shape[axis]} : Shape{};
    std::vector<ValueId> inputs{g.add_constant("bytes", random_tensor(random_, bytes, shape)),
                                g.add_constant("scales", random_tensor(random_, DataType::float32, scales))};
    if (random_.chance(50)) inputs.push_back(g.add_constant("zeros", random_tensor(random_, bytes, scales)));
    const ValueId out = g.add_value(info.name + "_dequantised", Type::tensor(DataType::float32, to_sym(shape)));
    g.replace_uses(v, out);
    Node n = new_node("", "DequantizeLinear", version_of(g, ""), std::move(inputs), {out});
    if (by_axis) n.attributes.set("axis", static_cast<std::int64_t>(axis));
    g.add_node(std::move(n));
    renew(g);
    return true;
  }
  return false;
}

bool Mutator::through_half(Graph& g) {
  const ValueId v = floats(g);
  if (v == kNoValue || version_of(g, "") < 13) return false;
  const DataType half = random_.chance(50) ? DataType::float16 : DataType::bfloat16;
  const Type type = g.value(v).type;
  Type narrow = type;
  narrow.elem = half;
  Attributes down, up;
  down.set("to", static_cast<std::int64_t>(half));
  up.set("to", static_cast<std::int64_t>(DataType::float32));
  insert(g, insert(g, v, "", "Cast", {}, std::move(down), narrow), "", "Cast", {}, std::move(up), type);
  renew(g);
  return true;
}

bool Mutator::narrow_all(Example& e) {
  NarrowOptions options;
  options.to = random_.chance(60) ? DataType::float16 : DataType::bfloat16;
  options.keep_io = true;
  session::check_and_infer(e.model.graph);
  sink_constants(e.model.graph);
  narrow(e.model.graph, version_of(e.model.graph, ""), options);
  return true;
}

// Another example's nodes beside these, reading from these where types allow it.
bool Mutator::splice(Example& e) {
  const Example& other = others_();
  Graph& g = e.model.graph;
  const Graph& from = other.model.graph;
  if (g.nodes().size() + from.nodes().size() > kMostNodes) return false;
  const std::vector<ValueId> mine = readable(g, static_cast<NodeId>(g.nodes().size()));
  std::vector<ValueId> moved(from.values().size(), kNoValue);
  for (std::size_t i = 0; i < from.inputs().size(); ++i) {
    const ValueInfo& info = from.value(from.inputs()[i]);
    std::vector<ValueId> fit;
    std::copy_if(mine.begin(), mine.end(), std::back_inserter(fit), [&](ValueId v) {
      const Type& t = g.value(v).type;
      return t.kind == info.type.kind && t.elem == info.type.elem && rank(g, v) == rank(from, from.inputs()[i]);
    });
    if (!fit.empty() && random_.chance(60)) {
      moved[from.inputs()[i]] = random_.pick(fit);
      continue;
    }
    moved[from.inputs()[i]] = g.add_input(info.name + "_other", info.declared);
    if (info.constant) g.value(moved[from.inputs()[i]]).constant = info.constant;
    e.inputs.push_back(other.inputs.at(i));
  }
  for (ValueId v = 0; v < moved.size(); ++v) {
    if (moved[v] != kNoValue) continue;
    const ValueInfo& info = from.value(v);
    moved[v] = info.constant ? g.add_constant(info.name, *info.constant) : g.add_value(info.name, info.type);
  }
  for (const NodeId id : alive(from)) {
    Node n = from.node(id);
    const auto map = [&](std::vector<ValueId>& list) {
      for (ValueId& v : list) v = v == kNoValue ? v : moved[v];
    };
    map(n.inputs);
    map(n.outputs);
    for (Subgraph& s : n.subgraphs) map(s.captures);
    g.add_node(std::move(n));
  }
  for (const ValueId v : from.outputs()) {
    if (std::find(g.outputs().begin(), g.outputs().end(), moved[v]) == g.outputs().end()) g.add_output(moved[v]);
  }
  for (const auto& [domain, version] : other.model.opsets) e.model.opsets.emplace(domain, version);
  // Of one version in one file.
  const auto settle = [&](auto& self, Graph& graph) -> void {
    for (NodeId id = 0; id < graph.nodes().size(); ++id) {
      Node& n = graph.node(id);
      if (const auto it = e.model.opsets.find(n.domain); it != e.model.opsets.end()) n.version = it->second;
      for (Subgraph& s : n.subgraphs) self(self, *s.graph);
    }
  };
  settle(settle, g);
  renew(g);
  return true;
}

// A node moves into the branches of an If, which may also hand on what they are given.
bool Mutator::branch(Example& e) {
  Graph& g = e.model.graph;
  const std::vector<NodeId> nodes = alive(g);
  const int version = version_of(g, "");
  if (nodes.empty() || version == 0) return false;
  const NodeId id = random_.pick(nodes);
  const Node node = g.node(id);
  Body then = body_of(g, node, "_then");
  if (then.made.empty()) return false;
  Body otherwise = body_of(g, node, "_else");
  for (const ValueId v : then.made) then.graph.add_output(v);
  for (const ValueId v : otherwise.made) {
    const auto& given = otherwise.graph.inputs();
    const bool hand_on = !given.empty() && random_.chance(40);
    const ValueId shown = hand_on ? random_.pick(given) : v;
    const ValueId named = otherwise.graph.add_value("chosen", otherwise.graph.value(shown).type);
    otherwise.graph.add_node(new_node("", "Identity", version, {shown}, {named}));
    otherwise.graph.add_output(named);
  }
  const std::string name = "condition" + std::to_string(counter_++);
  Tensor truth(DataType::boolean, {});
  set_element_int(truth, 0, random_.chance(50) ? 1 : 0);
  ValueId condition = kNoValue;
  if (random_.chance(30)) {
    condition = g.add_constant(name, truth);
  } else {
    condition = g.add_input(name, Type::tensor(DataType::boolean, SymShape{}));
    e.inputs.emplace_back(truth);
  }
  std::vector<ValueId> outputs;
  std::copy_if(node.outputs.begin(), node.outputs.end(), std::back_inserter(outputs), [](ValueId v) { return v != kNoValue; });
  g.remove_node(id);
  Node n = new_node("", "If", version, {condition}, std::move(outputs));
  n.subgraphs.push_back(subgraph("then_branch", std::move(then.graph), std::move(then.reads)));
  n.subgraphs.push_back(subgraph("else_branch", std::move(otherwise.graph), std::move(otherwise.reads)));
  g.add_node(std::move(n));
  renew(g);
  return true;
}

// A node moves into a Loop: one of what it reads becomes a state, which its result follows, or another value that is handed on;
// its results become scan outputs.
bool Mutator::loop(Example& e) {
  Graph& g = e.model.graph;
  const std::vector<NodeId> nodes = alive(g);
  const int version = version_of(g, "");
  if (nodes.empty() || version == 0) return false;
  const Node node = g.node(random_.pick(nodes));
  Body part = body_of(g, node, "_body");
  if (part.made.empty() || part.reads.empty()) return false;
  Graph body;
  const ValueId turn = body.add_input("turn", Type::tensor(DataType::int64, SymShape{}));
  (void)turn;
  const ValueId go = body.add_input("go", Type::tensor(DataType::boolean, SymShape{}));
  const std::size_t carried = random_.below(part.reads.size());
  std::vector<ValueId> moved(part.graph.values().size(), kNoValue);
  std::vector<ValueId> captures;
  moved[part.graph.inputs()[carried]] = body.add_input("state", g.value(part.reads[carried]).type);
  for (std::size_t i = 0; i < part.reads.size(); ++i) {
    if (i == carried) continue;
    const ValueInfo& info = part.graph.value(part.graph.inputs()[i]);
    moved[part.graph.inputs()[i]] = body.add_input(info.name, info.type);
    captures.push_back(part.reads[i]);
  }
  for (const ValueId v : part.made) moved[v] = body.add_value(part.graph.value(v).name, part.graph.value(v).type);
  Node inner = part.graph.node(0);
  const auto map = [&](std::vector<ValueId>& list) {
    for (ValueId& v : list) v = v == kNoValue ? v : moved[v];
  };
  map(inner.inputs);
  map(inner.outputs);
  for (Subgraph& s : inner.subgraphs) map(s.captures);
  body.add_node(std::move(inner));
  const auto returned = [&](ValueId v) {
    const ValueId named = body.add_value("returned", body.value(v).type);
    body.add_node(new_node("", "Identity", version, {v}, {named}));
    body.add_output(named);
  };
  returned(go);
  const Type& state = g.value(part.reads[carried]).type;
  std::vector<ValueId> next;  // what may be the next state
  for (ValueId v = 0; v < body.values().size(); ++v) {
    if (body.value(v).type.kind == state.kind && body.value(v).type.elem == state.elem) next.push_back(v);
  }
  if (next.empty()) return false;
  returned(random_.pick(next));
  std::vector<ValueId> outputs{g.add_value("final", state)};
  for (const ValueId v : part.made) {
    returned(moved[v]);
    outputs.push_back(g.add_value("scanned"));
  }
  const ValueId turns = g.add_constant("turns", Tensor::scalar<std::int64_t>(random_.between(0, 4)));
  const ValueId first = random_.chance(70) ? kNoValue : g.add_constant("go", Tensor::scalar<bool>(random_.chance(80)));
  for (const ValueId v : outputs) g.add_output(v);
  Node n = new_node("", "Loop", version, {turns, first, part.reads[carried]}, std::move(outputs));
  n.subgraphs.push_back(subgraph("body", std::move(body), std::move(captures)));
  g.add_node(std::move(n));
  renew(g);
  return true;
}

}  // namespace sdx::fuzz
