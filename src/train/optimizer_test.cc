#include <gtest/gtest.h>

#include <sdx/error.hpp>
#include <sdx/train/optimizer.hpp>

namespace sdx::train {
namespace {

TEST(Schedule, RisesAndFallsAsOnnxRuntimesDoes) {
  const Schedule s{ScheduleKind::linear, 4, 12, 0};
  EXPECT_DOUBLE_EQ(factor_at(s, 0), 0);
  EXPECT_DOUBLE_EQ(factor_at(s, 1), 0.25);
  EXPECT_DOUBLE_EQ(factor_at(s, 4), 1);
  EXPECT_DOUBLE_EQ(factor_at(s, 8), 0.5);
  EXPECT_DOUBLE_EQ(factor_at(s, 12), 0);
  EXPECT_DOUBLE_EQ(factor_at(s, 100), 0);
}

TEST(Schedule, CosineEndsWhereItIsTold) {
  const Schedule s{ScheduleKind::cosine, 0, 10, 0.1F};
  EXPECT_DOUBLE_EQ(factor_at(s, 0), 1);
  EXPECT_NEAR(factor_at(s, 5), 0.55, 1e-7);
  EXPECT_NEAR(factor_at(s, 10), 0.1, 1e-7);
  EXPECT_NEAR(factor_at(s, 11), 0.1, 1e-7);
}

TEST(Schedule, WithoutAnEndOrWarmupNothingChanges) { EXPECT_DOUBLE_EQ(factor_at({}, 1000), 1); }

TEST(Optimizer, NamesAreReadAndWritten) {
  for (const char* name : {"adamw", "adam", "sgd", "rmsprop", "adagrad", "lion"})
    EXPECT_STREQ(to_string(optimizer_named(name)), name);
  EXPECT_THROW(optimizer_named("lamb"), Error);
}

}  // namespace
}  // namespace sdx::train
