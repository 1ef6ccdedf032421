// com.microsoft BatchNormInternal: batch normalisation in training, with the statistics that its gradient needs. The running
// statistics take the variance of the population, as in ai.onnx. BatchNormalizationGrad: its input "variance" is the inverse
// deviation.

#include <cmath>

#include "ops/context.h"
#include "ops/math/float_view.h"
#include "ops/norm/norm_reference.h"
#include "ops/norm/signatures.h"
#include "ops/op.h"
#include "ops/tensor/axes.h"
#include "ops/training/ort/signatures.h"

namespace sdx::ops {
namespace {

struct Layout {
  std::int64_t batch, channels, inner;
  double count() const { return static_cast<double>(batch) * static_cast<double>(inner); }
};

template <class S>
typename S::value_type channels_of(const S& x) {
  if (x.size() < 2) fail(ErrorCode::invalid_model, "X must have rank 2 or more ([N, C, ...]), received {}", to_string(x));
  return x[1];
}

Layout layout_of(OpContext& c, const Tensor& x, std::size_t first, std::size_t last) {
  const Layout l{x.dim(0), channels_of(x.shape()), product(x.shape(), 2, x.rank())};
  for (std::size_t i = first; i <= last; ++i) {
    if (c.input(i).size() == l.channels) continue;
    c.fail("input {} must have shape [{}] for X {}, received {}", i, l.channels, x.type_string(), c.input(i).type_string());
  }
  return l;
}

// Calls fn(channel, i) for every element i.
template <class F>
void for_each(const Layout& l, F&& fn) {
  for (std::int64_t plane = 0; plane < l.batch * l.channels; ++plane) {
    for (std::int64_t i = plane * l.inner; i < (plane + 1) * l.inner; ++i) fn(static_cast<std::size_t>(plane % l.channels), i);
  }
}

void infer_internal(InferContext& c) {
  using enum BatchNormIn::Slot;
  const SymShape* x = c.shape(kX);
  const DataType statistics = c.dtype(kMean);
  if (x != nullptr) c.output(0, c.dtype(kX), *x);
  if (x == nullptr) c.output(0, c.dtype(kX));
  for (std::size_t i = 1; i < c.num_outputs(); ++i) {
    if (x != nullptr) c.output(i, statistics, SymShape{channels_of(*x)});
    if (x == nullptr) c.output(i, statistics, SymShape{Dim::unknown()});
  }
}

template <class C>
std::vector<Moments> moments_of(const Layout& l, const C* x) {
  std::vector<Moments> m(static_cast<std::size_t>(l.channels));
  if (l.count() == 0) return m;
  for_each(l, [&](std::size_t k, std::int64_t i) { m[k].mean += static_cast<double>(x[i]); });
  for (Moments& v : m) v.mean /= l.count();
  for_each(l, [&](std::size_t k, std::int64_t i) {
    const double d = static_cast<double>(x[i]) - m[k].mean;
    m[k].variance += d * d;
  });
  for (Moments& v : m) v.variance /= l.count();
  return m;
}

void run_internal(OpContext& c) {
  using enum BatchNormIn::Slot;
  const auto attr = parse<BatchNormInternalAttrs>(c);
  const Tensor& x = c.input(kX);
  const Layout l = layout_of(c, x, kScale, kVariance);
  const auto channels = static_cast<std::size_t>(l.channels);
  const FloatInput<double> mean(c.input(kMean)), variance(c.input(kVariance));
  std::vector<Moments> used(channels);
  std::vector<double> results[4];  // running mean and variance, this batch's mean and inverse deviation
  for (auto& r : results) r.resize(channels);
  Tensor& y = c.output(0, x.dtype(), x.shape());
  dispatch_compute(x.dtype(), "BatchNormInternal", [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> in(x), scale(c.input(kScale)), bias(c.input(kB));
    FloatOutput<C> out(y);
    if (attr.training_mode) used = moments_of(l, in.data());
    const double momentum = attr.training_mode ? static_cast<double>(attr.momentum) : 1;
    for (std::size_t k = 0; k < channels; ++k) {
      const auto i = static_cast<std::int64_t>(k);
      if (!attr.training_mode) used[k] = {mean[i], variance[i]};
      results[0][k] = mean[i] * momentum + used[k].mean * (1 - momentum);
      results[1][k] = variance[i] * momentum + used[k].variance * (1 - momentum);
      results[2][k] = used[k].mean;
      results[3][k] = 1 / std::sqrt(used[k].variance + static_cast<double>(attr.epsilon));
    }
    for_each(l, [&](std::size_t k, std::int64_t i) {
      const auto channel = static_cast<std::int64_t>(k);
      const double n = (static_cast<double>(in[i]) - used[k].mean) * results[3][k];
      out[i] = static_cast<C>(n * static_cast<double>(scale[channel]) + static_cast<double>(bias[channel]));
    });
    out.store();
  });
  for (std::size_t i = 0; i < 4; ++i) {
    if (c.wants_output(i + 1)) store_floats(results[i].data(), c.output(i + 1, c.input(kMean).dtype(), {l.channels}));
  }
}

void infer_gradient(InferContext& c) {
  using enum BatchNormGradIn::Slot;
  const SymShape* x = c.shape(kX) != nullptr ? c.shape(kX) : c.shape(kDy);
  if (x != nullptr) c.output(0, c.dtype(kX), *x);
  if (x == nullptr) c.output(0, c.dtype(kX));
  for (std::size_t i = 1; i < c.num_outputs(); ++i) {
    c.output(i, c.dtype(kScale), SymShape{x != nullptr ? channels_of(*x) : Dim::unknown()});
  }
}

void run_gradient(OpContext& c) {
  using enum BatchNormGradIn::Slot;
  const Tensor &x = c.input(kX), &g = c.input(kDy);
  if (x.shape() != g.shape()) c.fail("dY {} and X {} must have one shape", g.type_string(), x.type_string());
  const Layout l = layout_of(c, x, kScale, kInverse);
  Tensor& dx = c.output(0, x.dtype(), x.shape());
  std::vector<double> sums[2];  // gradients of scale and bias
  for (auto& s : sums) s.resize(static_cast<std::size_t>(l.channels));
  const FloatInput<double> scale(c.input(kScale)), mean(c.input(kMean)), inverse(c.input(kInverse));
  dispatch_compute(x.dtype(), "BatchNormalizationGrad", [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> in(x), dy(g);
    FloatOutput<C> out(dx);
    const auto normalised = [&](std::size_t k, std::int64_t i) {
      const auto channel = static_cast<std::int64_t>(k);
      return (static_cast<double>(in[i]) - mean[channel]) * inverse[channel];
    };
    for_each(l, [&](std::size_t k, std::int64_t i) {
      sums[0][k] += static_cast<double>(dy[i]) * normalised(k, i);
      sums[1][k] += static_cast<double>(dy[i]);
    });
    for_each(l, [&](std::size_t k, std::int64_t i) {
      const auto channel = static_cast<std::int64_t>(k);
      const double centred = static_cast<double>(dy[i]) - (sums[1][k] + normalised(k, i) * sums[0][k]) / l.count();
      out[i] = static_cast<C>(scale[channel] * inverse[channel] * centred);
    });
    out.store();
  });
  for (std::size_t i = 0; i < 2; ++i) {
    if (c.wants_output(i + 1)) store_floats(sums[i].data(), c.output(i + 1, c.input(kScale).dtype(), {l.channels}));
  }
}

}  // namespace

void register_batch_norm_training(OpTable& t) {
  const TypeSet f = types::floats;
  t.add(OpDef("com.microsoft", "BatchNormInternal", 1)
            .in("X", "T", f)
            .in("scale B", "T1", f)
            .in("input_mean input_var", "T2", f)
            .out("Y", "T", f)
            .out("running_mean running_var saved_mean saved_inv_std", "T2", f, Arity::optional)
            .attrs<BatchNormInternalAttrs>()
            .infer_with(infer_internal)
            .run_with(run_internal));
  t.add(OpDef("com.microsoft", "BatchNormalizationGrad", 1)
            .in("dY X", "T", f)
            .in("scale", "T1", f)
            .in("mean variance", "T2", f)
            .out("X_grad", "T", f)
            .out("scale_grad bias_grad", "T1", f, Arity::optional)
            .attr("epsilon", AttrKind::f)
            .infer_with(infer_gradient)
            .run_with(run_gradient));
}

}  // namespace sdx::ops
