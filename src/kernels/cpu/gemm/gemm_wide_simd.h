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

inline constexpr int kMaxWideTile = 512;  // elements

struct WideKernels {
  WideTile<double> f64;
  WideTile<std::int32_t> i32;
  WideTile<std::int64_t> i64;
};

const WideKernels& wide_kernels();

}  // namespace sdx::cpu
