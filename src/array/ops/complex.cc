// The parts of complex numbers.

#include <sdx/array.hpp>

#include <complex>

#include "array/ops/elements.h"
#include "kernels/cpu/elements/tensors.h"

namespace sdx::array {
namespace detail {
namespace {

// The gradient of a real part is real; as_type() gives it an imaginary part of 0.
std::vector<array> real_vjp(const VjpCall& c) { return {as_type(c.of_outputs[0], c.inputs[0].dtype())}; }

std::vector<array> imag_vjp(const VjpCall& c) {
  const Dtype type = c.inputs[0].dtype();
  Tensor unit(type, {});
  if (type == Dtype::complex64) {
    *static_cast<std::complex<float>*>(unit.mutable_data()) = {0, 1};
  } else {
    *static_cast<std::complex<double>*>(unit.mutable_data()) = {0, 1};
  }
  return {multiply(as_type(c.of_outputs[0], type), array(std::move(unit)))};
}

std::vector<array> conjugate_vjp(const VjpCall& c) { return {conjugate(c.of_outputs[0])}; }

const Kind kReal{.name = "real", .emit = emit_map<UnaryFn::real>, .vjp = real_vjp, .elementwise = true};
const Kind kImag{.name = "imag", .emit = emit_map<UnaryFn::imag>, .vjp = imag_vjp, .elementwise = true};
const Kind kConjugate{.name = "conjugate", .emit = emit_map<UnaryFn::conjugate>, .vjp = conjugate_vjp, .elementwise = true};

}  // namespace
}  // namespace detail

array real(const array& a, StreamOrDevice s) {
  if (!detail::is_complex(a.dtype())) return a;
  return detail::map(detail::kReal, a, a.dtype(), detail::result_type_of(detail::UnaryFn::real, a.dtype()), s);
}

array imag(const array& a, StreamOrDevice s) {
  if (!detail::is_complex(a.dtype())) return zeros_like(a, {}, s);
  return detail::map(detail::kImag, a, a.dtype(), detail::result_type_of(detail::UnaryFn::imag, a.dtype()), s);
}

array conjugate(const array& a, StreamOrDevice s) {
  return detail::is_complex(a.dtype()) ? detail::map(detail::kConjugate, a, a.dtype(), s) : a;
}

}  // namespace sdx::array
