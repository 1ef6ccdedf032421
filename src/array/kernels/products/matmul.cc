#include "array/kernels/products/matmul.h"

#include <algorithm>

#include "array/array_op.h"
#include "array/ops/common.h"
#include "kernels/cpu/elementwise/convert.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/gemm/gemm_wide.h"
#include "ops/tensor/axes.h"

namespace sdx::array::detail {
namespace {

using Ints = std::vector<std::int64_t>;

std::int64_t matrices(const Ints& at) { return at.empty() ? 0 : *std::max_element(at.begin(), at.end()) + 1; }

void multiply_f32(const Product& p, const float* a, const float* b, float* c, const Ints& a_at, const Ints& b_at) {
  cpu::GemmArgs g;
  g.m = p.m, g.n = p.n, g.k = p.k;
  g.trans_a = p.trans_a, g.trans_b = p.trans_b;
  g.a = a, g.b = b, g.c = c;
  g.lda = p.trans_a ? p.m : p.k;
  g.ldb = p.trans_b ? p.k : p.n;
  g.ldc = p.n;
  if (a_at.size() == 1) {
    g.a += a_at[0] * p.m * p.k;
    g.b += b_at[0] * p.k * p.n;
    return cpu::gemm_f32(g);
  }
  Ints x, y, z;
  for (std::size_t i = 0; i < a_at.size(); ++i) {
    x.push_back(a_at[i] * p.m * p.k);
    y.push_back(b_at[i] * p.k * p.n);
    z.push_back(static_cast<std::int64_t>(i) * p.m * p.n);
  }
  cpu::gemm_batch_f32(g, static_cast<std::int64_t>(x.size()), x.data(), y.data(), z.data());
}

void multiply_wide(const Product& p, const void* a, const void* b, void* c, const Ints& a_at, const Ints& b_at) {
  const auto bytes = static_cast<std::int64_t>(bit_width(p.type)) / 8;
  for (std::size_t i = 0; i < a_at.size(); ++i) {
    cpu::WideGemmArgs g;
    g.type = p.type;
    g.m = p.m, g.n = p.n, g.k = p.k;
    g.trans_a = p.trans_a, g.trans_b = p.trans_b;
    g.a = static_cast<const std::byte*>(a) + a_at[i] * p.m * p.k * bytes;
    g.b = static_cast<const std::byte*>(b) + b_at[i] * p.k * p.n * bytes;
    g.c = static_cast<std::byte*>(c) + static_cast<std::int64_t>(i) * p.m * p.n * bytes;
    g.lda = p.trans_a ? p.m : p.k;
    g.ldb = p.trans_b ? p.k : p.n;
    g.ldc = p.n;
    cpu::gemm_wide(g);
  }
}

// 16-bit floats as float32.
void multiply_half(const Product& p, const void* a, const void* b, void* c, const Ints& a_at, const Ints& b_at) {
  const bool half = p.type == Dtype::float16;
  const auto widen = half ? cpu::half_to_f32 : cpu::bfloat_to_f32;
  std::vector<float> x(static_cast<std::size_t>(matrices(a_at) * p.m * p.k));
  std::vector<float> y(static_cast<std::size_t>(matrices(b_at) * p.k * p.n));
  std::vector<float> z(a_at.size() * static_cast<std::size_t>(p.m * p.n));
  widen(a, x.data(), static_cast<std::int64_t>(x.size()));
  widen(b, y.data(), static_cast<std::int64_t>(y.size()));
  multiply_f32({Dtype::float32, p.m, p.n, p.k, p.trans_a, p.trans_b}, x.data(), y.data(), z.data(), a_at, b_at);
  (half ? cpu::f32_to_half : cpu::f32_to_bfloat)(z.data(), c, static_cast<std::int64_t>(z.size()));
}

// Real and imaginary parts apart: four products of real numbers.
template <class T>
void multiply_complex(Product p, const void* a, const void* b, void* c, const Ints& a_at, const Ints& b_at) {
  const auto part = [](const void* from, std::int64_t count, int which) {
    std::vector<T> out(static_cast<std::size_t>(count));
    const T* at = static_cast<const T*>(from) + which;
    for (std::int64_t i = 0; i < count; ++i) out[static_cast<std::size_t>(i)] = at[2 * i];
    return out;
  };
  p.type = std::is_same_v<T, float> ? Dtype::float32 : Dtype::float64;
  const std::int64_t of_a = matrices(a_at) * p.m * p.k, of_b = matrices(b_at) * p.k * p.n;
  const std::vector<T> ar = part(a, of_a, 0), ai = part(a, of_a, 1), br = part(b, of_b, 0), bi = part(b, of_b, 1);
  const std::size_t count = a_at.size() * static_cast<std::size_t>(p.m * p.n);
  std::vector<T> x(count), y(count);
  auto* out = static_cast<T*>(c);
  const auto both = [&](const std::vector<T>& a1, const std::vector<T>& b1, const std::vector<T>& a2, const std::vector<T>& b2,
                        int which, T sign) {
    multiply(p, a1.data(), b1.data(), x.data(), a_at, b_at);
    multiply(p, a2.data(), b2.data(), y.data(), a_at, b_at);
    for (std::size_t i = 0; i < count; ++i) out[2 * i + static_cast<std::size_t>(which)] = x[i] + sign * y[i];
  };
  both(ar, br, ai, bi, 0, T{-1});
  both(ar, bi, ai, br, 1, T{1});
}

// The matrix that each product takes, leading axes broadcast.
Ints broadcast_matrices(const Shape& shape, const Shape& out) {
  const std::size_t rank = out.size() - 2, own = shape.size() - 2;
  std::int64_t batch = 1;
  for (std::size_t i = 0; i < rank; ++i) batch *= out[i];
  Ints at(static_cast<std::size_t>(batch), 0);
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
  Product p;
  p.type = out.dtype();
  p.trans_a = c.attrs().get_int("trans_a") != 0;
  p.trans_b = c.attrs().get_int("trans_b") != 0;
  p.m = out.dim(out.rank() - 2);
  p.n = out.dim(out.rank() - 1);
  p.k = p.trans_a ? a.dim(a.rank() - 2) : a.dim(a.rank() - 1);
  multiply(p, a.data(), b.data(), out.mutable_data(), broadcast_matrices(a.shape(), out.shape()),
           broadcast_matrices(b.shape(), out.shape()));
}

}  // namespace

void multiply(const Product& p, const void* a, const void* b, void* c, const Ints& a_at, const Ints& b_at) {
  switch (p.type) {
    case Dtype::float32:
      return multiply_f32(p, static_cast<const float*>(a), static_cast<const float*>(b), static_cast<float*>(c), a_at, b_at);
    case Dtype::float16:
    case Dtype::bfloat16: return multiply_half(p, a, b, c, a_at, b_at);
    case Dtype::complex64: return multiply_complex<float>(p, a, b, c, a_at, b_at);
    case Dtype::complex128: return multiply_complex<double>(p, a, b, c, a_at, b_at);
    default: return multiply_wide(p, a, b, c, a_at, b_at);
  }
}

const ArrayOp& matmul_op() {
  static const ArrayOp op = array_op("MatMul", run_matmul);
  return op;
}

}  // namespace sdx::array::detail
