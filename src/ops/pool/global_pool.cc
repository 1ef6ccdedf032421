// GlobalAveragePool, GlobalMaxPool: ai.onnx 1, 22 (bfloat16). GlobalLpPool: ai.onnx 1 (p is a float), 2, 22 (bfloat16).

#include <limits>

#include "base/thread_pool.h"
#include "ops/context.h"
#include "ops/math/float_view.h"
#include "ops/op.h"
#include "ops/pool/lp_norm_sum.h"
#include "ops/tensor/axes.h"

namespace sdx::ops {
namespace {

template <class S>
S pooled(const S& x) {
  if (x.size() < 2) {
    fail(ErrorCode::invalid_model, "X must have rank 2 or more ([N, C, spatial...]), received shape {}", to_string(x));
  }
  S out(x.size(), typename S::value_type(1));
  out[0] = x[0];
  out[1] = x[1];
  return out;
}

void infer_global(InferContext& c) {
  if (c.node().op_type == "GlobalLpPool") read_p(c.node());
  const SymShape* x = c.shape(0);
  if (x == nullptr) return c.output(0, c.dtype(0));
  c.output(0, c.dtype(0), pooled(*x));
}

// y[p] = reduce(plane, elements) for every plane.
template <class F>
void reduce_planes(OpContext& c, F&& reduce) {
  const Tensor& x = c.input(0);
  Tensor& y = c.output(0, x.dtype(), pooled(x.shape()));
  const std::int64_t plane = product(x.shape(), 2, x.rank());
  dispatch_compute(x.dtype(), c.node().op_type, [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> in(x);
    FloatOutput<C> out(y);
    parallel_for(y.size(), 1 + 16384 / (plane + 1), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t p = begin; p < end; ++p) out[p] = static_cast<C>(reduce(in.data() + p * plane, plane));
    });
    out.store();
  });
}

void run_average(OpContext& c) {
  reduce_planes(c, [](const auto* x, std::int64_t n) {
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]);
    return n == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / static_cast<double>(n);
  });
}

void run_max(OpContext& c) {
  reduce_planes(c, [](const auto* x, std::int64_t n) {
    using C = std::decay_t<decltype(*x)>;
    C best = -std::numeric_limits<C>::infinity();
    for (std::int64_t i = 0; i < n; ++i) best = x[i] > best || x[i] != x[i] ? x[i] : best;
    return best;
  });
}

void run_lp(OpContext& c) {
  const LpNorm norm = read_p(c.node());
  reduce_planes(c, [&](const auto* x, std::int64_t n) {
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += norm.term(static_cast<double>(x[i]));
    return norm.root(sum);
  });
}

OpDef def(const char* name, int since, RunFn run) {
  return OpDef(name, since).in("X", "T", types::floats).out("Y", "T", types::floats).infer_with(infer_global).run_with(run);
}

}  // namespace

void register_global_pool(OpTable& t) {
  t.add(def("GlobalAveragePool", 1, run_average));
  t.add(def("GlobalMaxPool", 1, run_max));
  t.add(def("GlobalLpPool", 1, run_lp).attrs<PNormAttrs>());
  t.add(def("GlobalLpPool", 2, run_lp).attrs<PNormAttrs>());
}

}  // namespace sdx::ops
