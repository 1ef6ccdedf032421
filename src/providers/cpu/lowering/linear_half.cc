// sdx Linear in float32 with weights that stay 16 bits wide in memory; and products of bfloat16 tensors by the instructions for
// them.

#include "kernels/cpu/gemm/gemm_bf16.h"
#include "kernels/cpu/gemm/gemm_half.h"
#include "ops/matrix/signatures.h"
#include "providers/cpu/activation.h"
#include "providers/cpu/kernel_table.h"

namespace sdx::cpu {
namespace {

using enum ops::LinearIn::Slot;

class HalfLinearKernel : public Kernel {
 public:
  HalfLinearKernel(Packed packed, HalfType type, bool dots, std::int64_t k, std::int64_t n, UnarySpec act, bool in_place)
      : packed_(std::move(packed)), type_(type), dots_(dots), k_(k), n_(n), act_(act), in_place_(in_place) {}
  std::string_view name() const override {
    if (dots_) return "gemm-bf16-dots";
    return type_ == HalfType::float16 ? "gemm-f16-weights" : "gemm-bf16-weights";
  }
  bool uses_input(std::size_t i) const override { return i != 1; }
  int in_place() const override { return in_place_ ? 3 : -1; }

  void run(const KernelContext& c) const override {
    if (c.output(0).size() == 0) return;
    HalfGemmArgs g;
    g.m = c.output(0).size() / n_;
    g.n = g.ldc = n_;
    g.k = g.lda = k_;
    g.type = type_;
    g.a = c.in<float>(kX);
    g.packed = packed_.data();
    g.c = c.out<float>(0);
    if (c.has_input(kB)) g.bias = c.in<float>(kB);
    if (c.has_input(kZ)) {
      if (c.input(kZ).size() != c.output(0).size()) {
        fail(ErrorCode::runtime_failure, "Z must have the output's shape, received {}", c.input(kZ).type_string());
      }
      g.residual = c.in<float>(kZ);
      g.ld_residual = n_;
    }
    g.act = act_;
    dots_ ? bf16_gemm(g) : half_gemm(g);
  }

 private:
  Packed packed_;
  HalfType type_;
  bool dots_;
  std::int64_t k_, n_;
  UnarySpec act_;
  bool in_place_;
};

// Multiplies two bfloat16 tensors that come with each run, and that the graph has widened to float32.
class Bf16ProductKernel : public Kernel {
 public:
  Bf16ProductKernel(bool trans, UnarySpec act) : trans_(trans), act_(act) {}
  std::string_view name() const override { return "gemm-bf16-dots"; }

  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    const Shape w = c.input_shape(kW);
    c.workspace_bytes = bf16_packed_bytes(w[trans_ ? 1 : 0], w[trans_ ? 0 : 1]);
    return nullptr;
  }

  void run(const KernelContext& c) const override {
    if (c.output(0).size() == 0) return;
    const Tensor& w = c.input(kW);
    HalfGemmArgs g;
    g.n = g.ldc = w.dim(trans_ ? 0 : 1);
    g.k = g.lda = w.dim(trans_ ? 1 : 0);
    g.m = c.output(0).size() / g.n;
    g.type = HalfType::bfloat16;
    bf16_pack_rounded(c.in<float>(kW), w.dim(1), trans_, g.k, g.n, c.workspace);
    g.a = c.in<float>(kX);
    g.packed = c.workspace;
    g.c = c.out<float>(0);
    if (c.has_input(kB)) g.bias = c.in<float>(kB);
    g.act = act_;
    bf16_gemm(g);
  }

