// com.microsoft ConvGrad: gradients of a convolution's input, weights and bias, each where it is wanted.

#include "base/thread_pool.h"
#include "ops/context.h"
#include "ops/conv/conv_geometry.h"
#include "ops/math/float_view.h"
#include "ops/op.h"
#include "ops/training/ort/signatures.h"

namespace sdx::ops {
namespace {

using enum ConvGradIn::Slot;

void infer_conv_grad(InferContext& c) {
  const auto like = [&](std::size_t output, std::size_t input) {
    if (c.shape(input) != nullptr) return c.output(output, c.dtype(input), *c.shape(input));
    c.output(output, c.dtype(input));
  };
  if (c.num_outputs() > 0) like(0, kX);
  if (c.num_outputs() > 1) like(1, kW);
  if (c.num_outputs() > 2) c.output(2, c.dtype(kDy), SymShape{c.shape(kW) != nullptr ? c.shape(kW)->at(0) : Dim::unknown()});
}

// For one tap, calls fn(first output, first input, step of the input, count) for runs along the last axis that touch the input.
template <class F>
void for_each_run(const ConvGeometry& g, std::int64_t tap, F&& fn) {
  const std::size_t axes = g.axes.size();
  std::vector<std::int64_t> shift(axes);  // where output 0 lies in the input
  std::vector<IndexRange> range(axes);
  for (std::size_t d = axes; d-- > 0; tap /= g.axes[d].kernel) {
    const std::int64_t k = tap % g.axes[d].kernel;
    range[d] = outputs_inside(g.axes[d], k);
    shift[d] = k * g.axes[d].dilation - g.axes[d].pad_begin;
    if (range[d].size() == 0) return;
  }
  std::vector<std::int64_t> at(axes);
  for (std::size_t d = 0; d < axes; ++d) at[d] = range[d].begin;
  const std::size_t last = axes - 1;
  while (true) {
    std::int64_t out = 0, in = 0;
    for (std::size_t d = 0; d < axes; ++d) {
      out = out * g.axes[d].out + at[d];
      in = in * g.axes[d].in + at[d] * g.axes[d].stride + shift[d];
    }
    fn(out, in, g.axes[last].stride, range[last].size());
    std::size_t d = last;
    while (d > 0 && ++at[d - 1] == range[d - 1].end) {
      at[d - 1] = range[d - 1].begin;
      --d;
    }
    if (d == 0) return;
  }
}

template <class C>
struct ConvGradient {
  const ConvGeometry& g;
  const C *dy, *x, *w;
  std::int64_t in_plane = g.in_plane(), out_plane = g.out_plane(), taps = g.kernel_taps();
  std::int64_t channels = g.in_channels_per_group(), maps = g.out_channels_per_group();

  // One channel of one picture.
  void input(std::int64_t image, std::int64_t channel, C* dx) const {
    std::fill_n(dx, in_plane, C(0));
    const std::int64_t group = channel / channels;
    for (std::int64_t m = group * maps; m < (group + 1) * maps; ++m) {
      const C* from = dy + (image * g.out_channels + m) * out_plane;
      const C* weights = w + (m * channels + channel % channels) * taps;
      for (std::int64_t t = 0; t < taps; ++t) {
        for_each_run(g, t, [&](std::int64_t out, std::int64_t in, std::int64_t step, std::int64_t count) {
          for (std::int64_t i = 0; i < count; ++i) dx[in + i * step] += from[out + i] * weights[t];
        });
      }
    }
  }

  // The taps from one channel to one map.
  void weight(std::int64_t m, std::int64_t channel, C* dw) const {
    const std::int64_t from_channel = m / maps * channels + channel;
    for (std::int64_t t = 0; t < taps; ++t) {
      double sum = 0;
      for (std::int64_t n = 0; n < g.batch; ++n) {
        const C* from = dy + (n * g.out_channels + m) * out_plane;
        const C* plane = x + (n * g.in_channels + from_channel) * in_plane;
        for_each_run(g, t, [&](std::int64_t out, std::int64_t in, std::int64_t step, std::int64_t count) {
          for (std::int64_t i = 0; i < count; ++i) {
            sum += static_cast<double>(from[out + i]) * static_cast<double>(plane[in + i * step]);
          }
        });
      }
      dw[t] = static_cast<C>(sum);
    }
  }

  C bias(std::int64_t m) const {
    double sum = 0;
    for (std::int64_t n = 0; n < g.batch; ++n) {
      const C* from = dy + (n * g.out_channels + m) * out_plane;
      for (std::int64_t i = 0; i < out_plane; ++i) sum += static_cast<double>(from[i]);
    }
    return static_cast<C>(sum);
  }
};

template <class C>
void run(OpContext& c, const ConvGeometry& g, const StopCondition& stop) {
  const Tensor &x = c.input(kX), &w = c.input(kW);
  const FloatInput<C> dy(c.input(kDy)), in(x), weights(w);
  const ConvGradient<C> gradient{g, dy.data(), in.data(), weights.data()};
  if (c.wants_output(0)) {
    FloatOutput<C> dx(c.output(0, x.dtype(), x.shape()));
    parallel_for(g.batch * g.in_channels, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        stop.check();
        gradient.input(i / g.in_channels, i % g.in_channels, dx.data() + i * gradient.in_plane);
      }
    });
    dx.store();
  }
  if (c.wants_output(1)) {
    FloatOutput<C> dw(c.output(1, w.dtype(), w.shape()));
    parallel_for(g.out_channels * gradient.channels, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        stop.check();
        gradient.weight(i / gradient.channels, i % gradient.channels, dw.data() + i * gradient.taps);
      }
    });
    dw.store();
  }
  if (c.wants_output(2)) {
    FloatOutput<C> db(c.output(2, c.input(kDy).dtype(), {g.out_channels}));
    for (std::int64_t m = 0; m < g.out_channels; ++m) db[m] = gradient.bias(m);
    db.store();
  }
}

void run_conv_grad(OpContext& c) {
  const ConvGeometry g = conv_geometry(c.attrs(), c.input(kX).shape(), c.input(kW).shape());
  if (c.input(kDy).shape() != g.output_shape()) {
    c.fail("dY must have shape {} for X {} and W {}, received {}", to_string(g.output_shape()), c.input(kX).type_string(),
           c.input(kW).type_string(), c.input(kDy).type_string());
  }
  dispatch_compute(c.input(kDy).dtype(), "ConvGrad", [&](auto tag) { run<typename decltype(tag)::type>(c, g, c.stop()); });
}

}  // namespace

void register_conv_grad(OpTable& t) {
  t.add(OpDef("com.microsoft", "ConvGrad", 1)
            .in("dY X W", "T", types::floats)
            .out("dX dW dB", "T", types::floats, Arity::optional)
            .attrs<ConvAttrs>()
            .infer_with(infer_conv_grad)
            .run_with(run_conv_grad));
}

}  // namespace sdx::ops
