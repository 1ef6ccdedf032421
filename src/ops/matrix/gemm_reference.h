#pragma once
// Plain matrix multiplication for reference kernels: cache-blocked, left to the compiler to vectorise.

#include <cstdint>
#include <vector>

namespace sdx::ops {

// T: float, double, uint32_t or uint64_t (signed integers are multiplied as unsigned ones: the bits are the same, and overflow
// wraps). c[i*ldc + j] = sum over k of a[i*a_row + k*a_col] * b[k*ldb + j]; zero for an empty sum.
template <class T>
struct GemmArgs {
  std::int64_t m = 0, n = 0, k = 0;
  const T* a = nullptr;
  std::int64_t a_row = 0, a_col = 1;
  const T* b = nullptr;
  std::int64_t ldb = 0;
  T* c = nullptr;
  std::int64_t ldc = 0;
};

// Runs on the calling thread only.
template <class T>
void gemm_serial(const GemmArgs<T>& g);
// Rows and columns split over current_pool().
template <class T>
void gemm_parallel(const GemmArgs<T>& g);

// The transpose of a row-major rows x cols matrix.
template <class T>
std::vector<T> transposed(const T* in, std::int64_t rows, std::int64_t cols);

}  // namespace sdx::ops
