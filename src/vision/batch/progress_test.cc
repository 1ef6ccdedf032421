#include "vision/batch/progress.h"

#include <gtest/gtest.h>

namespace sdx::vision::batch {
namespace {

TEST(Progress, FitsItsTerminal) {
  EXPECT_EQ(progress_line(50, 100, 25, 100), "[###############               ] 50/100  2.0 a second, 25 s left");
  EXPECT_EQ(progress_line(50, 100, 25, 50), "[#######        ] 50/100  2.0 a second, 25 s left");
  EXPECT_EQ(progress_line(50, 100, 25, 36), "50/100  2.0 a second, 25 s left");
  for (std::size_t columns = 1; columns < 120; ++columns) {
    EXPECT_LT(progress_line(123'456, 1'000'000, 99'999, columns).size(), columns);
    EXPECT_LT(progress_line(123'456, 0, 99'999, columns).size(), columns);
  }
}

TEST(Progress, KnowsItsEnds) {
  EXPECT_EQ(progress_line(0, 3, 0, 60), "[                              ] 0/3");
  EXPECT_EQ(progress_line(3, 3, 1.5, 60), "[#############################] 3/3  2.0 a second, 0 s left");
  EXPECT_EQ(progress_line(7, 0, 3.5, 60), "7 pictures, 2.0 a second");
}

}  // namespace
}  // namespace sdx::vision::batch
