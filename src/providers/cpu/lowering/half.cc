// Conv, Gemm and MatMul in float16 with constant weights: computed in float32, and rounded once at the end.
#include <algorithm>

#include "kernels/cpu/conv/plain/conv.h"
#include "kernels/cpu/elementwise/convert.h"
#include "kernels/cpu/gemm/gemm.h"
#include "ops/conv/signatures.h"
#include "ops/matrix/signatures.h"
#include "providers/cpu/conv_shape.h"
#include "providers/cpu/kernel_table.h"
#include "providers/cpu/packed.h"

namespace sdx::cpu {
namespace {

std::vector<float> widened(const Tensor& t) {
  std::vector<float> v(static_cast<std::size_t>(t.size()));
  half_to_f32(t.data(), v.data(), t.size());
  return v;
}

// Returns the number of floats that n elements take in whole cache lines of the workspace.
std::int64_t room(std::int64_t n) { return (n + 15) / 16 * 16; }

// The workspace holds x and then y as float32.
struct HalfState : KernelState {
  ConvShape shape;
  std::int64_t x = 0, y = 0;
};

std::unique_ptr<HalfState> half_state(ResolveContext& c) {
  auto state = std::make_unique<HalfState>();
  state->x = element_count(c.input_shape(0));
  state->y = element_count(c.output_shape(0));
  c.workspace_bytes = static_cast<std::size_t>(room(state->x) + room(state->y)) * sizeof(float);
  return state;
}

// Reads a constant vector of `count` float16 values, or nothing if the input is left out. False after a refusal.
bool read_bias(LowerContext& c, std::size_t i, std::int64_t count, std::vector<float>& bias) {
  if (!c.has_input(i)) return true;
  const Tensor* b = c.constant(i);
  if (b == nullptr || b->dtype() != DataType::float16 || b->size() != count || b->rank() < 1 || b->shape().back() != count) {
    return c.refuse("the bias is not a constant with one float16 for each channel or column"), false;
  }
  bias = widened(*b);
  return true;
}

class HalfConv : public Kernel {
 public:
  HalfConv(Attributes attrs, Shape weights, ConvAlgorithm algorithm, Packed packed, std::vector<float> bias)
      : attrs_(std::move(attrs)),
        weights_(std::move(weights)),
        algorithm_(algorithm),
        packed_(std::move(packed)),
        bias_(std::move(bias)) {}
  std::string_view name() const override { return "conv-f16-as-f32"; }
  bool uses_input(std::size_t i) const override { return i == 0; }
  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    auto state = half_state(c);
    state->shape = conv_shape(ops::conv_geometry(attrs_, c.input_shape(0), weights_));
    return state;
  }
  void run(const KernelContext& c) const override {
    const auto& s = *static_cast<const HalfState*>(c.state);
    if (s.y == 0) return;
    auto* x = static_cast<float*>(c.workspace);
    float* y = x + room(s.x);
    half_to_f32(c.input(0).data(), x, s.x);
    conv_f32(algorithm_, s.shape, x, packed_.data(), bias_.empty() ? nullptr : bias_.data(), nullptr, UnarySpec{}, y);
    f32_to_half(y, c.output(0).mutable_data(), s.y);
  }

