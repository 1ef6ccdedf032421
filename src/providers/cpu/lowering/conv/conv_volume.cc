// Conv and com.microsoft FusedConv of volumes in float32, with constant weights and bias.

#include "kernels/cpu/conv/volume/conv_volume.h"

#include <algorithm>

#include "ops/conv/signatures.h"
#include "providers/cpu/activation.h"
#include "providers/cpu/conv_shape.h"
#include "providers/cpu/denormals.h"
#include "providers/cpu/kernel_table.h"
#include "providers/cpu/packed.h"

namespace sdx::cpu {
namespace {

using enum ops::ConvIn::Slot;

struct VolumeState : KernelState {
  ConvShape shape;
};

class VolumeKernel : public Kernel {
 public:
  VolumeKernel(Attributes attrs, Shape weights, BlockedConv algorithm, Packed packed, UnarySpec act)
      : attrs_(std::move(attrs)), weights_(std::move(weights)), algorithm_(algorithm), packed_(std::move(packed)), act_(act) {}
  std::string_view name() const override { return "conv-volume-f32"; }
  bool uses_input(std::size_t i) const override { return i != kW && i != kB; }

  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    auto state = std::make_unique<VolumeState>();
    state->shape = conv_shape(ops::conv_geometry(attrs_, c.input_shape(kX), weights_));
    c.workspace_bytes = conv_volume_workspace_bytes(algorithm_, state->shape);
    return state;
  }

  void run(const KernelContext& c) const override {
    if (c.output(0).size() == 0) return;
    if (c.has_input(kZ) && c.input(kZ).shape() != c.output(0).shape()) {
      fail(ErrorCode::runtime_failure, "Z must have the output's shape {}, received {}", to_string(c.output(0).shape()),
           to_string(c.input(kZ).shape()));
    }
    conv_volume_f32(algorithm_, static_cast<const VolumeState*>(c.state)->shape, c.in<float>(kX), packed_.data(),
                    c.has_input(kZ) ? c.in<float>(kZ) : nullptr, act_, c.out<float>(0), c.workspace);
  }

 private:
  Attributes attrs_;
  Shape weights_;
  BlockedConv algorithm_;
  Packed packed_;
  UnarySpec act_;
};

// Returns the shape for which the algorithm is chosen: unknown extents are taken to be a small volume's.
ConvShape likely_shape(const LowerContext& c, const ConvShape& packing, const Shape& w) {
  if (const SymShape* x = c.shape(kX); x != nullptr && all_const(*x)) {
    return conv_shape(ops::conv_geometry(c.attrs(), to_shape(*x), w));
  }
  constexpr std::int64_t kExtent = 32;
  ConvShape s = packing;
  std::fill(s.in, s.in + 3, kExtent);
  for (int i = 0; i < 3; ++i) s.out[i] = kExtent / s.stride[i];
  return s;
}

std::unique_ptr<Kernel> make_volume(LowerContext& c) {
  const Tensor *w = c.constant(kW), *bias = c.constant(kB);
  if (c.dtype(kX) != DataType::float32 || w == nullptr || w->dtype() != DataType::float32)
    return c.refuse("not float32 with constant weights");
  if (w->rank() != 5 || w->size() == 0) return c.refuse("no volumes");
  if (ops::crops(c.attrs())) return c.refuse("pads that crop");
  if (c.has_input(kB) && (bias == nullptr || bias->dtype() != DataType::float32 || bias->size() != w->shape()[0]))
    return c.refuse("the bias is not constant");
  const auto act = fused_activation(c.node());
  if (!act) return c.refuse("this activation cannot be fused");
  if (ops::group_of(c.attrs()) != 1) return c.refuse("several groups");
  const ConvShape packing = packing_shape(c.attrs(), w->shape(), false), shape = likely_shape(c, packing, w->shape());
  if (!conv_volume_suits(shape)) return c.refuse("windows or channels that do not suit planes");
  const BlockedConv algorithm = conv_volume_choose(shape);
  Packed packed = c.pack(
      {w, bias}, conv_volume_packed_bytes(algorithm, packing), cache::PackKey("conv-volume", algorithm, packing), [&](float* to) {
        const Tensor filters = without_denormals(*w), added = bias == nullptr ? Tensor() : without_denormals(*bias);
        conv_volume_pack(algorithm, packing, filters.data(), bias != nullptr ? added.values<float>().data() : nullptr, to);
      });
  return std::make_unique<VolumeKernel>(c.attrs(), w->shape(), algorithm, std::move(packed), *act);
}

}  // namespace

void register_kernels_conv_volume(KernelTable& t) {
  t.add("", "Conv", "conv-volume-f32", 5, make_volume);
  t.add("com.microsoft", "FusedConv", "conv-volume-f32", 5, make_volume);
}

}  // namespace sdx::cpu
