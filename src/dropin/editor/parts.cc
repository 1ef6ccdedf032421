// Making the parts of models.

#include "dropin/editor/parts.h"

#include "dropin/editor/functions.h"
#include "dropin/status.h"
#include "dropin/table.h"

namespace sdx::dropin {

namespace {

// Names that the interface hands over as arrays; an empty one is a part that is left out.
std::vector<std::string> names_of(const char* const* names, std::size_t count, const char* what) {
  std::vector<std::string> out;
  if (count != 0) require(names, what);
  for (std::size_t i = 0; i < count; ++i) out.emplace_back(names[i] != nullptr ? names[i] : "");
  return out;
}

std::string domain_of(const char* domain) {
  const std::string name = domain != nullptr ? domain : "";
  return name == "ai.onnx" ? "" : name;
}

template <class F>
OrtStatus* create_type(OrtTypeInfo** out, OnnxType type, F&& fill) noexcept {
  return guarded([&] {
    require(out, "type_info") = nullptr;
    auto made = std::make_unique<OrtTypeInfo>();
    made->type = type;
    fill(*made);
    *out = made.release();
  });
}

std::shared_ptr<const OrtTypeInfo> copy_of(const OrtTypeInfo* type, const char* what) {
  return std::make_shared<const OrtTypeInfo>(require(type, what));
}

OrtStatus* tensor_type(const OrtTensorTypeAndShapeInfo* info, OrtTypeInfo** out) noexcept {
  return create_type(out, ONNX_TYPE_TENSOR, [&](OrtTypeInfo& t) { t.tensor = require(info, "tensor_info"); });
}
OrtStatus* sparse_type(const OrtTensorTypeAndShapeInfo* info, OrtTypeInfo** out) noexcept {
  return create_type(out, ONNX_TYPE_SPARSETENSOR, [&](OrtTypeInfo& t) { t.tensor = require(info, "tensor_info"); });
}
OrtStatus* map_type(ElementType key, const OrtTypeInfo* value, OrtTypeInfo** out) noexcept {
  return create_type(out, ONNX_TYPE_MAP, [&](OrtTypeInfo& t) { t.map = {key, copy_of(value, "map_value_type")}; });
}
OrtStatus* sequence_type(const OrtTypeInfo* element, OrtTypeInfo** out) noexcept {
  return create_type(out, ONNX_TYPE_SEQUENCE, [&](OrtTypeInfo& t) { t.sequence.element = copy_of(element, "sequence_type"); });
}
OrtStatus* optional_type(const OrtTypeInfo* element, OrtTypeInfo** out) noexcept {
  return create_type(out, ONNX_TYPE_OPTIONAL, [&](OrtTypeInfo& t) { t.optional.element = copy_of(element, "contained_type"); });
}

OrtStatus* create_value_info(const char* name, const OrtTypeInfo* type, OrtValueInfo** out) noexcept {
  return guarded([&] {
    require(out, "value_info") = nullptr;
    if (name == nullptr || *name == '\0') fail_ort(ORT_INVALID_ARGUMENT, "name cannot be null or empty string");
    const OrtTypeInfo& t = require(type, "type_info");
    if (t.type != ONNX_TYPE_TENSOR) fail_ort(ORT_INVALID_ARGUMENT, "Only tensor types are supported currently");
    *out = new OrtValueInfo{name, t, nullptr};
  });
}

// Takes the attributes over, once nothing can fail any more.
OrtStatus* create_node(const char* op, const char* domain, const char* name, const char* const* inputs, std::size_t input_count,
                       const char* const* outputs, std::size_t output_count, OrtOpAttr** attributes, std::size_t attribute_count,
                       OrtNode** out) noexcept {
  return guarded([&] {
    require(out, "node") = nullptr;
    auto node = std::make_unique<OrtNode>();
    node->op_type = &require(op, "operator_name");
    node->domain = domain_of(domain);
    node->name = name != nullptr ? name : "";
    node->inputs = names_of(inputs, input_count, "input_names");
    node->outputs = names_of(outputs, output_count, "output_names");
    const std::size_t count = attributes != nullptr ? attribute_count : 0;
    for (std::size_t i = 0; i < count; ++i) node->attributes.push_back(require(attributes[i], "an attribute"));
    for (std::size_t i = 0; i < count; ++i) {
      delete attributes[i];
      attributes[i] = nullptr;
    }
    *out = node.release();
  });
}

OrtStatus* create_graph(OrtGraph** out) noexcept {
  return guarded([&] {
    require(out, "graph");
    *out = new OrtGraph;
  });
}

void take_values(OrtGraph& graph, std::vector<std::unique_ptr<OrtValueInfo>>& list, OrtValueInfo** values, std::size_t count,
                 const char* what) {
  if (count != 0) require(values, what);
  for (std::size_t i = 0; i < count; ++i) {
    if (values[i] == nullptr) fail_ort(ORT_INVALID_ARGUMENT, std::string(what) + " cannot contain null entries");
  }
  list.clear();
  list.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i]->graph = &graph;
    list.emplace_back(std::exchange(values[i], nullptr));
  }
}

