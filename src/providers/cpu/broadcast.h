#pragma once
// Shapes that broadcast against each other, as the kernels want them.

#include <array>
#include <cstdint>

#include <sdx/tensor.hpp>

#include "base/error.h"
#include "kernels/cpu/elementwise/broadcast_rows.h"

namespace sdx::cpu {

// Kernels read beyond an operand that does not broadcast to the output.
inline void check_broadcast(const Shape& s, const Shape& out) {
  bool fits = s.size() <= out.size();
  for (std::size_t i = 0; fits && i < s.size(); ++i) fits = s[i] == 1 || s[i] == out[out.size() - s.size() + i];
  if (!fits) {
    fail(ErrorCode::runtime_failure, "an operand of shape {} cannot be broadcast to {}", to_string(s), to_string(out));
  }
}

// The number of elements that a dense operand of shape `s` advances along each dimension of the output: 0 where it is broadcast.
inline void broadcast_steps(const Shape& s, const Shape& out, std::int64_t* to) {
  check_broadcast(s, out);
  std::int64_t run = 1;
  const std::size_t pad = out.size() - s.size();
  for (std::size_t i = out.size(); i-- > 0;) {
    const std::int64_t d = i < pad ? 1 : s[i - pad];
    to[i] = d == 1 ? 0 : run;
    run *= d;
  }
}

// out.size() <= kMaxBroadcastRank.
template <std::size_t N>
RowPlan<static_cast<int>(N)> plan_rows(const std::array<Shape, N>& shapes, const Shape& out) {
  std::int64_t steps[N][kMaxBroadcastRank];
  std::array<const std::int64_t*, N> each;
  for (std::size_t k = 0; k < N; ++k) {
    broadcast_steps(shapes[k], out, steps[k]);
    each[k] = steps[k];
  }
  return plan_rows<static_cast<int>(N)>(static_cast<int>(out.size()), out.data(), each);
}

}  // namespace sdx::cpu
