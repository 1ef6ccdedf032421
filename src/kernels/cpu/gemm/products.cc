#include "kernels/cpu/gemm/products.h"

#include <algorithm>
#include <complex>
#include <type_traits>

#include "base/thread_pool.h"
#include "kernels/cpu/elementwise/convert.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/gemm/gemm_wide.h"

namespace sdx::cpu {
namespace {

using Ints = std::vector<std::int64_t>;

std::int64_t matrices(const Ints& at) { return at.empty() ? 0 : *std::max_element(at.begin(), at.end()) + 1; }

void multiply_f32(const Product& p, const float* a, const float* b, float* c, const Ints& a_at, const Ints& b_at) {
  GemmArgs g;
  g.m = p.m, g.n = p.n, g.k = p.k;
  g.trans_a = p.trans_a, g.trans_b = p.trans_b;
  g.a = a, g.b = b, g.c = c;
  g.lda = p.trans_a ? p.m : p.k;
  g.ldb = p.trans_b ? p.k : p.n;
  g.ldc = p.n;
  if (a_at.size() == 1) {
    g.a += a_at[0] * p.m * p.k;
    g.b += b_at[0] * p.k * p.n;
    return gemm_f32(g);
  }
  Ints x, y, z;
  for (std::size_t i = 0; i < a_at.size(); ++i) {
    x.push_back(a_at[i] * p.m * p.k);
    y.push_back(b_at[i] * p.k * p.n);
    z.push_back(static_cast<std::int64_t>(i) * p.m * p.n);
  }
  gemm_batch_f32(g, static_cast<std::int64_t>(x.size()), x.data(), y.data(), z.data());
}

// The number of products that are worth a task.
std::int64_t grain_of(const Product& p) {
  return std::max<std::int64_t>(1, (std::int64_t{1} << 15) / std::max<std::int64_t>(1, p.m * p.n * p.k));
}

void multiply_wide(const Product& p, const void* a, const void* b, void* c, const Ints& a_at, const Ints& b_at) {
  const auto bytes = static_cast<std::int64_t>(bit_width(p.type)) / 8;
  const auto one = [&](std::size_t i) {
    WideGemmArgs g;
    g.type = p.type;
    g.m = p.m, g.n = p.n, g.k = p.k;
    g.trans_a = p.trans_a, g.trans_b = p.trans_b;
    g.a = static_cast<const std::byte*>(a) + a_at[i] * p.m * p.k * bytes;
    g.b = static_cast<const std::byte*>(b) + b_at[i] * p.k * p.n * bytes;
    g.c = static_cast<std::byte*>(c) + static_cast<std::int64_t>(i) * p.m * p.n * bytes;
    g.lda = p.trans_a ? p.m : p.k;
    g.ldb = p.trans_b ? p.k : p.n;
    g.ldc = p.n;
    gemm_wide(g);
  };
  const auto count = static_cast<std::int64_t>(a_at.size());
  if (count < 4) {
    for (std::size_t i = 0; i < a_at.size(); ++i) one(i);
    return;
  }
  parallel_for(count, grain_of(p), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) one(static_cast<std::size_t>(i));
  });
}

// Converts 16-bit floats to float32.
void multiply_half(const Product& p, const void* a, const void* b, void* c, const Ints& a_at, const Ints& b_at) {
  const bool half = p.type == DataType::float16;
  const auto widen = half ? half_to_f32 : bfloat_to_f32;
  std::vector<float> x(static_cast<std::size_t>(matrices(a_at) * p.m * p.k));
  std::vector<float> y(static_cast<std::size_t>(matrices(b_at) * p.k * p.n));
  std::vector<float> z(a_at.size() * static_cast<std::size_t>(p.m * p.n));
  widen(a, x.data(), static_cast<std::int64_t>(x.size()));
  widen(b, y.data(), static_cast<std::int64_t>(y.size()));
  multiply_f32({DataType::float32, p.m, p.n, p.k, p.trans_a, p.trans_b}, x.data(), y.data(), z.data(), a_at, b_at);
  (half ? f32_to_half : f32_to_bfloat)(z.data(), c, static_cast<std::int64_t>(z.size()));
}

// Separates real and imaginary parts: four products of real numbers.
template <class T>
void multiply_complex(Product p, const void* a, const void* b, void* c, const Ints& a_at, const Ints& b_at) {
  const auto part = [](const void* from, std::int64_t count, int which) {
    std::vector<T> out(static_cast<std::size_t>(count));
    const T* at = static_cast<const T*>(from) + which;
    for (std::int64_t i = 0; i < count; ++i) out[static_cast<std::size_t>(i)] = at[2 * i];
    return out;
  };
  p.type = std::is_same_v<T, float> ? DataType::float32 : DataType::float64;
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

}  // namespace

void multiply(const Product& p, const void* a, const void* b, void* c, const Ints& a_at, const Ints& b_at) {
  switch (p.type) {
    case DataType::float32:
      return multiply_f32(p, static_cast<const float*>(a), static_cast<const float*>(b), static_cast<float*>(c), a_at, b_at);
    case DataType::float16:
    case DataType::bfloat16: return multiply_half(p, a, b, c, a_at, b_at);
    case DataType::complex64: return multiply_complex<float>(p, a, b, c, a_at, b_at);
    case DataType::complex128: return multiply_complex<double>(p, a, b, c, a_at, b_at);
    default: return multiply_wide(p, a, b, c, a_at, b_at);
  }
}

}  // namespace sdx::cpu
