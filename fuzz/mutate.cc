#include "mutate.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/error.h"
#include "session/pipeline.h"
#include "tensor/element.h"

namespace sdx::fuzz {
namespace {

constexpr std::int64_t kMostElements = 20'000;  // of a tensor that is made here

constexpr std::array kTypes{DataType::float32, DataType::float64, DataType::float16, DataType::bfloat16,
                            DataType::int8,    DataType::uint8,   DataType::int16,   DataType::int32,
                            DataType::int64,   DataType::uint64,  DataType::boolean, DataType::string};

double wild(Random& random) {
  constexpr std::array kWild{0.0,  -0.0, -1.0,  std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                             3e38, 0.5,  -1e30, -std::numeric_limits<double>::infinity(), 1e-45,
                             1e300};
  return random.pick(kWild);
}

Shape changed_shape(Random& random, Shape shape) {
  const auto at = [&](std::size_t n) { return static_cast<std::ptrdiff_t>(random.below(n)); };
  constexpr std::array<std::int64_t, 7> kExtents{0, 1, 2, 3, 5, 16, 33};
  const std::size_t how = random.below(3);
  if (how == 0 && shape.size() < 7) {
    shape.insert(shape.begin() + at(shape.size() + 1), random.pick(kExtents));
  } else if (how == 1 && !shape.empty()) {
    shape.erase(shape.begin() + at(shape.size()));
  } else if (!shape.empty()) {
    shape[random.below(shape.size())] = random.pick(kExtents);
  }
  double count = 1;
  for (const std::int64_t d : shape) count *= static_cast<double>(d);
  return count > static_cast<double>(kMostElements) ? Shape{2} : shape;
}

void clear_values(Random& random, Tensor& t) {
  if (t.size() == 0 || t.dtype() == DataType::string) return;
  for (int i = 0; i < 3; ++i) {
    const auto at = static_cast<std::int64_t>(random.below(static_cast<std::size_t>(t.size())));
    if (is_floating(t.dtype())) {
      set_element(t, at, wild(random));
    } else {
      set_element_int(t, at, edge(random));
    }
  }
}

bool set_version(Graph& g, const std::string& domain, int version) {
  bool any = false;
  for (NodeId id = 0; id < g.nodes().size(); ++id) {
    Node& n = g.node(id);
    if (n.domain == domain) {
      n.version = version;
      any = true;
    }
    for (Subgraph& s : n.subgraphs) any = set_version(*s.graph, domain, version) || any;
  }
  return any;
}

void renew(Graph& g) {
  g.compact();
  g.drop_unused_values();
}

template <class T, class Make>
void change_list(Random& random, std::vector<T>& list, Make make) {
  const std::size_t how = random.below(4);
  if (how < 2 && !list.empty()) {
    list[random.below(list.size())] = make();
  } else if (how == 2 && list.size() < 12) {
    list.push_back(make());
  } else if (!list.empty()) {
    list.pop_back();
  }
}

std::string some_word(Random& random) {
  static const std::vector<std::string> kWords = {
      "",        "x",     "linear", "SAME_UPPER", "VALID", "bidirectional", "reflect", "wrap", "edge", "ab,bc->ac", "...",
      "nearest", "cubic", "Tanh",   "forward",    "tanh",  "align_corners", "sum",     "none", "mul",  "max"};
  return random.pick(kWords);
}

}  // namespace

std::int64_t edge(Random& random) {
  constexpr std::array<std::int64_t, 16> kEdges{
      -1, 0, 1, 2, 3, -2, 7, 64, INT32_MAX, INT32_MIN, std::int64_t{1} << 31, std::int64_t{1} << 62, INT64_MAX, INT64_MIN, 4, 16};
  return random.chance(60) ? random.pick(kEdges) : random.between(-6, 6);
}

Tensor random_tensor(Random& random, DataType type, Shape shape) {
  Tensor t(type, std::move(shape));
  if (type == DataType::string) {
    for (std::string& s : t.mutable_values<std::string>()) s = some_word(random);
    return t;
  }
  for (std::int64_t i = 0; i < t.size(); ++i) {
    if (is_floating(type)) {
      set_element(t, i, static_cast<double>(random.between(-200, 200)) / 64);
    } else {
      set_element_int(t, i, random.between(0, 3));
    }
  }
  if (random.chance(15)) clear_values(random, t);
  return t;
}

std::vector<NodeId> alive(const Graph& graph) {
  std::vector<NodeId> out;
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    if (!graph.node(id).removed) out.push_back(id);
  }
  return out;
}

