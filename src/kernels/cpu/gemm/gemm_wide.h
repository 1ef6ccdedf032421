#pragma once
// Matrix products in float64 and in integers, which wrap around.

#include <cstdint>

#include <sdx/dtype.hpp>

#include "base/tools_api.h"

namespace sdx::cpu {

// c[m, n] = op(a)[m, k] op(b)[k, n]. op(a) is a, or its transpose if `trans_a` (a is then [k, m]); op(b) likewise. Leading
// dimensions count elements. All three have one type: float64, or an integer of 8 to 64 bits. Outputs must not overlap inputs.
// Thread-safe; work is split over current_pool().
struct WideGemmArgs {
  DataType type = DataType::float64;
  std::int64_t m = 0, n = 0, k = 0;
  const void* a = nullptr;
  std::int64_t lda = 0;
  bool trans_a = false;
  const void* b = nullptr;
  std::int64_t ldb = 0;
  bool trans_b = false;
  void* c = nullptr;
  std::int64_t ldc = 0;
};
SDX_TOOLS_API void gemm_wide(const WideGemmArgs& args);

}  // namespace sdx::cpu
