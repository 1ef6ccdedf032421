// Depthwise convolutions over [N, H, W, C] (ops/conv/channels_last.cc) in float32.

#include "kernels/cpu/channels_last/depthwise_last.h"

#include "ops/conv/signatures.h"
#include "providers/cpu/activation.h"
#include "providers/cpu/conv_shape.h"
#include "providers/cpu/denormals.h"
#include "providers/cpu/kernel_table.h"
#include "providers/cpu/packed.h"

namespace sdx::cpu {
namespace {

using enum ops::ConvIn::Slot;

struct LastState : KernelState {
  ConvShape shape;
};

class DepthwiseLastKernel : public Kernel {
 public:
  DepthwiseLastKernel(Attributes attrs, Shape weights, Packed packed, UnarySpec act)
      : attrs_(std::move(attrs)), weights_(std::move(weights)), packed_(std::move(packed)), act_(act) {}

  std::string_view name() const override { return "conv-channels-last-depthwise-f32"; }
  bool uses_input(std::size_t i) const override { return i != kW; }

  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    const Shape x = c.input_shape(kX);
    auto state = std::make_unique<LastState>();
    state->shape = conv_shape(ops::conv_geometry(attrs_, {x[0], x[3], x[1], x[2]}, weights_));
    return state;
  }

  void run(const KernelContext& c) const override {
    if (c.output(0).size() == 0) return;
    if (c.has_input(kZ) && c.input(kZ).shape() != c.output(0).shape()) {
      fail(ErrorCode::runtime_failure, "Z must have the output's shape {}, received {}", to_string(c.output(0).shape()),
           to_string(c.input(kZ).shape()));
    }
    depthwise_last_f32(static_cast<const LastState*>(c.state)->shape, c.in<float>(kX), packed_.data(),
                       c.has_input(kB) ? c.in<float>(kB) : nullptr, c.has_input(kZ) ? c.in<float>(kZ) : nullptr, act_,
                       c.out<float>(0));
  }

 private:
  Attributes attrs_;
  Shape weights_;
  Packed packed_;
  UnarySpec act_;
};

std::unique_ptr<Kernel> make_last(LowerContext& c) {
  const Tensor* w = c.constant(kW);
  if (w == nullptr || w->dtype() != DataType::float32 || w->rank() != 4 || w->size() == 0)
    return c.refuse("the weights are no constant float32 filters");
  if (c.shape(kX) == nullptr || c.shape(kX)->size() != 4) return c.refuse("not two spatial axes");
  const auto act = fused_activation(c.node());
  if (!act) return c.refuse("this activation cannot be fused");
  const ConvShape packing = packing_shape(c.attrs(), w->shape(), false);
  if (!depthwise_last_supports(packing)) return c.refuse("channels that share filters");
  Packed packed = c.pack({w}, depthwise_last_packed_bytes(packing), cache::PackKey("channels-last", packing),
                         [&](float* to) { depthwise_last_pack_f32(packing, without_denormals(*w).data(), to); });
  return std::make_unique<DepthwiseLastKernel>(c.attrs(), w->shape(), std::move(packed), *act);
}

}  // namespace

void register_kernels_channels_last(KernelTable& t) {
  t.add("sdx", "ChannelsLastConv", "conv-channels-last-depthwise-f32", 10, make_last);
}

}  // namespace sdx::cpu
