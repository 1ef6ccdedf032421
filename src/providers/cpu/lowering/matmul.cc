// MatMul, Gemm (opset 7 on), com.microsoft FusedGemm and FusedMatMul in float32; MatMul and Gemm in float64 and integers.

#include <algorithm>

#include "kernels/cpu/elements/elementwise.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/gemm/products.h"
#include "ops/matrix/signatures.h"
#include "ops/tensor/axes.h"
#include "providers/cpu/activation.h"
#include "providers/cpu/broadcast.h"
#include "providers/cpu/kernel_table.h"
#include "providers/cpu/late_packed.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kMaxRank = 8;

struct MatMulState : KernelState {
  GemmArgs args;
  std::int64_t batch = 1;
  std::vector<std::int64_t> a_offsets, b_offsets, c_offsets;
};

// Computes where the operands of each product begin when the leading axes broadcast as in NumPy.
void batch_offsets(const Shape& a, const Shape& b, MatMulState& s) {
  const Shape a_lead(a.begin(), a.end() - 2), b_lead(b.begin(), b.end() - 2);
  const std::size_t rank = std::max(a_lead.size(), b_lead.size());
  Shape out(rank, 1);
  const auto extent = [&](const Shape& lead, std::size_t i) {
    const std::size_t pad = rank - lead.size();
    return i < pad ? std::int64_t{1} : lead[i - pad];
  };
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t x = extent(a_lead, i), y = extent(b_lead, i);
    out[i] = x == 1 ? y : x;
    s.batch *= out[i];
  }
  const std::int64_t a_size = a[a.size() - 2] * a.back(), b_size = b[b.size() - 2] * b.back();
  for (std::int64_t n = 0; n < s.batch; ++n) {
    std::int64_t rest = n, at_a = 0, at_b = 0, step_a = a_size, step_b = b_size;
    for (std::size_t i = rank; i-- > 0;) {
      const std::int64_t index = rest % out[i];
      rest /= out[i];
      const std::int64_t x = extent(a_lead, i), y = extent(b_lead, i);
      if (x != 1) at_a += index * step_a;
      if (y != 1) at_b += index * step_b;
      step_a *= x;
      step_b *= y;
    }
    s.a_offsets.push_back(at_a);
    s.b_offsets.push_back(at_b);
    s.c_offsets.push_back(n * s.args.m * s.args.n);
  }
}

// Turns the operands of MatMul into stacks of matrices: a vector is a row on the left and a column on the right. All rows of a
// batched left operand and one right operand form a single product.
void as_stacks(Shape& a, Shape& b) {
  if (a.size() == 1) a.insert(a.begin(), 1);
  if (b.size() == 1) b.push_back(1);
  if (b.size() == 2 && a.size() > 2) a = {ops::product(a, 0, a.size() - 1), a.back()};
}

class MatMulKernel : public Kernel {
 public:
  MatMulKernel(LateMatrix weights, Shape shape) : weights_(std::move(weights)), shape_(std::move(shape)) {}
  std::string_view name() const override { return weights_ ? "gemm-packed-f32" : "gemm-f32"; }
  bool uses_input(std::size_t i) const override { return i != 1 || !weights_; }

  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    auto state = std::make_unique<MatMulState>();
    Shape a = c.input_shape(0), b = weights_ ? shape_ : c.input_shape(1);
    as_stacks(a, b);
    GemmArgs& g = state->args;
    g.m = a[a.size() - 2];
    g.k = a.back();
    g.n = b.back();
    g.lda = g.k;
    g.ldb = g.n;
    g.ldc = g.n;
    if (a.size() > 2 || b.size() > 2) batch_offsets(a, b, *state);
    return state;
  }

  void run(const KernelContext& c) const override {
    const auto& s = *static_cast<const MatMulState*>(c.state);
    if (c.output(0).size() == 0) return;
    GemmArgs g = s.args;
    g.a = c.in<float>(0);
    g.c = c.out<float>(0);
    const auto product = [&] {
      if (s.a_offsets.empty()) return gemm_f32(g);
      gemm_batch_f32(g, s.batch, s.a_offsets.data(), s.b_offsets.data(), s.c_offsets.data());
    };
    if (weights_) return weights_.multiply(g, product);
    g.b = c.in<float>(1);
    product();
  }

 private:
  LateMatrix weights_;
  Shape shape_;  // of the weights
};

