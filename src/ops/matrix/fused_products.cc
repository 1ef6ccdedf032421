// com.microsoft 1: FusedGemm, GemmFastGelu, FusedMatMul (TransposeMatMul), FusedMatMulActivation, SparseToDenseMatMul.

#include <cmath>

#include "ops/context.h"
#include "ops/math/float_view.h"
#include "ops/math/fused_activation.h"
#include "ops/matrix/gemm_common.h"
#include "ops/matrix/matmul_reference.h"
#include "ops/matrix/signatures.h"
#include "ops/op.h"
#include "ops/tensor/axes.h"

namespace sdx::ops {
namespace {

// --- FusedGemm -----------------------------------------------------------------------------------------------------------

void infer_fused_gemm(InferContext& c) {
  read_fused_activation(c.node());
  infer_gemm(c);
}

void run_fused_gemm(OpContext& c) { apply_fused_activation(read_fused_activation(c.node()), run_gemm(c)); }

// --- FusedMatMul ---------------------------------------------------------------------------------------------------------

// transBatch: the operand is stored [rows, batch..., cols] instead of [batch..., rows, cols].
template <class S>
S with_batch_first(const S& s, bool moved) {
  if (!moved || s.size() < 3) return s;
  S out(s.begin() + 1, s.end() - 1);
  out.push_back(s.front());
  out.push_back(s.back());
  return out;
}

Tensor move_batch(const Tensor& in, bool moved) {
  if (!moved || in.rank() < 3) return in;
  Tensor out(in.dtype(), with_batch_first(in.shape(), true));
  const std::int64_t rows = in.dim(0);
  const std::int64_t batch = product(in.shape(), 1, in.rank() - 1);
  const std::size_t line = byte_size(in.dtype(), in.dim(in.rank() - 1));
  const auto* from = static_cast<const unsigned char*>(in.data());
  auto* to = static_cast<unsigned char*>(out.mutable_data());
  if (in.size() == 0) return out;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t b = 0; b < batch; ++b) {
      std::copy_n(from + static_cast<std::size_t>(r * batch + b) * line, line,
                  to + static_cast<std::size_t>(b * rows + r) * line);
    }
  }
  return out;
}

void infer_fused_matmul(InferContext& c) {
  read_fused_activation(c.node());
  const auto a = parse<FusedMatMulAttrs>(c);
  const SymShape* left = c.shape(0);
  const SymShape* right = c.shape(1);
  if (left == nullptr || right == nullptr) return c.output(0, c.dtype(0));
  c.output(
      0, c.dtype(0),
      matmul_shape(with_batch_first(*left, a.trans_batch_a), with_batch_first(*right, a.trans_batch_b), a.trans_a, a.trans_b));
}

void run_fused_matmul(OpContext& c) {
  const auto a = parse<FusedMatMulAttrs>(c);
  const Tensor left = move_batch(c.input(0), a.trans_batch_a);
  const Tensor right = move_batch(c.input(1), a.trans_batch_b);
  const MatMulPlan plan = matmul_plan(left.shape(), right.shape(), a.trans_a, a.trans_b);
  Tensor& y = c.output(0, left.dtype(), plan.output);
  matmul_reference(plan, left, right, y, c.stop(), a.trans_a, a.trans_b, a.alpha);
  apply_fused_activation(read_fused_activation(c.node()), y);
}

// --- SparseToDenseMatMul: A is sparse in the file, and dense here ------------------------------------------------------------

struct SparseMatMulAttrs {
  float alpha = 1;
  bool trans_a = false, trans_b = false;

  void fields(auto& f) {
    f("alpha", alpha);
    f("transA", trans_a);
    f("transB", trans_b);
  }
};

void infer_sparse_matmul(InferContext& c) {
  const auto a = parse<SparseMatMulAttrs>(c);
  const SymShape* left = c.shape(0);
  const SymShape* right = c.shape(1);
  if (left == nullptr || right == nullptr) return c.output(0, c.dtype(1));
  c.output(0, c.dtype(1), matmul_shape(*left, *right, a.trans_a, a.trans_b));
}

