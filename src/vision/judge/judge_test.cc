#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include <sdx/error.hpp>
#include <sdx/faces.hpp>

#include "vision/cases/cases.h"
#include "vision/judge/pose.h"

namespace sdx::faces {
namespace {

using media::Image;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Image grey(int width, int height, int channels, int value) {
  Image image = Image::blank(width, height, channels);
  std::fill(image.pixels.begin(), image.pixels.end(), static_cast<std::uint8_t>(value));
  return image;
}

// The mean face turned, seen from afar, `scale` pixels a mm.
Points seen(double yaw, double pitch, double roll, double scale) {
  const double face[5][3] = {{-31.5, 0, 0}, {31.5, 0, 0}, {0, 39, -32}, {-26, 72, -6}, {26, 72, -6}};
  const double d = std::numbers::pi / 180;
  Point at[5];
  for (int k = 0; k < 5; ++k) {
    // Roll in the face's own plane, then nodding, then turning.
    const double x = face[k][0] * std::cos(roll * d) - face[k][1] * std::sin(roll * d);
    const double y = face[k][0] * std::sin(roll * d) + face[k][1] * std::cos(roll * d);
    const double y2 = y * std::cos(pitch * d) + face[k][2] * std::sin(pitch * d);
    const double z2 = -y * std::sin(pitch * d) + face[k][2] * std::cos(pitch * d);
    at[k] = {static_cast<float>(300 + scale * (x * std::cos(yaw * d) - z2 * std::sin(yaw * d))),
             static_cast<float>(200 + scale * y2)};
  }
  Points p;
  p.right_eye = at[0];
  p.left_eye = at[1];
  p.nose = at[2];
  p.right_mouth = at[3];
  p.left_mouth = at[4];
  return p;
}

TEST(Pose, OfTheMeanFace) {
  for (const double yaw : {-60.0, -20.0, 0.0, 35.0}) {
    for (const double pitch : {-30.0, 0.0, 25.0}) {
      for (const double roll : {-80.0, -15.0, 0.0, 40.0}) {
        const auto pose = vision::estimate_pose(seen(yaw, pitch, roll, 0.7));
        ASSERT_TRUE(pose);
        EXPECT_NEAR(pose->yaw, yaw, 0.02);
        EXPECT_NEAR(pose->pitch, pitch, 0.02);
        EXPECT_NEAR(pose->roll, roll, 0.02);
      }
    }
  }
}

TEST(Pose, Signs) {
  Points p = seen(0, 0, 0, 1);
  p.nose->x += 8;
  EXPECT_GT(vision::estimate_pose(p)->yaw, 5);  // the tip of the nose to the picture's right
  p = seen(0, 0, 0, 1);
  p.nose->y -= 8;
  EXPECT_GT(vision::estimate_pose(p)->pitch, 5);  // and upwards
  p = seen(0, 0, 0, 1);
  p.left_eye->y += 8;  // the eye on the picture's right is lower: clockwise
  EXPECT_GT(vision::estimate_pose(p)->roll, 2);
}

TEST(Pose, NoneFromUselessPoints) {
  EXPECT_FALSE(vision::estimate_pose({}));
  Points p = seen(0, 0, 0, 1);
  p.nose->x = kNan;
  EXPECT_FALSE(vision::estimate_pose(p));
  p.nose.reset();
  EXPECT_FALSE(vision::estimate_pose(p));
  const Point one{5, 5};
  p.right_eye = p.left_eye = p.nose = p.right_mouth = p.left_mouth = one;
  EXPECT_FALSE(vision::estimate_pose(p));
  for (int k = 0; k < 5; ++k) {  // on a line
    auto& q = k == 0 ? p.right_eye : k == 1 ? p.left_eye : k == 2 ? p.nose : k == 3 ? p.right_mouth : p.left_mouth;
    q = Point{static_cast<float>(k), static_cast<float>(2 * k)};
  }
  EXPECT_FALSE(vision::estimate_pose(p));
}

TEST(Judge, ExposureSizeAndWhatLiesOutside) {
  Image picture = grey(100, 100, 3, 51);
  Face face{{10, 10, 30, 40}, 1, seen(10, 0, 0, 1)};
  Quality q = judge(picture, face);
  EXPECT_NEAR(q.exposure, 0.2, 1e-9);
  EXPECT_EQ(q.size_px, 30);
  EXPECT_EQ(q.sharpness, 0);
  EXPECT_EQ(q.level, Level::low);
  EXPECT_NEAR(q.yaw.value(), 10, 0.1);
  face.points.nose.reset();
  EXPECT_FALSE(judge(picture, face).yaw);
  face.box = {-500, 0, 30, 30};
  EXPECT_EQ(judge(picture, face).exposure, 0);
  face.box = {-1e30F, -1e30F, 3e38F, 3e38F};
  EXPECT_NEAR(judge(picture, face).exposure, 0.2, 1e-9);
  face.box.x = kNan;
  EXPECT_THROW(judge(picture, face), Error);
  EXPECT_NEAR(judge(grey(1, 1, 4, 255), {{0, 0, 1, 1}, 1, {}}).exposure, 1, 1e-9);
}

TEST(Judge, SharpnessOfTheBoxAlone) {
  Image picture = grey(100, 50, 1, 100);
  for (int y = 0; y < 50; ++y) {
    for (int x = 50; x < 100; ++x) picture.row(y)[x] = (x + y) % 2 == 0 ? 0 : 255;
  }
  EXPECT_EQ(judge(picture, {{5, 5, 40, 40}, 1, {}}).level, Level::low);
  EXPECT_EQ(judge(picture, {{55, 5, 40, 40}, 1, {}}).level, Level::high);
}

TEST(Pick, Each) {
  Image picture = grey(100, 50, 1, 100);
  for (int y = 0; y < 50; ++y) {
    for (int x = 50; x < 100; ++x) picture.row(y)[x] = (x + y) % 2 == 0 ? 0 : 255;
  }
  const std::vector<Face> faces{
      {{5, 5, 20, 20}, 0.9F, {}}, {{60, 5, 25, 20}, 0.8F, {}}, {{55, 5, 10, 10}, 0.85F, {}}, {{30, 5, 25, 20}, 0.7F, {}}};
  using Indices = std::vector<std::size_t>;
  EXPECT_EQ(pick(picture, faces, Pick::all), (Indices{0, 1, 2, 3}));
  EXPECT_EQ(pick(picture, faces, Pick::largest), Indices{1});  // the first of two equals
  EXPECT_EQ(pick(picture, faces, Pick::best), Indices{2});     // sharp, and the higher score of those
  EXPECT_EQ(pick(picture, faces, Pick::nth, 4), Indices{3});
  EXPECT_EQ(pick(picture, faces, Pick::nth, 5), Indices{});
  EXPECT_EQ(pick(picture, faces, Pick::nth, 0), Indices{});
  EXPECT_EQ(pick(picture, {}, Pick::best), Indices{});
  EXPECT_EQ(left_to_right(faces), (Indices{0, 3, 2, 1}));
  std::vector<Face> bad = faces;
  bad[0].box.width = kNan;
  EXPECT_EQ(pick(picture, bad, Pick::largest), Indices{1});
  EXPECT_EQ(pick(picture, bad, Pick::best), Indices{2});
  EXPECT_EQ(left_to_right(bad), (Indices{3, 2, 1}));
}

TEST(JudgeCases, Sharpness) {
  if (vision::cases::folder().empty()) GTEST_SKIP() << "no test data (SDX_TEST_MODELS)";
  int count = 0;
  for (const std::string& line : vision::cases::lines("quality")) {
    const Image picture = media::read_image(vision::cases::folder() / vision::cases::text(line, "png"));
    EXPECT_NEAR(sharpness(picture), vision::cases::number(line, "variance_luma601"), 0.001) << line;
    const std::string level = vision::cases::text(line, "level");
    EXPECT_EQ(level_of(sharpness(picture)), level == "low"      ? Level::low
                                            : level == "medium" ? Level::medium
                                                                : Level::high)
        << line;
    ++count;
  }
  EXPECT_EQ(count, 18);
}

TEST(JudgeCases, Selection) {
  if (vision::cases::folder().empty()) GTEST_SKIP() << "no test data (SDX_TEST_MODELS)";
  int count = 0;
  for (const std::string& line : vision::cases::lines("selection")) {
    const std::string name = vision::cases::text(line, "picture");
    const auto faces = vision::cases::faces_of(name);
    ASSERT_EQ(faces.size(), static_cast<std::size_t>(vision::cases::number(line, "count"))) << line;
    const Image picture = vision::cases::picture(name);
    EXPECT_EQ(pick(picture, faces, Pick::largest).at(0), static_cast<std::size_t>(vision::cases::number(line, "largest")))
        << line;
    const auto order = left_to_right(faces);
    EXPECT_EQ(std::vector<double>(order.begin(), order.end()), vision::cases::numbers(line, "left_to_right")) << line;
    // On a picture without detail all faces are as good, and the score decides.
    EXPECT_EQ(pick(grey(picture.width, picture.height, 1, 9), faces, Pick::best).at(0),
              static_cast<std::size_t>(vision::cases::number(line, "best_score")))
        << line;
    ++count;
  }
  EXPECT_EQ(count, 6);
}

}  // namespace
}  // namespace sdx::faces
