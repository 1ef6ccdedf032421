// Matrix products. ONNX MatMul-13; Gemm-13 in float32.

#include "array/ops/matrix/matmul.h"

#include <sdx/array.hpp>

#include "array/array_op.h"
#include "array/ops/batch.h"
#include "array/ops/common.h"
#include "kernels/cpu/gemm/products.h"

namespace sdx::array {
namespace detail {
namespace {

// Returns which matrix each product takes when the leading axes broadcast.
std::vector<std::int64_t> broadcast_matrices(const Shape& shape, const Shape& out) {
  const std::size_t rank = out.size() - 2, own = shape.size() - 2;
  std::int64_t batch = 1;
  for (std::size_t i = 0; i < rank; ++i) batch *= out[i];
  std::vector<std::int64_t> at(static_cast<std::size_t>(batch), 0);
  for (std::int64_t n = 0; n < batch; ++n) {
    std::int64_t rest = n, step = 1;
    for (std::size_t i = rank; i-- > rank - own;) {
      const std::int64_t extent = shape[i - (rank - own)];
      if (extent != 1) at[static_cast<std::size_t>(n)] += rest % out[i] * step;
      rest /= out[i];
      step *= extent;
    }
  }
  return at;
}

void run_matmul(ops::OpContext& c) {
  Tensor& out = result_tensor(c);
  if (out.size() == 0) return;
  const Tensor &a = c.input(0), &b = c.input(1);
  cpu::Product p;
  p.type = out.dtype();
  p.trans_a = c.attrs().get_int("trans_a") != 0;
  p.trans_b = c.attrs().get_int("trans_b") != 0;
  p.m = out.dim(out.rank() - 2);
  p.n = out.dim(out.rank() - 1);
  p.k = p.trans_a ? a.dim(a.rank() - 2) : a.dim(a.rank() - 1);
  cpu::multiply(p, a.data(), b.data(), out.mutable_data(), broadcast_matrices(a.shape(), out.shape()),
                broadcast_matrices(b.shape(), out.shape()));
}

// params.ints holds whether a, then whether b, is transposed.
void emit_matmul(Emitter& e) {
  bool trans_a = e.params().ints[0] != 0, trans_b = e.params().ints[1] != 0;
  ValueId a = e.in(0), b = e.in(1);
  if (e.swaps_last_two(a)) a = e.untransposed(a), trans_a = !trans_a;
  if (e.swaps_last_two(b)) b = e.untransposed(b), trans_b = !trans_b;
  const bool single = e.out_dtype() == Dtype::float32;
  if (single && !trans_a && !trans_b) return e.result(e.op("MatMul", {a, b}));
  if (single && e.shape(0).size() == 2 && e.shape(1).size() == 2) {
    return e.result(e.op("Gemm", {a, b}, {{"transA", std::int64_t{trans_a}}, {"transB", std::int64_t{trans_b}}}));
  }
  e.results<run_matmul>("MatMul", {a, b}, {{"trans_a", std::int64_t{trans_a}}, {"trans_b", std::int64_t{trans_b}}});
}

std::vector<array> matmul_vjp(const VjpCall& c) {
  const bool complex = is_complex(c.inputs[0].dtype());
  const array a = complex ? conjugate(c.inputs[0]) : c.inputs[0], b = complex ? conjugate(c.inputs[1]) : c.inputs[1];
  const array& g = c.of_outputs[0];
  const bool ta = c.params.ints[0] != 0, tb = c.params.ints[1] != 0;
  std::vector<array> out;
  for (const std::size_t i : c.wanted) {
    if (i == 0) {
      out.push_back(sum_to(ta ? product(b, g, tb, true) : product(g, b, false, !tb), a.shape()));
    } else {
      out.push_back(sum_to(tb ? product(g, a, true, ta) : product(a, g, !ta, false), b.shape()));
    }
  }
  return out;
}

// Inserts leading axes of extent 1 behind the batch axis, so that those of both operands stay in line.
array with_rank(const array& a, std::size_t rank) {
  Shape shape = a.shape();
  if (shape.size() == rank) return a;
  shape.insert(shape.begin() + 1, rank - shape.size(), 1);
  return reshape(a, std::move(shape));
}

VmapResult matmul_vmap(const VmapCall& c) {
  const bool ta = c.params.ints[0] != 0, tb = c.params.ints[1] != 0;
  const std::size_t rank = std::max(inner_rank(c, 0), inner_rank(c, 1)) + 1;
  const array a = is_batched(c, 0) ? with_rank(batch_first(c, 0), rank) : c.inputs[0];
  const array b = is_batched(c, 1) ? with_rank(batch_first(c, 1), rank) : c.inputs[1];
  // If all products have the same right matrix, they are a single product.
  if (!ta && b.ndim() == 2) {
    const array flat = product(reshape(a, {-1, a.shape().back()}), b, false, tb);
    Shape shape = a.shape();
    shape.back() = flat.shape()[1];
    return batch_result(reshape(flat, std::move(shape)));
  }
  return batch_result(product(a, b, ta, tb));
}

const Kind kMatmul{.name = "matmul", .emit = emit_matmul, .vjp = matmul_vjp, .vmap = matmul_vmap};

}  // namespace

array product(const array& a, const array& b, bool trans_a, bool trans_b, const StreamOrDevice& s) {
  const Shape &x = a.shape(), &y = b.shape();
  Shape shape;
  if (x.size() == 2 && y.size() == 2) {
    shape.resize(2);
  } else {
    shape = broadcast("matmul", Shape(x.begin(), x.end() - 2), Shape(y.begin(), y.end() - 2));
    shape.resize(shape.size() + 2);
  }
  shape[shape.size() - 2] = trans_a ? x[x.size() - 1] : x[x.size() - 2];
  shape[shape.size() - 1] = trans_b ? y[y.size() - 2] : y[y.size() - 1];
  if ((trans_a ? x[x.size() - 2] : x.back()) != (trans_b ? y.back() : y[y.size() - 2])) {
    refuse("matmul", "shapes {} and {}: the last axis of the first is not as long as the last but one of the second",
           to_string(x), to_string(y));
  }
  Params p;
  p.ints = {trans_a, trans_b};
  return make(kMatmul, a.dtype(), std::move(shape), {a, b}, std::move(p), s);
}

namespace {

Dtype product_type(const char* operation, const array& a, const array& b) {
  const Dtype type = promote(a.dtype(), b.dtype());
  if (type == Dtype::boolean) refuse(operation, "operands of type bool; expected numbers");
  return type;
}

}  // namespace
}  // namespace detail

array matmul(const array& a, const array& b, StreamOrDevice s) {
  if (a.ndim() == 0 || b.ndim() == 0) {
    detail::refuse("matmul", "shapes {} and {}: a scalar is not a matrix", to_string(a.shape()), to_string(b.shape()));
  }
  const Dtype type = detail::product_type("matmul", a, b);
  array x = detail::as_type(a, type, s), y = detail::as_type(b, type, s);
  if (a.ndim() >= 2 && b.ndim() == 2) {
    if (a.ndim() == 2) return detail::product(x, y, false, false, s);
    // If the right operand is one matrix, all rows are a single product.
    if (a.shape().back() != b.shape()[0]) {
      detail::refuse("matmul", "shapes {} and {}: the last axis of the first is not as long as the last but one of the second",
                     to_string(a.shape()), to_string(b.shape()));
    }
    Shape shape = a.shape();
    const std::int64_t rows = a.shape().back() == 0 ? element_count(Shape(shape.begin(), shape.end() - 1)) : -1;
    shape.back() = b.shape()[1];
    return reshape(detail::product(reshape(x, {rows, a.shape().back()}, s), y, false, false, s), std::move(shape), s);
  }
  if (a.ndim() == 1) x = expand_dims(x, 0, s);
  if (b.ndim() == 1) y = expand_dims(y, 1, s);
  if (a.ndim() >= 2 && b.ndim() == 1) return squeeze(matmul(x, y, s), -1, s);
  array out = detail::product(x, y, false, false, s);
  if (b.ndim() == 1) out = squeeze(out, -1, s);
  return a.ndim() == 1 ? squeeze(out, b.ndim() == 1 ? -1 : -2, s) : out;
}

// A factor of 0 leaves out its part, as in BLAS: NaN and infinities there do not count.
array addmm(const array& c, const array& a, const array& b, float alpha, float beta, StreamOrDevice s) {
  array out = matmul(a, b, s);
  const Dtype type = detail::promote(out.dtype(), c.dtype());
  out = detail::as_type(out, type, s);
  array offset = detail::as_type(c, type, s);
  if (detail::broadcast("addmm", out.shape(), offset.shape()) != out.shape()) {
    detail::refuse("addmm", "c of shape {} does not broadcast to the product's {}", to_string(c.shape()), to_string(out.shape()));
  }
  if (alpha == 0.0F) out = zeros_like(out, {}, s);
  if (alpha != 0.0F && alpha != 1.0F) out = multiply(out, array(alpha, type), s);
  if (beta == 0.0F) return out;
  if (beta != 1.0F) offset = multiply(offset, array(beta, type), s);
  return add(out, offset, s);
}

}  // namespace sdx::array
