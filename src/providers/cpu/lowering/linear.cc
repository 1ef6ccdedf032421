// sdx Linear in float32: a product with packed weights. Applies bias, residual and activation to sums that are still in registers
// or in the first-level cache.

#include <cstdlib>
#include <string_view>

#include "base/system/amx.h"
#include "base/system/cpu_features.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/gemm/gemm_strassen.h"
#include "ops/matrix/signatures.h"
#include "providers/cpu/activation.h"
#include "providers/cpu/kernel_table.h"
#include "providers/cpu/late_packed.h"

namespace sdx::cpu {
namespace {

using enum ops::LinearIn::Slot;

class LinearKernel : public Kernel {
 public:
  LinearKernel(LateMatrix weights, std::int64_t k, std::int64_t n, UnarySpec act, bool in_place, bool strassen)
      : weights_(std::move(weights)), k_(k), n_(n), act_(act), in_place_(in_place) {
    if (strassen) columns_ = std::make_unique<StrassenColumns>(n);
  }
  std::string_view name() const override { return columns_ ? "gemm-strassen-f32" : "gemm-packed-f32"; }
  bool uses_input(std::size_t i) const override { return i != 1; }
  int in_place() const override { return in_place_ ? 3 : -1; }

  void run(const KernelContext& c) const override {
    if (c.output(0).size() == 0) return;
    GemmArgs g;
    g.m = c.output(0).size() / n_;
    g.n = n_;
    g.k = k_;
    g.a = c.in<float>(kX);
    g.lda = k_;
    g.c = c.out<float>(0);
    g.ldc = n_;
    if (c.has_input(kB)) g.epilogue.bias = c.in<float>(kB);
    if (c.has_input(kZ)) {
      if (c.input(kZ).size() != c.output(0).size()) {
        fail(ErrorCode::runtime_failure, "Z must have the output's shape, received {}", c.input(kZ).type_string());
      }
      g.epilogue.residual = c.in<float>(kZ);
      g.epilogue.ld_residual = n_;
    }
    g.epilogue.act = act_;
    weights_.multiply(g, [&] { columns_ ? gemm_strassen_f32(g, *columns_) : gemm_f32(g); });
  }

 private:
  LateMatrix weights_;
  std::int64_t k_, n_;
  UnarySpec act_;
  bool in_place_;
  std::unique_ptr<StrassenColumns> columns_;  // null: plain sums
};

const char* setting_of(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

// Returns the number of the left operand's rows, or 0 if it is unknown before a run.
std::int64_t rows_of(const SymShape& x) {
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < x.size(); ++i) {
    if (!x[i].is_const()) return 0;
    rows *= x[i].value();
  }
  return rows;
}

std::unique_ptr<Kernel> make(LowerContext& c, bool strassen) {
  for (std::size_t i = 0; i < 4; ++i) {
    if (c.has_input(i) && c.dtype(i) != DataType::float32) return c.refuse("not float32");
  }
  const Tensor* w = c.constant(kW);
  if (w == nullptr || w->rank() != 2 || w->size() == 0) return c.refuse("the weights are not a constant matrix");
  if (c.shape(kX) == nullptr || c.shape(kX)->empty()) return c.refuse("rank unknown or 0");
  const auto act = fused_activation(c.node());
  if (!act) return c.refuse("this activation cannot be fused");
  const bool trans = ops::parse<ops::LinearAttrs>(c).trans_b;
  const std::int64_t k = w->shape()[trans ? 1 : 0], n = w->shape()[trans ? 0 : 1];
  // The kernel does not check these extents.
  const SymShape* bias = c.shape(kB);
  if (c.has_input(kB) && (bias == nullptr || bias->size() != 1 || !(*bias)[0].is_const() || (*bias)[0].value() != n)) {
    return c.refuse("B is not known to have N elements");
  }
  const SymShape* z = c.shape(kZ);
  if (c.has_input(kZ) && (z == nullptr || !c.output(0).shape || *z != *c.output(0).shape)) {
    return c.refuse("Z is not known to have the output's shape");
  }
  if (strassen && std::string_view(setting_of("SDX_CPU_STRASSEN")) == "0") return c.refuse("SDX_CPU_STRASSEN is 0");
  if (strassen && cpu_isa() != Isa::avx2 && cpu_isa() != Isa::avx512) return c.refuse("it pays on AVX2 and AVX-512 only");
  if (strassen && use_amx_bf16()) return c.refuse("tiles of bfloat16 are faster");
  if (strassen && rows_of(*c.shape(kX)) == 0) return c.refuse("the number of rows is not known before a run");
  if (strassen && !strassen_fits(k, n)) return c.refuse("K does not divide into even blocks, or there are few columns");
  if (strassen && !strassen_pays(rows_of(*c.shape(kX)), k, n)) return c.refuse("the product is too small");
  const bool in_place = c.has_input(kZ) && c.node().inputs[3] != c.node().inputs[0];
  return std::make_unique<LinearKernel>(LateMatrix(c, *w, k, n, trans), k, n, *act, in_place, strassen);
}

std::unique_ptr<Kernel> make_linear(LowerContext& c) { return make(c, false); }
std::unique_ptr<Kernel> make_strassen(LowerContext& c) { return make(c, true); }

}  // namespace

void register_kernels_linear(KernelTable& t) {
  t.add("sdx", "Linear", "gemm-strassen-f32", 9, make_strassen);
  t.add("sdx", "Linear", "gemm-packed-f32", 10, make_linear);
}

}  // namespace sdx::cpu
