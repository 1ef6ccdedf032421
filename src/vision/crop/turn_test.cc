#include "vision/crop/turn.h"

#include <gtest/gtest.h>

#include <sdx/error.hpp>

namespace sdx::vision {
namespace {

using faces::CropOptions;
using faces::Face;
using media::Image;

Image noise(int width, int height, int channels) {
  Image image = Image::blank(width, height, channels);
  for (std::size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<std::uint8_t>(i * i * 2654435761U >> 13);
  return image;
}

Face face_at(float x, float y, float width, float height) {
  Face face{{x, y, width, height}, 1, {}};
  face.points.right_eye = {x + width / 4, y + height / 4};
  face.points.left_eye = {x + width * 3 / 4, y + height / 4 + 2};
  return face;
}

// The same face in the picture turned clockwise by `degrees`.
Face lying(Face face, int degrees, const Image& upright) {
  face.turned = degrees;
  Face out = turned_upright(face, upright.width, upright.height);
  out.turned = 360 - degrees;  // turns it back
  return out;
}

TEST(TurnedFaces, ComeAndGo) {
  const Image upright = noise(100, 60, 3);
  const Face face = face_at(20, 10, 16, 24);
  for (const int degrees : {90, 180, 270}) {
    const Face there = lying(face, degrees, upright);
    const bool lies = degrees != 180;
    EXPECT_EQ(there.box.height, lies ? 16 : 24) << degrees;
    const Face back = turned_upright(there, lies ? 60 : 100, lies ? 100 : 60);
    EXPECT_EQ(back.box.x, 20);
    EXPECT_EQ(back.box.y, 10);
    EXPECT_EQ(back.points.left_eye->y, face.points.left_eye->y);
    EXPECT_EQ(back.turned, 0);
  }
}

TEST(TurnedFaces, HaveTheCropsOfUprightOnes) {
  const Face face = face_at(70, 40, 32, 48);
  for (const int channels : {1, 3, 4}) {
    const Image upright = noise(200, 130, channels);
    for (const faces::Fill fill : {faces::Fill::colour, faces::Fill::edge, faces::Fill::shift}) {
      for (const bool level : {false, true}) {
        CropOptions options;
        options.width = 60;
        options.height = 90;
        options.face_height = 30;  // reaches beyond the picture
        options.fill = fill;
        options.align_eyes = level;
        options.position = faces::Position::rule_of_thirds;
        const Image wanted = faces::crop(upright, face, options);
        for (const int degrees : {90, 180, 270}) {
          const Image picture = turn(upright, degrees);
          const Image got = faces::crop(picture, lying(face, degrees, upright), options);
          EXPECT_EQ(got.pixels, wanted.pixels)
              << degrees << " degrees, " << channels << " channels, fill " << static_cast<int>(fill);
        }
      }
    }
  }
}

TEST(TurnedFaces, NeedAPartOfThePictureAsItIs) {
  const Image upright = noise(400, 300, 3), picture = turn(upright, 90);
  const Face face = lying(face_at(100, 200, 20, 30), 90, upright);
  CropOptions options;
  options.width = options.height = 40;
  const faces::Region need = faces::needed_region(picture.width, picture.height, face, options);
  Image part = Image::blank(need.width, need.height);
  for (int y = 0; y < need.height; ++y) std::copy_n(picture.row(need.y + y) + need.x * 3, part.stride(), part.row(y));
  const Image whole = faces::crop(picture, face, options);
  EXPECT_EQ(faces::crop_part(part, need.x, need.y, picture.width, picture.height, face, options).pixels, whole.pixels);
  EXPECT_THROW(faces::crop_part(part, need.x + 1, need.y, picture.width, picture.height, face, options), Error);
  const faces::Box box = faces::crop_box(face, options);
  EXPECT_NEAR(box.width, 30 / 0.7, 1e-3);
  EXPECT_NEAR(box.x + box.width / 2, face.box.x + face.box.width / 2, 1e-3);
  EXPECT_NEAR(box.y + box.height / 2, face.box.y + face.box.height / 2, 1e-3);
}

TEST(TurnedFaces, OtherAnglesAreErrors) {
  Face face = face_at(10, 10, 20, 20);
  for (const int degrees : {-90, 1, 45, 360}) {
    face.turned = degrees;
    EXPECT_THROW(faces::crop(noise(50, 50, 3), face, {}), Error) << degrees;
    EXPECT_THROW(faces::needed_region(50, 50, face, {}), Error);
  }
}

}  // namespace
}  // namespace sdx::vision
