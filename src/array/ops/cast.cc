// Conversion to other element types. ONNX Cast-21; BitCast's meaning.

#include <cstring>

#include <sdx/array.hpp>

#include "array/array_op.h"
#include "array/ops/elements.h"
#include "kernels/cpu/elements/convert.h"

namespace sdx::array {
namespace detail {
namespace {

void run_convert(ops::OpContext& c) { cpu::convert(c.input(0), result_tensor(c)); }

// The engine casts between real types. Conversions from and to complex numbers run on a kernel of arrays.
void emit_astype(Emitter& e) {
  if (!is_complex(e.dtype(0)) && !is_complex(e.out_dtype())) return e.result(e.cast(e.in(0), e.out_dtype()));
  e.results<run_convert>("Convert", {e.in(0)});
}

std::vector<array> astype_vjp(const VjpCall& c) { return {as_type(c.of_outputs[0], c.inputs[0].dtype())}; }

const Kind kAstype{.name = "astype", .emit = emit_astype, .vjp = astype_vjp, .elementwise = true};

void run_view(ops::OpContext& c) {
  const Tensor& x = c.input(0);
  Tensor& y = result_tensor(c);
  if (y.bytes() > 0) std::memcpy(y.mutable_data(), x.data(), y.bytes());
}

void emit_view(Emitter& e) { e.results<run_view>("View", {e.in(0)}); }

std::vector<array> view_vjp(const VjpCall& c) { return {zeros_like(c.inputs[0])}; }

const Kind kView{.name = "view", .emit = emit_view, .vjp = view_vjp};

void run_to_fp8(ops::OpContext& c) { cpu::to_float8(c.input(0), result_tensor(c)); }

void emit_to_fp8(Emitter& e) { e.results<run_to_fp8>("ToFloat8", {e.in(0)}); }

void run_from_fp8(ops::OpContext& c) { cpu::from_float8(c.input(0), result_tensor(c)); }

void emit_from_fp8(Emitter& e) { e.results<run_from_fp8>("FromFloat8", {e.in(0)}); }

const Kind kToFp8{.name = "to_fp8", .emit = emit_to_fp8, .vjp = view_vjp, .elementwise = true};
const Kind kFromFp8{.name = "from_fp8", .emit = emit_from_fp8, .vjp = view_vjp, .elementwise = true};

}  // namespace
}  // namespace detail

array astype(const array& a, Dtype dtype, StreamOrDevice s) {
  if (a.dtype() == dtype) return a;
  return detail::make(detail::kAstype, dtype, a.shape(), {a}, {}, s);
}

array view(const array& a, Dtype dtype, StreamOrDevice s) {
  if (a.dtype() == dtype) return a;
  const auto from = static_cast<std::int64_t>(a.itemsize()), to = static_cast<std::int64_t>(bit_width(dtype) / 8);
  Shape shape = a.shape();
  if (from != to) {
    if (shape.empty()) detail::refuse("view", "a scalar of {} seen as {}: the width differs", name(a.dtype()), name(dtype));
    if (shape.back() * from % to != 0) {
      detail::refuse("view", "the last extent of {} ({} bytes) is not a multiple of {}", to_string(shape), shape.back() * from,
                     name(dtype));
    }
    shape.back() = shape.back() * from / to;
  }
  return detail::make(detail::kView, dtype, std::move(shape), {a}, {}, s);
}

array to_fp8(const array& x, StreamOrDevice s) {
  if (!is_floating(x.dtype())) detail::refuse("to_fp8", "takes floats, not {}", name(x.dtype()));
  return detail::map(detail::kToFp8, x, x.dtype(), Dtype::uint8, s);
}

array from_fp8(const array& x, Dtype dtype, StreamOrDevice s) {
  if (x.dtype() != Dtype::uint8) detail::refuse("from_fp8", "takes uint8, not {}", name(x.dtype()));
  if (!is_floating(dtype)) detail::refuse("from_fp8", "gives floats, not {}", name(dtype));
  return detail::map(detail::kFromFp8, x, Dtype::uint8, dtype, s);
}

}  // namespace sdx::array
