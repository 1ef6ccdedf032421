#include <algorithm>
#include <map>

#include "base/error.h"
#include "onnx/attributes.h"
#include "onnx/ort/ort_model.h"
#include "onnx/ort/type_names.h"
#include "onnx/ort/versions.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "ops/evaluate.h"
#include "ops/op.h"
#include "ort_model_generated.h"

namespace sdx {
namespace {

namespace file = ort_file;
using Builder = flatbuffers::FlatBufferBuilder;
template <class T>
using Offset = flatbuffers::Offset<T>;
using TextOffset = Offset<flatbuffers::String>;

constexpr const char* kVersion = "6";
constexpr std::size_t kMostBytes = 2'000'000'000;  // the format ends at 2 GiB
constexpr std::size_t kFirstBytes = std::size_t{1} << 20;
constexpr std::size_t kAlignment = 16;  // of constants, for whoever uses them where they lie

std::string_view kind_text(Type::Kind kind) {
  switch (kind) {
    case Type::Kind::optional: return "an optional value";
    case Type::Kind::sparse_tensor: return "a sparse tensor";
    default: return "of unknown type";
  }
}

class SessionWriter {
 public:
  std::string run(const Model& model, const std::map<std::string, int>& opsets);

 private:
  TextOffset shared(std::string_view s) { return out_.CreateSharedString(s.data(), s.size()); }
  TextOffset text(std::string_view s) { return out_.CreateString(s.data(), s.size()); }
  Offset<flatbuffers::Vector<TextOffset>> names(const Graph& g, const std::vector<ValueId>& values) {
    std::vector<TextOffset> list;
    for (const ValueId v : values) list.push_back(shared(v == kNoValue ? std::string_view() : g.value(v).name));
    return out_.CreateVector(list);
  }

  Offset<file::AnyType> type(const Type& t, const std::string& value);
  Offset<file::TensorType> tensor_type(const Type& t);
  Offset<file::Tensor> tensor(const Tensor& t, const std::string& name);
  Offset<file::Attribute> attribute(const std::string& name, const AttributeValue& value);
  Offset<file::Attribute> subgraph(const Subgraph& s);
  Offset<file::Node> node(const Graph& g, const Node& n, std::uint32_t index);
  Offset<file::Graph> graph(const Graph& g, std::size_t captured);
  std::vector<Offset<file::NamedType>> values(const Graph& g);
  std::vector<Offset<file::NodeEdges>> edges(const Graph& g);
  Offset<file::KernelTypes> kernel_types();
  Offset<file::OperatorTypes> operator_types(const std::string& name, const TypeNames& types);
  void count(std::size_t bytes);

