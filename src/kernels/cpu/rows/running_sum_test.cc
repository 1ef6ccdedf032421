#include "kernels/cpu/rows/running_sum.h"

#include <gtest/gtest.h>

#include "support/kernel_problems.h"

namespace sdx::cpu {
namespace {

using test::Guarded;

void check(const RunningSum& s, bool in_place) {
  const std::int64_t n = s.outer * s.axis * s.inner;
  const std::vector<float> values = test::random_floats(n, 1, -3, 3);
  Guarded<float> x(n, 1, values), other(n, 3);
  Guarded<float>& y = in_place ? x : other;
  running_sum_f32(s, x.data(), y.data());
  for (std::int64_t o = 0; o < s.outer; ++o) {
    for (std::int64_t i = 0; i < s.inner; ++i) {
      double total = 0;
      for (std::int64_t a = 0; a < s.axis; ++a) {
        const std::int64_t at = (o * s.axis + (s.reverse ? s.axis - 1 - a : a)) * s.inner + i;
        const double next = total + static_cast<double>(values[static_cast<std::size_t>(at)]);
        ASSERT_EQ(y[at], static_cast<float>(s.exclusive ? total : next))
            << s.outer << " x " << s.axis << " x " << s.inner << ", " << at;
        total = next;
      }
    }
  }
}

TEST(RunningSum, IsThePlainLoop) {
  test::for_each_isa([] {
    for (const std::int64_t inner : {1, 2, 7, 16, 33, 100}) {
      for (const std::int64_t axis : {0, 1, 5, 700}) {
        for (const std::int64_t outer : {0, 1, 3, 9}) {
          for (int variant = 0; variant < 8; ++variant) {
            check({outer, axis, inner, (variant & 1) != 0, (variant & 2) != 0}, (variant & 4) != 0);
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace sdx::cpu
