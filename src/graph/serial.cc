#include "graph/serial.h"

#include <algorithm>
#include <utility>

#include "graph/byte_stream.h"

namespace sdx {
namespace {

constexpr int kMostNesting = 32;

// The index of each alternative of AttributeValue is its number in the file.
class Encoder {
 public:
  explicit Encoder(const PutTensor& put) : put_(put) {}

  void graph(const Graph& g) {
    out_.text(g.name);
    out_.number(g.values().size());
    for (const ValueInfo& v : g.values()) value(v);
    ids(g.inputs());
    out_.number(g.nodes().size());
    for (const Node& n : g.nodes()) node(n);
    ids(g.outputs());
    for (const std::string& name : g.output_names()) out_.text(name);
  }
  std::string take() { return out_.take(); }

 private:
  void ids(const std::vector<ValueId>& list) {
    out_.number(list.size());
    for (const ValueId v : list) out_.number(v);
  }
  void dim(const Dim& d) {
    out_.number(static_cast<std::uint8_t>(d.is_const() ? 1 : (d.is_symbolic() ? 2 : 0)));
    if (d.is_const()) out_.number(d.value());
    // An expression becomes a symbol of that name: equal ones stay equal, and plans compute with numbers anyway.
    if (d.is_symbolic()) out_.text(d.str());
  }
  void type(const Type& t) {
    out_.number(t.kind);
    out_.number(static_cast<std::uint32_t>(t.elem));
    out_.number(t.shape ? t.shape->size() + 1 : std::size_t{0});
    if (t.shape) {
      for (const Dim& d : *t.shape) dim(d);
    }
    out_.number(std::uint8_t{t.inner != nullptr});
    if (t.inner) type(*t.inner);
  }
  void value(const ValueInfo& v) {
    const bool same = v.type.str() == v.declared.str();
    out_.text(v.name);
    out_.number(static_cast<std::uint8_t>((v.constant ? 1 : 0) | (v.is_input ? 2 : 0) | (same ? 4 : 0)));
    type(v.type);
    if (!same) type(v.declared);
    if (v.constant) out_.number(put_(*v.constant));
  }
  void node(const Node& n) {
    if (n.removed || n.custom) fail(ErrorCode::invalid_argument, "{} ({}) cannot be stored", n.name, n.op_type);
    out_.text(n.name);
    out_.text(n.op_type);
    out_.text(n.domain);
    out_.number(n.version);
    out_.text(n.overload);
    ids(n.inputs);
    ids(n.outputs);
    out_.number(n.attributes.items().size());
    for (const auto& [name, held] : n.attributes.items()) {
      out_.text(name);
      out_.number(held.index());
      std::visit([this](const auto& v) { item(v); }, held);
    }
    out_.number(n.subgraphs.size());
    for (const Subgraph& s : n.subgraphs) {
      out_.text(s.attribute);
      ids(s.captures);
      graph(*s.graph);
    }
  }
  void item(std::int64_t v) { out_.number(v); }
  void item(float v) { out_.raw(v); }
  void item(const std::string& v) { out_.text(v); }
  void item(const Tensor& v) { out_.number(put_(v)); }
  void item(const Type& v) { type(v); }
  template <class T>
  void item(const std::vector<T>& list) {
    out_.number(list.size());
    for (const T& v : list) item(v);
  }

  const PutTensor& put_;
  ByteWriter out_;
};

class Decoder {
 public:
  Decoder(std::string_view bytes, const GetTensor& get) : in_(bytes), get_(get) {}

  Graph graph(int depth = 0) {
    if (depth > kMostNesting) ByteReader::damaged();
    Graph g;
    g.name = in_.text();
    const std::size_t values = in_.count();
    for (std::size_t i = 0; i < values; ++i) value(g);
    order_inputs(g, ids(values, false));
    const std::size_t nodes = in_.count();
    for (std::size_t i = 0; i < nodes; ++i) g.add_node(node(values, depth));
    for (const ValueId v : ids(values, false)) g.add_output(v, in_.text());
    return g;
  }
  bool at_end() const { return in_.at_end(); }