 private:
  bool trans_;
  UnarySpec act_;
};

std::unique_ptr<Kernel> make_bf16_product(LowerContext& c) {
  if (c.dtype(kX) != DataType::float32 || c.dtype(kW) != DataType::float32) return c.refuse("not float32");
  const SymShape *x = c.shape(kX), *w = c.shape(kW);
  if (c.has_input(kZ)) return c.refuse("more than a product and a bias");
  if (x == nullptr || x->empty() || w == nullptr || w->size() != 2) return c.refuse("ranks unknown, or W is not a matrix");
  const bool trans = ops::parse<ops::LinearAttrs>(c).trans_b;
  const SymShape* bias = c.shape(kB);
  if (c.has_input(kB) && (bias == nullptr || bias->size() != 1 || (*bias)[0] != (*w)[trans ? 0 : 1])) {
    return c.refuse("B is not known to have N elements");
  }
  const auto act = fused_activation(c.node());
  if (!act) return c.refuse("this activation cannot be fused");
  return std::make_unique<Bf16ProductKernel>(trans, *act);
}

// With `dots`, both operands are multiplied as bfloat16.
std::unique_ptr<Kernel> make(LowerContext& c, bool dots) {
  for (const std::size_t i : {0, 2, 3}) {
    if (c.has_input(i) && c.dtype(i) != DataType::float32) return c.refuse("not float32");
  }
  const Tensor* w = c.constant(kW);
  if (w == nullptr || w->rank() != 2 || w->size() == 0) return c.refuse("the weights are not a constant matrix");
  if (w->dtype() != DataType::float16 && w->dtype() != DataType::bfloat16) return c.refuse("the weights do not have 16 bits");
  if (c.shape(kX) == nullptr || c.shape(kX)->empty()) return c.refuse("rank unknown or 0");
  const auto act = fused_activation(c.node());
  if (!act) return c.refuse("this activation cannot be fused");
  const bool trans = ops::parse<ops::LinearAttrs>(c).trans_b;
  const std::int64_t k = w->dim(trans ? 1 : 0), n = w->dim(trans ? 0 : 1);
  // The kernel does not check these extents.
  const SymShape *bias = c.shape(kB), *z = c.shape(kZ);
  if (c.has_input(kB) && (bias == nullptr || bias->size() != 1 || !(*bias)[0].is_const() || (*bias)[0].value() != n)) {
    return c.refuse("B is not known to have N elements");
  }
  if (c.has_input(kZ) && (z == nullptr || !c.output(0).shape || *z != *c.output(0).shape)) {
    return c.refuse("Z is not known to have the output's shape");
  }
  Packed packed = c.pack({w}, dots ? bf16_packed_bytes(k, n) : half_packed_bytes(k, n),
                         cache::PackKey(dots ? "bf16-dots-b" : "half-b", trans, k, n),
                         [&](float* to) { (dots ? bf16_pack : half_pack)(w->data(), w->dim(1), trans, k, n, to); });
  const HalfType type = w->dtype() == DataType::float16 ? HalfType::float16 : HalfType::bfloat16;
  const bool in_place = c.has_input(kZ) && c.node().inputs[3] != c.node().inputs[0];
  return std::make_unique<HalfLinearKernel>(std::move(packed), type, dots, k, n, *act, in_place);
}

std::unique_ptr<Kernel> make_half_linear(LowerContext& c) { return make(c, false); }

std::unique_ptr<Kernel> make_bf16_linear(LowerContext& c) {
  const Tensor* w = c.constant(kW);
  if (!ops::parse<ops::LinearAttrs>(c).bfloat16 || (w != nullptr && w->dtype() != DataType::bfloat16)) {
    return c.refuse("the operands are not both bfloat16");
  }
  if (!has_bf16_dots()) return c.refuse("no dot products of bfloat16: AVX512-BF16, Arm's BF16");
  return w != nullptr ? make(c, true) : make_bf16_product(c);
}

}  // namespace

void register_kernels_linear_half(KernelTable& t) {
  t.add("sdx", "Linear", "gemm-bf16-dots", 15, make_bf16_linear);
  t.add("sdx", "Linear", "gemm-half-weights", 20, make_half_linear);
}

}  // namespace sdx::cpu
