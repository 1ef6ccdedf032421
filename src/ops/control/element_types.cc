#include "ops/control/element_types.h"

#include <algorithm>
#include <variant>

#include "base/error.h"
#include "graph/notes.h"
#include "ops/control/subgraphs.h"

namespace sdx::ops {
namespace {

bool stacks(const Node& node) {
  return (node.domain.empty() || node.domain == "ai.onnx") && (node.op_type == "Loop" || node.op_type == "Scan") &&
         node.subgraph("body") != nullptr;
}

bool any_stacks(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const Node& n) {
    return !n.removed && (stacks(n) || std::any_of(n.subgraphs.begin(), n.subgraphs.end(),
                                                   [](const Subgraph& s) { return any_stacks(*s.graph); }));
  });
}

// The element types of `inferred`, the node in a copy of the graph. The body's outputs are a condition (of Loop), the states and
// the elements.
std::vector<Type> elements_of(const Node& inferred) {
  const bool loop = inferred.op_type == "Loop";
  const Graph& body = *inferred.subgraph("body")->graph;
  std::size_t given = inferred.inputs.size();
  if (loop) {
    given -= std::min<std::size_t>(given, 2);
  } else {
    given -= std::min<std::size_t>(given, (inferred.version < 9 ? 1 : 0));
    given -= std::min<std::size_t>(given, static_cast<std::size_t>(inferred.attributes.get_int("num_scan_inputs")));
  }
  std::vector<Type> types(inferred.outputs.size());
  for (std::size_t i = given; i < types.size(); ++i) {
    const std::size_t formal = i + (loop ? 1 : 0);
    if (formal < body.outputs().size()) types[i] = body.value(body.outputs()[formal]).type;
  }
  return types;
}

void note_from(Graph& graph, const Graph& inferred) {
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    Node& node = graph.node(id);
    if (node.removed) continue;
    const Node& source = inferred.node(id);
    if (stacks(node)) node.attributes.set(kElementTypes, elements_of(source));
    for (std::size_t i = 0; i < node.subgraphs.size(); ++i) note_from(*node.subgraphs[i].graph, *source.subgraphs[i].graph);
  }
}

// Null: nothing is noted.
const Type* noted(const Node& node, std::size_t output) {
  const AttributeValue* value = node.attributes.find(kElementTypes);
  const auto* types = value != nullptr ? std::get_if<std::vector<Type>>(value) : nullptr;
  return types != nullptr && types->size() == node.outputs.size() ? &(*types)[output] : nullptr;
}

}  // namespace

bool note_element_types(Graph& graph, const InferOptions& options) {
  if (!any_stacks(graph)) return false;
  Graph copy = graph;
  InferOptions with_declarations = options;
  with_declarations.trust_declarations = true;
  try {
    infer_in_place(copy, with_declarations);
    note_from(graph, copy);
  } catch (const Error& e) {
    if (e.code() == ErrorCode::internal || e.code() == ErrorCode::out_of_memory) throw;
    note_from(graph, graph);  // what the bodies declare cannot be true
  }
  return true;
}

Type unrun_element(const Node& node, std::size_t body, std::size_t formal, std::size_t output) {
  Type type = subgraph_output_type(node, body, formal);
  const Type* note = noted(node, output);
  if (note == nullptr || !note->is_tensor()) return type;
  if (!type.is_tensor() || type.elem == DataType::undefined) return *note;
  type.shape = note->shape;
  return type;
}

Type element_of_any_run(const Node& node, std::size_t output, Type element) {
  const Type* note = noted(node, output);
  if (note == nullptr || !element.is_tensor() || !element.shape) return element;
  if (!note->is_tensor() || !note->shape || note->shape->size() != element.shape->size()) return Type::tensor(element.elem);
  for (std::size_t d = 0; d < element.shape->size(); ++d) {
    Dim& extent = (*element.shape)[d];
    const Dim& other = (*note->shape)[d];
    if (!extent.is_const() || !other.is_const() || !(extent == other)) extent = Dim::unknown();
  }
  return element;
}

}  // namespace sdx::ops
