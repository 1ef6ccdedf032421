// Convolutions with channels last, and their transposes: x, w -> y; y, w -> x; x, y -> w. The derivatives of each are the other
// two.

#include <algorithm>

#include <sdx/array.hpp>

#include "array/array_op.h"
#include "array/ops/batch.h"
#include "array/ops/common.h"
#include "array/ops/convolve/convolve.h"
#include "kernels/cpu/channels_last/convolve.h"
#include "ops/tensor/movement.h"

namespace sdx::array {
namespace detail {
namespace {

using Ints = std::vector<std::int64_t>;

// params.ints holds the operator's attribute, then the shape of the result.
std::size_t head_of(const Params& p) { return 2 + 3 * static_cast<std::size_t>(p.ints[0]); }
Ints head(const Params& p) { return Ints(p.ints.begin(), p.ints.begin() + static_cast<std::ptrdiff_t>(head_of(p))); }
Shape shape_of(const Params& p) { return Shape(p.ints.begin() + static_cast<std::ptrdiff_t>(head_of(p)), p.ints.end()); }

cpu::Windows windows_of(const Shape& x, const Shape& weights, const Shape& y, const Ints& ints) {
  cpu::Windows w;
  const auto axes = static_cast<std::size_t>(ints[0]);
  w.groups = ints[1];
  w.batch = x[0];
  w.in_channels = x.back();
  w.out_channels = y.back();
  for (std::size_t i = 0; i < axes; ++i) {
    const std::size_t at = 3 - axes + i;
    w.in[at] = x[i + 1];
    w.kernel[at] = weights[i + 1];
    w.out[at] = y[i + 1];
    w.stride[at] = ints[2 + i];
    w.dilation[at] = ints[2 + axes + i];
    w.pad[at] = ints[2 + 2 * axes + i];
  }
  return w;
}

enum class Which { output, input, weights };

template <Which kWhich>
void run(ops::OpContext& c) {
  Tensor& out = result_tensor(c);
  const Tensor &a = c.input(0), &b = c.input(1);
  const Tensor& x = kWhich == Which::input ? out : a;
  const Tensor& weights = kWhich == Which::weights ? out : b;
  const Tensor& y = kWhich == Which::output ? out : kWhich == Which::input ? a : b;
  const cpu::Windows w = windows_of(x.shape(), weights.shape(), y.shape(), c.attrs().get_ints("ints"));
  if (w.positions() == 0 || w.window() == 0 || a.size() == 0 || b.size() == 0) return ops::fill_zero(out);
  const auto call = [&](auto zero) {
    using T = decltype(zero);
    const auto *p = static_cast<const T*>(a.data()), *q = static_cast<const T*>(b.data());
    auto* to = static_cast<T*>(out.mutable_data());
    if constexpr (kWhich == Which::output) cpu::convolve(w, p, q, to);
    if constexpr (kWhich == Which::input) cpu::convolve_input(w, p, q, to);
    if constexpr (kWhich == Which::weights) cpu::convolve_weights(w, p, q, to);
  };
  if (out.size() == 0) return;
  out.dtype() == Dtype::float64 ? call(0.0) : call(0.0F);
}

template <Which kWhich>
void emit(Emitter& e) {
  constexpr const char* kNames[] = {"Convolution", "ConvolutionInput", "ConvolutionWeights"};
  e.results<run<kWhich>>(kNames[static_cast<std::size_t>(kWhich)], e.inputs(), {{"ints", head(e.params())}});
}

std::vector<array> conv_vjp(const VjpCall& c) {
  const array &x = c.inputs[0], &w = c.inputs[1], &g = c.of_outputs[0];
  std::vector<array> out;
  for (const std::size_t i : c.wanted) {
    out.push_back(i == 0 ? conv_input(g, w, head(c.params), x.shape()) : conv_weights(x, g, head(c.params), w.shape()));
  }
  return out;
}

std::vector<array> conv_input_vjp(const VjpCall& c) {
  const array &y = c.inputs[0], &w = c.inputs[1], &g = c.of_outputs[0];
  std::vector<array> out;
  for (const std::size_t i : c.wanted) {
    out.push_back(i == 0 ? conv(g, w, head(c.params), y.shape()) : conv_weights(g, y, head(c.params), w.shape()));
  }
  return out;
}

std::vector<array> conv_weights_vjp(const VjpCall& c) {
  const array &x = c.inputs[0], &y = c.inputs[1], &g = c.of_outputs[0];
  std::vector<array> out;
  for (const std::size_t i : c.wanted) {
    out.push_back(i == 0 ? conv_input(y, g, head(c.params), x.shape()) : conv(x, g, head(c.params), y.shape()));
  }
  return out;
}

// Turns a batch of inputs into more pictures.
array as_pictures(const VmapCall& c, std::size_t i) { return flatten(batch_first(c, i), 0, 1); }
// Turns a batch of inputs into more channels.
array as_channels(const VmapCall& c, std::size_t i) { return flatten(moveaxis(batched(c, i), 0, -2), -2, -1); }
// Turns a batch of weights into more filters.
array as_weights(const VmapCall& c, std::size_t i) { return flatten(batched(c, i), 0, 1); }

Ints more_groups(const VmapCall& c) {
  Ints h = head(c.params);
  h[1] *= c.batch;
  return h;
}

Shape with_factor(Shape shape, std::size_t axis, std::int64_t factor) {
  shape[axis] *= factor;
  return shape;
}

using Build = array (*)(const array&, const array&, const Ints&, const Shape&, const StreamOrDevice&);

// Applies conv() or conv_input() to a batch: their operands are pictures and weights.
template <Build kBuild>
VmapResult pictures_vmap(const VmapCall& c) {
  const Shape shape = shape_of(c.params);
  if (!is_batched(c, 1)) {
    const array out = kBuild(as_pictures(c, 0), c.inputs[1], head(c.params), with_factor(shape, 0, c.batch), {});
    return batch_result(unflatten(out, 0, {c.batch, shape[0]}));
  }
  const std::size_t last = shape.size() - 1;
  const array out = kBuild(as_channels(c, 0), as_weights(c, 1), more_groups(c), with_factor(shape, last, c.batch), {});
  return batch_result(moveaxis(unflatten(out, -1, {c.batch, shape[last]}), -2, 0));
}

VmapResult weights_vmap(const VmapCall& c) {
  const Shape shape = shape_of(c.params);
  const array out = conv_weights(as_channels(c, 0), as_channels(c, 1), more_groups(c), with_factor(shape, 0, c.batch));
  return batch_result(unflatten(out, 0, {c.batch, shape[0]}));
}

const Kind kConv{.name = "conv_general", .emit = emit<Which::output>, .vjp = conv_vjp, .vmap = pictures_vmap<conv>};
const Kind kConvInput{
    .name = "conv_transpose", .emit = emit<Which::input>, .vjp = conv_input_vjp, .vmap = pictures_vmap<conv_input>};
const Kind kConvWeights{.name = "conv_weights", .emit = emit<Which::weights>, .vjp = conv_weights_vjp, .vmap = weights_vmap};

array build(const Kind& kind, const array& a, const array& b, const Ints& head, const Shape& shape, const StreamOrDevice& s) {
  Params p;
  p.ints = head;
  p.ints.insert(p.ints.end(), shape.begin(), shape.end());
  return make(kind, a.dtype(), shape, {a, b}, std::move(p), s);
}

}  // namespace

array conv(const array& x, const array& w, const Ints& head, const Shape& y, const StreamOrDevice& s) {
  return build(kConv, x, w, head, y, s);
}
array conv_input(const array& y, const array& w, const Ints& head, const Shape& x, const StreamOrDevice& s) {
  return build(kConvInput, y, w, head, x, s);
}
array conv_weights(const array& x, const array& y, const Ints& head, const Shape& w, const StreamOrDevice& s) {
  return build(kConvWeights, x, y, head, w, s);
}

}  // namespace detail
}  // namespace sdx::array