OrtStatus* set_inputs(OrtGraph* graph, OrtValueInfo** values, std::size_t count) noexcept {
  return guarded([&] { take_values(require(graph, "graph"), graph->inputs, values, count, "inputs"); });
}
OrtStatus* set_outputs(OrtGraph* graph, OrtValueInfo** values, std::size_t count) noexcept {
  return guarded([&] { take_values(require(graph, "graph"), graph->outputs, values, count, "outputs"); });
}

constexpr std::size_t kLeastExternal = 128;  // bytes: smaller ones are shapes and axes, which inference reads

OrtStatus* add_initializer(OrtGraph* graph, const char* name, OrtValue* value, bool external) noexcept {
  return guarded([&] {
    OrtGraph& g = require(graph, "graph");
    const std::string key = &require(name, "name");
    const Tensor& tensor = tensor_of(value);
    if (external && tensor.bytes() < kLeastExternal) {
      fail_ort(ORT_INVALID_ARGUMENT,
               "External initializer should only be used for data >= 128 bytes. Please use CreateTensorAsOrtValue instead.");
    }
    // Memory of the program's that may end before the model does.
    if (!external && tensor.owner() == nullptr) value->value = tensor.clone();
    g.initializers[key].reset(value);
  });
}

OrtStatus* add_node(OrtGraph* graph, OrtNode* node) noexcept {
  return guarded([&] {
    OrtGraph& g = require(graph, "graph");
    require(node, "node");
    g.nodes.reserve(g.nodes.size() + 1);
    node->id = g.nodes.size();
    node->graph = &g;
    g.nodes.emplace_back(node);
  });
}

OrtStatus* create_model(const char* const* domains, const int* versions, std::size_t count, OrtModel** out) noexcept {
  return guarded([&] {
    require(out, "model") = nullptr;
    auto model = std::make_unique<OrtModel>();
    const std::vector<std::string> names = names_of(domains, count, "domain_names");
    for (std::size_t i = 0; i < count; ++i)
      model->opsets[domain_of(names[i].c_str())] = (&require(versions, "opset_versions"))[i];
    *out = model.release();
  });
}

OrtStatus* add_graph(OrtModel* model, OrtGraph* graph) noexcept {
  return guarded([&] {
    OrtModel& m = require(model, "model");
    if (graph == nullptr) fail_ort(ORT_INVALID_ARGUMENT, "graph cannot be null");
    m.graph.reset(graph);
    m.graph->opsets = &m.opsets;
  });
}

// A part that belongs to a graph ends with the graph.
void release_value_info(OrtValueInfo* value) noexcept {
  if (value != nullptr && value->graph == nullptr) delete value;
}
void release_node(OrtNode* node) noexcept {
  if (node != nullptr && node->graph == nullptr) delete node;
}
OrtStatus* get_name(const OrtValueInfo* value, const char** out) noexcept {
  return guarded([&] { require(out, "name") = require(value, "value_info").name.c_str(); });
}
OrtStatus* get_type(const OrtValueInfo* value, const OrtTypeInfo** out) noexcept {
  return guarded([&] { require(out, "type_info") = &require(value, "value_info").type; });
}
void release_graph(OrtGraph* graph) noexcept { delete graph; }
void release_model(OrtModel* model) noexcept { delete model; }

}  // namespace

void fill_editor_parts(EditorFunctions& f) {
  f.set(EditorFunction::CreateTensorTypeInfo, &tensor_type);
  f.set(EditorFunction::CreateSparseTensorTypeInfo, &sparse_type);
  f.set(EditorFunction::CreateMapTypeInfo, &map_type);
  f.set(EditorFunction::CreateSequenceTypeInfo, &sequence_type);
  f.set(EditorFunction::CreateOptionalTypeInfo, &optional_type);
  f.set(EditorFunction::CreateValueInfo, &create_value_info);
  f.set(EditorFunction::CreateNode, &create_node);
  f.set(EditorFunction::CreateGraph, &create_graph);
  f.set(EditorFunction::SetGraphInputs, &set_inputs);
  f.set(EditorFunction::SetGraphOutputs, &set_outputs);
  f.set(EditorFunction::AddInitializerToGraph, &add_initializer);
  f.set(EditorFunction::AddNodeToGraph, &add_node);
  f.set(EditorFunction::CreateModel, &create_model);
  f.set(EditorFunction::AddGraphToModel, &add_graph);
}

void fill_editor_values(Table& table) {
  table.set(Slot::GetValueInfoName, &get_name);
  table.set(Slot::GetValueInfoTypeInfo, &get_type);
  table.set(Slot::ReleaseValueInfo, &release_value_info);
  table.set(Slot::ReleaseNode, &release_node);
  table.set(Slot::ReleaseGraph, &release_graph);
  table.set(Slot::ReleaseModel, &release_model);
}

}  // namespace sdx::dropin
