// Conv, ConvTranspose and com.microsoft FusedConv in float32 with constant weights.

#include <algorithm>

#include "kernels/cpu/conv/plain/conv.h"
#include "kernels/cpu/conv/plain/conv_transpose.h"
#include "kernels/cpu/conv/plain/conv_transpose_phases.h"
#include "kernels/cpu/conv/plain/conv_transpose_tiles.h"

#include "ops/conv/signatures.h"
#include "providers/cpu/activation.h"
#include "providers/cpu/conv_shape.h"
#include "providers/cpu/denormals.h"
#include "providers/cpu/kernel_table.h"
#include "providers/cpu/packed.h"

namespace sdx::cpu {
namespace {

using enum ops::ConvIn::Slot;

struct ConvState : KernelState {
  ConvShape shape;
};

std::string_view algorithm_name(ConvAlgorithm algorithm) {
  switch (algorithm) {
    case ConvAlgorithm::gemm: return "conv-gemm-f32";
    case ConvAlgorithm::depthwise: return "conv-depthwise-f32";
    case ConvAlgorithm::pixel: return "conv-pixel-f32";
    case ConvAlgorithm::winograd2: return "conv-winograd2-f32";
    case ConvAlgorithm::winograd4: return "conv-winograd4-f32";
  }
  return "conv-f32";
}

class ConvKernel : public Kernel {
 public:
  ConvKernel(Attributes attrs, Shape weights, ConvAlgorithm algorithm, Packed packed, UnarySpec act)
      : attrs_(std::move(attrs)), weights_(std::move(weights)), algorithm_(algorithm), packed_(std::move(packed)), act_(act) {}

  std::string_view name() const override { return algorithm_name(algorithm_); }
  bool uses_input(std::size_t i) const override { return i != 1; }

  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    auto state = std::make_unique<ConvState>();
    state->shape = conv_shape(ops::conv_geometry(attrs_, c.input_shape(kX), weights_));
    return state;
  }

  void run(const KernelContext& c) const override {
    const ConvShape& shape = static_cast<const ConvState*>(c.state)->shape;
    if (c.output(0).size() == 0) return;
    if (c.has_input(kZ) && c.input(kZ).shape() != c.output(0).shape()) {
      fail(ErrorCode::runtime_failure, "Z must have the output's shape {}, received {}", to_string(c.output(0).shape()),
           to_string(c.input(kZ).shape()));
    }
    conv_f32(algorithm_, shape, c.in<float>(kX), packed_.data(), c.has_input(kB) ? c.in<float>(kB) : nullptr,
             c.has_input(kZ) ? c.in<float>(kZ) : nullptr, act_, c.out<float>(0));
  }

