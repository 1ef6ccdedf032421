#include "kernels/cpu/conv/int8/quant_bounded.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "support/kernel_problems.h"

namespace sdx::cpu {
namespace {

TEST(QuantBounded, NoPairCanSaturate) {
  constexpr std::int64_t kPairs = 1600, kColumns = 16;
  std::vector<std::int8_t> panel = test::random_ints<std::int8_t>(kPairs * kColumns * 2, 1);
  for (std::size_t i = 0; i < panel.size(); ++i) {
    if (i % 512 > 1) panel[i] = static_cast<std::int8_t>(panel[i] / 2);
  }
  panel[2] = panel[3] = -128;
  panel[4] = panel[5] = 127;
  const std::vector<std::int8_t> before = panel;
  std::vector<QExcess> excess(static_cast<std::size_t>(most_excess(kPairs)));
  const std::int32_t count = find_excess(panel.data(), kPairs, kColumns, excess.data());
  ASSERT_GT(count, 20);
  cut_excess(panel.data(), kColumns, excess.data(), count);
  for (std::size_t i = 0; i < panel.size(); i += 2) {
    const int w0 = panel[i], w1 = panel[i + 1];
    ASSERT_LE(std::max(w0, 0) + std::max(w1, 0), 128);
    ASSERT_GE(std::min(w0, 0) + std::min(w1, 0), -128);
  }
  // Nothing is lost.
  for (std::int32_t i = 0; i < count; ++i) {
    const QExcess& e = excess[static_cast<std::size_t>(i)];
    const std::size_t at = (e.k / 2U * kColumns + e.column) * 2 + e.k % 2U;
    panel[at] = static_cast<std::int8_t>(panel[at] + e.weight);
  }
  EXPECT_EQ(panel, before);
}

TEST(QuantBounded, TooMuchExcessIsRefused) {
  const std::vector<std::int8_t> panel(160 * 16 * 2, 100);
  std::vector<QExcess> excess(static_cast<std::size_t>(most_excess(160)));
  EXPECT_EQ(find_excess(panel.data(), 160, 16, excess.data()), -1);
}

}  // namespace
}  // namespace sdx::cpu
