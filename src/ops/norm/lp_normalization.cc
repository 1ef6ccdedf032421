// LpNormalization: ai.onnx 1, 22 (bfloat16). MeanVarianceNormalization: ai.onnx 9, 13 (bfloat16).

#include <cmath>

#include "ops/context.h"
#include "ops/math/float_view.h"
#include "ops/norm/norm_reference.h"
#include "ops/norm/signatures.h"
#include "ops/op.h"
#include "ops/pool/lp_norm_sum.h"
#include "ops/tensor/axes.h"

namespace sdx::ops {
namespace {

LpNorm read_norm(const LpNormalizationAttrs& attr) {
  const std::int64_t p = attr.p;
  if (p != 1 && p != 2) fail(ErrorCode::invalid_model, "attribute 'p' is {}; permitted: 1, 2", p);
  return {static_cast<double>(p)};
}

void infer_lp(InferContext& c) {
  const auto attr = parse<LpNormalizationAttrs>(c);
  read_norm(attr);
  const SymShape* x = c.shape(0);
  if (x == nullptr) return c.output(0, c.dtype(0));
  normalize_axis(attr.axis, x->size());
  c.output(0, c.dtype(0), *x);
}

void run_lp(OpContext& c) {
  const auto attr = parse<LpNormalizationAttrs>(c);
  const Tensor& x = c.input(0);
  const LpNorm norm = read_norm(attr);
  const auto axis = static_cast<std::size_t>(normalize_axis(attr.axis, x.rank()));
  Tensor& y = c.output(0, x.dtype(), x.shape());
  if (y.size() == 0) return;
  const std::int64_t n = x.dim(axis);
  const std::int64_t inner = product(x.shape(), axis + 1, x.rank());
  dispatch_compute(x.dtype(), "LpNormalization", [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> in(x);
    FloatOutput<C> out(y);
    std::vector<double> sums(static_cast<std::size_t>(inner));
    for (std::int64_t base = 0; base < x.size(); base += n * inner) {
      std::fill(sums.begin(), sums.end(), 0.0);
      for (std::int64_t i = 0; i < n * inner; ++i) {
        sums[static_cast<std::size_t>(i % inner)] += norm.term(static_cast<double>(in[base + i]));
      }
      for (double& s : sums) s = norm.root(s);
      for (std::int64_t i = 0; i < n * inner; ++i) {
        const double s = sums[static_cast<std::size_t>(i % inner)];
        out[base + i] = s == 0 ? C(0) : static_cast<C>(static_cast<double>(in[base + i]) / s);
      }
    }
    out.store();
  });
}

std::vector<std::int64_t> read_axes(const MeanVarianceAttrs& attr, std::size_t rank) { return attr.of_rank(rank); }

void infer_mvn(InferContext& c) {
  const SymShape* x = c.shape(0);
  if (x == nullptr) return c.output(0, c.dtype(0));
  read_axes(parse<MeanVarianceAttrs>(c), x->size());
  c.output(0, c.dtype(0), *x);
}

// The number of the group whose statistics an element shares, for every element.
std::vector<std::int64_t> group_of_elements(const Shape& shape, const std::vector<std::int64_t>& axes, std::int64_t& groups) {
  Shape strides(shape.size(), 0);
  groups = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(d)) != axes.end()) continue;
    strides[d] = groups;
    groups *= shape[d];
  }
  std::vector<std::int64_t> group(static_cast<std::size_t>(element_count(shape)));
  std::vector<std::int64_t> at(shape.size(), 0);
  std::int64_t current = 0;
  for (std::int64_t& g : group) {
    g = current;
    for (std::size_t d = shape.size(); d-- > 0;) {
      current += strides[d];
      if (++at[d] < shape[d]) break;
      current -= strides[d] * shape[d];
      at[d] = 0;
    }
  }
  return group;
}

void run_mvn(OpContext& c) {
  const Tensor& x = c.input(0);
  const std::vector<std::int64_t> axes = read_axes(parse<MeanVarianceAttrs>(c), x.rank());
  Tensor& y = c.output(0, x.dtype(), x.shape());
  if (y.size() == 0) return;
  std::int64_t groups = 1;
  const std::vector<std::int64_t> group = group_of_elements(x.shape(), axes, groups);
  dispatch_compute(x.dtype(), "MeanVarianceNormalization", [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> in(x);
    FloatOutput<C> out(y);
    std::vector<Moments> m(static_cast<std::size_t>(groups));
    const std::int64_t elements = x.size() / groups;
    const auto count = static_cast<double>(elements);
    const auto each = [&](auto&& fn) {
      for (std::int64_t i = 0; i < x.size(); ++i) {
        fn(m[static_cast<std::size_t>(group[static_cast<std::size_t>(i)])], static_cast<double>(in[i]), i);
      }
    };
    each([](Moments& g, double v, std::int64_t) { g.mean += v; });
    for (Moments& g : m) g.mean /= count;
    each([](Moments& g, double v, std::int64_t) { g.variance += (v - g.mean) * (v - g.mean); });
    // Source: ONNX MeanVarianceNormalization-9's function body: 1e-9 is added to the standard deviation.
    for (Moments& g : m) g.variance = std::sqrt(g.variance / count) + 1e-9;
    each([&](Moments& g, double v, std::int64_t i) { out[i] = static_cast<C>((v - g.mean) / g.variance); });
    out.store();
  });
}

}  // namespace

void register_lp_normalization(OpTable& t) {
  OpDef lp_normalization("LpNormalization", 1);
  lp_normalization.in("input", "T", types::floats).out("output", "T", types::floats).attrs<LpNormalizationAttrs>();
  t.add(std::move(lp_normalization).infer_with(infer_lp).run_with(run_lp));
  OpDef mean_variance_normalization("MeanVarianceNormalization", 9);
  mean_variance_normalization.in("X", "T", types::floats).out("Y", "T", types::floats).attrs<MeanVarianceAttrs>();
  t.add(std::move(mean_variance_normalization).infer_with(infer_mvn).run_with(run_mvn));
}

}  // namespace sdx::ops
