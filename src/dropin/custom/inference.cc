// Types and shapes of programs' operators: those that the operator infers itself, else those that follow from its declarations.

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "dropin/custom/attribute.h"
#include "dropin/custom/operators_impl.h"
#include "dropin/status.h"
#include "dropin/table.h"

namespace sdx::dropin {

// The state of one call of InferOutputShapeFn.
struct OrtShapeInferContext {
  ops::InferContext& inference;
  std::vector<std::unique_ptr<OrtTensorTypeAndShapeInfo>> inputs;
  std::vector<std::unique_ptr<OrtOpAttr>> attributes;  // that were asked for
};

namespace {

using ops::InferContext;

std::vector<DataType> input_types(const InferContext& c) {
  std::vector<DataType> types;
  for (std::size_t i = 0; i < c.num_inputs(); ++i) types.push_back(c.dtype(i));
  return types;
}

OrtTensorTypeAndShapeInfo info_of(const InferContext& c, std::size_t i) {
  OrtTensorTypeAndShapeInfo info;
  info.element = element_of(c.dtype(i));
  const SymShape* shape = c.shape(i);
  info.has_shape = shape != nullptr;
  if (shape == nullptr) return info;
  for (const Dim& d : *shape) {
    info.shape.push_back(d.is_const() ? d.value() : -1);
    info.symbols.push_back(d.is_symbolic() ? d.str() : "");
  }
  return info;
}

// A symbol that an input has stays that symbol; a name that no input has is none of ours, and means nothing to other nodes.
Dim dim_of(const InferContext& c, std::int64_t extent, const std::string& symbol) {
  if (symbol.empty()) return extent >= 0 ? Dim(extent) : Dim::unknown();
  for (std::size_t i = 0; i < c.num_inputs(); ++i) {
    const SymShape* shape = c.shape(i);
    if (shape == nullptr) continue;
    for (const Dim& d : *shape) {
      if (d.is_symbolic() && d.str() == symbol) return d;
    }
  }
  return Dim::unknown();
}

void set_output(InferContext& c, std::size_t index, const OrtTensorTypeAndShapeInfo& info) {
  const DataType type = info.element != ELEMENT_UNDEFINED ? type_of_element(info.element)
                        : index < c.outputs.size()        ? c.outputs[index].elem
                                                          : DataType::undefined;
  if (!info.has_shape && info.shape.empty()) return c.output(index, type);
  SymShape shape;
  for (std::size_t d = 0; d < info.shape.size(); ++d) {
    shape.push_back(dim_of(c, info.shape[d], d < info.symbols.size() ? info.symbols[d] : ""));
  }
  c.output(index, type, std::move(shape));
}

void call_inference(const Signature& s, InferContext& c) {
  OrtShapeInferContext context{c, {}, {}};
  for (std::size_t i = 0; i < c.num_inputs(); ++i) {
    context.inputs.push_back(std::make_unique<OrtTensorTypeAndShapeInfo>(info_of(c, i)));
  }
  // As in ONNX Runtime, an operator that infers nothing is no error: the shapes are then known when it runs.
  try {
    release_status(s.op->InferOutputShapeFn(s.op, &context));
  } catch (const std::exception& e) {
    c.fail("inference of custom op '{}': {}", s.name, e.what());
  }
}

// The type that outputs of any type have: that of the last input whose type the operator leaves open.
void infer_types(const Signature& s, InferContext& c) {
  DataType open = DataType::undefined;
  bool mixed = false;
  for (std::size_t i = 0; i < c.num_inputs() && !s.inputs.empty(); ++i) {
    const Argument& a = formal(s.inputs, i);
    mixed = mixed || (a.kind == INPUT_OUTPUT_VARIADIC && !a.homogeneous);
    if (a.type == ELEMENT_UNDEFINED && c.has_input(i)) open = c.dtype(i);
  }
  for (std::size_t i = 0; i < c.num_outputs() && !s.outputs.empty(); ++i) {
    const Argument& a = formal(s.outputs, i);
    const DataType type = a.type != ELEMENT_UNDEFINED ? type_of_element(a.type) : mixed ? DataType::undefined : open;
    c.output(i, type);
  }
}

void check_count(const InferContext& c, const std::vector<Argument>& formals, std::size_t given, const char* what) {
  if (formals.empty() || formals.back().kind != INPUT_OUTPUT_VARIADIC) return;
  const std::size_t least = formals.size() - 1 + static_cast<std::size_t>(std::max(formals.back().least, 0));
  if (given >= least) return;
  const Node& node = c.node();
  fail(ErrorCode::invalid_model, "Error Node({}) with schema({}::{}:{}) has {} size {} not in range [min={}, max=2147483647].",
       node.name, node.domain, node.op_type, operator_of(node).def.since, what, given, least);
}

// All arguments of a homogeneous variadic input have one type.
void check_homogeneous(const Signature& s, const InferContext& c) {
  if (s.inputs.empty() || s.inputs.back().kind != INPUT_OUTPUT_VARIADIC || !s.inputs.back().homogeneous) return;
  const std::size_t first = s.inputs.size() - 1;
  for (std::size_t i = first + 1; i < c.num_inputs(); ++i) {
    if (c.dtype(i) == c.dtype(first) || c.dtype(i) == DataType::undefined || c.dtype(first) == DataType::undefined) continue;
    fail(ErrorCode::invalid_model,
         "Type Error: Type parameter (Input{}) of Optype ({}) bound to different types (tensor({}) and tensor({})) in node ({}).",
         first, c.node().op_type, name(c.dtype(first)), name(c.dtype(i)), c.node().name);
  }
}

OrtStatus* input_count(const OrtShapeInferContext* context, std::size_t* out) noexcept {
  return guarded([&] { require(out, "out") = require(context, "context").inputs.size(); });
}

OrtStatus* input_type_shape(const OrtShapeInferContext* context, std::size_t index, OrtTensorTypeAndShapeInfo** out) noexcept {
  return guarded([&] {
    const OrtShapeInferContext& c = require(context, "context");
    if (index >= c.inputs.size()) fail_ort(ORT_INVALID_ARGUMENT, "Failed to fetch type shape info for the index.");
    require(out, "info") = c.inputs[index].get();
  });
}

OrtStatus* get_attribute(const OrtShapeInferContext* context, const char* name, const OrtOpAttr** out) noexcept {
  return guarded([&] {
    auto& c = const_cast<OrtShapeInferContext&>(require(context, "context"));
    require(out, "attr") = nullptr;
    const AttributeValue* value = c.inference.attrs().find(&require(name, "attr_name"));
    if (value == nullptr) fail_ort(ORT_INVALID_ARGUMENT, "Attribute does not exist.");
    *out = c.attributes.emplace_back(std::make_unique<OrtOpAttr>(OrtOpAttr{name, *value})).get();
  });
}

OrtStatus* set_output_type_shape(const OrtShapeInferContext* context, std::size_t index,
                                 const OrtTensorTypeAndShapeInfo* info) noexcept {
  return guarded([&] {
    auto& c = const_cast<OrtShapeInferContext&>(require(context, "context"));
    if (index >= c.inference.num_outputs()) {
      fail_ort(ORT_INVALID_ARGUMENT,
               "there is no output " + std::to_string(index) + "; the node has " + std::to_string(c.inference.num_outputs()));
    }
    set_output(c.inference, index, require(info, "info"));
  });
}

}  // namespace

void infer_program_operator(InferContext& c) {
  const ProgramOperator& op = operator_of(c.node());
  if (op.overloads.empty()) {
    fail(ErrorCode::not_implemented, "custom op '{}' is made for other providers than the CPU", op.def.name);
  }
  check_count(c, op.overloads[0].inputs, c.num_inputs(), "input");
  check_count(c, op.overloads[0].outputs, c.num_outputs(), "output");
  const Signature* s = choose(op, input_types(c), c.node().version);
  if (s == nullptr) {
    fail(ErrorCode::invalid_model, "[CustomOP type inferencing error]: no kernel def matches node inputs for Op: {}",
         op.def.name);
  }
  check_homogeneous(*s, c);
  infer_types(*s, c);
  if (s->infers) call_inference(*s, c);
}

void fill_shape_inference(Table& table) {
  table.set(Slot::ShapeInferContext_GetInputCount, &input_count);
  table.set(Slot::ShapeInferContext_GetInputTypeShape, &input_type_shape);
  table.set(Slot::ShapeInferContext_GetAttribute, &get_attribute);
  table.set(Slot::ShapeInferContext_SetOutputTypeShape, &set_output_type_shape);
}

}  // namespace sdx::dropin
