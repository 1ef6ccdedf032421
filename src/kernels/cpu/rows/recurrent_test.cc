#include "kernels/cpu/rows/recurrent.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/kernel_problems.h"

namespace sdx::cpu {
namespace {

using test::for_each_isa;
using test::Guarded;
using test::random_floats;

TEST(KernelsRecurrent, LstmAndGruCells) {
  const auto sig = [](double x) { return 1 / (1 + std::exp(-x)); };
  for_each_isa([&] {
    for (const std::int64_t n : {1, 7, 16, 37}) {
      for (const bool peep : {false, true}) {
        const float limit = peep ? 0.8F : 0.0F;
        Guarded<float> g(4 * n, 1, random_floats(4 * n, 1, -3, 3)), p(3 * n, 1, random_floats(3 * n, 2)),
            c(n, 1, random_floats(n, 3)), h(n, 2);
        const std::vector<float> before(c.data(), c.data() + n);
        lstm_cell_f32(g.data(), peep ? p.data() : nullptr, limit, c.data(), c.data(), h.data(), n);
        for (std::int64_t i = 0; i < n; ++i) {
          const auto clamp = [&](double v) {
            return peep ? std::clamp(v, -static_cast<double>(limit), static_cast<double>(limit)) : v;
          };
          const double c0 = before[static_cast<std::size_t>(i)];
          const double in = sig(clamp(g[i] + (peep ? p[i] * c0 : 0)));
          const double forget = sig(clamp(g[2 * n + i] + (peep ? p[2 * n + i] * c0 : 0)));
          const double c1 = forget * c0 + in * std::tanh(clamp(g[3 * n + i]));
          const double o = sig(clamp(g[n + i] + (peep ? p[n + i] * c1 : 0)));
          ASSERT_NEAR(c[i], c1, 1e-6);
          ASSERT_NEAR(h[i], o * std::tanh(c1), 1e-6);
        }
        gru_combine_f32(g.data(), g.data() + n, c.data(), h.data(), n);
        for (std::int64_t i = 0; i < n; ++i) ASSERT_NEAR(h[i], (1 - sig(g[i])) * std::tanh(g[n + i]) + sig(g[i]) * c[i], 1e-6);
      }
    }
  });
}

}  // namespace
}  // namespace sdx::cpu