 private:
  Attributes attrs_;
  Shape weights_;
  ConvAlgorithm algorithm_;
  Packed packed_;
  UnarySpec act_;
};

// Returns the weights if the node meets what all makers of this file need; otherwise refuses, and returns null.
const Tensor* weights_of(LowerContext& c) {
  const Tensor* w = c.constant(kW);
  if (c.dtype(kX) != DataType::float32) return c.refuse("not float32"), nullptr;
  if (w == nullptr) return c.refuse("the weights are not constant"), nullptr;
  if (w->dtype() != DataType::float32) return c.refuse("weights are not float32"), nullptr;
  if (w->rank() < 3 || w->rank() > 5) return c.refuse("more than three or no spatial axes"), nullptr;
  if (ops::crops(c.attrs())) return c.refuse("pads that crop"), nullptr;
  const std::int64_t group = ops::group_of(c.attrs());
  if (w->size() == 0 || group < 1 || w->shape()[0] % group != 0)
    return c.refuse("weights that are empty or do not fit the groups"), nullptr;
  return w;
}

// Offers the algorithms to the clock, the cost model's choice first.
ConvAlgorithm choose(LowerContext& c, const ConvShape& packing, const Shape& w) {
  const SymShape* x = c.shape(kX);
  if (x != nullptr && all_const(*x)) {
    const ConvShape shape = conv_shape(ops::conv_geometry(c.attrs(), to_shape(*x), w));
    std::vector<ConvAlgorithm> able{conv_choose(shape)};
    for (const auto a : {ConvAlgorithm::gemm, ConvAlgorithm::depthwise, ConvAlgorithm::pixel, ConvAlgorithm::winograd2,
                         ConvAlgorithm::winograd4}) {
      if (a != able[0] && conv_supports(a, shape)) able.push_back(a);
    }
    std::vector<std::string_view> names;
    for (const ConvAlgorithm a : able) names.push_back(algorithm_name(a));
    return able[c.choose(std::move(names))];
  }
  // With unknown extents, the choice depends on nothing else. One input channel under many filters (a Fourier transform of sound)
  // is a product of matrices.
  const bool own_channels = packing.groups > 1 || packing.out_channels <= 16;
  return own_channels && conv_supports(ConvAlgorithm::depthwise, packing) ? ConvAlgorithm::depthwise : ConvAlgorithm::gemm;
}

std::unique_ptr<Kernel> make_conv(LowerContext& c) {
  const Tensor* w = weights_of(c);
  if (w == nullptr) return nullptr;
  const auto act = fused_activation(c.node());
  if (!act) return c.refuse("this activation cannot be fused");
  const ConvShape packing = packing_shape(c.attrs(), w->shape(), false);
  const ConvAlgorithm algorithm = choose(c, packing, w->shape());
  Packed packed = c.pack({w}, conv_packed_bytes(algorithm, packing), cache::PackKey("conv", algorithm, packing),
                         [&](float* to) { conv_pack_f32(algorithm, packing, without_denormals(*w).data(), to); });
  return std::make_unique<ConvKernel>(c.attrs(), w->shape(), algorithm, std::move(packed), *act);
}

// One way to compute a transposed convolution.
struct TransposeForm {
  std::string_view name;
  std::size_t (*packed_bytes)(const ConvShape&);
  void (*pack)(const ConvShape&, const void* weights, float* packed);
  std::size_t (*workspace_bytes)(const ConvShape&);
  void (*run)(const ConvShape&, const float* x, const float* packed, const float* bias, const UnarySpec&, float* y,
              void* workspace);
};
constexpr TransposeForm kProducts = {"conv-transpose-f32", conv_transpose_packed_bytes, conv_transpose_pack_f32,
                                     conv_transpose_workspace_bytes, conv_transpose_f32};
constexpr TransposeForm kPhases = {"conv-transpose-phases-f32", conv_transpose_phases_packed_bytes,
                                   conv_transpose_phases_pack_f32, conv_transpose_phases_workspace_bytes,
                                   conv_transpose_phases_f32};
constexpr TransposeForm kTiles = {"conv-transpose-winograd-f32", conv_transpose_tiles_packed_bytes, conv_transpose_tiles_pack_f32,
                                  conv_transpose_tiles_workspace_bytes, conv_transpose_tiles_f32};

class ConvTransposeKernel : public Kernel {
 public:
  ConvTransposeKernel(const TransposeForm& form, Attributes attrs, Shape weights, Packed packed)
      : form_(form), attrs_(std::move(attrs)), weights_(std::move(weights)), packed_(std::move(packed)) {}
  std::string_view name() const override { return form_.name; }
  bool uses_input(std::size_t i) const override { return i != 1; }
  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    auto state = std::make_unique<ConvState>();
    state->shape = conv_shape(ops::conv_transpose_geometry(attrs_, c.input_shape(kX), weights_));
    c.workspace_bytes = form_.workspace_bytes(state->shape);
    return state;
  }
  void run(const KernelContext& c) const override {
    if (c.output(0).size() == 0) return;
    form_.run(static_cast<const ConvState*>(c.state)->shape, c.in<float>(kX), packed_.data(),
              c.has_input(kB) ? c.in<float>(kB) : nullptr, UnarySpec{}, c.out<float>(0), c.workspace);
  }

 private:
  const TransposeForm& form_;
  Attributes attrs_;
  Shape weights_;
  Packed packed_;
};

// Tells whether phases compute more than a fifth in addition, because they read more pixels: so they do up to 25 pixels with a
// 4x4 kernel.
bool few_pixels(const SymShape* x, const ConvShape& packing) {
  if (x == nullptr || x->size() < 3 || x->size() > 5) return false;
  std::int64_t pixels = 1, read = 1;
  for (std::size_t i = 2; i < x->size(); ++i) {
    const Dim& d = (*x)[i];
    const std::size_t axis = 5 - x->size() + i - 2;
    if (!d.is_const()) return false;
    pixels *= d.value();
    read *= d.value() + packing.kernel[axis] / packing.stride[axis] - 1;
  }
  return 5 * read > 6 * pixels;
}

// Chooses the form, and sets the padding of `packing` if the packed weights depend on it. Tiles must suit the extents of each
// run, and do: only a given `output_shape` makes results that are no multiples of the input.
const TransposeForm& transpose_form(LowerContext& c, ConvShape& packing, const Shape& w) {
  const SymShape* x = c.shape(kX);
  if (x != nullptr && all_const(*x) && !c.attrs().has("output_shape")) {
    const ConvShape shape = conv_shape(ops::conv_transpose_geometry(c.attrs(), to_shape(*x), w));
    if (conv_transpose_suits_tiles(shape)) {
      std::copy_n(shape.pad, 3, packing.pad);
      return kTiles;
    }
  }
  return w.size() < 5 && conv_transpose_has_phases(packing) && !few_pixels(x, packing) ? kPhases : kProducts;
}

std::unique_ptr<Kernel> make_conv_transpose(LowerContext& c) {
  const Tensor* w = weights_of(c);
  if (w == nullptr) return nullptr;
  ConvShape packing = packing_shape(c.attrs(), w->shape(), true);
  const TransposeForm& form = transpose_form(c, packing, w->shape());
  Packed packed = c.pack({w}, form.packed_bytes(packing), cache::PackKey(form.name, packing),
                         [&](float* to) { form.pack(packing, without_denormals(*w).data(), to); });
  return std::make_unique<ConvTransposeKernel>(form, c.attrs(), w->shape(), std::move(packed));
}

}  // namespace

void register_kernels_conv(KernelTable& t) {
  t.add("", "Conv", "conv-f32", 10, make_conv);
  t.add("com.microsoft", "FusedConv", "conv-f32", 10, make_conv);
  t.add("", "ConvTranspose", "conv-transpose-f32", 10, make_conv_transpose);
}

}  // namespace sdx::cpu
