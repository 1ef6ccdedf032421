#include "array/kernels/stated.h"

#include "ops/tensor/movement.h"

namespace sdx::array::detail {
namespace {

const std::vector<Type>& types_of(const Attributes& attributes) {
  return std::get<std::vector<Type>>(*attributes.find("results"));
}

void infer_stated(ops::InferContext& c) {
  const std::vector<Type>& types = types_of(c.attrs());
  for (std::size_t i = 0; i < types.size(); ++i) c.output(i, types[i]);
}

}  // namespace

OwnOp stated_op(const char* name, ops::RunFn run) { return own_op(name, infer_stated, run); }
OwnOp updating_op(const char* name, ops::RunFn run) { return own_op(name, infer_stated, run, 0); }

void start_from_input(ops::OpContext& c, Tensor& out) {
  if (!c.has_input(0)) return ops::fill_zero(out);
  if (c.input(0).data() != out.data()) ops::copy_all(c.input(0), out);
}

void emit_stated_results(Emitter& e, const OwnOp& op, std::vector<ValueId> inputs, EmittedAttributes attributes) {
  std::vector<Type> types;
  for (std::size_t i = 0; i < e.num_results(); ++i) types.push_back(Type::tensor(e.out_dtype(i), to_sym(e.out_shape(i))));
  attributes.emplace_back("results", std::move(types));
  attributes.emplace_back("ints", e.params().ints);
  const auto made = e.own_many(op, std::move(inputs), e.num_results(), std::move(attributes));
  for (std::size_t i = 0; i < made.size(); ++i) e.result(made[i], i);
}

void emit_stated_results(Emitter& e, const OwnOp& op) {
  std::vector<ValueId> inputs;
  for (std::size_t i = 0; i < e.num_inputs(); ++i) inputs.push_back(e.in(i));
  emit_stated_results(e, op, std::move(inputs));
}

ValueId emit_stated(Emitter& e, const OwnOp& op, std::vector<ValueId> inputs, Dtype dtype, const Shape& shape,
                    EmittedAttributes attributes) {
  attributes.emplace_back("results", std::vector<Type>{Type::tensor(dtype, to_sym(shape))});
  return e.own(op, std::move(inputs), std::move(attributes));
}

void emit_stated_result(Emitter& e, const OwnOp& op, std::vector<ValueId> inputs, std::vector<std::int64_t> ints) {
  e.result(emit_stated(e, op, std::move(inputs), e.out_dtype(), e.out_shape(), {{"ints", std::move(ints)}}));
}

Tensor& stated_output(ops::OpContext& c, std::size_t i) {
  const Type& type = types_of(c.attrs()).at(i);
  Shape shape;
  for (const Dim& d : *type.shape) shape.push_back(d.value());
  return c.output(i, type.elem, shape);
}

}  // namespace sdx::array::detail