  Builder out_{kFirstBytes};
  std::size_t bytes_ = 0;
  std::map<std::string, TypeNames> used_;
};

// The builder ends the process when the file grows too large.
void SessionWriter::count(std::size_t bytes) {
  bytes_ += bytes;
  if (bytes_ <= kMostBytes && out_.GetSize() <= kMostBytes) return;
  fail(ErrorCode::invalid_argument, "the model has more than {} bytes; an .ort file may have 2 GiB at most: write an .onnx file",
       kMostBytes);
}

Offset<file::TensorType> SessionWriter::tensor_type(const Type& t) {
  Offset<file::Extents> extents = 0;
  if (t.shape) {
    std::vector<Offset<file::Axis>> axes;
    for (const Dim& d : *t.shape) {
      const std::int8_t kind = d.is_const() ? 1 : d.is_symbolic() ? 2 : 0;
      const TextOffset symbol = kind == 2 ? shared(d.str()) : TextOffset(0);
      axes.push_back(file::CreateAxis(out_, file::CreateExtent(out_, kind, d.is_const() ? d.value() : 0, symbol)));
    }
    extents = file::CreateExtents(out_, out_.CreateVector(axes));
  }
  return file::CreateTensorType(out_, static_cast<std::int32_t>(t.elem), extents);
}

Offset<file::AnyType> SessionWriter::type(const Type& t, const std::string& value) {
  if (t.kind == Type::Kind::tensor && t.elem != DataType::undefined) {
    return file::CreateAnyType(out_, 0, file::TypeContent_TensorType, tensor_type(t).Union());
  }
  if (t.kind == Type::Kind::sequence && t.inner != nullptr) {
    const Offset<file::SequenceType> made = file::CreateSequenceType(out_, type(*t.inner, value));
    return file::CreateAnyType(out_, 0, file::TypeContent_SequenceType, made.Union());
  }
  if (t.kind == Type::Kind::map && t.inner != nullptr) {
    const Offset<file::AnyType> inner = type(*t.inner, value);
    const Offset<file::MapType> made = file::CreateMapType(out_, static_cast<std::int32_t>(t.elem), inner);
    return file::CreateAnyType(out_, 0, file::TypeContent_MapType, made.Union());
  }
  fail(ErrorCode::invalid_argument, "value '{}' is {}, which the .ort format cannot express: write an .onnx file", value,
       kind_text(t.kind));
}

Offset<file::Tensor> SessionWriter::tensor(const Tensor& t, const std::string& name) {
  const TextOffset named = shared(name);
  const auto extents = out_.CreateVector(t.shape().data(), t.shape().size());
  const auto element = static_cast<std::int32_t>(t.dtype());
  if (t.dtype() == DataType::string) {
    std::vector<TextOffset> list;
    for (const std::string& s : t.values<std::string>()) {
      count(s.size());
      list.push_back(text(s));
    }
    return file::CreateTensor(out_, named, 0, extents, element, 0, out_.CreateVector(list));
  }
  const OwnedBytes raw = raw_bytes(t);
  count(raw.data.size());
  out_.ForceVectorAlignment(raw.data.size(), 1, kAlignment);
  const auto content = out_.CreateVector(reinterpret_cast<const std::uint8_t*>(raw.data.data()), raw.data.size());
  return file::CreateTensor(out_, named, 0, extents, element, content);
}

Offset<file::Attribute> SessionWriter::attribute(const std::string& name, const AttributeValue& value) {
  struct Part {
    float number = 0;
    std::int64_t integer = 0;
    TextOffset text = 0;
    Offset<file::Tensor> tensor = 0;
    Offset<flatbuffers::Vector<float>> numbers = 0;
    Offset<flatbuffers::Vector<std::int64_t>> integers = 0;
    Offset<flatbuffers::Vector<TextOffset>> texts = 0;
    Offset<flatbuffers::Vector<Offset<file::Tensor>>> tensors = 0;
  } p;
  const TextOffset named = shared(name);
  if (const auto* i = std::get_if<std::int64_t>(&value)) p.integer = *i;
  if (const auto* f = std::get_if<float>(&value)) p.number = *f;
  if (const auto* s = std::get_if<std::string>(&value)) p.text = text(*s);
  if (const auto* t = std::get_if<Tensor>(&value)) p.tensor = tensor(*t, "");
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) p.integers = out_.CreateVector(*list);
  if (const auto* list = std::get_if<std::vector<float>>(&value)) p.numbers = out_.CreateVector(*list);
  if (const auto* list = std::get_if<std::vector<std::string>>(&value)) p.texts = out_.CreateVectorOfStrings(*list);
  if (const auto* list = std::get_if<std::vector<Tensor>>(&value)) {
    std::vector<Offset<file::Tensor>> made;
    for (const Tensor& t : *list) made.push_back(tensor(t, ""));
    p.tensors = out_.CreateVector(made);
  }
  if (std::holds_alternative<Type>(value) || std::holds_alternative<std::vector<Type>>(value)) {
    fail(ErrorCode::invalid_argument, "attribute '{}' is a type, which the .ort format cannot express: write an .onnx file",
         name);
  }
  count(0);
  return file::CreateAttribute(out_, named, 0, static_cast<std::int32_t>(type_of(value)), p.number, p.integer, p.text, p.tensor,
                               0, p.numbers, p.integers, p.texts, p.tensors);
}

Offset<file::Attribute> SessionWriter::subgraph(const Subgraph& s) {
  const Offset<file::Graph> made = graph(*s.graph, s.captures.size());
  return file::CreateAttribute(out_, shared(s.attribute), 0, static_cast<std::int32_t>(AttributeType::g), 0, 0, 0, 0, made);
}

// The number of arguments of each formal input: the last one takes the rest.
std::vector<std::int32_t> input_counts(const ops::OpDef* def, std::size_t inputs) {
  if (def == nullptr) return std::vector<std::int32_t>(inputs, 1);
  std::vector<std::int32_t> counts;
  if (def->inputs.empty()) return counts;
  std::size_t left = inputs;
  for (std::size_t i = 0; i + 1 < def->inputs.size(); ++i) {
    counts.push_back(left > 0 ? 1 : 0);
    left -= left > 0 ? 1 : 0;
  }
  counts.push_back(static_cast<std::int32_t>(left));
  return counts;
}

Offset<file::Node> SessionWriter::node(const Graph& g, const Node& n, std::uint32_t index) {
  std::vector<Offset<file::Attribute>> attributes;
  for (const auto& [name, value] : n.attributes.items()) attributes.push_back(attribute(name, value));
  std::vector<ValueId> captures;
  for (const Subgraph& s : n.subgraphs) {
    attributes.push_back(subgraph(s));
    for (const ValueId v : s.captures) {
      if (std::find(captures.begin(), captures.end(), v) == captures.end()) captures.push_back(v);
    }
  }
  const ops::OpDef* const def = ops::find(n);
  const int since = n.custom != nullptr && def != nullptr ? def->since : since_version(n.domain, n.op_type, n.version);
  const std::string which = n.domain + ":" + n.op_type + ":" + std::to_string(since);
  if (def != nullptr && !used_.contains(which)) used_.emplace(which, type_names(*def, since));
  const TextOffset name = text(n.name), domain = shared(n.domain), op = shared(n.op_type), none = shared("");
  const auto inputs = names(g, n.inputs), outputs = names(g, n.outputs), captured = names(g, captures);
  const auto counts = out_.CreateVector(input_counts(def, n.inputs.size()));
  return file::CreateNode(out_, name, 0, domain, since, index, op, 0, none, inputs, outputs, out_.CreateVector(attributes),
                          counts, captured);
}

// Types of all values; of those that nodes leave out, which have no name, none.
std::vector<Offset<file::NamedType>> SessionWriter::values(const Graph& g) {
  std::vector<bool> read(g.values().size(), false);
  bool left_out = false;
  const auto mark = [&](ValueId v) { v == kNoValue ? left_out = true : read[v] = true; };
  for (const Node& n : g.nodes()) {
    std::for_each(n.inputs.begin(), n.inputs.end(), mark);
    std::for_each(n.outputs.begin(), n.outputs.end(), mark);
    for (const Subgraph& s : n.subgraphs) std::for_each(s.captures.begin(), s.captures.end(), mark);
  }
  std::for_each(g.inputs().begin(), g.inputs().end(), mark);
  std::for_each(g.outputs().begin(), g.outputs().end(), mark);
  std::vector<Offset<file::NamedType>> made;
  if (left_out) made.push_back(file::CreateNamedType(out_, shared("")));
  for (ValueId v = 0; v < g.values().size(); ++v) {
    const ValueInfo& info = g.value(v);
    if (!read[v] && !info.constant) continue;
    const Type known = info.constant ? Type::tensor(info.constant->dtype(), to_sym(info.constant->shape())) : info.type;
    const TextOffset name = shared(info.name);
    made.push_back(file::CreateNamedType(out_, name, 0, type(known, info.name)));
  }
  return made;
}

std::vector<Offset<file::NodeEdges>> SessionWriter::edges(const Graph& g) {
  std::vector<std::vector<file::EdgeEnd>> from(g.nodes().size()), to(g.nodes().size());
  const auto connect = [&](NodeId reader, ValueId v, std::size_t place) {
    if (v == kNoValue || g.value(v).producer == kNoNode) return;
    const NodeId writer = g.value(v).producer;
    const std::vector<ValueId>& made = g.node(writer).outputs;
    const auto output = static_cast<std::int32_t>(std::find(made.begin(), made.end(), v) - made.begin());
    from[reader].emplace_back(writer, output, static_cast<std::int32_t>(place));
    to[writer].emplace_back(reader, output, static_cast<std::int32_t>(place));
  };
  for (NodeId id = 0; id < g.nodes().size(); ++id) {
    const Node& n = g.node(id);
    for (std::size_t i = 0; i < n.inputs.size(); ++i) connect(id, n.inputs[i], i);
    std::vector<ValueId> captures;
    for (const Subgraph& s : n.subgraphs) {
      for (const ValueId v : s.captures) {
        if (std::find(captures.begin(), captures.end(), v) != captures.end()) continue;
        connect(id, v, n.inputs.size() + captures.size());
        captures.push_back(v);
      }
    }
  }
  std::vector<Offset<file::NodeEdges>> made;
  for (NodeId id = 0; id < g.nodes().size(); ++id) {
    made.push_back(file::CreateNodeEdges(out_, id, out_.CreateVectorOfStructs(from[id]), out_.CreateVectorOfStructs(to[id])));
  }
  return made;
}

Offset<file::Graph> SessionWriter::graph(const Graph& g, std::size_t captured) {
  std::vector<Offset<file::Tensor>> constants;
  for (const ValueInfo& v : g.values()) {
    if (v.constant) constants.push_back(tensor(*v.constant, v.name));
  }
  const auto types = values(g);
  std::vector<Offset<file::Node>> nodes;
  for (NodeId id = 0; id < g.nodes().size(); ++id) nodes.push_back(node(g, g.node(id), id));
  const auto connections = edges(g);
  const std::vector<ValueId> formals(g.inputs().begin(), g.inputs().end() - static_cast<std::ptrdiff_t>(captured));
  const auto inputs = names(g, formals), outputs = names(g, g.outputs());
  return file::CreateGraph(out_, out_.CreateVector(constants), out_.CreateVector(types), out_.CreateVector(nodes),
                           static_cast<std::uint32_t>(nodes.size()), out_.CreateVector(connections), inputs, outputs,
                           out_.CreateVector(std::vector<Offset<file::SparseTensor>>()));
}

Offset<file::OperatorTypes> SessionWriter::operator_types(const std::string& name, const TypeNames& types) {
  std::map<std::string, std::vector<Offset<file::Argument>>> places;
  const auto add = [&](const std::vector<std::string>& names, std::int8_t side) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      places[names[i]].push_back(file::CreateArgument(out_, side, static_cast<std::uint32_t>(i)));
    }
  };
  add(types.inputs, 0);
  add(types.outputs, 1);
  std::vector<Offset<file::TypeVariable>> variables;
  for (const auto& [variable, arguments] : places) {
    const TextOffset key = shared(variable);
    variables.push_back(file::CreateTypeVariable(out_, key, out_.CreateVector(arguments)));
  }
  const TextOffset key = shared(name);
  return file::CreateOperatorTypes(out_, key, out_.CreateVectorOfSortedTables(&variables));
}

