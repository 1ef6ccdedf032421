#include "vision/detect/suppress.h"

#include <gtest/gtest.h>

namespace sdx::vision {
namespace {

faces::Face face(float x, float y, float width, float height, float score) { return {{x, y, width, height}, score, {}}; }

std::vector<float> scores(const std::vector<faces::Face>& faces) {
  std::vector<float> out;
  for (const faces::Face& f : faces) out.push_back(f.score);
  return out;
}

TEST(FaceSuppression, BestFirstAndOverlapsGo) {
  const std::vector<faces::Face> candidates{face(0, 0, 10, 10, 0.7F), face(1, 0, 10, 10, 0.9F), face(50, 50, 10, 10, 0.8F),
                                            face(100, 0, 10, 10, 0.6F)};
  EXPECT_EQ(scores(suppress(candidates, Overlap::truncated, 0.6F, 0.3F, 5000)),
            (std::vector<float>{0.9F, 0.8F}));  // 0.6 is not over 0.6
  EXPECT_EQ(scores(suppress(candidates, Overlap::plain, 0.5F, 0.3F, 5000)), (std::vector<float>{0.9F, 0.8F, 0.6F}));
  EXPECT_EQ(scores(suppress(candidates, Overlap::plain, 0.5F, 0.3F, 2)), (std::vector<float>{0.9F, 0.8F}));
  EXPECT_EQ(suppress(candidates, Overlap::plain, 0.5F, 1.0F, 0).size(), 4U);
}

TEST(FaceSuppression, AsOpenCv) {
  // A single candidate is kept with a score of exactly the limit.
  EXPECT_EQ(suppress({face(0, 0, 10, 10, 0.6F)}, Overlap::truncated, 0.6F, 0.3F, 5000).size(), 1U);
  // 10.9 x 1.9 pixels count as 10 x 1. Side by side by half: 5 of 15 are shared, 0.333; untruncated 0.26.
  const std::vector<faces::Face> two{face(0, 0, 10.9F, 1.9F, 0.9F), face(5.9F, 0.9F, 10.9F, 1.9F, 0.8F)};
  EXPECT_EQ(suppress(two, Overlap::truncated, 0.6F, 0.3F, 5000).size(), 1U);
  EXPECT_EQ(suppress(two, Overlap::plain, 0.6F, 0.3F, 5000).size(), 2U);
  // Boxes of less than a pixel are the same.
  EXPECT_EQ(suppress({face(0, 0, 0.5F, 0.5F, 0.9F), face(90, 90, 0.5F, 0.5F, 0.8F)}, Overlap::truncated, 0.6F, 0.3F, 5000).size(),
            1U);
  // Equal scores: the earlier one.
  const auto kept = suppress({face(1, 0, 10, 10, 0.9F), face(0, 0, 10, 10, 0.9F)}, Overlap::truncated, 0.6F, 0.3F, 5000);
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_EQ(kept[0].box.x, 1);
}

TEST(FaceSuppression, LimitsAndPlusOne) {
  // 5 of 15 columns are shared: a third. With sides longer by one: 66 of 176, 0.375.
  const std::vector<faces::Face> two{face(0, 0, 10, 10, 0.9F), face(5, 0, 10, 10, 0.8F)};
  EXPECT_EQ(suppress(two, Overlap::plain, 0.5F, 0.35F, 0).size(), 2U);
  EXPECT_EQ(suppress(two, Overlap::plus_one, 0.5F, 0.35F, 0).size(), 1U);
  // Half of the first: exactly 0.5.
  const std::vector<faces::Face> half{face(0, 0, 10, 10, 0.9F), face(0, 0, 5, 10, 0.8F)};
  EXPECT_EQ(suppress(half, Overlap::plain, 0.5F, 0.5F, 0).size(), 2U);
  EXPECT_EQ(suppress(half, Overlap::or_equal, 0.5F, 0.5F, 0).size(), 1U);
}

TEST(FaceSuppression, WeightedAverages) {
  std::vector<faces::Face> candidates{face(0, 0, 10, 10, 0.6F), face(2, 0, 10, 14, 0.9F), face(50, 0, 10, 10, 0.7F)};
  candidates[0].points.mouth = faces::Point{5, 5};
  candidates[1].points.mouth = faces::Point{10, 5};
  const auto kept = suppress(candidates, Overlap::weighted, 0.5F, 0.3F, 0);
  ASSERT_EQ(scores(kept), (std::vector<float>{0.9F, 0.7F}));
  EXPECT_NEAR(kept[0].box.x, (0 * 0.6 + 2 * 0.9) / 1.5, 1e-5);
  EXPECT_NEAR(kept[0].box.height, (10 * 0.6 + 14 * 0.9) / 1.5, 1e-5);
  ASSERT_TRUE(kept[0].points.mouth);
  EXPECT_NEAR(kept[0].points.mouth->x, (5 * 0.6 + 10 * 0.9) / 1.5, 1e-5);
  EXPECT_FALSE(kept[1].points.mouth);
  EXPECT_NEAR(kept[1].box.x, 50, 1e-4);
}

}  // namespace
}  // namespace sdx::vision
