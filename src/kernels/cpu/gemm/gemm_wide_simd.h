#pragma once
// The per-target functions behind gemm_wide.h; internal to this folder. No threading.

#include <cstdint>

namespace sdx::cpu {

// tile[rows, columns] += (or =, if `first`) a panel of A, [k, rows], times a panel of B, [k, columns].
template <class T>
struct WideTile {
  int rows = 0, columns = 0;
  void (*run)(const T* a, const T* b, std::int64_t k, T* tile, std::int64_t ld, bool first) = nullptr;
};

// c[m, n] = a b as they lie in memory; steps of elements from row to row and along k, and from column to column and along k.
template <class T>
struct WideDirect {
  std::int64_t m = 0, n = 0, k = 0;
  const T* a = nullptr;
  std::int64_t a_row = 0, a_step = 0;
  const T* b = nullptr;
  std::int64_t b_column = 0, b_step = 0;
  T* c = nullptr;
  std::int64_t ldc = 0;
};

inline constexpr int kMaxWideTile = 512;  // elements

struct WideKernels {
  WideTile<double> f64;
  WideTile<std::int32_t> i32;
  WideTile<std::int64_t> i64;
  // For small products and vectors, which packing would slow down.
  void (*direct_f64)(const WideDirect<double>& g);
  void (*direct_i32)(const WideDirect<std::uint32_t>& g);
  void (*direct_i64)(const WideDirect<std::uint64_t>& g);
};

const WideKernels& wide_kernels();

}  // namespace sdx::cpu