void run_sparse_matmul(OpContext& c) {
  const auto a = parse<SparseMatMulAttrs>(c);
  const MatMulPlan plan = matmul_plan(c.input(0).shape(), c.input(1).shape(), a.trans_a, a.trans_b);
  Tensor& y = c.output(0, c.input(1).dtype(), plan.output);
  matmul_reference(plan, c.input(0), c.input(1), y, c.stop(), a.trans_a, a.trans_b, a.alpha);
}

// --- GemmFastGelu: Y = FastGelu(X x W + bias) ----------------------------------------------------------------------------

void infer_gemm_fast_gelu(InferContext& c) {
  const SymShape* x = c.shape(0);
  const SymShape* w = c.shape(1);
  if (x == nullptr || w == nullptr) return c.output(0, c.dtype(0));
  c.output(0, c.dtype(0), matmul_shape(*x, *w));
}

void run_gemm_fast_gelu(OpContext& c) {
  const Tensor& x = c.input(0);
  const MatMulPlan plan = matmul_plan(x.shape(), c.input(1).shape());
  const Tensor* bias = c.optional_input(2);
  if (bias != nullptr && bias->size() != plan.n)
    c.fail("the bias must have shape [{}], received {}", plan.n, to_string(bias->shape()));
  Tensor& y = c.output(0, x.dtype(), plan.output);
  matmul_reference(plan, x, c.input(1), y, c.stop());
  dispatch_compute(y.dtype(), "GemmFastGelu", [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> in(y), add(bias);
    FloatOutput<C> out(y);
    for (std::int64_t i = 0; i < y.size(); ++i) {
      const C v = in[i] + (add ? add[i % plan.n] : C(0));
      // Hendrycks and Gimpel 2016: sqrt(2/pi) and 0.044715.
      out[i] = C(0.5) * v * (C(1) + std::tanh(C(0.7978845608028654) * (v + C(0.044715) * v * v * v)));
    }
    out.store();
  });
}

constexpr TypeSet kSparseProducts =
    set_of(DataType::float32, DataType::float64, DataType::int32, DataType::int64, DataType::uint32, DataType::uint64);

OpDef def(const char* name) { return OpDef("com.microsoft", name, 1); }

OpDef matmul_def(const char* name) {
  return def(name)
      .in("A B", "T", types::floats)
      .out("Y", "T", types::floats)
      .attrs<FusedMatMulAttrs>()
      .infer_with(infer_fused_matmul)
      .run_with(run_fused_matmul);
}

}  // namespace

void register_fused_products(OpTable& t) {
  t.add(def("FusedGemm")
            .in("A B", "T", types::floats)
            .in("C", "T", types::floats, Arity::optional)
            .out("Y", "T", types::floats)
            .attrs<GemmAttrs>()
            .attrs<FusedActivationFields>()
            .infer_with(infer_fused_gemm)
            .run_with(run_fused_gemm));
  t.add(matmul_def("FusedMatMul"));
  t.add(matmul_def("TransposeMatMul"));  // the older name
  t.add(matmul_def("FusedMatMulActivation").attrs<FusedActivationFields>());
  t.add(def("SparseToDenseMatMul")
            .in("A B", "T", kSparseProducts)
            .out("Y", "T", kSparseProducts)
            .attrs<SparseMatMulAttrs>()
            .infer_with(infer_sparse_matmul)
            .run_with(run_sparse_matmul));
  t.add(def("GemmFastGelu")
            .in("X W", "T", types::floats)
            .in("bias", "T", types::floats, Arity::optional)
            .out("Y", "T", types::floats)
            .infer_with(infer_gemm_fast_gelu)
            .run_with(run_gemm_fast_gelu));
}

}  // namespace sdx::ops
