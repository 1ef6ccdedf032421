#pragma once
// The border between arrays and libsdx_linalg.so, which holds Eigen's decompositions and is loaded when one is first needed.

#include <cstddef>
#include <cstdint>

#include "base/module/module.h"

namespace sdx::array::detail {

enum class Decomposition : std::int32_t {
  cholesky,          // a[n,n], of which the lower half is read: lower triangle
  inverse,           // a[n,n]: inverse
  triangle_inverse,  // a[n,n], flag: the upper triangle
  solve,             // a[n,n], b[n,k]: x with a x = b
  solve_triangle,    // the same; flag: of the upper triangle of a, otherwise the lower one
  determinant,       // a[n,n]: sign or phase; logarithm of the absolute value (real); determinant
  lu,                // a[m,n]: int32[m] rows p, l[m,k], u[k,n] with a = l[p] u
  lu_packed,         // a[m,n]: l and u in one, int32[k] exchanges of rows, one after the other
  qr,                // a[m,n]: q[m,k], r[k,n]
  eigh,              // a[n,n], flag: of the upper half, otherwise the lower one: real values upwards, vectors
  eigvalsh,          // the same without vectors
  eig,               // a[n,n]: complex values, vectors
  eigvals,
  svd,      // a[m,n]: u[m,m], real values downwards, v^h[n,n]
  svdvals,  // the values alone
};
enum class LinalgScalar : std::int32_t { f32, f64, c64, c128 };
enum class LinalgOutcome : std::int32_t { ok, not_positive_definite, singular, no_convergence, no_memory, failed };

// One matrix. All are row-major and dense; k is min(m, n), or columns of b.
struct LinalgRequest {
  Decomposition what;
  LinalgScalar scalar;
  bool flag;
  std::int64_t m, n, k;
  const void* in[2];
  void* out[3];
};

struct LinalgModule {
  static constexpr ModuleName kModule{"sardonyx/libsdx_linalg.so", "sdx_linalg_module", "SDX_LINALG_LIB", "linear algebra"};

  ModuleHead head;
  LinalgOutcome (*run)(const LinalgRequest*);
};

}  // namespace sdx::array::detail
