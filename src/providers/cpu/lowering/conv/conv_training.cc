// Conv, ConvTranspose and FusedConv in float32 whose weights are not constant, and com.microsoft ConvGrad.

#include "kernels/cpu/conv/plain/conv_transpose.h"
#include "kernels/cpu/conv/training/conv_dynamic_weights.h"
#include "kernels/cpu/conv/training/conv_grad_input.h"
#include "kernels/cpu/conv/training/conv_grad_weights.h"

#include "ops/conv/signatures.h"
#include "providers/cpu/activation.h"
#include "providers/cpu/conv_shape.h"
#include "providers/cpu/kernel_table.h"

namespace sdx::cpu {
namespace {

using enum ops::ConvIn::Slot;

// Tells whether weights at input `w` and images at input `x` suit these kernels; false after a refusal.
bool takes(LowerContext& c, std::size_t x, std::size_t w) {
  if (c.dtype(x) != DataType::float32 || c.dtype(w) != DataType::float32) return c.refuse("not float32"), false;
  const SymShape* shape = c.shape(w);
  if (shape == nullptr || shape->size() < 3 || shape->size() > 5)
    return c.refuse("not known to have one to three spatial axes"), false;
  if (ops::crops(c.attrs())) return c.refuse("pads that crop"), false;
  return true;
}

struct DynamicWeightsState : KernelState {
  DynamicWeightsConv plan;
};

class DynamicWeightsConvKernel : public Kernel {
 public:
  DynamicWeightsConvKernel(Attributes attrs, UnarySpec act) : attrs_(std::move(attrs)), act_(act) {}
  std::string_view name() const override { return "conv-dynamic-f32"; }
  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    auto state = std::make_unique<DynamicWeightsState>();
    state->plan = plan_dynamic_weights_conv(conv_shape(ops::conv_geometry(attrs_, c.input_shape(kX), c.input_shape(kW))));
    c.workspace_bytes = dynamic_weights_conv_workspace_bytes(state->plan);
    return state;
  }
  void run(const KernelContext& c) const override {
    if (c.output(0).size() == 0) return;
    dynamic_weights_conv_f32(static_cast<const DynamicWeightsState*>(c.state)->plan, c.in<float>(kX), c.in<float>(kW),
                             c.has_input(kB) ? c.in<float>(kB) : nullptr, act_, c.out<float>(0), c.workspace);
  }

 private:
  Attributes attrs_;
  UnarySpec act_;
};

std::unique_ptr<Kernel> make_dynamic(LowerContext& c) {
  if (!takes(c, kX, kW)) return nullptr;
  const auto act = fused_activation(c.node());
  if (!act) return c.refuse("this activation cannot be fused");
  if (c.has_input(kZ)) return c.refuse("Z and weights that are not constant");
  return std::make_unique<DynamicWeightsConvKernel>(c.attrs(), *act);
}

struct TransposeState : KernelState {
  ConvShape shape;
  std::size_t packed = 0;  // floats
};

class DynamicTransposeKernel : public Kernel {
 public:
  explicit DynamicTransposeKernel(Attributes attrs) : attrs_(std::move(attrs)) {}
  std::string_view name() const override { return "conv-transpose-dynamic-f32"; }
  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    constexpr std::size_t kLine = 64;  // bytes
    auto state = std::make_unique<TransposeState>();
    state->shape = conv_shape(ops::conv_transpose_geometry(attrs_, c.input_shape(kX), c.input_shape(kW)));
    const std::size_t bytes = (conv_transpose_packed_bytes(state->shape) + kLine - 1) / kLine * kLine;
    state->packed = bytes / sizeof(float);
    c.workspace_bytes = bytes + conv_transpose_workspace_bytes(state->shape);
    return state;
  }
  void run(const KernelContext& c) const override {
    if (c.output(0).size() == 0) return;
    const auto& s = *static_cast<const TransposeState*>(c.state);
    auto* const packed = static_cast<float*>(c.workspace);
    conv_transpose_pack_f32(s.shape, c.in<float>(kW), packed);
    conv_transpose_f32(s.shape, c.in<float>(kX), packed, c.has_input(kB) ? c.in<float>(kB) : nullptr, UnarySpec{},
                       c.out<float>(0), packed + s.packed);
  }

 private:
  Attributes attrs_;
};

std::unique_ptr<Kernel> make_dynamic_transpose(LowerContext& c) {
  if (!takes(c, kX, kW)) return nullptr;
  return std::make_unique<DynamicTransposeKernel>(c.attrs());
}

// --- ConvGrad: dY, X, W to dX, dW, dB ------------------------------------------------------------------------------------------

