#include "array/ops/elements.h"

#include <sdx/array.hpp>

#include "array/array_op.h"
#include "kernels/cpu/elements/tensors.h"

namespace sdx::array::detail {
namespace {

void run_map(ops::OpContext& c) {
  const auto fn = static_cast<UnaryFn>(c.attrs().get_int("function"));
  apply(fn, c.input(0), result_tensor(c));
}

void run_pair(ops::OpContext& c) {
  const auto fn = static_cast<BinaryFn>(c.attrs().get_int("function"));
  apply(fn, c.input(0), c.input(1), result_tensor(c));
}

}  // namespace

const char* onnx_name(UnaryFn fn, Dtype type) {
  if (type == Dtype::boolean) return fn == UnaryFn::logical_not ? "Not" : nullptr;
  if (type == Dtype::float64) {
    if (fn == UnaryFn::abs) return "Abs";
    if (fn == UnaryFn::negative) return "Neg";
    return fn == UnaryFn::sqrt ? "Sqrt" : nullptr;
  }
  if (type != Dtype::float32) return nullptr;
  switch (fn) {
    case UnaryFn::abs: return "Abs";
    case UnaryFn::negative: return "Neg";
    case UnaryFn::floor: return "Floor";
    case UnaryFn::ceil: return "Ceil";
    case UnaryFn::round: return "Round";
    case UnaryFn::sqrt: return "Sqrt";
    case UnaryFn::reciprocal: return "Reciprocal";
    case UnaryFn::exp: return "Exp";
    case UnaryFn::log: return "Log";
    case UnaryFn::sin: return "Sin";
    case UnaryFn::cos: return "Cos";
    case UnaryFn::arcsin: return "Asin";
    case UnaryFn::arccos: return "Acos";
    case UnaryFn::arctan: return "Atan";
    case UnaryFn::tanh: return "Tanh";
    case UnaryFn::sigmoid: return "Sigmoid";
    case UnaryFn::erf: return "Erf";
    case UnaryFn::isnan: return "IsNaN";
    case UnaryFn::isinf: return "IsInf";
    default: return nullptr;
  }
}

const char* onnx_name(BinaryFn fn, Dtype type) {
  if (type == Dtype::float32 && fn == BinaryFn::power) return "Pow";
  if (type == Dtype::float32 || type == Dtype::float64) {
    if (fn == BinaryFn::divide) return "Div";
    if (fn == BinaryFn::maximum) return "Max";
    if (fn == BinaryFn::minimum) return "Min";
  }
  if (type != Dtype::float32 && type != Dtype::float64 && type != Dtype::int32 && type != Dtype::int64) return nullptr;
  switch (fn) {
    case BinaryFn::add: return "Add";
    case BinaryFn::subtract: return "Sub";
    case BinaryFn::multiply: return "Mul";
    case BinaryFn::equal: return "Equal";
    case BinaryFn::less: return "Less";
    case BinaryFn::less_equal: return "LessOrEqual";
    default: return nullptr;
  }
}

void emit_function(Emitter& e, UnaryFn fn) {
  static const ArrayOp op = array_op("Map", run_map);
  if (const char* name = onnx_name(fn, e.dtype(0))) return e.result(e.op(name, {e.in(0)}));
  e.results(op, {e.in(0)}, {{"function", static_cast<std::int64_t>(fn)}});
}

void emit_function(Emitter& e, BinaryFn fn) {
  static const ArrayOp op = array_op("Pair", run_pair);
  if (const char* name = onnx_name(fn, e.dtype(0))) return e.result(e.op(name, {e.in(0), e.in(1)}));
  e.results(op, {e.in(0), e.in(1)}, {{"function", static_cast<std::int64_t>(fn)}});
}

array map(const Kind& kind, const array& a, Dtype type, Dtype out, const StreamOrDevice& s) {
  return make(kind, out, a.shape(), {as_type(a, type, s)}, {}, s);
}

array pair(const Kind& kind, const array& a, const array& b, Dtype type, Dtype out, const StreamOrDevice& s) {
  Shape shape = a.shape() == b.shape() ? a.shape() : broadcast(kind.name, a.shape(), b.shape());
  return make(kind, out, std::move(shape), {as_type(a, type, s), as_type(b, type, s)}, {}, s);
}

std::vector<array> flat_vjp(const VjpCall& c) {
  return gradients(c, [&](std::size_t i) { return zeros_like(c.inputs[i]); });
}

array constant_like(const array& a, double value) { return array(value, a.dtype()); }

void refuse_complex(const char* operation, Dtype type) {
  if (is_complex(type)) refuse(operation, "is not defined for {}", name(type));
}

}  // namespace sdx::array::detail
