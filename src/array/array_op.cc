#include "array/array_op.h"

#include "ops/tensor/movement.h"

namespace sdx::array::detail {
namespace {

const std::vector<Type>& types_of(const Attributes& attributes) {
  return std::get<std::vector<Type>>(*attributes.find(kResultTypes));
}

void infer_results(ops::InferContext& c) {
  const std::vector<Type>& types = types_of(c.attrs());
  for (std::size_t i = 0; i < types.size(); ++i) c.output(i, types[i]);
}

}  // namespace

ArrayOp array_op(const char* name, ops::RunFn run, int in_place) {
  auto op = std::make_shared<ops::CustomOp>(ops::CustomOp{ops::OpDef("sdx.array", name, 1), {}, {}, {}});
  op->def.in("inputs", "", ops::types::any_tensor, ops::Arity::variadic);
  op->def.out("outputs", "", ops::types::any_tensor, ops::Arity::variadic);
  op->def.infer = infer_results;
  op->def.run = run;
  op->in_place = in_place;
  return op;
}

void start_from_input(ops::OpContext& c, Tensor& out) {
  if (!c.has_input(0)) return ops::fill_zero(out);
  if (c.input(0).data() != out.data()) ops::copy_all(c.input(0), out);
}

Tensor& result_tensor(ops::OpContext& c, std::size_t i) {
  const Type& type = types_of(c.attrs()).at(i);
  Shape shape;
  for (const Dim& d : *type.shape) shape.push_back(d.value());
  return c.output(i, type.elem, shape);
}

}  // namespace sdx::array::detail
