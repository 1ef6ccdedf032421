#include "array/ops/elements.h"

#include <sdx/array.hpp>

#include "array/array_op.h"
#include "kernels/cpu/elements/tensors.h"
#include "tensor/halves.h"

namespace sdx::array::detail {
namespace {

constexpr std::size_t kMostRank = 8;  // of the engine's kernels for operands that broadcast

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
  const bool real = is_floating(type), whole = is_integer(type);
  const auto of_reals = [&](const char* name) { return real ? name : nullptr; };
  // The engine computes these functions of 16-bit floats in float32, where the kernels of arrays compute them in float64.
  const auto of_singles_or_halves = [&](const char* name) { return type == Dtype::float32 || is_half(type) ? name : nullptr; };
  const auto of_singles = [&](const char* name) { return type == Dtype::float32 ? name : nullptr; };
  switch (fn) {
    case UnaryFn::logical_not: return type == Dtype::boolean ? "Not" : nullptr;
    case UnaryFn::bitwise_invert: return whole ? "BitwiseNot" : nullptr;
    case UnaryFn::abs: return real || whole ? "Abs" : nullptr;
    case UnaryFn::negative: return real || (whole && !is_unsigned(type)) ? "Neg" : nullptr;
    case UnaryFn::floor: return of_reals("Floor");
    case UnaryFn::ceil: return of_reals("Ceil");
    case UnaryFn::round: return type == Dtype::bfloat16 ? nullptr : of_reals("Round");  // opset 22 has it
    case UnaryFn::sqrt: return of_reals("Sqrt");
    case UnaryFn::reciprocal: return of_reals("Reciprocal");
    case UnaryFn::isnan: return of_reals("IsNaN");
    case UnaryFn::isinf: return of_reals("IsInf");
    case UnaryFn::exp: return of_singles_or_halves("Exp");
    case UnaryFn::log: return of_singles_or_halves("Log");
    case UnaryFn::sin: return of_singles("Sin");
    case UnaryFn::cos: return of_singles("Cos");
    case UnaryFn::arcsin: return of_singles("Asin");
    case UnaryFn::arccos: return of_singles("Acos");
    case UnaryFn::arctan: return of_singles("Atan");
    case UnaryFn::tanh: return of_singles_or_halves("Tanh");
    case UnaryFn::sigmoid: return of_singles_or_halves("Sigmoid");
    case UnaryFn::erf: return of_singles_or_halves("Erf");
    default: return nullptr;
  }
}

const char* onnx_name(BinaryFn fn, Dtype type) {
  const bool real = is_floating(type), whole = is_integer(type), logical = type == Dtype::boolean;
  const auto of_numbers = [&](const char* name) { return real || whole ? name : nullptr; };
  const auto of_bits = [&](const char* name, const char* bitwise) { return logical ? name : whole ? bitwise : nullptr; };
  switch (fn) {
    case BinaryFn::add: return of_numbers("Add");
    case BinaryFn::subtract: return of_numbers("Sub");
    case BinaryFn::multiply: return of_numbers("Mul");
    case BinaryFn::divide: return real ? "Div" : nullptr;
    case BinaryFn::power: return real ? "Pow" : nullptr;  // of integers, 0 with a negative exponent is another number
    case BinaryFn::maximum: return of_numbers("Max");
    case BinaryFn::minimum: return of_numbers("Min");
    case BinaryFn::equal: return logical ? "Equal" : of_numbers("Equal");
    case BinaryFn::less: return of_numbers("Less");
    case BinaryFn::less_equal: return of_numbers("LessOrEqual");
    case BinaryFn::bitwise_and: return of_bits("And", "BitwiseAnd");
    case BinaryFn::bitwise_or: return of_bits("Or", "BitwiseOr");
    case BinaryFn::bitwise_xor: return of_bits("Xor", "BitwiseXor");
    default: return nullptr;
  }
}

void emit_function(Emitter& e, UnaryFn fn) {
  if (const char* name = onnx_name(fn, e.dtype(0))) return e.result(e.op(name, {e.in(0)}));
  e.results<run_map>("Map", {e.in(0)}, {{"function", static_cast<std::int64_t>(fn)}});
}

void emit_function(Emitter& e, BinaryFn fn) {
  const char* name = e.out_shape().size() <= kMostRank ? onnx_name(fn, e.dtype(0)) : nullptr;
  if (name != nullptr) return e.result(e.op(name, {e.in(0), e.in(1)}));
  e.results<run_pair>("Pair", {e.in(0), e.in(1)}, {{"function", static_cast<std::int64_t>(fn)}});
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

bool is_unsigned(Dtype type) { return type == Dtype::boolean || (is_integer(type) && name(type).front() == 'u'); }

array constant_like(const array& a, double value) { return array(value, a.dtype()); }

void refuse_complex(const char* operation, Dtype type) {
  if (is_complex(type)) refuse(operation, "is not defined for {}", name(type));
}

}  // namespace sdx::array::detail
