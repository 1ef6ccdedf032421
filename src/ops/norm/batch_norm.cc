// BatchNormalization: ai.onnx 1, 6 (is_test, spatial), 7 (training when there are more outputs than one), 9 (no spatial),
// 14 (training_mode, two extra outputs), 15 (three types).

#include <cmath>

#include "base/thread_pool.h"
#include "ops/context.h"
#include "ops/math/float_view.h"
#include "ops/norm/norm_reference.h"
#include "ops/norm/signatures.h"
#include "ops/op.h"
#include "ops/tensor/axes.h"

namespace sdx::ops {
namespace {

using enum BatchNormIn::Slot;

// The groups that have statistics: the channels, or (spatial = 0) every position of [C, D1, ...].
template <class S>
S statistics_shape(const S& x, bool is_spatial) {
  if (x.empty()) fail(ErrorCode::invalid_model, "X must have rank 1 or more, received a scalar");
  if (x.size() == 1) return S{1};  // ONNX BatchNormalization-9: [N] means one channel
  return is_spatial ? S{x[1]} : S(x.begin() + 1, x.end());
}

void infer_batch_norm(InferContext& c) {
  const DataType elem = c.dtype(kX);
  const DataType stats = c.version() >= 14 && c.dtype(kMean) != DataType::undefined ? c.dtype(kMean) : elem;
  const SymShape* x = c.shape(kX);
  if (x == nullptr) {
    c.output(0, elem);
    for (std::size_t i = 1; i < c.num_outputs(); ++i) c.output(i, stats);
    return;
  }
  const SymShape s = statistics_shape(*x, parse<BatchNormAttrs>(c).spatial);
  for (std::size_t i = 1; i < 5; ++i) {
    const SymShape* given = c.shape(i);
    if (given == nullptr || !s[0].is_const() || s.size() != 1 || !all_const(*given)) continue;
    if (*given != s)
      c.fail("input {} must have shape {} (one value per channel), received {}", i, to_string(s), to_string(*given));
  }
  c.output(0, elem, *x);
  for (std::size_t i = 1; i < c.num_outputs(); ++i) c.output(i, stats, s);
}

// X as [N, channels, inner]; without `spatial` every position is a channel of its own.
struct Layout {
  std::int64_t batch, channels, inner;
};

Layout layout_of(const Shape& x, const Shape& stats) {
  Layout l{x[0], element_count(stats), 1};
  if (x.size() > 1 && stats.size() == 1) l.inner = product(x, 2, x.size());
  return l;
}

// Statistics of one channel over the batch and the inner positions.
template <class C>
Moments channel_moments(const Layout& l, const C* x, std::int64_t channel) {
  Moments m;
  const double count = static_cast<double>(l.batch) * static_cast<double>(l.inner);
  if (count == 0) return m;
  const auto each = [&](auto&& fn) {
    for (std::int64_t n = 0; n < l.batch; ++n) {
      const C* row = x + (n * l.channels + channel) * l.inner;
      for (std::int64_t i = 0; i < l.inner; ++i) fn(static_cast<double>(row[i]));
    }
  };
  each([&](double v) { m.mean += v; });
  m.mean /= count;
  each([&](double v) { m.variance += (v - m.mean) * (v - m.mean); });
  m.variance /= count;
  return m;
}

template <class C>
void apply(OpContext& c, const Layout& l, const std::vector<Moments>& moments, Tensor& y) {
  const FloatInput<C> x(c.input(kX)), scale(c.input(kScale)), bias(c.input(kB));
  FloatOutput<C> out(y);
  const double epsilon = static_cast<double>(parse<BatchNormAttrs>(c).epsilon);
  parallel_for(l.batch * l.channels, 1 + 16384 / (l.inner + 1), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      const std::int64_t channel = p % l.channels;
      const Moments& m = moments[static_cast<std::size_t>(channel)];
      const double factor = static_cast<double>(scale[channel]) / std::sqrt(m.variance + epsilon);
      scale_row(x.data() + p * l.inner, l.inner, m.mean, factor, static_cast<double>(bias[channel]), out.data() + p * l.inner);
    }
  });
  out.store();
}

