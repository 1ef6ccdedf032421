#include "ops/control/subgraphs.h"

#include <algorithm>

#include "base/error.h"
#include "tensor/element.h"

namespace sdx::ops {

std::size_t subgraph_index(const Node& node, std::string_view attribute) {
  for (std::size_t i = 0; i < node.subgraphs.size(); ++i) {
    if (node.subgraphs[i].attribute == attribute) return i;
  }
  fail(ErrorCode::invalid_model, "{} needs the graph attribute '{}'", node.op_type, attribute);
}

std::size_t formal_inputs(const Node& node, std::size_t index) {
  const Subgraph& sub = node.subgraphs.at(index);
  return sub.graph->inputs().size() - sub.captures.size();
}

std::size_t formal_outputs(const Node& node, std::size_t index) { return node.subgraphs.at(index).graph->outputs().size(); }

void check_signature(const Node& node, std::size_t index, std::size_t inputs, std::size_t outputs) {
  const std::size_t has_in = formal_inputs(node, index);
  const std::size_t has_out = formal_outputs(node, index);
  if (has_in != inputs || has_out != outputs) {
    fail(ErrorCode::invalid_model, "{}: graph '{}' must have {} inputs and {} outputs here, but has {} and {}", node.op_type,
         node.subgraphs[index].attribute, inputs, outputs, has_in, has_out);
  }
}

Type subgraph_output_type(const Node& node, std::size_t index, std::size_t i) {
  const Graph& g = *node.subgraphs.at(index).graph;
  const ValueInfo& v = g.value(g.outputs().at(i));
  if (!v.type.known()) return v.declared;
  Type type = v.type;
  if (!type.is_tensor() || !v.declared.is_tensor() || !v.declared.shape) return type;
  // Inference from captures of unknown extents may know less than the model declares.
  if (!type.shape) type.shape = v.declared.shape;
  if (type.shape->size() != v.declared.shape->size()) return type;
  for (std::size_t d = 0; d < type.shape->size(); ++d) {
    if (!(*type.shape)[d].is_const()) (*type.shape)[d] = (*v.declared.shape)[d];
  }
  return type;
}

const Type& subgraph_input_type(const Node& node, std::size_t index, std::size_t i) {
  const Graph& g = *node.subgraphs.at(index).graph;
  return g.value(g.inputs().at(i)).declared;
}

Tensor empty_stack(const Type& item, std::size_t axis) {
  if (!item.is_tensor() || item.elem == DataType::undefined) {
    fail(ErrorCode::runtime_failure,
         "the body never ran and its output's type ({}) is not known: declare the type of the body's outputs", item.str());
  }
  Shape shape;
  if (item.shape) {
    for (const Dim& d : *item.shape) shape.push_back(d.is_const() ? d.value() : 0);
  }
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(std::min(axis, shape.size())), 0);
  return Tensor(item.elem, std::move(shape));
}

bool single_bool(const Tensor& tensor, std::string_view what) {
  if (tensor.dtype() != DataType::boolean || tensor.size() != 1) {
    fail(ErrorCode::runtime_failure, "{} must be one boolean, received {}", what, tensor.type_string());
  }
  return *static_cast<const bool*>(tensor.data());
}

std::int64_t single_int(const Tensor& tensor, std::string_view what) {
  if (!is_integer(tensor.dtype()) || tensor.size() != 1) {
    fail(ErrorCode::runtime_failure, "{} must be one integer, received {}", what, tensor.type_string());
  }
  return element_as_int(tensor, 0);
}

Type without_extents(const Type& type) {
  Type out = type;
  if (out.shape) out.shape->assign(out.shape->size(), Dim::unknown());
  if (out.inner) out.inner = std::make_shared<const Type>(without_extents(*out.inner));
  return out;
}

namespace {

// Texts would not do: an unknown extent and the symbol that a file names "?" have the same.
bool identical(const Type& a, const Type& b) {
  if (a.kind != b.kind || a.elem != b.elem || a.shape.has_value() != b.shape.has_value()) return false;
  const auto same = [](const Dim& x, const Dim& y) { return x == y || (x.is_unknown() && y.is_unknown()); };
  if (a.shape && !std::equal(a.shape->begin(), a.shape->end(), b.shape->begin(), b.shape->end(), same)) return false;
  return a.inner == b.inner || (a.inner && b.inner && identical(*a.inner, *b.inner));
}

}  // namespace

bool widen(std::vector<Type>& types, const std::vector<Type>& next, const char* what) {
  bool changed = false;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const Type& a = types[i];
    const Type& b = next.at(i);
    if (a.is_tensor() && b.is_tensor() && a.elem != DataType::undefined && b.elem != DataType::undefined && a.elem != b.elem) {
      fail(ErrorCode::invalid_model, "{} number {} starts as {} but the body gives {}: its element type may not change", what, i,
           a.str(), b.str());
    }
    if (!b.known()) {
      // Nothing is known of the next value, but its element type may not change.
      const Type t = a.is_tensor() ? Type::tensor(a.elem) : Type{};
      changed = changed || !identical(a, t);
      types[i] = t;
      continue;
    }
    Type t = common(a, b);
    if (a.is_tensor() && b.is_tensor() && t.elem == DataType::undefined) {
      t.elem = a.elem != DataType::undefined ? a.elem : b.elem;
    }
    changed = changed || !identical(t, a);
    types[i] = std::move(t);
  }
  return changed;
}

}  // namespace sdx::ops
