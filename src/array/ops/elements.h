#pragma once
// What operations on elements have in common: building, emitting, gradients.

#include <utility>
#include <vector>

#include "array/emitter.h"
#include "array/ops/common.h"
#include "kernels/cpu/elements/functions.h"

namespace sdx::array::detail {

using cpu::BinaryFn;
using cpu::result_type_of;
using cpu::UnaryFn;

// ONNX's operator where it means the same for `type`, and the engine has kernels for it that are at least as good as our own;
// else null.
const char* onnx_name(UnaryFn fn, Dtype type);
const char* onnx_name(BinaryFn fn, Dtype type);
void emit_function(Emitter& e, UnaryFn fn);
void emit_function(Emitter& e, BinaryFn fn);

template <UnaryFn kFn>
void emit_map(Emitter& e) {
  emit_function(e, kFn);
}
template <BinaryFn kFn>
void emit_pair(Emitter& e) {
  emit_function(e, kFn);
}

// An operation on each element of `a`, taken as `type`, with results of type `out`.
array map(const Kind& kind, const array& a, Dtype type, Dtype out, const StreamOrDevice& s);
inline array map(const Kind& kind, const array& a, Dtype type, const StreamOrDevice& s) { return map(kind, a, type, type, s); }
// Booleans and integers taken as float32.
inline array of_floats(const Kind& kind, const array& a, const StreamOrDevice& s) {
  return map(kind, a, at_least_float(a.dtype()), s);
}
// On pairs of elements, both taken as `type`.
array pair(const Kind& kind, const array& a, const array& b, Dtype type, Dtype out, const StreamOrDevice& s);
inline array pair(const Kind& kind, const array& a, const array& b, const StreamOrDevice& s) {
  const Dtype type = promote(a.dtype(), b.dtype());
  return pair(kind, a, b, type, type, s);
}

// The gradients of the wanted inputs: one(i) for input i, of the result's shape, summed to the input's.
template <class F>
std::vector<array> gradients(const VjpCall& c, F&& one) {
  std::vector<array> out;
  out.reserve(c.wanted.size());
  for (const std::size_t i : c.wanted) {
    out.push_back(as_type(sum_to(one(i), c.inputs[i].shape()), c.inputs[i].dtype()));
  }
  return out;
}
// Of what is constant but where it jumps: zeros.
std::vector<array> flat_vjp(const VjpCall& c);

inline Params params_of(std::vector<std::int64_t> ints) {
  Params p;
  p.ints = std::move(ints);
  return p;
}

bool is_unsigned(Dtype type);  // booleans too

// A scalar of a's type.
array constant_like(const array& a, double value);

// Throws Error(invalid_argument) for complex numbers.
void refuse_complex(const char* operation, Dtype type);

}  // namespace sdx::array::detail
