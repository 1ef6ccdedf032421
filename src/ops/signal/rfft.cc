// com.microsoft Rfft 1 and Irfft 1: the Fourier transform of real signals along the last axis, one-sided; pairs on an axis of 2.

#include "ops/context.h"
#include "ops/math/float_view.h"
#include "ops/op.h"
#include "ops/signal/fourier.h"
#include "ops/signature.h"

namespace sdx::ops {
namespace {

struct RfftAttrs {
  bool normalized = false;
  std::int64_t onesided = 1;
  std::int64_t signal_ndim = 1;

  void fields(auto& f) {
    f("normalized", normalized);
    f("onesided", onesided);
    f("signal_ndim", signal_ndim);
  }
};

void check_form(const RfftAttrs& attr) {
  if (attr.onesided != 1 || attr.normalized || attr.signal_ndim != 1) {
    fail(ErrorCode::not_implemented, "only one-sided transforms over one axis, not normalised, are supported");
  }
}

void infer_rfft(InferContext& c) {
  check_form(parse<RfftAttrs>(c));
  const SymShape* s = c.shape(0);
  if (s == nullptr) return c.output(0, c.dtype(0));
  if (s->empty()) c.fail("the input must have an axis, received a scalar");
  SymShape out = *s;
  out.back() = floor_div(out.back(), Dim(2)) + Dim(1);
  out.push_back(Dim(2));
  c.output(0, c.dtype(0), std::move(out));
}

void infer_irfft(InferContext& c) {
  check_form(parse<RfftAttrs>(c));
  const SymShape* s = c.shape(0);
  if (s == nullptr) return c.output(0, c.dtype(0));
  if (s->size() < 2) c.fail("the input must have 2 axes or more, received {}", to_string(*s));
  SymShape out(s->begin(), s->end() - 1);
  out.back() = (out.back() - Dim(1)) * Dim(2);
  c.output(0, c.dtype(0), std::move(out));
}

void run_rfft(OpContext& c) {
  check_form(parse<RfftAttrs>(c));
  const Tensor& x = c.input(0);
  if (x.rank() == 0 || x.shape().back() < 1) c.fail("the input must have a signal, received {}", x.type_string());
  const std::int64_t n = x.shape().back(), half = n / 2 + 1;
  Shape shape = x.shape();
  shape.back() = half;
  shape.push_back(2);
  Tensor& y = c.output(0, x.dtype(), shape);
  dispatch_compute(x.dtype(), "Rfft", [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> fx(x);
    FloatOutput<C> fy(y);
    transform_signals(c, {cpu::Fourier::half, n, n, half}, x.size() / n, fx.data(), fy.data());
    fy.store();
  });
}

void run_irfft(OpContext& c) {
  check_form(parse<RfftAttrs>(c));
  const Tensor& x = c.input(0);
  if (x.rank() < 2 || x.shape().back() != 2 || x.dim(x.rank() - 2) < 2)
    c.fail("the input must be [.., 2 or more, 2], received {}", x.type_string());
  const std::int64_t half = x.dim(x.rank() - 2), n = 2 * (half - 1);
  Shape shape(x.shape().begin(), x.shape().end() - 1);
  shape.back() = n;
  Tensor& y = c.output(0, x.dtype(), shape);
  dispatch_compute(x.dtype(), "Irfft", [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> fx(x);
    FloatOutput<C> fy(y);
    const double scale = 1 / static_cast<double>(n);
    transform_signals(c, {cpu::Fourier::whole, n, half, n, 1, true, scale}, x.size() / (2 * half), fx.data(), fy.data());
    fy.store();
  });
}

}  // namespace

void register_rfft(OpTable& t) {
  constexpr TypeSet kFloat = set_of(DataType::float16, DataType::float32, DataType::float64);
  for (const bool inverse : {false, true}) {
    OpDef d("com.microsoft", inverse ? "Irfft" : "Rfft", 1);
    d.in("X", "T", kFloat).out("Y", "T", kFloat);
    d.attrs<RfftAttrs>();
    t.add(std::move(d).infer_with(inverse ? infer_irfft : infer_rfft).run_with(inverse ? run_irfft : run_rfft));
  }
}

}  // namespace sdx::ops
