// com.microsoft 1: GroupNorm and SkipGroupNorm: group normalisation over [N, ..., C] (channels_last 1, the default) or
// [N, C, ...], with an optional SiLU.

#include <cmath>

#include "ops/context.h"
#include "ops/math/float_view.h"
#include "ops/norm/norm_reference.h"
#include "ops/norm/signatures.h"
#include "ops/op.h"
#include "ops/tensor/axes.h"

namespace sdx::ops {
namespace {

struct GroupAttrs {
  std::int64_t groups;
  bool channels_last, silu;
  double epsilon;
};

GroupAttrs read_attrs(const ImageGroupNormAttrs& attr) {
  const std::int64_t activation = attr.activation;
  const GroupAttrs a{attr.groups, attr.channels_last, activation == 1, static_cast<double>(attr.epsilon)};
  if (a.groups < 1) fail(ErrorCode::invalid_model, "attribute 'groups' is {}; it must be positive", a.groups);
  if (activation != 0 && activation != 1) {
    fail(ErrorCode::invalid_model, "attribute 'activation' is {}; permitted: 0 (none), 1 (SiLU)", activation);
  }
  return a;
}

void infer_group(InferContext& c) {
  read_attrs(parse<ImageGroupNormAttrs>(c));
  c.output(0, c.type(0));
  c.output(1, c.type(0));
}

// Element (n, channel, position) lies at n*C*P + channel*channel_step + position*position_step.
struct GroupLayout {
  std::int64_t batch, channels, positions, channel_step, position_step;
};

GroupLayout layout_of(OpContext& c, const GroupAttrs& a) {
  const Shape& x = c.input(0).shape();
  if (x.size() < 3) c.fail("X must have rank 3 or more, received shape {}", to_string(x));
  GroupLayout l{x[0], a.channels_last ? x.back() : x[1], 1, 1, 1};
  l.positions = a.channels_last ? product(x, 1, x.size() - 1) : product(x, 2, x.size());
  l.channel_step = a.channels_last ? 1 : l.positions;
  l.position_step = a.channels_last ? l.channels : 1;
  if (l.channels % a.groups != 0) c.fail("X has {} channels, which is not a multiple of groups {}", l.channels, a.groups);
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
    if (c.input(i).size() != l.channels)
      c.fail("input {} must have shape [{}], received {}", i, l.channels, to_string(c.input(i).shape()));
  }
  return l;
}

template <class C, class F>
void for_each_in_group(const GroupLayout& l, std::int64_t per, std::int64_t n, std::int64_t group, F&& fn) {
  for (std::int64_t channel = group * per; channel < (group + 1) * per; ++channel) {
    for (std::int64_t p = 0; p < l.positions; ++p) {
      fn(n * l.channels * l.positions + channel * l.channel_step + p * l.position_step, channel);
    }
  }
}

template <class C>
void normalize(OpContext& c, const GroupLayout& l, const GroupAttrs& a, const C* x, C* y) {
  const FloatInput<C> gamma(c.input(1)), beta(c.input(2));
  const std::int64_t per = l.channels / a.groups;
  const auto count = static_cast<double>(per * l.positions);
  for (std::int64_t n = 0; n < l.batch; ++n) {
    for (std::int64_t g = 0; g < a.groups; ++g) {
      c.stop().check();
      Moments m;
      for_each_in_group<C>(l, per, n, g, [&](std::int64_t i, std::int64_t) { m.mean += static_cast<double>(x[i]); });
      m.mean /= count;
      for_each_in_group<C>(l, per, n, g, [&](std::int64_t i, std::int64_t) {
        const double d = static_cast<double>(x[i]) - m.mean;
        m.variance += d * d;
      });
      const double factor = 1 / std::sqrt(m.variance / count + a.epsilon);
      for_each_in_group<C>(l, per, n, g, [&](std::int64_t i, std::int64_t channel) {
        const double v = (static_cast<double>(x[i]) - m.mean) * factor * static_cast<double>(gamma[channel]) +
                         static_cast<double>(beta[channel]);
        y[i] = static_cast<C>(a.silu ? v / (1 + std::exp(-v)) : v);
      });
    }
  }
}

void run_group_norm(OpContext& c) {
  const GroupAttrs a = read_attrs(parse<ImageGroupNormAttrs>(c));
  const GroupLayout l = layout_of(c, a);
  const Tensor& x = c.input(0);
  Tensor& y = c.output(0, x.dtype(), x.shape());
  if (y.size() == 0) return;
  dispatch_compute(x.dtype(), "GroupNorm", [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> in(x);
    FloatOutput<C> out(y);
    normalize<C>(c, l, a, in.data(), out.data());
    out.store();
  });
}

// skip is [N, ..., C] or has one value per channel: [N, C], [N, 1, ..., C] (or [N, C, 1, ...]). S = X + skip + bias.
void run_skip_group_norm(OpContext& c) {
  const GroupAttrs a = read_attrs(parse<ImageGroupNormAttrs>(c));
  const GroupLayout l = layout_of(c, a);
  const Tensor& x = c.input(0);
  const Tensor& skip = c.input(3);
  const Tensor* bias = c.optional_input(4);
  const bool per_channel = skip.shape() != x.shape();
  if (per_channel && (skip.size() != l.batch * l.channels || skip.rank() < 2 || skip.dim(0) != l.batch)) {
    c.fail("skip must have X's shape {} or one value per channel, received {}", to_string(x.shape()), to_string(skip.shape()));
  }
  if (bias != nullptr && bias->size() != l.channels) {
    c.fail("the bias must have shape [{}], received {}", l.channels, to_string(bias->shape()));
  }
  Tensor& y = c.output(0, x.dtype(), x.shape());
  Tensor& s = c.output(1, x.dtype(), x.shape());
  if (y.size() == 0) return;
  dispatch_compute(x.dtype(), "SkipGroupNorm", [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> fx(x), fk(skip), fb(bias);
    FloatOutput<C> fy(y), sum(s);
    for (std::int64_t n = 0; n < l.batch; ++n) {
      for_each_in_group<C>(l, l.channels, n, 0, [&](std::int64_t i, std::int64_t channel) {
        sum[i] = fx[i] + fk[per_channel ? n * l.channels + channel : i] + (fb ? fb[channel] : C(0));
      });
    }
    normalize<C>(c, l, a, sum.data(), fy.data());
    fy.store();
    sum.store();
  });
}

OpDef def(const char* name) {
  return OpDef("com.microsoft", name, 1)
      .in("X", "T", types::floats)
      .in("gamma beta", "M", types::floats)
      .out("Y", "T", types::floats)
      .attrs<ImageGroupNormAttrs>()
      .infer_with(infer_group);
}

}  // namespace

void register_group_norm_ms(OpTable& t) {
  t.add(def("GroupNorm").run_with(run_group_norm));
  t.add(def("SkipGroupNorm")
            .in("skip", "T", types::floats)
            .in("bias", "T", types::floats, Arity::optional)
            .out("S", "T", types::floats, Arity::optional)
            .run_with(run_skip_group_norm));
}

}  // namespace sdx::ops