std::vector<ValueId> readable(const Graph& graph, NodeId id) {
  std::vector<ValueId> out;
  for (ValueId v = 0; v < graph.values().size(); ++v) {
    const ValueInfo& info = graph.value(v);
    if (info.is_input || info.constant || (info.producer != kNoNode && info.producer < id)) out.push_back(v);
  }
  return out;
}

Graph& Mutator::some_graph(Graph& graph) {
  std::vector<Graph*> inner;
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    for (Subgraph& s : graph.node(id).subgraphs) inner.push_back(s.graph.get());
  }
  return inner.empty() || random_.chance(50) ? graph : some_graph(*random_.pick(inner));
}

bool Mutator::attribute(Graph& g) {
  const std::vector<NodeId> nodes = alive(g);
  if (nodes.empty()) return false;
  Node& n = g.node(random_.pick(nodes));
  if (n.attributes.empty()) return false;
  auto [name, value] = random_.pick(n.attributes.items());
  if (auto* i = std::get_if<std::int64_t>(&value)) *i = edge(random_);
  if (auto* f = std::get_if<float>(&value)) *f = static_cast<float>(wild(random_));
  if (auto* s = std::get_if<std::string>(&value)) *s = some_word(random_);
  if (auto* l = std::get_if<std::vector<std::int64_t>>(&value)) change_list(random_, *l, [&] { return edge(random_); });
  if (auto* l = std::get_if<std::vector<float>>(&value))
    change_list(random_, *l, [&] { return static_cast<float>(wild(random_)); });
  if (auto* l = std::get_if<std::vector<std::string>>(&value)) change_list(random_, *l, [&] { return some_word(random_); });
  if (auto* t = std::get_if<Tensor>(&value)) *t = random_tensor(random_, t->dtype(), changed_shape(random_, t->shape()));
  n.attributes.set(name, value);
  return true;
}

bool Mutator::drop_attribute(Graph& g) {
  const std::vector<NodeId> nodes = alive(g);
  if (nodes.empty()) return false;
  Node& n = g.node(random_.pick(nodes));
  if (n.attributes.empty()) return false;
  n.attributes.erase(std::string(random_.pick(n.attributes.items()).first));
  return true;
}

bool Mutator::swap_inputs(Graph& g) {
  const std::vector<NodeId> nodes = alive(g);
  if (nodes.empty()) return false;
  Node& n = g.node(random_.pick(nodes));
  if (n.inputs.size() < 2) return false;
  std::swap(n.inputs[random_.below(n.inputs.size())], n.inputs[random_.below(n.inputs.size())]);
  return true;
}

bool Mutator::rewire(Graph& g) {
  const std::vector<NodeId> nodes = alive(g);
  if (nodes.empty()) return false;
  const NodeId id = random_.pick(nodes);
  Node& n = g.node(id);
  if (n.inputs.empty()) return false;
  std::vector<ValueId> from = readable(g, id);
  ValueId& input = n.inputs[random_.below(n.inputs.size())];
  if (input != kNoValue && random_.chance(75)) {
    std::erase_if(from, [&](ValueId v) {
      return g.value(v).type.kind != g.value(input).type.kind || g.value(v).type.elem != g.value(input).type.elem;
    });
  }
  if (from.empty()) return false;
  input = random_.pick(from);
  if (random_.chance(10)) n.inputs.push_back(random_.pick(from));
  return true;
}

bool Mutator::leave_out_input(Graph& g) {
  const std::vector<NodeId> nodes = alive(g);
  if (nodes.empty()) return false;
  Node& n = g.node(random_.pick(nodes));
  if (n.inputs.empty()) return false;
  if (random_.chance(50)) {
    n.inputs[random_.below(n.inputs.size())] = kNoValue;
  } else {
    n.inputs.pop_back();
  }
  return true;
}

bool Mutator::leave_out_output(Graph& g) {
  const std::vector<NodeId> nodes = alive(g);
  if (nodes.empty()) return false;
  const NodeId id = random_.pick(nodes);
  if (g.node(id).outputs.empty()) return false;
  ValueId& out = g.node(id).outputs[random_.below(g.node(id).outputs.size())];
  const std::vector<ValueId> before = readable(g, id);
  if (out == kNoValue || before.empty()) return false;
  g.value(out).producer = kNoNode;
  g.replace_uses(out, random_.pick(before));
  out = kNoValue;
  renew(g);
  return true;
}