// Computes alpha A' B' for stacks of matrices, where A' is A or each of its matrices transposed.
class FusedMatMulKernel : public Kernel {
 public:
  explicit FusedMatMulKernel(const ops::FusedMatMulAttrs& a) : alpha_(a.alpha), trans_a_(a.trans_a), trans_b_(a.trans_b) {}
  std::string_view name() const override { return "gemm-f32"; }

  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    auto state = std::make_unique<MatMulState>();
    Shape a = c.input_shape(0), b = c.input_shape(1);
    if (b.size() == 2 && a.size() > 2 && !trans_a_) a = {ops::product(a, 0, a.size() - 1), a.back()};
    GemmArgs& g = state->args;
    g.m = a[a.size() - (trans_a_ ? 1 : 2)];
    g.k = a[a.size() - (trans_a_ ? 2 : 1)];
    g.n = b[b.size() - (trans_b_ ? 2 : 1)];
    g.lda = a.back();
    g.ldb = b.back();
    g.ldc = g.n;
    g.trans_a = trans_a_;
    g.trans_b = trans_b_;
    g.alpha = alpha_;
    if (a.size() > 2 || b.size() > 2) batch_offsets(a, b, *state);
    return state;
  }

  void run(const KernelContext& c) const override {
    const auto& s = *static_cast<const MatMulState*>(c.state);
    if (c.output(0).size() == 0) return;
    GemmArgs g = s.args;
    g.a = c.in<float>(0);
    g.b = c.in<float>(1);
    g.c = c.out<float>(0);
    if (s.a_offsets.empty()) return gemm_f32(g);
    gemm_batch_f32(g, s.batch, s.a_offsets.data(), s.b_offsets.data(), s.c_offsets.data());
  }

 private:
  float alpha_;
  bool trans_a_, trans_b_;
};

std::unique_ptr<Kernel> make_fused_matmul(LowerContext& c) {
  if (c.dtype(0) != DataType::float32 || c.dtype(1) != DataType::float32) return c.refuse("not float32");
  const auto attr = ops::parse<ops::FusedMatMulAttrs>(c);
  if (attr.trans_batch_a || attr.trans_batch_b) return c.refuse("moves the first axis");
  for (std::size_t i = 0; i < 2; ++i) {
    if (c.shape(i) == nullptr || c.shape(i)->size() < 2 || c.shape(i)->size() > kMaxRank) {
      return c.refuse("ranks are not known, or below 2 or above 8");
    }
  }
  return std::make_unique<FusedMatMulKernel>(attr);
}

std::unique_ptr<Kernel> make_matmul(LowerContext& c) {
  if (c.dtype(0) != DataType::float32 || c.dtype(1) != DataType::float32) return c.refuse("not float32");
  const SymShape *a = c.shape(0), *b = c.shape(1);
  if (a == nullptr || b == nullptr) return c.refuse("ranks are not known");
  if (a->empty() || b->empty() || a->size() > kMaxRank || b->size() > kMaxRank) return c.refuse("rank 0 or above 8");
  const Tensor* w = c.constant(1);
  if (w != nullptr && w->rank() == 2 && w->size() > 0) {
    return std::make_unique<MatMulKernel>(LateMatrix(c, *w, w->dim(0), w->dim(1), false), w->shape());
  }
  return std::make_unique<MatMulKernel>(LateMatrix(), Shape());
}