 private:
  Attributes attrs_;
  Shape weights_;
  ConvAlgorithm algorithm_;
  Packed packed_;
  std::vector<float> bias_;
};

std::unique_ptr<Kernel> make_conv(LowerContext& c) {
  const Tensor* w = c.constant(1);
  if (c.dtype(0) != DataType::float16) return c.refuse("not float16");
  if (w == nullptr || w->dtype() != DataType::float16) return c.refuse("the weights are not constant float16");
  if (w->rank() < 3 || w->rank() > 5) return c.refuse("more than three or no spatial axes");
  if (ops::crops(c.attrs())) return c.refuse("pads that crop");
  const std::int64_t group = ops::group_of(c.attrs());
  if (w->size() == 0 || group < 1 || w->shape()[0] % group != 0)
    return c.refuse("weights that are empty or do not fit the groups");
  std::vector<float> bias;
  if (!read_bias(c, 2, w->shape()[0], bias)) return nullptr;
  const ConvShape packing = packing_shape(c.attrs(), w->shape(), false);
  const ConvAlgorithm algorithm =
      conv_supports(ConvAlgorithm::depthwise, packing) ? ConvAlgorithm::depthwise : ConvAlgorithm::gemm;
  Packed packed = c.pack({w}, conv_packed_bytes(algorithm, packing), cache::PackKey("half-conv", algorithm, packing),
                         [&](float* to) { conv_pack_f32(algorithm, packing, widened(*w).data(), to); });
  return std::make_unique<HalfConv>(c.attrs(), w->shape(), algorithm, std::move(packed), std::move(bias));
}

class HalfGemm : public Kernel {
 public:
  HalfGemm(std::int64_t k, std::int64_t n, Packed packed, std::vector<float> bias)
      : k_(k), n_(n), packed_(std::move(packed)), bias_(std::move(bias)) {}
  std::string_view name() const override { return "gemm-f16-as-f32"; }
  bool uses_input(std::size_t i) const override { return i == 0; }
  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override { return half_state(c); }
  void run(const KernelContext& c) const override {
    const auto& s = *static_cast<const HalfState*>(c.state);
    if (s.y == 0) return;
    if (c.input(0).shape().back() != k_) {
      fail(ErrorCode::runtime_failure, "a matrix product of {} and [{},{}]: inner extents differ", to_string(c.input(0).shape()),
           k_, n_);
    }
    auto* x = static_cast<float*>(c.workspace);
    half_to_f32(c.input(0).data(), x, s.x);
    GemmArgs g;
    g.m = s.x / k_;
    g.n = n_;
    g.k = k_;
    g.a = x;
    g.lda = k_;
    g.packed_b = packed_.data();
    g.c = x + room(s.x);
    g.ldc = n_;
    if (!bias_.empty()) g.epilogue.bias = bias_.data();
    gemm_f32(g);
    f32_to_half(g.c, c.output(0).mutable_data(), s.y);
  }

 private:
  std::int64_t k_, n_;
  Packed packed_;
  std::vector<float> bias_;
};

template <bool kGemm>
std::unique_ptr<Kernel> make_product(LowerContext& c) {
  const auto attr = ops::parse<ops::GemmAttrs>(c);
  if (c.dtype(0) != DataType::float16) return c.refuse("not float16");
  const SymShape* a = c.shape(0);
  if (a == nullptr || a->empty()) return c.refuse("A's rank is not known, or 0");
  if (kGemm && (c.node().version < 7 || a->size() != 2)) return c.refuse("opset before 7, or A is not a matrix");
  if (kGemm && (attr.trans_a || attr.beta != 1.0F)) {
    return c.refuse("A is transposed, or beta is not 1");
  }
  const Tensor* w = c.constant(1);
  if (w == nullptr || w->dtype() != DataType::float16 || w->rank() != 2 || w->size() == 0) {
    return c.refuse("the weights are not a constant matrix of float16");
  }
  const bool trans = kGemm && attr.trans_b;
  const std::int64_t k = w->shape()[trans ? 1 : 0], n = w->shape()[trans ? 0 : 1];
  std::vector<float> bias;
  if (kGemm && !read_bias(c, 2, n, bias)) return nullptr;
  const float alpha = kGemm ? attr.alpha : 1.0F;
  Packed packed = c.pack({w}, packed_b_bytes(k, n), cache::PackKey("half-gemm-b", trans, k, n, alpha),
                         [&](float* to) { pack_b_f32(widened(*w).data(), w->shape()[1], trans, k, n, alpha, to); });
  return std::make_unique<HalfGemm>(k, n, std::move(packed), std::move(bias));
}

}  // namespace

void register_kernels_half(KernelTable& t) {
  t.add("", "Conv", "conv-f16", 20, make_conv);
  t.add("", "MatMul", "gemm-f16", 20, make_product<false>);
  t.add("", "Gemm", "gemm-f16", 20, make_product<true>);
}

}  // namespace sdx::cpu
