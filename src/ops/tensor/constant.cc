// Constant: ai.onnx 1, 9, 11, 12 (value_* attributes), 13, 19, 21, 23, 24, 25. ConstantOfShape: ai.onnx 9, 20, 21, 23, 24, 25.

#include <algorithm>

#include "ops/context.h"
#include "ops/op.h"
#include "ops/tensor/movement.h"
#include "ops/tensor/shape_values.h"
#include "ops/tensor/signatures.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

constexpr std::int64_t kMaxSymElements = 1024;

Tensor list_of_strings(StringList values) { return Tensor::of<std::string>({static_cast<std::int64_t>(values.size())}, values); }

// The value of a Constant node. Source: ONNX Constant-12: exactly one of the attributes is given.
Tensor constant_value(const ConstantAttrs& attr) {
  if (attr.value != nullptr) return *attr.value;
  if (attr.sparse_value != nullptr) return *attr.sparse_value;  // the reader has made it dense
  if (attr.value_float) return Tensor::scalar<float>(*attr.value_float);
  if (attr.value_int) return Tensor::scalar<std::int64_t>(*attr.value_int);
  if (attr.value_string) return Tensor::scalar<std::string>(std::string(*attr.value_string));
  if (attr.value_ints) return from_ints(to_vector(*attr.value_ints));
  if (attr.value_strings) return list_of_strings(*attr.value_strings);
  if (attr.value_floats) {
    return Tensor::of<float>({static_cast<std::int64_t>(attr.value_floats->size())}, *attr.value_floats);
  }
  fail(ErrorCode::invalid_model,
       "one of the attributes value, value_float(s), value_int(s), value_string(s), sparse_value is "
       "required; received none");
}

void infer_constant(InferContext& c) {
  const Tensor value = constant_value(parse<ConstantAttrs>(c));
  c.output(0, value.dtype(), to_sym(value.shape()));
}

void run_constant(OpContext& c) {
  const Tensor value = constant_value(parse<ConstantAttrs>(c));
  copy_all(value, c.output(0, value.dtype(), value.shape()));
}

// The element that ConstantOfShape repeats; float32 zero when the attribute is left out.
Tensor repeated_value(const FillAttrs& attr) {
  if (attr.value == nullptr) return Tensor::scalar<float>(0.0F);
  const Tensor& value = *attr.value;
  if (value.size() != 1) {
    fail(ErrorCode::invalid_model, "attribute 'value' must hold one element, received {}", value.type_string());
  }
  return value;
}

void infer_constant_of_shape(InferContext& c) {
  const Tensor value = repeated_value(parse<FillAttrs>(c));
  const std::vector<Dim>* extents = c.sym(0);
  if (extents == nullptr) {
    const auto rank = known_length(c, 0);
    if (!rank || *rank > kMaxSymElements) return c.output(0, value.dtype());
    return c.output(0, value.dtype(), SymShape(static_cast<std::size_t>(*rank)));
  }
  for (const Dim& d : *extents) {
    if (d.is_const() && d.value() < 0) c.fail("the shape {} has a negative extent", to_string(*extents));
  }
  c.output(0, value.dtype(), *extents);
  if (extents->size() > 1 || !is_integer(value.dtype())) return;
  const Dim count = extents->empty() ? Dim(1) : (*extents)[0];
  if (!count.is_const() || count.value() > kMaxSymElements) return;
  c.output_sym(0, std::vector<Dim>(static_cast<std::size_t>(count.value()), Dim(element_as_int(value, 0))));
}

void run_constant_of_shape(OpContext& c) {
  const Tensor value = repeated_value(parse<FillAttrs>(c));
  if (c.input(0).rank() > 1) c.fail("'input' must be of rank 1, received {}", c.input(0).type_string());
  fill_with(c.output(0, value.dtype(), to_ints(c.input(0))), value);
}

}  // namespace

void register_constant(OpTable& t) {
  OpDef constant("Constant", 1);
  constant.out("output", "T", types::any_tensor).attrs<ConstantAttrs>();
  t.add(std::move(constant).infer_with(infer_constant).run_with(run_constant));
  OpDef constant_of_shape("ConstantOfShape", 9);
  constant_of_shape.in("input", "T1", types::int64).out("output", "T2", types::any_tensor).attrs<FillAttrs>();
  t.add(std::move(constant_of_shape).infer_with(infer_constant_of_shape).run_with(run_constant_of_shape));
}

}  // namespace sdx::ops