// Computes Y = alpha A' B' + beta C, with C broadcast to [M, N].
class GemmKernel : public Kernel {
 public:
  GemmKernel(const ops::GemmAttrs& a, LateMatrix weights, UnarySpec act)
      : alpha_(a.alpha), beta_(a.beta), trans_a_(a.trans_a), trans_b_(a.trans_b), weights_(std::move(weights)), act_(act) {}
  std::string_view name() const override { return weights_ ? "gemm-packed-f32" : "gemm-f32"; }
  bool uses_input(std::size_t i) const override { return i != 1 || !weights_; }

  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    if (c.has_input(2) && beta_ != 0) check_broadcast(c.input_shape(2), c.output_shape(0));
    return nullptr;
  }

  void run(const KernelContext& c) const override {
    Tensor& y = c.output(0);
    if (y.size() == 0) return;
    const Shape& a = c.input(0).shape();
    GemmArgs g;
    g.m = y.shape()[0];
    g.n = y.shape()[1];
    g.k = trans_a_ ? a[0] : a[1];
    g.a = c.in<float>(0);
    g.lda = a[1];
    g.trans_a = trans_a_;
    if (!weights_) {
      g.b = c.in<float>(1);
      g.ldb = c.input(1).shape()[1];
      g.trans_b = trans_b_;
      g.alpha = alpha_;
    }
    g.c = c.out<float>(0);
    g.ldc = g.n;
    g.epilogue.act = act_;
    if (c.has_input(2) && beta_ != 0) add_c(c.input(2), g);
    if (!weights_) return gemm_f32(g);
    weights_.multiply(g, [&g] { gemm_f32(g); });
  }

 private:
  void add_c(const Tensor& t, GemmArgs& g) const {
    const auto* data = static_cast<const float*>(t.data());
    const std::int64_t rows = t.rank() == 2 ? t.shape()[0] : 1;
    const std::int64_t cols = t.rank() >= 1 ? t.shape().back() : 1;
    if (rows == 1 && cols == g.n) {
      g.epilogue.bias = data;
      g.epilogue.bias_scale = beta_;
    } else if (cols == 1 && rows == g.m) {
      g.epilogue.bias = data;
      g.epilogue.bias_per_row = true;
      g.epilogue.bias_scale = beta_;
    } else if (rows == g.m && cols == g.n) {
      g.epilogue.residual = data;
      g.epilogue.ld_residual = g.n;
      g.epilogue.residual_scale = beta_;
    } else {  // one element, or a shape that repeats in both directions
      for (std::int64_t i = 0; i < g.m; ++i) {
        for (std::int64_t j = 0; j < g.n; ++j) g.c[i * g.n + j] = data[(rows == 1 ? 0 : i) * cols + (cols == 1 ? 0 : j)];
      }
      g.epilogue.residual = g.c;
      g.epilogue.ld_residual = g.n;
      g.epilogue.residual_scale = beta_;
    }
  }

  float alpha_, beta_;
  bool trans_a_, trans_b_;
  LateMatrix weights_;
  UnarySpec act_;
};

std::unique_ptr<Kernel> make_gemm(LowerContext& c) {
  const auto attr = ops::parse<ops::GemmAttrs>(c);
  if (c.dtype(0) != DataType::float32 || c.dtype(1) != DataType::float32) return c.refuse("not float32");
  if (c.node().domain.empty() && c.node().version < 7) return c.refuse("opset before 7");
  if (c.has_input(2) && (c.dtype(2) != DataType::float32 || c.shape(2) == nullptr || c.shape(2)->size() > 2)) {
    return c.refuse("C is not float32 of rank 2 or less");
  }
  if (c.shape(0) == nullptr || c.shape(0)->size() != 2) return c.refuse("A is not known to have rank 2");
  const auto act = fused_activation(c.node());
  if (!act) return c.refuse("this activation cannot be fused");
  LateMatrix weights;
  const Tensor* w = c.constant(1);
  if (w != nullptr && w->rank() == 2 && w->size() > 0) {
    const bool trans = attr.trans_b;
    weights = LateMatrix(c, *w, w->dim(trans ? 1 : 0), w->dim(trans ? 0 : 1), trans, attr.alpha);
  }
  return std::make_unique<GemmKernel>(attr, std::move(weights), *act);
}

// --- other types --------------------------------------------------------------------------------------------------------

bool is_wide(DataType type) {
  switch (type) {
    case DataType::float64:
    case DataType::int32:
    case DataType::int64:
    case DataType::uint32:
    case DataType::uint64: return true;
    default: return false;
  }
}

struct TypedState : KernelState {
  Product product;
  std::vector<std::int64_t> a_at{0}, b_at{0};  // numbers of matrices
};

class TypedMatMulKernel : public Kernel {
 public:
  std::string_view name() const override { return "matmul-typed"; }

  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    auto state = std::make_unique<TypedState>();
    Shape a = c.input_shape(0), b = c.input_shape(1);
    as_stacks(a, b);
    Product& p = state->product;
    p.type = c.inputs[0]->elem;
    p.m = a[a.size() - 2];
    p.k = a.back();
    p.n = b.back();
    if (a.size() == 2 && b.size() == 2) return state;
    // Of matrices of one element, the offsets are their numbers.
    a[a.size() - 2] = a.back() = b[b.size() - 2] = b.back() = 1;
    MatMulState offsets;
    batch_offsets(a, b, offsets);
    state->a_at = std::move(offsets.a_offsets);
    state->b_at = std::move(offsets.b_offsets);
    return state;
  }

  void run(const KernelContext& c) const override {
    const auto& s = *static_cast<const TypedState*>(c.state);
    if (c.output(0).size() == 0) return;
    multiply(s.product, c.input(0).data(), c.input(1).data(), c.output(0).mutable_data(), s.a_at, s.b_at);
  }
};

