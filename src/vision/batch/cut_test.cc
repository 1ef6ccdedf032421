// Faces in pictures that the decoder reduces, with a real detector: pictures full of faces, made from one photo's.

#include "vision/batch/cut.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "vision/cases/cases.h"
#include "vision/crop/turn.h"

namespace sdx::vision::batch {
namespace {

namespace fs = std::filesystem;

class ManyFaces : public ::testing::Test {
 protected:
  void SetUp() override {
    const fs::path folder = cases::folder();
    model_ = folder.parent_path() / "face_yunet/yunet_n_dynamic.onnx";
    if (folder.empty() || !fs::exists(model_)) GTEST_SKIP() << "no detector (SDX_TEST_MODELS)";
    photo_ = media::read_image(folder / "pictures/astronaut.png");
    const faces::Detection found = faces::FaceDetector::load(model_).detect(photo_);
    ASSERT_EQ(found.faces.size(), 1U);
    face_ = found.faces[0];
  }

  faces::FaceDetector detector(int min_face, bool thorough = false, bool any_orientation = false) const {
    faces::DetectorOptions options;
    options.min_face = min_face;
    options.thorough = thorough;
    options.any_orientation = any_orientation;
    return faces::FaceDetector::load(model_, options);
  }

  // Pastes the face, `height` pixels high, with its surroundings, so that the middle of it is at (x, y).
  void paste(media::Image& picture, int x, int y, int height) const {
    faces::CropOptions options;
    options.height = height * 2;
    options.width = height * 2;
    options.face_height = 50;
    const media::Image tile = faces::crop(photo_, face_, options);
    for (int row = 0; row < tile.height; ++row) {
      std::memcpy(picture.row(y - height + row) + static_cast<std::size_t>(x - height) * 3, tile.row(row), tile.stride());
    }
  }

  static media::Image ground(int width, int height) {
    media::Image out = media::Image::blank(width, height);
    std::fill(out.pixels.begin(), out.pixels.end(), std::uint8_t{120});
    return out;
  }

  // A hundred faces of 68 pixels in 4000 x 3000.
  media::Image crowd() const {
    media::Image picture = ground(4000, 3000);
    for (int i = 0; i < 100; ++i) paste(picture, 200 + i % 10 * 400, 150 + i / 10 * 300, 68);
    return picture;
  }

  static faces::Detection found_in(const std::string& file, const faces::FaceDetector& detector) {
    Picture picture(file, false);
    return find_faces(picture, detector);
  }

  fs::path model_;
  media::Image photo_;
  faces::Face face_;
};

TEST_F(ManyFaces, TheSmallestFaceIsInPixelsOfThePicture) {
  const media::Image picture = crowd();
  const std::string jpeg = media::encode_jpeg(picture, 95), png = media::encode_png(picture);
  for (const int min_face : {0, 50, 30}) {
    const faces::FaceDetector d = detector(min_face);
    const faces::Detection reduced = found_in(jpeg, d), whole = found_in(png, d);
    EXPECT_EQ(whole.faces.size(), 100U) << min_face;
    EXPECT_EQ(reduced.faces.size(), 100U) << min_face;
    if (min_face > 0) {
      EXPECT_NEAR(reduced.smallest, whole.smallest, 0.05 * whole.smallest) << min_face;
      EXPECT_LE(whole.smallest, min_face);
    }
    for (const faces::Face& f : reduced.faces) EXPECT_NEAR(f.box.height, 68, 18) << min_face;
  }
  for (const int min_face : {100, 300}) {
    EXPECT_TRUE(found_in(jpeg, detector(min_face)).faces.empty()) << "a minimum is one";
    EXPECT_TRUE(found_in(png, detector(min_face)).faces.empty());
    EXPECT_GE(found_in(png, detector(min_face, true)).faces.size(), found_in(png, detector(min_face)).faces.size());
  }
}

TEST_F(ManyFaces, LargeAndLongPicturesHideNobody) {
  media::Image large = ground(8192, 4096), wide = ground(16000, 900);
  for (int i = 0; i < 6; ++i) paste(large, 1000 + i * 1200, 600 + i * 560, 40);
  for (int i = 0; i < 5; ++i) paste(wide, 1500 + i * 3000, 450, 60 + i * 13);
  for (const media::Image* picture : {&large, &wide}) {
    const faces::Detection found = detector(0, true).detect(*picture);
    EXPECT_EQ(found.faces.size(), picture == &large ? 6U : 5U);
    EXPECT_LE(found.smallest, 10);
  }
  EXPECT_EQ(detector(0).detect(wide).faces.size(), 5U) << "also without being asked";
  EXPECT_EQ(found_in(media::encode_jpeg(wide, 95), detector(0)).faces.size(), 5U);
}

TEST_F(ManyFaces, TurnedPicturesAreSeenAsClosely) {
  const faces::FaceDetector d = detector(0, false, true);
  const media::Image picture = crowd();
  for (const int degrees : {90, 180}) {
    const faces::Detection found = found_in(media::encode_jpeg(turn(picture, degrees), 95), d);
    EXPECT_EQ(found.faces.size(), 100U) << degrees;
    EXPECT_EQ(found.turned, 360 - degrees);
    for (const faces::Face& f : found.faces) {
      EXPECT_EQ(f.turned, found.turned);
      EXPECT_NEAR(degrees == 90 ? f.box.width : f.box.height, 68, 18) << "the side from chin to forehead";
    }
  }
}

}  // namespace
}  // namespace sdx::vision::batch