 private:
  std::vector<ValueId> ids(std::size_t values, bool may_lack) {
    std::vector<ValueId> list(in_.count());
    for (ValueId& v : list) {
      v = in_.number<ValueId>();
      if (v >= values && !(may_lack && v == kNoValue)) ByteReader::damaged();
    }
    return list;
  }
  Dim dim() {
    const auto form = in_.number<std::uint8_t>();
    if (form > 2) ByteReader::damaged();
    if (form == 1) return Dim(in_.number<std::int64_t>());
    return form == 2 ? Dim::symbol(in_.text()) : Dim();
  }
  Type type(int depth = 0) {
    if (depth > kMostNesting) ByteReader::damaged();
    Type t;
    t.kind = in_.number<Type::Kind>();
    const auto elem = in_.number<std::uint32_t>();
    if (t.kind > Type::Kind::map || elem >= static_cast<std::uint32_t>(kDataTypeCount)) ByteReader::damaged();
    t.elem = static_cast<DataType>(elem);
    if (const std::size_t rank = in_.count(); rank > 0) {
      t.shape.emplace();
      for (std::size_t i = 1; i < rank; ++i) t.shape->push_back(dim());
    }
    if (in_.number<std::uint8_t>() != 0) t.inner = std::make_shared<const Type>(type(depth + 1));
    return t;
  }
  // The values that are inputs lie in inputs() by their ids so far.
  static void order_inputs(Graph& g, const std::vector<ValueId>& wanted) {
    std::vector<std::size_t> order;
    std::vector<bool> taken(g.inputs().size(), false);
    for (const ValueId v : wanted) {
      const auto it = std::find(g.inputs().begin(), g.inputs().end(), v);
      const auto at = static_cast<std::size_t>(it - g.inputs().begin());
      if (it == g.inputs().end() || taken[at]) ByteReader::damaged();
      taken[at] = true;
      order.push_back(at);
    }
    if (order.size() != taken.size()) ByteReader::damaged();
    g.permute_inputs(order);
  }
  void value(Graph& g) {
    std::string name = in_.text();
    const auto flags = in_.number<std::uint8_t>();
    if (name.empty() || g.find(name)) ByteReader::damaged();
    const ValueId id = (flags & 2) != 0 ? g.add_input(std::move(name), type()) : g.add_value(std::move(name), type());
    ValueInfo& v = g.value(id);
    if ((flags & 4) == 0) v.declared = type();
    if ((flags & 1) != 0) v.constant = get_(in_.number<std::uint64_t>());
  }
  Node node(std::size_t values, int depth) {
    Node n;
    n.name = in_.text();
    n.op_type = in_.text();
    n.domain = in_.text();
    n.version = in_.number<int>();
    n.overload = in_.text();
    n.inputs = ids(values, true);
    n.outputs = ids(values, true);
    const std::size_t attributes = in_.count();
    for (std::size_t i = 0; i < attributes; ++i) {
      std::string name = in_.text();
      n.attributes.set(std::move(name), attribute(std::make_index_sequence<std::variant_size_v<AttributeValue>>()));
    }
    const std::size_t subgraphs = in_.count();
    for (std::size_t i = 0; i < subgraphs; ++i) {
      Subgraph s;
      s.attribute = in_.text();
      s.captures = ids(values, false);
      s.graph = std::make_unique<Graph>(graph(depth + 1));
      n.subgraphs.push_back(std::move(s));
    }
    return n;
  }
  template <std::size_t... kIndex>
  AttributeValue attribute(std::index_sequence<kIndex...>) {
    const auto which = in_.number<std::size_t>();
    AttributeValue out;
    const bool known = ((which == kIndex ? (read(out.emplace<kIndex>()), true) : false) || ...);
    if (!known) ByteReader::damaged();
    return out;
  }
  void read(std::int64_t& v) { v = in_.number<std::int64_t>(); }
  void read(float& v) { v = in_.raw<float>(); }
  void read(std::string& v) { v = in_.text(); }
  void read(Tensor& v) { v = get_(in_.number<std::uint64_t>()); }
  void read(Type& v) { v = type(); }
  template <class T>
  void read(std::vector<T>& list) {
    list.resize(in_.count());
    for (T& v : list) read(v);
  }

  ByteReader in_;
  const GetTensor& get_;
};

}  // namespace

std::string encode_graph(const Graph& graph, const PutTensor& put) {
  Encoder encoder(put);
  encoder.graph(graph);
  return encoder.take();
}

Graph decode_graph(std::string_view bytes, const GetTensor& get) {
  Decoder decoder(bytes, get);
  Graph g = decoder.graph();
  if (!decoder.at_end()) ByteReader::damaged();
  try {
    g.verify();
  } catch (const Error& e) {
    fail(ErrorCode::invalid_model, "the graph is damaged: {}", e.message());
  }
  return g;
}

}  // namespace sdx
