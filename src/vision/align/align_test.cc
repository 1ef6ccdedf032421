#include <gtest/gtest.h>

#include <limits>

#include <sdx/error.hpp>
#include <sdx/faces.hpp>

#include "vision/cases/cases.h"

namespace sdx::faces {
namespace {

constexpr double kArcFace[15] = {0,       0,       112,     112,     38.2946, 51.6963, 73.5318, 51.5014,
                                 56.0252, 71.7366, 41.5493, 92.3655, 70.7299, 92.2041, 1};

media::Image ramp(int width, int height, int channels) {
  media::Image image = media::Image::blank(width, height, channels);
  for (int y = 0; y < height; ++y) {
    for (int i = 0; i < width * channels; ++i) image.row(y)[i] = static_cast<std::uint8_t>(i / channels + y);
  }
  return image;
}

TEST(Align, TheTemplateItselfIsACopy) {
  const Face face = vision::cases::face_of(kArcFace);
  const Affine m = alignment(face);
  const double expected[6] = {1, 0, 0, 0, 1, 0};
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(m[i], expected[i], 1e-5);
  for (const int channels : {1, 3, 4}) {
    const media::Image out = align(ramp(112, 112, channels), face);
    ASSERT_EQ(out.channels, channels == 1 ? 1 : 3);
    int worst = 0;
    for (int y = 1; y < 111; ++y) {
      for (int x = 1; x < 111; ++x) worst = std::max(worst, std::abs(out.row(y)[x * out.channels] - (x + y)));
    }
    EXPECT_EQ(worst, 0);
  }
}

TEST(Align, BlackOutside) {
  Face face = vision::cases::face_of(kArcFace);
  for (auto* p :
       {&face.points.right_eye, &face.points.left_eye, &face.points.nose, &face.points.right_mouth, &face.points.left_mouth}) {
    (*p)->x -= 56;
  }
  const media::Image out = align(ramp(112, 112, 3), face);
  EXPECT_EQ(out.row(60)[3 * 50], 0);
  EXPECT_NEAR(out.row(60)[3 * 60], 64, 1);
}

TEST(Align, Errors) {
  const media::Image picture = ramp(50, 50, 3);
  Face face = vision::cases::face_of(kArcFace);
  EXPECT_THROW(align(picture, face, 100), Error);
  EXPECT_THROW(align(picture, face, 0), Error);
  EXPECT_THROW(align(picture, face, -112), Error);
  EXPECT_THROW(align(picture, face, 112 * 10000), Error);
  EXPECT_EQ(align(picture, face, 256).width, 256);
  face.points.nose.reset();
  EXPECT_THROW(align(picture, face), Error);
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    face = vision::cases::face_of(kArcFace);
    face.points.nose->x = bad;
    EXPECT_THROW(align(picture, face), Error);
  }
  Face point = vision::cases::face_of(kArcFace);
  for (auto* p : {&point.points.right_eye, &point.points.left_eye, &point.points.nose, &point.points.right_mouth,
                  &point.points.left_mouth}) {
    *p = Point{3, 3};
  }
  EXPECT_THROW(align(picture, point), Error);
  // Points far away, and points that nearly coincide: black or a single colour, but an answer.
  for (auto* p : {&face.points.right_eye, &face.points.left_eye, &face.points.nose}) *p = Point{1e30F, -1e30F};
  EXPECT_EQ(align(picture, face).height, 112);
}

TEST(AlignCases, MatricesAndPixels) {
  if (vision::cases::folder().empty()) GTEST_SKIP() << "no test data (SDX_TEST_MODELS)";
  int count = 0;
  for (const std::string& line : vision::cases::lines("alignment")) {
    const std::string name = vision::cases::text(line, "picture");
    const Face face = vision::cases::faces_of(name).at(static_cast<std::size_t>(vision::cases::number(line, "face")));
    for (const int size : {112, 128, 224}) {
      const auto expected = vision::cases::numbers(line, "matrix_" + std::to_string(size));
      const Affine m = alignment(face, size);
      ASSERT_EQ(expected.size(), 6U);
      for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(m[i], expected[i], i % 3 == 2 ? 1e-2 : 1e-4) << line;
    }
    const media::Image out = align(vision::cases::picture(name), face);
    const media::Image expected = media::read_image(vision::cases::folder() / vision::cases::text(line, "png_112"));
    ASSERT_EQ(out.pixels.size(), expected.pixels.size());
    // Lossy files: libjpeg's versions differ by some levels.
    const int tolerance = name.ends_with(".png") ? 1 : 4;
    int worst = 0;
    for (std::size_t i = 0; i < out.pixels.size(); ++i) worst = std::max(worst, std::abs(out.pixels[i] - expected.pixels[i]));
    EXPECT_LE(worst, tolerance) << name;
    ++count;
  }
  EXPECT_EQ(count, 3);
}

}  // namespace
}  // namespace sdx::faces