std::unique_ptr<Kernel> make_typed_matmul(LowerContext& c) {
  if (!is_wide(c.dtype(0)) || c.dtype(1) != c.dtype(0)) return c.refuse("neither float64 nor integers of 32 or 64 bits");
  const SymShape *a = c.shape(0), *b = c.shape(1);
  if (a == nullptr || b == nullptr) return c.refuse("ranks are not known");
  if (a->empty() || b->empty() || a->size() > kMaxRank || b->size() > kMaxRank) return c.refuse("rank 0 or above 8");
  return std::make_unique<TypedMatMulKernel>();
}

// Factors other than 1 exist for float64 alone.
class TypedGemmKernel : public Kernel {
 public:
  explicit TypedGemmKernel(const ops::GemmAttrs& a) : alpha_(a.alpha), beta_(a.beta), trans_a_(a.trans_a), trans_b_(a.trans_b) {}
  std::string_view name() const override { return "gemm-typed"; }

  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    if (!c.has_input(2) || beta_ == 0) return nullptr;
    check_broadcast(c.input_shape(2), c.output_shape(0));
    if (beta_ != 1) c.workspace_bytes = static_cast<std::size_t>(element_count(c.input_shape(2))) * sizeof(double);
    return nullptr;
  }

  void run(const KernelContext& c) const override {
    Tensor& y = c.output(0);
    if (y.size() == 0) return;
    Product p;
    p.type = y.dtype();
    p.m = y.dim(0);
    p.n = y.dim(1);
    p.k = c.input(0).dim(trans_a_ ? 0 : 1);
    p.trans_a = trans_a_;
    p.trans_b = trans_b_;
    void* const to = y.mutable_data();
    multiply(p, c.input(0).data(), c.input(1).data(), to, {0}, {0});
    if (alpha_ != 1) scale(to, alpha_, to, y.shape());
    // beta 0: C is not read, so its NaNs do not matter.
    if (!c.has_input(2) || beta_ == 0) return;
    const Tensor& offset = c.input(2);
    const void* from = offset.data();
    if (beta_ != 1) scale(from, beta_, c.workspace, offset.shape()), from = c.workspace;
    apply(BinaryFn::add, p.type, plan_rows<2>({y.shape(), offset.shape()}, y.shape()), to, from, to);
  }

 private:
  static void scale(const void* x, double factor, void* y, const Shape& shape) {
    apply(BinaryFn::multiply, DataType::float64, plan_rows<2>({shape, Shape{}}, shape), x, &factor, y);
  }

  double alpha_, beta_;
  bool trans_a_, trans_b_;
};

std::unique_ptr<Kernel> make_typed_gemm(LowerContext& c) {
  if (!is_wide(c.dtype(0)) || c.dtype(1) != c.dtype(0)) return c.refuse("neither float64 nor integers of 32 or 64 bits");
  if (c.node().version < 7) return c.refuse("opset before 7");
  if (c.shape(0) == nullptr || c.shape(0)->size() != 2) return c.refuse("A is not known to have rank 2");
  if (c.has_input(2) && (c.dtype(2) != c.dtype(0) || c.shape(2) == nullptr || c.shape(2)->size() > 2)) {
    return c.refuse("C is not of A's type and rank 2 or less");
  }
  const auto attr = ops::parse<ops::GemmAttrs>(c);
  if (c.dtype(0) != DataType::float64 && (attr.alpha != 1 || (c.has_input(2) && attr.beta != 1))) {
    return c.refuse("integers with factors");
  }
  return std::make_unique<TypedGemmKernel>(attr);
}

}  // namespace

void register_kernels_matmul(KernelTable& t) {
  t.add("", "MatMul", "gemm-f32", 10, make_matmul);
  t.add("", "MatMul", "matmul-typed", 40, make_typed_matmul);
  t.add("", "Gemm", "gemm-f32", 10, make_gemm);
  t.add("", "Gemm", "gemm-typed", 40, make_typed_gemm);
  t.add("com.microsoft", "FusedMatMul", "gemm-f32", 10, make_fused_matmul);
  t.add("com.microsoft", "FusedGemm", "gemm-f32", 10, make_gemm);
}

}  // namespace sdx::cpu
