#include <gtest/gtest.h>

#include <sdx/faces.hpp>

namespace sdx::faces {
namespace {

TEST(Sharpness, OfOnePoint) {
  media::Image picture = media::Image::blank(5, 5, 1);
  picture.row(2)[2] = 10;
  // Nine interior pixels: -40, four times 10, four times 0.
  EXPECT_NEAR(sharpness(picture), (1600.0 + 4 * 100) / 9, 1e-9);
  EXPECT_EQ(sharpness(media::Image::blank(2, 9, 3)), 0);
}

TEST(Sharpness, Levels) {
  EXPECT_EQ(level_of(300), Level::low);
  EXPECT_EQ(level_of(1000), Level::medium);
  EXPECT_EQ(level_of(1000.5), Level::high);
}

}  // namespace
}  // namespace sdx::faces
