// com.microsoft QLinearConv with the channels last and constant weights.

#include <algorithm>

#include "kernels/cpu/conv/int8/quant_nhwc.h"
#include "kernels/cpu/conv/int8/quant_nhwc_pack.h"
#include "ops/conv/signatures.h"
#include "ops/quant/signatures.h"
#include "providers/cpu/byte_operands.h"
#include "providers/cpu/conv_shape.h"

namespace sdx::cpu {
namespace {

struct ConvState : KernelState {
  ConvShape shape;
};

// Returns the shape [N, spatial..., C] as [N, C, spatial...].
Shape channels_first(Shape s) {
  std::rotate(s.begin() + 1, s.end() - 1, s.end());
  return s;
}

class NhwcConvKernel : public Kernel {
 public:
  NhwcConvKernel(const Attributes& attrs, Shape weights, Packed packed, bool wide, std::vector<float> scales,
                 std::vector<std::int32_t> bias)
      : attrs_(attrs),
        weights_(std::move(weights)),
        packed_(std::move(packed)),
        wide_(wide),
        scales_(std::move(scales)),
        bias_(std::move(bias)) {
    epilogue_.bias = bias_.empty() ? nullptr : bias_.data();
    epilogue_.scale = scales_.data();
    epilogue_.scale_is_array = true;
  }
  void set_types(bool x_signed, std::int32_t x_zero, DataType to, std::int32_t y_zero) {
    x_signed_ = x_signed;
    x_zero_ = x_zero;
    give_bytes(epilogue_, to, y_zero);
  }
  std::string_view name() const override { return "qlinear-conv-nhwc"; }
  bool uses_input(std::size_t i) const override { return i == 0; }
  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    const Shape x = c.input_shape(0);
    if (x.size() != weights_.size())
      fail(ErrorCode::runtime_failure, "X must have rank {}, received {}", weights_.size(), to_string(x));
    auto state = std::make_unique<ConvState>();
    state->shape = conv_shape(ops::conv_geometry(attrs_, channels_first(x), weights_));
    return state;
  }
  void run(const KernelContext& c) const override {
    if (c.output(0).size() == 0) return;
    qnhwc_conv(static_cast<const ConvState*>(c.state)->shape, c.input(0).data(), x_signed_, x_zero_, packed_.data(), wide_,
               epilogue_, c.output(0).mutable_data());
  }

 private:
  Attributes attrs_;
  Shape weights_;
  Packed packed_;
  bool wide_;
  std::vector<float> scales_;
  std::vector<std::int32_t> bias_;
  bool x_signed_ = false;
  std::int32_t x_zero_ = 0;
  QEpilogue epilogue_;
};

std::unique_ptr<Kernel> make_nhwc_conv(LowerContext& c) {
  if (!ops::parse<ops::QLinearConvAttrs>(c).channels_last) return c.refuse("channels first");
  const DataType to = c.output(0).elem;
  if (!is_byte(c.dtype(0)) || !is_byte(to) || c.dtype(7) != to) return c.refuse("not 8 bits");
  const Tensor* w = c.constant(3);
  if (w == nullptr) return c.refuse("the weights are not constant");
  if (!is_byte(w->dtype()) || w->rank() < 3 || w->rank() > 5) return c.refuse("more than three or no spatial axes");
  if (ops::crops(c.attrs())) return c.refuse("pads that crop");
  const std::int64_t group = ops::group_of(c.attrs());
  const std::int64_t channels = w->shape()[0];
  if (w->size() == 0 || group < 1 || channels % group != 0) return c.refuse("weights that are empty or do not fit the groups");
  const auto x_scale = constant_scales(c, 1), y_scale = constant_scales(c, 6), w_scale = constant_scales(c, 4, channels);
  const auto x_zero = constant_zeros(c, 2, c.dtype(0)), y_zero = constant_zeros(c, 7, to);
  const auto w_zero = constant_zeros(c, 5, w->dtype(), channels);
  if (!x_scale || !x_zero || !y_scale || !y_zero) return c.refuse("scales or zero points of x or y are not single constants");
  if (!w_scale || !w_zero) return c.refuse("those of the weights are not constant, or not one or one for each channel");
  std::vector<std::int32_t> bias;
  if (c.has_input(8)) {
    auto values = constant_values<std::int32_t>(c, 8, DataType::int32, channels);
    if (!values || static_cast<std::int64_t>(values->size()) != channels) return c.refuse("the bias is not constant");
    bias = std::move(*values);
  }
  // In the reference kernel's order of operations, so that both round alike.
  std::vector<float> scales(static_cast<std::size_t>(channels));
  for (std::size_t m = 0; m < scales.size(); ++m) {
    scales[m] = (*x_scale)[0] * (*w_scale)[w_scale->size() == 1 ? 0 : m] / (*y_scale)[0];
  }
  const ConvShape shape = packing_shape(c.attrs(), w->shape(), false);
  QWeights weights{w->data(), w->dtype() == DataType::int8, w_zero->data(), static_cast<std::int64_t>(w_zero->size())};
  // A zero point near the least value shows that hardly any activation is negative: then large codes are rare.
  weights.low_activations = (*x_zero)[0] - (c.dtype(0) == DataType::int8 ? -128 : 0) <= 32;
  weights.for_convolution = true;
  const bool wide = qnhwc_is_wide(shape, weights);
  const Tensor* zero = c.has_input(5) ? c.constant(5) : nullptr;
  Packed packed = c.pack({w, zero}, qnhwc_packed_bytes(shape, weights, wide),
                         cache::PackKey("qnhwc-11", shape, weights.is_signed, wide, qnhwc_order(shape, weights, wide)),
                         [&](float* to) { qnhwc_pack(shape, weights, wide, to); });
  auto kernel =
      std::make_unique<NhwcConvKernel>(c.attrs(), w->shape(), std::move(packed), wide, std::move(scales), std::move(bias));
  kernel->set_types(c.dtype(0) == DataType::int8, (*x_zero)[0], to, (*y_zero)[0]);
  return kernel;
}

}  // namespace

void register_kernels_qlinear_conv_nhwc(KernelTable& t) {
  t.add("com.microsoft", "QLinearConv", "qlinear-conv-nhwc", 9, make_nhwc_conv);
}

}  // namespace sdx::cpu
