// QLinearConv: ai.onnx 10; com.microsoft 1 (channels_last; the weights stay [M, C/group, kernel...]).

#include <algorithm>

#include "ops/op.h"
#include "ops/quant/integer_conv.h"
#include "ops/quant/quant_codec.h"
#include "ops/quant/signatures.h"

namespace sdx::ops {
namespace {

constexpr TypeSet kBytes = set_of(DataType::int8, DataType::uint8);

using enum QLinearConvIn::Slot;

void infer_qlinear_conv(InferContext& c) {
  const DataType elem = c.dtype(kYZero);
  const SymShape* x = c.shape(kX);
  const SymShape* w = c.shape(kW);
  if (x == nullptr || w == nullptr) return c.output(0, elem);
  const bool last = parse<QLinearConvAttrs>(c).channels_last;
  SymShape out = conv_output_shape(c.attrs(), last ? to_first(*x) : *x, *w);
  c.output(0, elem, last ? to_last(std::move(out)) : std::move(out));
}

float one_scale(const OpContext& c, std::size_t i, const char* what) {
  const Tensor& t = c.input(i);
  if (t.size() != 1) c.fail("{} must be one number, received shape {}", what, to_string(t.shape()));
  return t.values<float>()[0];
}

std::int32_t one_zero(const OpContext& c, std::size_t i, const char* what) {
  const Tensor& t = c.input(i);
  if (t.size() != 1) c.fail("{} must be one number, received shape {}", what, to_string(t.shape()));
  return decode_ints(t)[0];
}

// x_scale * w_scale / y_scale for each output channel.
std::vector<float> channel_scales(const OpContext& c, std::int64_t channels) {
  const Tensor& w = c.input(kWScale);
  if (w.size() != 1 && (w.size() != channels || w.rank() != 1)) {
    c.fail("w_scale has shape {}; expected a scalar or one element for each of the {} output channels", to_string(w.shape()),
           channels);
  }
  const float x_scale = one_scale(c, kXScale, "x_scale");
  const float y_scale = one_scale(c, kYScale, "y_scale");
  const auto w_scale = w.values<float>();
  std::vector<float> out(static_cast<std::size_t>(channels));
  for (std::size_t m = 0; m < out.size(); ++m) out[m] = x_scale * w_scale[w_scale.size() == 1 ? 0 : m] / y_scale;
  return out;
}

void run_qlinear_conv(OpContext& c) {
  const bool last = parse<QLinearConvAttrs>(c).channels_last;
  const Tensor x = last ? channels_first(c.input(kX)) : c.input(kX);
  const Tensor& w = c.input(kW);
  IntegerConv conv{conv_geometry(c.attrs(), x.shape(), w.shape()), &x, one_zero(c, kXZero, "x_zero_point"), &w, {}};
  const std::int64_t channels = conv.geometry.out_channels;
  const Shape shape = conv.geometry.output_shape();
  const DataType elem = c.input(kYZero).dtype();
  Tensor& y = c.output(0, elem, last ? to_last(shape) : shape);
  conv.w_zero = channel_zero_points(&c.input(kWZero), w.dtype(), channels);
  const std::vector<float> scales = channel_scales(c, channels);
  const std::int32_t y_zero = one_zero(c, kYZero, "y_zero_point");
  const Tensor* bias = c.optional_input(kBias);
  if (bias != nullptr && bias->size() != channels) {
    c.fail("bias has {} elements; expected one for each of the {} output channels", bias->size(), channels);
  }
  const std::int32_t* b = bias != nullptr ? bias->values<std::int32_t>().data() : nullptr;
  std::vector<std::uint8_t> first(last ? static_cast<std::size_t>(y.size()) : 0);
  std::uint8_t* out = last ? first.data() : static_cast<std::uint8_t*>(y.mutable_data());
  const QuantRange range = quant_range(elem);
  const std::int64_t plane = conv.geometry.out_plane();
  integer_conv(c, conv,
               [&](std::int64_t batch, std::int64_t m, std::int64_t begin, std::int64_t count, const std::int32_t* sums) {
                 const auto add = static_cast<std::uint32_t>(b != nullptr ? b[m] : 0);
                 const float scale = scales[static_cast<std::size_t>(m)];
                 std::uint8_t* to = out + (batch * channels + m) * plane + begin;
                 for (std::int64_t i = 0; i < count; ++i) {
                   const auto sum = static_cast<std::int32_t>(static_cast<std::uint32_t>(sums[i]) + add);
                   to[i] = static_cast<std::uint8_t>(requantize(static_cast<float>(sum) * scale, y_zero, range));
                 }
               });
  if (last) channels_last(first.data(), shape, static_cast<std::uint8_t*>(y.mutable_data()));
}

OpDef definition(const char* domain, int since) {
  OpDef def(domain, "QLinearConv", since);
  def.in("x", "T1", kBytes).in("x_scale", "", bit(DataType::float32)).in("x_zero_point", "T1", kBytes);
  def.in("w", "T2", kBytes).in("w_scale", "", bit(DataType::float32)).in("w_zero_point", "T2", kBytes);
  def.in("y_scale", "", bit(DataType::float32)).in("y_zero_point", "T3", kBytes);
  def.in("B", "", bit(DataType::int32), Arity::optional).out("y", "T3", kBytes);
  def.attrs<QLinearConvAttrs>();
  return def;
}

}  // namespace

void register_qlinear_conv(OpTable& t) {
  t.add(definition("", 10).infer_with(infer_qlinear_conv).run_with(run_qlinear_conv));
  t.add(definition("com.microsoft", 1).infer_with(infer_qlinear_conv).run_with(run_qlinear_conv));
}

}  // namespace sdx::ops