template <class C>
std::vector<Moments> batch_moments(const Layout& l, const Tensor& x) {
  std::vector<Moments> m(static_cast<std::size_t>(l.channels));
  const FloatInput<C> in(x);
  for (std::int64_t k = 0; k < l.channels; ++k) m[static_cast<std::size_t>(k)] = channel_moments(l, in.data(), k);
  return m;
}

void write_statistic(OpContext& c, std::size_t output, const Shape& shape, const std::vector<Moments>& m, double Moments::*part) {
  Tensor& t = c.output(output, c.input(kMean).dtype(), shape);
  std::vector<double> values(m.size());
  for (std::size_t i = 0; i < m.size(); ++i) values[i] = m[i].*part;
  store_floats(values.data(), t);
}

bool training(OpContext& c) {
  if (c.version() >= 14) return parse<BatchNormAttrs>(c).training_mode;
  if (c.version() < 7 && parse<BatchNormAttrs>(c).is_test) return false;
  for (std::size_t i = 1; i < c.num_outputs(); ++i) {
    if (c.wants_output(i)) return true;
  }
  return false;
}

void run_batch_norm(OpContext& c) {
  const auto attr = parse<BatchNormAttrs>(c);
  const Tensor& x = c.input(kX);
  const Shape stats = statistics_shape(x.shape(), attr.spatial);
  const Layout l = layout_of(x.shape(), stats);
  for (std::size_t i = 1; i < 5; ++i) {
    if (c.input(i).size() != l.channels) {
      c.fail("input {} must have shape {} for X {}, received {}", i, to_string(stats), to_string(x.shape()),
             to_string(c.input(i).shape()));
    }
  }
  std::vector<Moments> given(static_cast<std::size_t>(l.channels));
  const FloatInput<double> mean(c.input(kMean)), variance(c.input(kVariance));
  for (std::int64_t k = 0; k < l.channels; ++k) given[static_cast<std::size_t>(k)] = {mean[k], variance[k]};
  const bool train = training(c);
  std::vector<Moments> batch;
  Tensor& y = c.output(0, x.dtype(), x.shape());
  dispatch_compute(x.dtype(), "BatchNormalization", [&](auto tag) {
    using C = typename decltype(tag)::type;
    if (train) batch = batch_moments<C>(l, x);
    apply<C>(c, l, train ? batch : given, y);
  });
  if (c.num_outputs() == 1) return;
  std::vector<Moments> running = given;
  if (train) {
    const double momentum = static_cast<double>(attr.momentum);
    for (std::size_t k = 0; k < running.size(); ++k) {
      running[k].mean = given[k].mean * momentum + batch[k].mean * (1 - momentum);
      running[k].variance = given[k].variance * momentum + batch[k].variance * (1 - momentum);
    }
  } else {
    batch = given;
  }
  const std::vector<Moments>* sources[] = {nullptr, &running, &running, &batch, &batch};
  for (std::size_t i = 1; i < 5; ++i) {
    if (c.wants_output(i)) write_statistic(c, i, stats, *sources[i], i % 2 == 1 ? &Moments::mean : &Moments::variance);
  }
}

}  // namespace

void register_batch_norm(OpTable& t) {
  const TypeSet f = types::floats;
  t.add(OpDef("BatchNormalization", 1)
            .in("X scale B mean var", "T", f)
            .out("Y", "T", f)
            .out("mean var saved_mean saved_var", "T", f, Arity::optional)
            .attrs<BatchNormAttrs>()
            .infer_with(infer_batch_norm)
            .run_with(run_batch_norm));
  t.add(OpDef("BatchNormalization", 14)
            .in("X", "T", f)
            .in("scale B", "T1", f)
            .in("input_mean input_var", "T2", f)
            .out("Y", "T", f)
            .out("running_mean running_var", "T2", f, Arity::optional)
            .attrs<BatchNormAttrs>()
            .infer_with(infer_batch_norm)
            .run_with(run_batch_norm));
}

}  // namespace sdx::ops
