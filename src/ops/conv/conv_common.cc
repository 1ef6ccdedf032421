#include "ops/conv/conv_common.h"

#include "ops/conv/conv_geometry.h"
#include "ops/conv/conv_reference.h"
#include "ops/conv/signatures.h"
#include "ops/math/float_view.h"

namespace sdx::ops {
namespace {

using enum ConvIn::Slot;

void check_bias(const Type& bias, const Dim& channels) {
  if (!bias.is_tensor() || !bias.shape) return;
  const SymShape& s = *bias.shape;
  if (s.size() == 1 && !(s[0].is_const() && channels.is_const() && s[0].value() != channels.value())) return;
  fail(ErrorCode::invalid_model, "the bias must have shape [{}] (one value per output channel), received {}", channels.str(),
       to_string(s));
}

void infer_with(InferContext& c, SymShape (*shape_of)(const Attributes&, const SymShape&, const SymShape&)) {
  const DataType elem = c.dtype(kX) != DataType::undefined ? c.dtype(kX) : c.dtype(kW);
  const SymShape* x = c.shape(kX);
  const SymShape* w = c.shape(kW);
  if (x == nullptr) return c.output(0, elem);
  SymShape out = shape_of(c.attrs(), *x, w != nullptr ? *w : SymShape(x->size()));
  check_bias(c.type(kB), out[1]);
  c.output(0, elem, std::move(out));
}

template <bool kTranspose>
Tensor& run_with(OpContext& c) {
  const Tensor& x = c.input(kX);
  const Tensor& w = c.input(kW);
  const Tensor* bias = c.optional_input(kB);
  const ConvGeometry g =
      kTranspose ? conv_transpose_geometry(c.attrs(), x.shape(), w.shape()) : conv_geometry(c.attrs(), x.shape(), w.shape());
  if (bias != nullptr) check_bias(Type::tensor(bias->dtype(), to_sym(bias->shape())), Dim(g.out_channels));
  Tensor& y = c.output(0, x.dtype(), g.output_shape());
  dispatch_compute(x.dtype(), c.node().op_type, [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> fx(x), fw(w), fb(bias);
    FloatOutput<C> fy(y);
    (kTranspose ? conv_transpose_reference<C> : conv_reference<C>)(g, fx.data(), fw.data(), fb.data(), fy.data(), c.stop());
    fy.store();
  });
  return y;
}

}  // namespace

void infer_conv(InferContext& c) { infer_with(c, conv_output_shape); }
void infer_conv_transpose(InferContext& c) { infer_with(c, conv_transpose_output_shape); }
Tensor& run_conv(OpContext& c) { return run_with<false>(c); }
Tensor& run_conv_transpose(OpContext& c) { return run_with<true>(c); }

}  // namespace sdx::ops