Offset<file::KernelTypes> SessionWriter::kernel_types() {
  std::vector<Offset<file::OperatorTypes>> all;
  for (const auto& [name, types] : used_) all.push_back(operator_types(name, types));
  return file::CreateKernelTypes(out_, out_.CreateVectorOfSortedTables(&all));
}

std::string SessionWriter::run(const Model& m, const std::map<std::string, int>& opsets) {
  std::vector<Offset<file::OperatorSet>> sets;
  for (const auto& [domain, version] : opsets) sets.push_back(file::CreateOperatorSet(out_, shared(domain), version));
  std::vector<Offset<file::TextPair>> metadata;
  for (const auto& [key, value] : m.metadata) {
    const TextOffset first = text(key);
    metadata.push_back(file::CreateTextPair(out_, first, text(value)));
  }
  const Offset<file::Graph> main = graph(m.graph, 0);
  const TextOffset producer = text(m.producer_name), producer_version = text(m.producer_version), domain = text(m.domain),
                   doc = text(m.doc);
  const auto pairs = out_.CreateVector(metadata);
  const auto model = file::CreateModel(out_, m.ir_version, out_.CreateVector(sets), producer, producer_version, domain,
                                       m.model_version, doc, main, 0, pairs);
  const Offset<file::KernelTypes> types = kernel_types();
  const TextOffset version = text(kVersion);
  file::FinishSessionBuffer(out_, file::CreateSession(out_, version, model, types));
  return {reinterpret_cast<const char*>(out_.GetBufferPointer()), out_.GetSize()};
}

