#pragma once
// Walks operands that broadcast against each other: one call per run of elements through which every operand steps evenly. The
// output is dense. Thread-safe; split over current_pool().

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/thread_pool.h"

namespace sdx::cpu {

inline constexpr int kMaxBroadcastRank = 8;

// Dimensions left after merging neighbours that all N operands step through evenly, outermost first; `inner` is the last one.
template <int N>
struct RowPlan {
  int outer = 0;
  std::int64_t rows = 1;
  std::int64_t inner = 0;
  std::int64_t inner_step[N] = {};
  std::int64_t dims[kMaxBroadcastRank];
  std::int64_t step[N][kMaxBroadcastRank];
};

// `steps[k][i]`: how many elements operand k advances along dimension i, 0 where it is broadcast. rank <= kMaxBroadcastRank.
template <int N>
RowPlan<N> plan_rows(int rank, const std::int64_t* dims, const std::array<const std::int64_t*, N>& steps) {
  RowPlan<N> p;
  int count = 0;
  for (int i = 0; i < rank; ++i) {
    if (dims[i] <= 0) return RowPlan<N>{};
    if (dims[i] == 1) continue;
    bool merges = count > 0;
    for (int k = 0; merges && k < N; ++k) merges = p.step[k][count - 1] == steps[static_cast<std::size_t>(k)][i] * dims[i];
    if (merges) {
      p.dims[count - 1] *= dims[i];
    } else {
      p.dims[count++] = dims[i];
    }
    for (int k = 0; k < N; ++k) p.step[k][count - 1] = steps[static_cast<std::size_t>(k)][i];
  }
  p.outer = std::max(0, count - 1);
  p.inner = count > 0 ? p.dims[p.outer] : 1;
  for (int k = 0; k < N; ++k) p.inner_step[k] = count > 0 ? p.step[k][p.outer] : 0;
  for (int i = 0; i < p.outer; ++i) p.rows *= p.dims[i];
  return p;
}

// row(const std::int64_t (&at)[N], std::int64_t out, std::int64_t n): operand k's elements are at[k] + i * inner_step[k] for i <
// n, the output's out + i. `grain`: minimum elements per thread.
template <int N, class F>
void parallel_rows(const RowPlan<N>& p, std::int64_t grain, F&& row) {
  if (p.inner == 0) return;
  if (p.rows == 1) {
    return parallel_for(p.inner, grain, [&](std::int64_t begin, std::int64_t end) {
      std::int64_t at[N];
      for (int k = 0; k < N; ++k) at[k] = begin * p.inner_step[k];
      row(at, begin, end - begin);
    });
  }
  parallel_for(p.rows, std::max<std::int64_t>(1, grain / p.inner), [&](std::int64_t begin, std::int64_t end) {
    std::int64_t index[kMaxBroadcastRank] = {};
    std::int64_t at[N] = {};
    std::int64_t rest = begin;
    for (int i = p.outer - 1; i >= 0; --i) {
      index[i] = rest % p.dims[i];
      rest /= p.dims[i];
      for (int k = 0; k < N; ++k) at[k] += index[i] * p.step[k][i];
    }
    for (std::int64_t r = begin; r < end; ++r) {
      row(at, r * p.inner, p.inner);
      for (int i = p.outer - 1; i >= 0; --i) {
        for (int k = 0; k < N; ++k) at[k] += p.step[k][i];
        if (++index[i] < p.dims[i]) break;
        index[i] = 0;
        for (int k = 0; k < N; ++k) at[k] -= p.step[k][i] * p.dims[i];
      }
    }
  });
}

}  // namespace sdx::cpu
