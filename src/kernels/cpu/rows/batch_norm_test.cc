#include "kernels/cpu/rows/batch_norm.h"

#include <gtest/gtest.h>

#include "base/thread_pool.h"
#include "support/kernel_problems.h"

namespace sdx::cpu {
namespace {

using test::for_each_isa;
using test::Guarded;
using test::random_floats;

// Sums in float lanes: 1e-6 of the sum of magnitudes.
void check(const BatchNormSizes& s, float offset) {
  SCOPED_TRACE(::testing::Message() << s.batch << "x" << s.channels << "x" << s.inner << " around " << offset);
  const std::int64_t size = s.batch * s.channels * s.inner;
  std::vector<float> values = random_floats(size, 1);
  for (float& v : values) v += offset;
  Guarded<float> x(size, 1, values), dy(size, 3, random_floats(size, 2)), scale(s.channels, 5, random_floats(s.channels, 3));
  Guarded<float> mean(s.channels, 7), variance(s.channels, 1), inverse(s.channels, 3);
  Guarded<float> dx(size, 5), dscale(s.channels, 7), dbias(s.channels, 1);
  batch_moments_f32(s, x.data(), mean.data(), variance.data());
  for (std::int64_t c = 0; c < s.channels; ++c) inverse[c] = 1.0F / std::sqrt(variance[c] + 1e-5F);
  batch_norm_grad_f32(s,
                      {dy.data(), x.data(), scale.data(), mean.data(), inverse.data(), dx.data(), dscale.data(), dbias.data()});
  const auto count = static_cast<double>(s.batch * s.inner);
  for (std::int64_t c = 0; c < s.channels; ++c) {
    const auto each = [&](auto&& fn) {
      for (std::int64_t n = 0; n < s.batch; ++n) {
        for (std::int64_t i = 0; i < s.inner; ++i) fn((n * s.channels + c) * s.inner + i);
      }
    };
    double sum = 0, squares = 0, of_dy = 0, of_products = 0;
    each([&](std::int64_t i) { sum += static_cast<double>(x[i]); });
    const double m = sum / count;
    each([&](std::int64_t i) { squares += (x[i] - m) * (x[i] - m); });
    ASSERT_NEAR(mean[c], m, 1e-6 * (1 + std::fabs(m)));
    ASSERT_NEAR(variance[c], squares / count, 1e-6 * (1 + squares / count));
    const double r = static_cast<double>(inverse[c]);
    each([&](std::int64_t i) {
      of_dy += static_cast<double>(dy[i]);
      of_products += dy[i] * (x[i] - static_cast<double>(mean[c])) * r;
    });
    ASSERT_NEAR(dbias[c], of_dy, 1e-6 * (1 + count));
    ASSERT_NEAR(dscale[c], of_products, 1e-5 * (1 + count));
    each([&](std::int64_t i) {
      const double n = (x[i] - static_cast<double>(mean[c])) * r;
      const double expected = scale[c] * r * (dy[i] - of_dy / count - n * of_products / count);
      ASSERT_NEAR(dx[i], expected, 2e-5 * (1 + std::fabs(expected)));
    });
  }
}

TEST(BatchNormTraining, MatchesSumsInDouble) {
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    const PoolScope scope(pool);
    for_each_isa([&] {
      for (const std::int64_t inner : {1, 3, 16, 33, 150}) {
        check({4, 3, inner}, 0);
        check({2, 37, inner}, 10);
      }
    });
  }
}

TEST(BatchNormTraining, NothingHasMomentsOfZero) {
  float mean[2] = {1, 1}, variance[2] = {1, 1};
  batch_moments_f32({0, 2, 5}, nullptr, mean, variance);
  EXPECT_EQ(mean[1], 0.0F);
  EXPECT_EQ(variance[1], 0.0F);
}

}  // namespace
}  // namespace sdx::cpu
