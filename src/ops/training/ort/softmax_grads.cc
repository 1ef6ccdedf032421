// com.microsoft SoftmaxGrad, SoftmaxGrad_13: dX = Y * (dY - sum(dY * Y)). LogSoftmaxGrad, LogSoftmaxGrad_13:
// dX = dY - exp(Y) * sum(dY).

#include <cmath>

#include "base/thread_pool.h"
#include "ops/context.h"
#include "ops/math/elementwise.h"
#include "ops/math/float_view.h"
#include "ops/op.h"
#include "ops/tensor/axes.h"
#include "ops/training/ort/signatures.h"

namespace sdx::ops {
namespace {

using enum ActivationGradIn::Slot;

void infer_softmax_grad(InferContext& c) {
  const auto attr = parse<SoftmaxGradAttrs>(c);
  const SymShape* s = c.shape(kSaved) != nullptr ? c.shape(kSaved) : c.shape(kDy);
  if (s == nullptr) return c.output(0, c.dtype(kDy));
  if (!(attr.flattened && attr.axis == static_cast<std::int64_t>(s->size()))) normalize_axis(attr.axis, s->size());
  c.output(0, c.dtype(kDy), *s);
}

template <class C>
void lane(const C* dy, const C* y, C* dx, std::int64_t n, std::int64_t step, bool log) {
  double sum = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    sum += static_cast<double>(dy[k * step]) * (log ? 1 : static_cast<double>(y[k * step]));
  }
  const auto total = static_cast<C>(sum);
  for (std::int64_t k = 0; k < n; ++k) {
    const C v = y[k * step];
    dx[k * step] = log ? dy[k * step] - std::exp(v) * total : v * (dy[k * step] - total);
  }
}

template <bool kLog>
void run_softmax_grad(OpContext& c) {
  const auto attr = parse<SoftmaxGradAttrs>(c);
  const Tensor &g = c.input(kDy), &y = c.input(kSaved);
  if (g.shape() != y.shape()) c.fail("dY {} and the result {} must have one shape", g.type_string(), y.type_string());
  const auto axis = static_cast<std::size_t>(normalize_axis(attr.axis, y.rank()));
  const std::int64_t outer = product(y.shape(), 0, axis);
  const std::int64_t n = attr.flattened ? product(y.shape(), axis, y.rank()) : y.dim(axis);
  const std::int64_t inner = attr.flattened ? 1 : product(y.shape(), axis + 1, y.rank());
  Tensor& out = c.output(0, g.dtype(), g.shape());
  if (out.size() == 0) return;
  dispatch_compute(g.dtype(), c.node().op_type, [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> dy(g), saved(y);
    FloatOutput<C> dx(out);
    parallel_for(outer * inner, 1 + kElementGrain / n, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t at = i / inner * n * inner + i % inner;
        lane(dy.data() + at, saved.data() + at, dx.data() + at, n, inner, kLog);
      }
    });
    dx.store();
  });
}

void add(OpTable& t, const char* name, const char* saved, RunFn run) {
  t.add(OpDef("com.microsoft", name, 1)
            .in("dY", "T", types::floats)
            .in(saved, "T", types::floats)
            .out("dX", "T", types::floats)
            .attrs<SoftmaxGradAttrs>()
            .infer_with(infer_softmax_grad)
            .run_with(run));
}

}  // namespace

void register_softmax_grads(OpTable& t) {
  for (const char* name : {"SoftmaxGrad", "SoftmaxGrad_13"}) add(t, name, "Y", run_softmax_grad<false>);
  for (const char* name : {"LogSoftmaxGrad", "LogSoftmaxGrad_13"}) add(t, name, "X", run_softmax_grad<true>);
}

}  // namespace sdx::ops