bool Mutator::duplicate(Graph& g) {
  const std::vector<NodeId> nodes = alive(g);
  if (nodes.empty()) return false;
  Node copy = g.node(random_.pick(nodes));
  std::vector<std::pair<ValueId, ValueId>> twins;
  for (ValueId& v : copy.outputs) {
    if (v == kNoValue) continue;
    const ValueId twin = g.add_value(g.value(v).name + "_twin", g.value(v).type);
    twins.emplace_back(v, twin);
    v = twin;
  }
  g.add_node(std::move(copy));
  for (const auto& [old, twin] : twins) {
    if (random_.chance(50)) {
      g.add_output(twin);
    } else {  // half of those who read the one read the other
      for (const NodeId id : nodes) {
        if (random_.chance(50)) std::replace(g.node(id).inputs.begin(), g.node(id).inputs.end(), old, twin);
      }
    }
  }
  renew(g);
  return true;
}

bool Mutator::operators(Graph& g) {
  const std::vector<NodeId> nodes = alive(g);
  const Graph& other = others_().model.graph;
  const std::vector<NodeId> theirs = alive(other);
  if (nodes.empty() || theirs.empty()) return false;
  Node& n = g.node(random_.pick(nodes));
  const Node& from = other.node(random_.pick(theirs));
  if (!from.subgraphs.empty() || from.domain != n.domain) return false;
  n.op_type = from.op_type;
  if (random_.chance(70)) n.attributes = from.attributes;
  return true;
}

bool Mutator::opset(Model& model) {
  if (model.opsets.empty()) return false;
  auto it = model.opsets.begin();
  std::advance(it, random_.below(model.opsets.size()));
  it->second = static_cast<int>(random_.between(1, it->first.empty() ? 26 : 5));
  set_version(model.graph, it->first, it->second);
  return true;
}

bool Mutator::add_output(Graph& g) {
  const std::vector<ValueId> all = readable(g, static_cast<NodeId>(g.nodes().size()));
  if (all.empty()) return false;
  const ValueId v = random_.pick(all);
  if (std::find(g.outputs().begin(), g.outputs().end(), v) != g.outputs().end()) return false;
  g.add_output(v);
  return true;
}

bool Mutator::drop_output(Graph& g) {
  if (g.outputs().size() < 2) return false;
  g.remove_output(random_.below(g.outputs().size()));
  return true;
}

bool Mutator::constant_values(Graph& g) {
  for (ValueId v = 0; v < g.values().size(); ++v) {
    std::optional<Tensor>& constant = g.value(v).constant;
    if (!constant || random_.chance(50)) continue;
    Tensor t = constant->clone();
    clear_values(random_, t);
    constant = std::move(t);
    return true;
  }
  return false;
}

bool Mutator::constant_type(Graph& g) {
  for (ValueId v = 0; v < g.values().size(); ++v) {
    ValueInfo& info = g.value(v);
    if (!info.constant || random_.chance(50)) continue;
    const Shape shape = random_.chance(60) ? changed_shape(random_, info.constant->shape()) : info.constant->shape();
    const DataType type = random_.chance(60) ? info.constant->dtype() : random_.pick(kTypes);
    if (info.constant->size() > kMostElements) continue;
    info.constant = random_tensor(random_, type, shape);
    info.type = info.declared = Type::tensor(type, to_sym(shape));
    return true;
  }
  return false;
}

bool Mutator::input_type(Example& e) {
  if (e.inputs.empty()) return false;
  const std::size_t i = random_.below(e.inputs.size());
  if (!e.inputs[i].is_tensor()) return false;
  const Tensor& old = e.inputs[i].tensor();
  if (old.size() > kMostElements) return false;
  const Shape shape = random_.chance(60) ? changed_shape(random_, old.shape()) : old.shape();
  const DataType type = random_.chance(50) ? old.dtype() : random_.pick(kTypes);
  e.inputs[i] = random_tensor(random_, type, shape);
  ValueInfo& info = e.model.graph.value(e.model.graph.inputs()[i]);
  info.type = info.declared = Type::tensor(type, to_sym(shape));
  return true;
}

bool Mutator::input_values(Example& e) {
  if (e.inputs.empty()) return false;
  Value& value = e.inputs[random_.below(e.inputs.size())];
  if (!value.is_tensor()) return false;
  Tensor t = value.tensor().clone();
  clear_values(random_, t);
  value = std::move(t);
  return true;
}