// ONNX Runtime has no kernel for Constant: it knows constants alone.
void hold_constants(Graph& g) {
  for (NodeId id = 0; id < g.nodes().size(); ++id) {
    Node& n = g.node(id);
    for (Subgraph& s : n.subgraphs) hold_constants(*s.graph);
    if (n.removed || n.op_type != "Constant" || !n.domain.empty() || n.outputs.empty()) continue;
    const ops::OpDef* const def = ops::find(n);
    if (def == nullptr) continue;
    const std::vector<Value> made = ops::evaluate(n, *def, {});
    const ValueId result = n.outputs[0];
    g.remove_node(id);
    g.value(result).constant = made.at(0).tensor();
  }
  g.compact();
}

}  // namespace

std::string write_ort_model(const Model& model) {
  Model plain = model;
  hold_constants(plain.graph);
  // ONNX Runtime adds operators of these domains when it loads the file, so the file imports both.
  for (const char* domain : {"com.microsoft", "com.microsoft.nchwc"}) plain.opsets.emplace(domain, 1);
  // The model is written and read again, so that every value has its final name, and outputs are values.
  const std::string proto = write_model(plain);
  const auto* const bytes = reinterpret_cast<const std::byte*>(proto.data());
  const Model named = read_model({bytes, proto.size()}, std::make_shared<int>(), {});
  if (!named.functions.empty()) {
    fail(ErrorCode::invalid_argument, "an .ort file cannot contain functions; they must be inlined first");
  }
  return SessionWriter().run(named, plain.opsets);
}

}  // namespace sdx
