#include "kernels/cpu/gemm/gemm_wide.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include <sdx/tensor.hpp>

#include "base/thread_pool.h"
#include "kernels/cpu/gemm/gemm_wide_simd.h"
#include "tensor/dispatch.h"

namespace sdx::cpu {
namespace {

// A panel of B with this many rows and 16 columns of double takes 32 KB.
constexpr std::int64_t kDepth = 256;

struct Aligned {
  explicit Aligned(std::int64_t bytes) : memory(DataType::uint8, {bytes}) {}
  template <class T>
  T* as() {
    return static_cast<T*>(memory.mutable_data());
  }
  Tensor memory;
};

// Packs rows [first, first + width) of an operand, `other` elements each, into panels: for each of `other`, `width` elements side
// by side, with zeros beyond `count`.
template <class C, class T>
void pack(const T* from, std::int64_t row_step, std::int64_t step, std::int64_t count, int width, std::int64_t other, C* to) {
  for (std::int64_t o = 0; o < other; ++o, to += width) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<C>(from[i * row_step + o * step]);
    for (std::int64_t i = count; i < width; ++i) to[i] = C{0};
  }
}

// Packing pays off from so many multiplications on.
constexpr std::int64_t kSmall = 4096;

// Computes vectors and small products as their operands lie; false for others.
template <class T>
bool multiply_direct(const WideGemmArgs& g, void (*run)(const WideDirect<T>&)) {
  WideDirect<T> d;
  d.m = g.m, d.n = g.n, d.k = g.k, d.ldc = g.ldc;
  d.a = static_cast<const T*>(g.a), d.b = static_cast<const T*>(g.b), d.c = static_cast<T*>(g.c);
  d.a_row = g.trans_a ? 1 : g.lda, d.a_step = g.trans_a ? g.lda : 1;
  d.b_column = g.trans_b ? g.ldb : 1, d.b_step = g.trans_b ? 1 : g.ldb;
  // A column is the row that the transposes give.
  if (g.n == 1 && g.ldc == 1) {
    std::swap(d.m, d.n), std::swap(d.a, d.b), std::swap(d.a_row, d.b_column), std::swap(d.a_step, d.b_step);
  }
  if (d.m == 1) {
    parallel_for(d.n, std::max<std::int64_t>(16, (std::int64_t{1} << 15) / d.k), [&](std::int64_t begin, std::int64_t end) {
      WideDirect<T> part = d;
      part.n = end - begin;
      part.b += begin * d.b_column;
      part.c += begin;
      run(part);
    });
    return true;
  }
  if (d.m * d.n > kSmall || d.m * d.n * d.k > kSmall) return false;
  run(d);
  return true;
}

template <class C, class T>
void multiply(const WideGemmArgs& g, const WideTile<C>& kernel) {
  const auto *a = static_cast<const T*>(g.a), *b = static_cast<const T*>(g.b);
  auto* c = static_cast<T*>(g.c);
  const std::int64_t a_row = g.trans_a ? 1 : g.lda, a_step = g.trans_a ? g.lda : 1;
  const std::int64_t b_row = g.trans_b ? g.ldb : 1, b_step = g.trans_b ? 1 : g.ldb;
  const std::int64_t rows = (g.m + kernel.rows - 1) / kernel.rows, columns = (g.n + kernel.columns - 1) / kernel.columns;
  Aligned packed_a(rows * kernel.rows * g.k * static_cast<std::int64_t>(sizeof(C)));
  parallel_for(rows, std::max<std::int64_t>(1, 4096 / std::max<std::int64_t>(1, g.k)), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      pack(a + i * kernel.rows * a_row, a_row, a_step, std::min<std::int64_t>(kernel.rows, g.m - i * kernel.rows), kernel.rows,
           g.k, packed_a.as<C>() + i * kernel.rows * g.k);
    }
  });
  const std::int64_t work = std::max<std::int64_t>(1, g.m * g.k * kernel.columns);
  parallel_for(columns, std::max<std::int64_t>(1, (std::int64_t{1} << 18) / work), [&](std::int64_t begin, std::int64_t end) {
    Aligned panel(kernel.columns * g.k * static_cast<std::int64_t>(sizeof(C)));
    Aligned sums(rows * kernel.rows * kernel.columns * static_cast<std::int64_t>(sizeof(C)));
    for (std::int64_t j = begin; j < end; ++j) {
      const std::int64_t width = std::min<std::int64_t>(kernel.columns, g.n - j * kernel.columns);
      pack(b + j * kernel.columns * b_row, b_row, b_step, width, kernel.columns, g.k, panel.as<C>());
      for (std::int64_t p = 0; p < g.k; p += kDepth) {
        const std::int64_t depth = std::min(kDepth, g.k - p);
        for (std::int64_t i = 0; i < rows; ++i) {
          kernel.run(packed_a.as<C>() + (i * g.k + p) * kernel.rows, panel.as<C>() + p * kernel.columns, depth,
                     sums.as<C>() + i * kernel.rows * kernel.columns, kernel.columns, p == 0);
        }
      }
      for (std::int64_t i = 0; i < g.m; ++i) {
        const C* from = sums.as<C>() + i * kernel.columns;
        std::transform(from, from + width, c + i * g.ldc + j * kernel.columns, [](C v) { return static_cast<T>(v); });
      }
    }
  });
}

}  // namespace

void gemm_wide(const WideGemmArgs& g) {
  if (g.m <= 0 || g.n <= 0) return;
  const WideKernels& k = wide_kernels();
  const auto call = [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (g.k <= 0) {
      for (std::int64_t i = 0; i < g.m; ++i) std::fill_n(static_cast<T*>(g.c) + i * g.ldc, g.n, T{0});
    } else if constexpr (std::is_same_v<T, double>) {  // NOLINT(bugprone-branch-clone): each has other types
      if (!multiply_direct<double>(g, k.direct_f64)) multiply<double, double>(g, k.f64);
    } else if constexpr (sizeof(T) == 8) {
      if (!multiply_direct<std::uint64_t>(g, k.direct_i64)) multiply<std::int64_t, T>(g, k.i64);
    } else {
      if constexpr (sizeof(T) == 4) {
        if (multiply_direct<std::uint32_t>(g, k.direct_i32)) return;
      }
      multiply<std::int32_t, T>(g, k.i32);
    }
  };
  using Types = TypeList<double, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t,
                         std::uint32_t, std::uint64_t>;
  dispatch(g.type, Types{}, "matmul", call);
}

}  // namespace sdx::cpu
