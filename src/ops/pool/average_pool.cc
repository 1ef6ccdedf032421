// AveragePool: ai.onnx 1, 7 (count_include_pad), 10 (ceil_mode), 11, 19 (dilations), 22 (bfloat16).
// LpPool: ai.onnx 1 (p is a float), 2, 11, 18 (dilations, ceil_mode), 22 (bfloat16).

#include "base/thread_pool.h"
#include "ops/context.h"
#include "ops/conv/signatures.h"
#include "ops/math/float_view.h"
#include "ops/op.h"
#include "ops/pool/lp_norm_sum.h"
#include "ops/pool/pool_windows.h"
#include "ops/tensor/axes.h"

namespace sdx::ops {
namespace {

void infer_pool(InferContext& c) {
  const SymShape* x = c.shape(0);
  if (x == nullptr) return c.output(0, c.dtype(0));
  c.output(0, c.dtype(0), pool_output_shape(c.attrs(), *x));
}

// out[o] = reduce(walker, plane) for every window of every plane.
template <class C, class F>
void pool_planes(OpContext& c, const std::vector<WindowAxis>& axes, Tensor& y, F&& reduce) {
  const Tensor& x = c.input(0);
  const std::int64_t in_plane = product(x.shape(), 2, x.rank());
  const std::int64_t out_plane = product(y.shape(), 2, y.rank());
  const FloatInput<C> in(x);
  FloatOutput<C> out(y);
  parallel_for(y.dim(0) * y.dim(1), 1 + 4096 / out_plane, [&](std::int64_t begin, std::int64_t end) {
    PoolWalker walker(axes);
    for (std::int64_t p = begin; p < end; ++p) {
      c.stop().check();
      const C* from = in.data() + p * in_plane;
      C* to = out.data() + p * out_plane;
      walker.for_each_output([&](std::int64_t o) { to[o] = reduce(walker, from); });
    }
  });
  out.store();
}

void run_average(OpContext& c) {
  const Tensor& x = c.input(0);
  const std::vector<WindowAxis> axes = pool_axes(c.attrs(), x.shape());
  Tensor& y = c.output(0, x.dtype(), pooled_shape(x.shape(), axes));
  if (y.size() == 0) return;
  const bool with_padding = parse<PoolAttrs>(c).count_include_pad;
  dispatch_compute(x.dtype(), "AveragePool", [&](auto tag) {
    using C = typename decltype(tag)::type;
    pool_planes<C>(c, axes, y, [&](PoolWalker& walker, const C* in) {
      double sum = 0;
      walker.for_each_run([&](std::int64_t first, std::int64_t step, std::int64_t n) {
        for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(in[first + i * step]);
      });
      const double count = with_padding ? walker.padded_count() : static_cast<double>(walker.inside_count());
      return count == 0 ? C(0) : static_cast<C>(sum / count);
    });
  });
}

void run_lp(OpContext& c) {
  const Tensor& x = c.input(0);
  const std::vector<WindowAxis> axes = pool_axes(c.attrs(), x.shape());
  Tensor& y = c.output(0, x.dtype(), pooled_shape(x.shape(), axes));
  if (y.size() == 0) return;
  const LpNorm norm = read_p(c.node());
  dispatch_compute(x.dtype(), "LpPool", [&](auto tag) {
    using C = typename decltype(tag)::type;
    pool_planes<C>(c, axes, y, [&](PoolWalker& walker, const C* in) {
      double sum = 0;
      walker.for_each_run([&](std::int64_t first, std::int64_t step, std::int64_t n) {
        for (std::int64_t i = 0; i < n; ++i) sum += norm.term(static_cast<double>(in[first + i * step]));
      });
      return static_cast<C>(norm.root(sum));
    });
  });
}

OpDef pool_def(const char* name, int since) {
  return OpDef(name, since).in("X", "T", types::floats).out("Y", "T", types::floats).attrs<PoolAttrs>().infer_with(infer_pool);
}

}  // namespace

void register_average_pool(OpTable& t) {
  t.add(pool_def("AveragePool", 1).run_with(run_average));
  t.add(pool_def("LpPool", 1).attrs<PNormAttrs>().run_with(run_lp));
  t.add(pool_def("LpPool", 2).attrs<PNormAttrs>().run_with(run_lp));
}

}  // namespace sdx::ops
