#pragma once
// Walks operands that broadcast to an output of any rank: one call per run of elements through which every operand steps evenly.

#include <array>
#include <cstdint>
#include <vector>

#include <sdx/tensor.hpp>

#include "kernels/cpu/elementwise/broadcast_rows.h"

namespace sdx::cpu {

// Extents and steps with neighbours merged that all N operands step through evenly, without extents of 1. Outermost first.
template <int N>
struct Merged {
  std::vector<std::int64_t> extents;
  std::array<std::vector<std::int64_t>, N> steps;
};

template <int N>
Merged<N> merge(const Shape& out, const std::array<const Shape*, N>& shapes) {
  Merged<N> m;
  std::array<std::int64_t, N> dense{};
  dense.fill(1);
  const std::size_t rank = out.size();
  std::array<std::vector<std::int64_t>, N> steps;
  for (std::size_t k = 0; k < N; ++k) {
    const Shape& shape = *shapes[k];
    steps[k].assign(rank, 0);
    for (std::size_t i = shape.size(); i-- > 0;) {
      if (shape[i] != 1) steps[k][rank - shape.size() + i] = dense[k];
      dense[k] *= shape[i];
    }
  }
  for (std::size_t i = 0; i < rank; ++i) {
    if (out[i] == 1) continue;
    bool merges = !m.extents.empty();
    for (std::size_t k = 0; merges && k < N; ++k) merges = m.steps[k].back() == steps[k][i] * out[i];
    if (merges) {
      m.extents.back() *= out[i];
    } else {
      m.extents.push_back(out[i]);
    }
    for (std::size_t k = 0; k < N; ++k) {
      if (merges) m.steps[k].pop_back();
      m.steps[k].push_back(steps[k][i]);
    }
  }
  return m;
}

// row(const std::int64_t (&at)[N], const std::int64_t (&step)[N], std::int64_t out, std::int64_t n): operand k's elements are
// at[k] + i * step[k] for i < n, the output's out + i; steps are 0 or 1. `grain`: elements that a thread should have at least.
template <int N, class F>
void for_rows(const Shape& out, const std::array<const Shape*, N>& shapes, std::int64_t grain, F&& row) {
  if (element_count(out) == 0) return;
  const Merged<N> m = merge<N>(out, shapes);
  const int rank = static_cast<int>(m.extents.size());
  const int beyond = std::max(0, rank - kMaxBroadcastRank);
  std::array<const std::int64_t*, N> steps;
  for (std::size_t k = 0; k < N; ++k) steps[k] = m.steps[k].data() + beyond;
  const RowPlan<N> plan = plan_rows<N>(rank - beyond, m.extents.data() + beyond, steps);
  const std::int64_t block = plan.rows * plan.inner;
  std::int64_t blocks = 1;
  for (int i = 0; i < beyond; ++i) blocks *= m.extents[static_cast<std::size_t>(i)];
  for (std::int64_t b = 0; b < blocks; ++b) {
    std::int64_t base[N] = {}, rest = b;
    for (int i = beyond - 1; i >= 0; --i) {
      const auto at = static_cast<std::size_t>(i);
      for (std::size_t k = 0; k < N; ++k) base[k] += rest % m.extents[at] * m.steps[k][at];
      rest /= m.extents[at];
    }
    parallel_rows(plan, grain, [&](const std::int64_t(&from)[N], std::int64_t to, std::int64_t n) {
      std::int64_t at[N];
      for (std::size_t k = 0; k < N; ++k) at[k] = base[k] + from[k];
      row(at, plan.inner_step, b * block + to, n);
    });
  }
}

}  // namespace sdx::cpu
