#include <gtest/gtest.h>

#include "support/single_op.h"

namespace sdx::ops {
namespace {

TEST(StopGradient, GivesItsInput) {
  const Tensor x = Tensor::of<float>({2, 2}, {1, -2, 0, 4});
  expect_floats(SingleOp("StopGradient", 1, "sdx").checked({x})[0], {1, -2, 0, 4});
  EXPECT_EQ(SingleOp("StopGradient", 1, "sdx").checked({ramp({0, 3})})[0].shape(), Shape({0, 3}));
}

}  // namespace
}  // namespace sdx::ops
