#include <algorithm>

#include "dropin/editor/parts.h"
#include "dropin/status.h"

namespace sdx::dropin {
namespace {

DataType element(ElementType type) {
  const DataType ours = type_of_element(type);
  if (ours == DataType::undefined)
    fail_ort(ORT_INVALID_ARGUMENT, "element type " + std::to_string(type) + " cannot be part of a model");
  return ours;
}

Type tensor_type(const OrtTensorTypeAndShapeInfo& info, Type::Kind kind) {
  Type type;
  type.kind = kind;
  type.elem = element(info.element);
  if (!info.has_shape && info.shape.empty()) return type;
  SymShape shape;
  for (std::size_t i = 0; i < info.shape.size(); ++i) {
    const bool named = i < info.symbols.size() && !info.symbols[i].empty();
    shape.push_back(named ? Dim::symbol(info.symbols[i]) : info.shape[i] >= 0 ? Dim(info.shape[i]) : Dim::unknown());
  }
  type.shape = std::move(shape);
  return type;
}

// Values of a graph by name, made where they are first named.
class Names {
 public:
  explicit Names(Graph& graph) : graph_(graph) {}
  ValueId of(const std::string& name) {
    if (name.empty()) return kNoValue;
    if (const auto known = graph_.find(name)) return *known;
    return graph_.add_value(name);
  }

 private:
  Graph& graph_;
};

void add_initializers(Graph& graph, const OrtGraph& from) {
  for (const auto& [name, value] : from.initializers) {
    const Tensor& tensor = tensor_of(value.get());
    if (const auto known = graph.find(name)) {
      ValueInfo& info = graph.value(*known);
      if (info.constant || info.producer != kNoNode) fail_ort(ORT_INVALID_GRAPH, "initializer '" + name + "' is defined twice");
      info.constant = tensor;
      info.type = Type::tensor(tensor.dtype(), to_sym(tensor.shape()));
      continue;
    }
    graph.add_constant(name, tensor);
  }
}

int version_of(const Model& model, const std::string& domain, const OrtNode& node) {
  const auto it = model.opsets.find(domain);
  if (it == model.opsets.end()) {
    const std::string what =
        "Error No opset import for domain '" + domain + "' of node '" + node.name + "' (" + node.op_type + ")";
    fail_ort(ORT_INVALID_GRAPH, domain.empty() ? what + ": The opset for the ONNX domain must be explicitly specified" : what);
  }
  return it->second;
}

void add_nodes(Model& model, const OrtGraph& from) {
  Names names(model.graph);
  for (const auto& part : from.nodes) {
    Node node;
    node.name = part->name;
    node.op_type = part->op_type;
    node.domain = part->domain;
    node.version = version_of(model, part->domain, *part);
    for (const std::string& in : part->inputs) node.inputs.push_back(names.of(in));
    for (const std::string& out : part->outputs) {
      const ValueId id = names.of(out);
      if (id != kNoValue &&
          (model.graph.value(id).producer != kNoNode || model.graph.value(id).is_input || model.graph.value(id).constant)) {
        fail_ort(ORT_INVALID_GRAPH, "value '" + out + "' is defined twice: node '" + part->name + "' makes it again");
      }
      node.outputs.push_back(id);
    }
    for (const OrtOpAttr& a : part->attributes) node.attributes.set(a.name, a.value);
    model.graph.add_node(std::move(node));
  }
}

// Outputs keep the types that are declared for them.
void set_outputs(Graph& graph, const OrtGraph& from) {
  while (!graph.outputs().empty()) graph.remove_output(graph.outputs().size() - 1);
  for (const auto& out : from.outputs) {
    const auto id = graph.find(out->name);
    if (!id) fail_ort(ORT_INVALID_GRAPH, "output '" + out->name + "' of the graph is made by no node");
    graph.value(*id).declared = model_type(out->type);
    if (!graph.value(*id).type.known()) graph.value(*id).type = graph.value(*id).declared;
    graph.add_output(*id);
  }
}

// Checks that each input of a node is defined.
void check_defined(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    if (node.removed) continue;
    for (const ValueId id : node.inputs) {
      if (id == kNoValue) continue;
      const ValueInfo& v = graph.value(id);
      if (v.producer == kNoNode && !v.is_input && !v.constant) {
        fail_ort(ORT_INVALID_GRAPH,
                 "Node input '" + v.name +
                     "' is not a graph input, initializer, or output of a previous node. It is read by node '" + node.name +
                     "' (" + node.op_type + ")");
      }
    }
  }
}

void finish(Model& model) {
  check_defined(model.graph);
  model.graph.compact();
  model.graph.drop_unused_values();
  model.graph.verify();
}

}  // namespace

