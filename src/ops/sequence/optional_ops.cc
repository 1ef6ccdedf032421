// Optional: ai.onnx 15, 28. OptionalGetElement, OptionalHasElement: ai.onnx 15, 18 (also for values that are not optional), 28.

#include "ops/context.h"
#include "ops/op.h"
#include "ops/tensor/movement.h"

namespace sdx::ops {
namespace {

void infer_optional(InferContext& c) {
  if (c.has_input(0)) return c.output(0, Type::optional(c.type(0)));
  const AttributeValue* type = c.attrs().find("type");
  if (type == nullptr) c.fail("an Optional without input needs the attribute 'type'");
  if (const Type* t = std::get_if<Type>(type)) c.output(0, Type::optional(*t));
}

void run_optional(OpContext& c) {
  const Value& v = c.input_value(0);
  c.set_output(0, v.is_tensor() ? Value(v.tensor().clone()) : v);
}

void infer_get(InferContext& c) {
  const Type& t = c.type(0);
  if (t.kind != Type::Kind::optional) return c.output(0, t);
  c.output(0, t.inner ? *t.inner : Type{});
}

void run_get(OpContext& c) {
  const Value& v = c.input_value(0);
  if (v.empty()) c.fail("the optional is empty; test it with OptionalHasElement first");
  if (!v.is_tensor()) return c.set_output(0, v);
  copy_all(v.tensor(), c.output(0, v.tensor().dtype(), v.tensor().shape()));
}

void infer_has(InferContext& c) { c.output(0, DataType::boolean, SymShape{}); }

void run_has(OpContext& c) { c.output(0, DataType::boolean, {}).mutable_values<bool>()[0] = c.has_input(0); }

}  // namespace

void register_optional_ops(OpTable& t) {
  t.add(OpDef("Optional", 15)
            .in("input", "", types::anything, Arity::optional)
            .out("output", "", types::optional)
            .attr("type", AttrKind::type)
            .infer_with(infer_optional)
            .run_with(run_optional));
  t.add(OpDef("OptionalGetElement", 15)
            .in("input", "", types::anything)
            .out("output", "", types::anything)
            .infer_with(infer_get)
            .run_with(run_get));
  t.add(OpDef("OptionalHasElement", 15)
            .in("input", "", types::anything, Arity::optional)
            .out("output", "", types::boolean)
            .infer_with(infer_has)
            .run_with(run_has));
}

}  // namespace sdx::ops