struct GradState : KernelState {
  ConvShape shape;
  ConvGradInput input;
  ConvGradWeights weights;
};

class ConvGradKernel : public Kernel {
 public:
  explicit ConvGradKernel(Attributes attrs) : attrs_(std::move(attrs)) {}
  std::string_view name() const override { return "conv-grad-f32"; }
  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    auto state = std::make_unique<GradState>();
    const ops::ConvGeometry g = ops::conv_geometry(attrs_, c.input_shape(1), c.input_shape(2));
    if (c.input_shape(0) != g.output_shape()) {
      fail(ErrorCode::runtime_failure, "dY must have the convolution's shape {}, received {}", to_string(g.output_shape()),
           to_string(c.input_shape(0)));
    }
    state->shape = conv_shape(g);
    state->input = plan_conv_grad_input(state->shape);
    state->weights = plan_conv_grad_weights(state->shape);
    if (!conv_grad_weights_supports(state->shape))
      fail(ErrorCode::runtime_failure, "pads, dilations or strides that are far too large");
    const auto wants = [&](std::size_t i) { return i < c.outputs.size() && c.outputs[i] != nullptr; };
    if (wants(0)) c.workspace_bytes = conv_grad_input_workspace_bytes(state->input);
    if (wants(1)) c.workspace_bytes = std::max(c.workspace_bytes, conv_grad_weights_workspace_bytes(state->weights));
    const auto planes = static_cast<std::size_t>(state->shape.batch * state->shape.out_channels);
    if (wants(2)) c.workspace_bytes = std::max(c.workspace_bytes, planes * sizeof(float));
    return state;
  }
  void run(const KernelContext& c) const override {
    const auto& s = *static_cast<const GradState*>(c.state);
    const auto* dy = c.in<float>(0);
    if (c.has_output(0) && c.output(0).size() > 0) {
      auto* dx = c.out<float>(0);
      if (c.input(0).size() == 0) {
        std::fill_n(dx, c.output(0).size(), 0.0F);
      } else {
        conv_grad_input_f32(s.input, dy, c.in<float>(2), dx, c.workspace);
      }
    }
    if (c.has_output(1)) conv_grad_weights_f32(s.weights, c.in<float>(1), dy, c.out<float>(1), c.workspace);
    if (c.has_output(2)) conv_grad_bias_f32(s.shape, dy, c.out<float>(2), c.workspace);
  }

 private:
  Attributes attrs_;
};

// Checks the limits of windows that do not depend on extents; conv_grad_weights_supports() checks the others.
bool usual(const ops::WindowAttrs& w) {
  constexpr std::int64_t kMost = std::int64_t{1} << 20;
  for (std::size_t i = 0; i < w.kernel.size(); ++i) {
    if ((w.kernel[i] - 1) * w.dilations[i] > kMost || w.strides[i] > kMost) return false;
    if (std::min(w.strides[i], (w.kernel[i] - 1) * w.dilations[i] + 1) > 64) return false;
  }
  return true;
}

std::unique_ptr<Kernel> make_grad(LowerContext& c) {
  if (!takes(c, 0, 2)) return nullptr;
  if (c.dtype(1) != DataType::float32) return c.refuse("not float32");
  const SymShape& w = *c.shape(2);
  const SymShape* x = c.shape(1);
  if (w.size() > 4 || !all_const(w)) return c.refuse("more than two spatial axes, or a kernel that is not known");
  if (x == nullptr || !all_const(*x)) return c.refuse("extents are not known");
  const Shape kernel = to_shape(w);
  const ops::WindowAttrs window = ops::read_window_attrs(c.attrs(), kernel.size() - 2, {kernel.begin() + 2, kernel.end()});
  if (!usual(window)) return c.refuse("windows or strides that are far too large");
  const ConvShape shape = conv_shape(ops::conv_geometry(c.attrs(), to_shape(*x), kernel));
  if (!conv_grad_weights_supports(shape)) return c.refuse("pads that are far too large");
  return std::make_unique<ConvGradKernel>(c.attrs());
}

}  // namespace

void register_kernels_conv_training(KernelTable& t) {
  t.add("", "Conv", "conv-dynamic-f32", 20, make_dynamic);
  t.add("com.microsoft", "FusedConv", "conv-dynamic-f32", 20, make_dynamic);
  t.add("", "ConvTranspose", "conv-transpose-dynamic-f32", 20, make_dynamic_transpose);
  t.add("com.microsoft", "ConvGrad", "conv-grad-f32", 10, make_grad);
}

}  // namespace sdx::cpu