Type model_type(const OrtTypeInfo& info) {
  const auto inner = [](const std::shared_ptr<const OrtTypeInfo>& part) {
    return model_type(require(part.get(), "the type inside a type"));
  };
  switch (info.type) {
    case ONNX_TYPE_TENSOR: return tensor_type(info.tensor, Type::Kind::tensor);
    case ONNX_TYPE_SPARSETENSOR: return tensor_type(info.tensor, Type::Kind::sparse_tensor);
    case ONNX_TYPE_SEQUENCE: return Type::sequence(inner(info.sequence.element));
    case ONNX_TYPE_OPTIONAL: return Type::optional(inner(info.optional.element));
    case ONNX_TYPE_MAP: return Type::map(element(info.map.key), inner(info.map.value));
    case ONNX_TYPE_UNKNOWN:
    case ONNX_TYPE_OPAQUE: break;
  }
  fail_ort(ORT_INVALID_ARGUMENT, "a type of this kind cannot be part of a model");
}

namespace {

Model built(const OrtModel& from) {
  if (from.graph == nullptr) fail_ort(ORT_INVALID_ARGUMENT, "the model has no graph");
  Model model;
  model.ir_version = 10;
  model.opsets = from.opsets;
  model.graph.name = from.graph->name;
  for (const auto& in : from.graph->inputs) {
    if (model.graph.find(in->name)) fail_ort(ORT_INVALID_GRAPH, "input '" + in->name + "' is there twice");
    model.graph.add_input(in->name, model_type(in->type));
  }
  add_initializers(model.graph, *from.graph);
  add_nodes(model, *from.graph);
  set_outputs(model.graph, *from.graph);
  finish(model);
  return model;
}

void extend(Model& model, const OrtModel& more) {
  for (const auto& [domain, version] : more.opsets) {
    const auto [it, added] = model.opsets.emplace(domain, version);
    if (!added && it->second != version) {
      fail_ort(ORT_INVALID_ARGUMENT, "the model imports version " + std::to_string(it->second) + " of domain '" + domain +
                                         "'; what is to be added needs version " + std::to_string(version));
    }
  }
  if (more.graph == nullptr) return;
  Graph& graph = model.graph;
  if (!more.graph->inputs.empty()) {
    for (const auto& in : more.graph->inputs) {
      const auto known = graph.find(in->name);
      if (known && graph.value(*known).is_input) continue;
      if (known) fail_ort(ORT_INVALID_GRAPH, "input '" + in->name + "' is a value of the model already");
      graph.add_input(in->name, model_type(in->type));
    }
  }
  if (!more.graph->inputs.empty()) {  // before new nodes make what was an input
    for (std::size_t i = graph.inputs().size(); i-- > 0;) {
      const std::string& name = graph.value(graph.inputs()[i]).name;
      const auto named = [&](const auto& in) { return in->name == name; };
      if (std::none_of(more.graph->inputs.begin(), more.graph->inputs.end(), named)) graph.remove_input(i);
    }
  }
  add_initializers(graph, *more.graph);
  add_nodes(model, *more.graph);
  if (!more.graph->outputs.empty()) set_outputs(graph, *more.graph);
  finish(model);
}

// Starts messages like ONNX Runtime.
template <class F>
void in_its_words(F&& work) {
  try {
    work();
  } catch (OrtError& e) {
    if (e.code == ORT_INVALID_GRAPH) e.message = "This is an invalid model. " + e.message;
    throw;
  }
}

}  // namespace

Model build_model(const OrtModel& from) {
  Model model;
  in_its_words([&] { model = built(from); });
  return model;
}

void extend_model(Model& model, const OrtModel& more) {
  in_its_words([&] { extend(model, more); });
}

}  // namespace sdx::dropin