bool Mutator::unknown_extents(Example& e) {
  bool any = false;
  for (const ValueId v : e.model.graph.inputs()) {
    ValueInfo& info = e.model.graph.value(v);
    if (!info.declared.is_tensor() || !info.declared.shape || info.constant || random_.chance(30)) continue;
    any = true;
    if (random_.chance(15)) {
      info.declared.shape.reset();
    } else {
      for (Dim& d : *info.declared.shape) {
        if (random_.chance(60)) d = random_.chance(50) && d.is_const() ? Dim::symbol("d" + d.str()) : Dim::unknown();
      }
    }
    info.type = info.declared;
  }
  return any;
}

// An input becomes a constant, as weights are.
bool Mutator::freeze(Example& e) {
  Graph& g = e.model.graph;
  if (e.inputs.size() < 2) return false;
  const std::size_t i = random_.below(e.inputs.size());
  const ValueId v = g.inputs()[i];
  if (!e.inputs[i].is_tensor() || g.value(v).constant) return false;
  g.value(v).constant = e.inputs[i].tensor().clone();
  g.remove_input(i);
  e.inputs.erase(e.inputs.begin() + static_cast<std::ptrdiff_t>(i));
  return true;
}

// And a constant becomes an input, at times one with a default.
bool Mutator::thaw(Example& e) {
  Graph& g = e.model.graph;
  for (ValueId v = 0; v < g.values().size(); ++v) {
    if (!g.value(v).constant || g.value(v).is_input || random_.chance(50)) continue;
    const Tensor t = *g.value(v).constant;
    const ValueId in = g.add_input(g.value(v).name + "_given", Type::tensor(t.dtype(), to_sym(t.shape())));
    e.inputs.emplace_back(t);
    if (random_.chance(30)) {
      g.value(in).constant = t;
      if (random_.chance(50)) e.inputs.back() = Value();
    }
    g.replace_uses(v, in);
    renew(g);
    return true;
  }
  return false;
}

bool Mutator::step(Example& e, std::string& what) {
  Graph& top = e.model.graph;
  const std::vector<std::pair<const char*, std::function<bool()>>> ways = {
      {"attribute", [&] { return attribute(some_graph(top)); }},
      {"drop attribute", [&] { return drop_attribute(some_graph(top)); }},
      {"swap inputs", [&] { return swap_inputs(some_graph(top)); }},
      {"rewire", [&] { return rewire(some_graph(top)); }},
      {"leave out input", [&] { return leave_out_input(some_graph(top)); }},
      {"leave out output", [&] { return leave_out_output(top); }},
      {"duplicate", [&] { return duplicate(top); }},
      {"operator", [&] { return operators(some_graph(top)); }},
      {"opset", [&] { return random_.chance(30) && opset(e.model); }},
      {"add output", [&] { return add_output(top); }},
      {"drop output", [&] { return drop_output(top); }},
      {"constant values", [&] { return constant_values(some_graph(top)); }},
      {"constant type", [&] { return constant_type(some_graph(top)); }},
      {"input type", [&] { return input_type(e); }},
      {"input values", [&] { return input_values(e); }},
      {"unknown extents", [&] { return unknown_extents(e); }},
      {"freeze", [&] { return freeze(e); }},
      {"freeze", [&] { return freeze(e); }},
      {"thaw", [&] { return thaw(e); }},
      {"view", [&] { return view(top); }},
      {"follow", [&] { return follow(top); }},
      {"follow", [&] { return follow(top); }},
      {"quantise", [&] { return quantise(top); }},
      {"quantised weights", [&] { return quantised_weights(top); }},
      {"through half", [&] { return through_half(top); }},
      {"narrow", [&] { return random_.chance(40) && narrow_all(e); }},
      {"splice", [&] { return splice(e); }},
      {"splice", [&] { return splice(e); }},
      {"branch", [&] { return branch(e); }},
      {"loop", [&] { return loop(e); }},
  };
  const auto& [name, way] = random_.pick(ways);
  const Example before = e;
  try {
    if (!way()) {
      e = before;
      return false;
    }
  } catch (const Error&) {  // a cycle
    e = before;
    return false;
  }
  what += (what.empty() ? "" : ", ") + std::string(name);
  return true;
}

std::string Mutator::mutate(Example& example, int changes) {
  std::string what;
  for (int done = 0, tries = 0; done < changes && tries < 20 * changes; ++tries) {
    if (!step(example, what)) continue;
    ++done;
    try {
      session::check_and_infer(example.model.graph);
    } catch (const Error&) {  // the types that are known so far do
    }
  }
  return what;
}

}  // namespace sdx::fuzz
