// QLinearConv and ConvInteger with constant weights.

#include <algorithm>

#include "ops/conv/signatures.h"
#include "ops/quant/signatures.h"
#include "providers/cpu/byte_operands.h"
#include "providers/cpu/conv_shape.h"

namespace sdx::cpu {
namespace {

struct ConvState : KernelState {
  ConvShape shape;
};

struct ByteFilters {
  Attributes attrs;
  Shape shape;
  Packed packed;
};

// Returns the weights of input i, or nothing after a refusal.
std::optional<ByteFilters> filters_of(LowerContext& c, std::size_t i, std::size_t zero_input) {
  const auto refuse = [&](const char* why) {
    c.refuse(why);
    return std::nullopt;
  };
  const Tensor* w = c.constant(i);
  if (!is_byte(c.dtype(0))) return refuse("not 8 bits");
  if (ops::parse<ops::QLinearConvAttrs>(c).channels_last) return refuse("channels last");
  if (w == nullptr) return refuse("the weights are not constant");
  if (!is_byte(w->dtype()) || w->rank() < 3 || w->rank() > 5) return refuse("more than three or no spatial axes");
  if (ops::crops(c.attrs())) return refuse("pads that crop");
  const std::int64_t group = ops::group_of(c.attrs());
  const std::int64_t channels = w->shape()[0];
  if (w->size() == 0 || group < 1 || channels % group != 0) return refuse("weights that are empty or do not fit the groups");
  const auto zeros = constant_zeros(c, zero_input, w->dtype(), channels);
  if (!zeros) return refuse("the weights' zero points are not constant, or not one or one for each channel");
  const ConvShape packing = packing_shape(c.attrs(), w->shape(), false);
  const bool is_signed = w->dtype() == DataType::int8;
  const Tensor* zero = c.has_input(zero_input) ? c.constant(zero_input) : nullptr;
  Packed packed = c.pack({w, zero}, qconv_packed_bytes(packing), cache::PackKey("qconv", packing, is_signed), [&](float* to) {
    qconv_pack(packing, w->data(), is_signed, zeros->data(), static_cast<std::int64_t>(zeros->size()), to);
  });
  return ByteFilters{c.attrs(), w->shape(), std::move(packed)};
}

class QLinearConvKernel : public Kernel {
 public:
  QLinearConvKernel(ByteFilters filters, bool x_signed, std::int32_t x_zero, std::vector<float> scales,
                    std::vector<std::int32_t> bias, DataType to, std::int32_t y_zero)
      : filters_(std::move(filters)), x_signed_(x_signed), x_zero_(x_zero), scales_(std::move(scales)), bias_(std::move(bias)) {
    give_bytes(epilogue_, to, y_zero);
    epilogue_.per_row = true;
    epilogue_.bias = bias_.empty() ? nullptr : bias_.data();
    epilogue_.scale = scales_.data();
    epilogue_.scale_is_array = true;
  }
  std::string_view name() const override { return "qlinear-conv-8"; }
  bool uses_input(std::size_t i) const override { return i == 0; }
  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    auto state = std::make_unique<ConvState>();
    state->shape = conv_shape(ops::conv_geometry(filters_.attrs, c.input_shape(0), filters_.shape));
    return state;
  }
  void run(const KernelContext& c) const override {
    if (c.output(0).size() == 0) return;
    qconv(static_cast<const ConvState*>(c.state)->shape, c.input(0).data(), x_signed_, x_zero_, filters_.packed.data(), epilogue_,
          c.output(0).mutable_data());
  }

 private:
  ByteFilters filters_;
  bool x_signed_;
  std::int32_t x_zero_;
  std::vector<float> scales_;
  std::vector<std::int32_t> bias_;
  QEpilogue epilogue_;
};

std::unique_ptr<Kernel> make_qlinear_conv(LowerContext& c) {
  const DataType to = c.output(0).elem;
  if (!is_byte(to) || c.dtype(7) != to) return c.refuse("the result does not have 8 bits");
  const auto x_scale = constant_scales(c, 1), y_scale = constant_scales(c, 6);
  const auto x_zero = constant_zeros(c, 2, c.dtype(0)), y_zero = constant_zeros(c, 7, to);
  if (!x_scale || !x_zero || !y_scale || !y_zero) return c.refuse("scales or zero points of x or y are not single constants");
  const std::int64_t channels = c.constant(3) != nullptr && c.constant(3)->rank() > 0 ? c.constant(3)->shape()[0] : 0;
  const auto w_scale = constant_scales(c, 4, channels);
  if (!w_scale) return c.refuse("w_scale is not constant, or not one or one for each channel");
  std::vector<std::int32_t> bias;
  if (c.has_input(8)) {
    auto values = constant_values<std::int32_t>(c, 8, DataType::int32, channels);
    if (!values || static_cast<std::int64_t>(values->size()) != channels) return c.refuse("the bias is not constant");
    bias = std::move(*values);
  }
  auto filters = filters_of(c, 3, 5);
  if (!filters) return nullptr;
  // In the reference kernel's order of operations, so that both round alike.
  std::vector<float> scales(static_cast<std::size_t>(channels));
  for (std::size_t m = 0; m < scales.size(); ++m) {
    scales[m] = (*x_scale)[0] * (*w_scale)[w_scale->size() == 1 ? 0 : m] / (*y_scale)[0];
  }
  return std::make_unique<QLinearConvKernel>(std::move(*filters), c.dtype(0) == DataType::int8, (*x_zero)[0], std::move(scales),
                                             std::move(bias), to, (*y_zero)[0]);
}

class ConvIntegerKernel : public Kernel {
 public:
  explicit ConvIntegerKernel(ByteFilters filters) : filters_(std::move(filters)) {}
  std::string_view name() const override { return "conv-integer-8"; }
  bool uses_input(std::size_t i) const override { return i == 0 || i == 2; }
  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    auto state = std::make_unique<ConvState>();
    state->shape = conv_shape(ops::conv_geometry(filters_.attrs, c.input_shape(0), filters_.shape));
    return state;
  }
  void run(const KernelContext& c) const override {
    if (c.output(0).size() == 0) return;
    QEpilogue epilogue;
    epilogue.per_row = true;
    qconv(static_cast<const ConvState*>(c.state)->shape, c.input(0).data(), c.input(0).dtype() == DataType::int8,
          c.has_input(2) ? byte_value(c.input(2)) : 0, filters_.packed.data(), epilogue, c.output(0).mutable_data());
  }

 private:
  ByteFilters filters_;
};

std::unique_ptr<Kernel> make_conv_integer(LowerContext& c) {
  if (c.has_input(2) && !is_single(c, 2)) return c.refuse("x_zero_point is not known to be one number");
  auto filters = filters_of(c, 1, 3);
  if (!filters) return nullptr;
  return std::make_unique<ConvIntegerKernel>(std::move(*filters));
}

}  // namespace

void register_kernels_qlinear_conv(KernelTable& t) {
  for (const char* domain : {"", "com.microsoft"}) t.add(domain, "QLinearConv", "qlinear-conv-8", 10, make_qlinear_conv);
  t.add("", "ConvInteger", "conv-integer-8", 10, make_conv_integer);
}

}  // namespace sdx::cpu
