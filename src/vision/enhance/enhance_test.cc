#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <sdx/error.hpp>
#include <sdx/faces.hpp>

namespace sdx::faces {
namespace {

using media::Image;
using Colour = std::array<int, 3>;

Image flat(int width, int height, Colour colour, int channels = 3) {
  Image image = Image::blank(width, height, channels);
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    const std::size_t c = i % static_cast<std::size_t>(channels);
    image.pixels[i] = static_cast<std::uint8_t>(c == 3 ? 128 : colour[c]);
  }
  return image;
}

Colour at(const Image& image, int x, int y) {
  const std::uint8_t* p = image.row(y) + static_cast<std::ptrdiff_t>(x) * image.channels;
  return {p[0], p[1], p[2]};
}

void put(Image& image, int x, int y, Colour colour) {
  for (int c = 0; c < 3; ++c)
    image.row(y)[x * image.channels + c] = static_cast<std::uint8_t>(colour[static_cast<std::size_t>(c)]);
}

Image noise(int width, int height, int channels, int low = 0, int high = 255) {
  Image image = Image::blank(width, height, channels);
  unsigned state = 12345;
  for (std::uint8_t& v : image.pixels) {
    state = state * 1664525U + 1013904223U;
    v = static_cast<std::uint8_t>(low + static_cast<int>((state >> 16) % static_cast<unsigned>(high - low + 1)));
  }
  return image;
}

Face face_at(float x, float y, float width, float height) {
  Face face{{x, y, width, height}, 1, {}};
  face.points.right_eye = {x + 0.3F * width, y + 0.4F * height};
  face.points.left_eye = {x + 0.7F * width, y + 0.4F * height};
  return face;
}

double roughness(const Image& image, int left, int top, int right, int bottom) {
  double sum = 0;
  for (int y = top; y < bottom; ++y) {
    for (int x = left + 1; x < right; ++x) sum += std::abs(at(image, x, y)[1] - at(image, x - 1, y)[1]);
  }
  return sum;
}

TEST(Enhance, NothingChangesNothing) {
  Image picture = noise(40, 30, 4);
  const Image before = picture;
  const Face face = face_at(5, 5, 20, 20);
  enhance(picture, {}, &face);
  EXPECT_EQ(picture.pixels, before.pixels);
}

TEST(Enhance, GreyWorld) {
  Image picture = flat(20, 20, {120, 100, 80});
  Enhance s;
  s.auto_colour = true;
  enhance(picture, s);
  const Colour c = at(picture, 3, 3);
  EXPECT_NEAR(c[0], c[1], 1);
  EXPECT_NEAR(c[1], c[2], 1);
  EXPECT_NEAR(c[1], 104, 2);  // the luma stays
  // Gains are bounded: hardly any blue is at most doubled.
  picture = flat(20, 20, {200, 200, 10});
  enhance(picture, s);
  EXPECT_EQ(at(picture, 3, 3)[2], 20);
  // A bright coat under neutral light changes little: half of the picture is orange, half grey.
  picture = flat(20, 20, {128, 128, 128});
  for (int i = 0; i < 200; ++i) put(picture, i % 20, i / 20, {230, 90, 20});
  enhance(picture, s);
  for (std::size_t c = 0; c < 3; ++c) EXPECT_NEAR(at(picture, 3, 15)[c], 128, 8);
  // One gain for a whole colour, and not what a histogram would do: a picture of few levels keeps their order and distances.
  picture = flat(2, 1, {100, 100, 100});
  put(picture, 1, 0, {110, 110, 110});
  enhance(picture, s);
  EXPECT_EQ(at(picture, 0, 0), (Colour{100, 100, 100}));
  EXPECT_EQ(at(picture, 1, 0), (Colour{110, 110, 110}));
}

TEST(Enhance, RedEyesAndNothingElse) {
  const Colour skin{200, 140, 115}, red{190, 40, 45};
  Image picture = flat(200, 200, skin);
  const Face face = face_at(50, 50, 100, 100);  // eyes at (80, 90) and (120, 90), 40 apart
  const auto disc = [&](int x, int y) {
    for (int j = -3; j <= 3; ++j) {
      for (int i = -3; i <= 3; ++i) {
        if (i * i + j * j <= 9) put(picture, x + i, y + j, red);
      }
    }
  };
  disc(80, 90);
  disc(120, 90);
  disc(100, 130);  // lips
  disc(20, 20);    // a red thing beside
  Image before = picture;
  Enhance s;
  s.red_eye = true;
  enhance(picture, s);  // no face: nothing
  EXPECT_EQ(picture.pixels, before.pixels);
  enhance(picture, s, &face);
  EXPECT_LT(at(picture, 80, 90)[0], 50);
  EXPECT_LT(at(picture, 120, 91)[0], 50);
  EXPECT_EQ(at(picture, 100, 130), red);
  EXPECT_EQ(at(picture, 20, 20), red);
  EXPECT_EQ(at(picture, 86, 90), skin);
  // All of the neighbourhood is red: no pupil.
  picture = flat(200, 200, red);
  before = picture;
  enhance(picture, s, &face);
  EXPECT_EQ(picture.pixels, before.pixels);
}

TEST(Enhance, ExposureIsInLinearLight) {
  Image picture = flat(2, 2, {100, 188, 255});
  Enhance s;
  s.exposure = 1;
  enhance(picture, s);
  // sRGB 100 is 0.1274 of full light; twice that is 0.2549: 137.6. 188 is 0.5029, and clips.
  EXPECT_EQ(at(picture, 0, 0), (Colour{138, 255, 255}));
  s.exposure = -1;
  enhance(picture, s);
  EXPECT_EQ(at(picture, 0, 0), (Colour{100, 188, 188}));
}

TEST(Enhance, BrightnessContrastSaturation) {
  Image picture = flat(1, 1, {100, 150, 200});
  Enhance s;
  s.brightness = 1.2;
  enhance(picture, s);
  EXPECT_EQ(at(picture, 0, 0), (Colour{120, 180, 240}));
  s = {};
  s.contrast = 0.5;
  enhance(picture, s);
  EXPECT_EQ(at(picture, 0, 0), (Colour{124, 154, 184}));
  s = {};
  s.saturation = 0;
  enhance(picture, s);
  EXPECT_EQ(at(picture, 0, 0), (Colour{148, 148, 148}));
  picture = flat(1, 1, {100, 100, 130}, 4);
  s.saturation = 2;
  enhance(picture, s);
  EXPECT_NEAR(at(picture, 0, 0)[2], 157, 1);
  EXPECT_EQ(picture.pixels[3], 128);
}

TEST(Enhance, SkinIsSmoothedInTheFaceAlone) {
  Image picture = flat(200, 200, {205, 160, 135});
  const Image grain = noise(200, 200, 3, 0, 16);
  for (std::size_t i = 0; i < picture.pixels.size(); ++i)
    picture.pixels[i] = static_cast<std::uint8_t>(picture.pixels[i] + grain.pixels[i] - 8);
  for (int y = 60; y < 140; ++y) {
    for (int x = 100; x < 104; ++x) put(picture, x, y, {40, 35, 30});  // hair
  }
  const Image before = picture;
  const Face face = face_at(50, 50, 100, 100);
  Enhance s;
  s.smooth_skin = 1;
  enhance(picture, s, &face);
  EXPECT_LT(roughness(picture, 70, 80, 95, 120) * 3, roughness(before, 70, 80, 95, 120));
  EXPECT_EQ(roughness(picture, 0, 0, 40, 200), roughness(before, 0, 0, 40, 200));
  EXPECT_EQ(at(picture, 101, 100), (Colour{40, 35, 30}));
  // The edge of the hair stays where it was.
  EXPECT_NEAR(at(picture, 98, 100)[0], 205, 8);
  EXPECT_NEAR(at(picture, 105, 100)[0], 205, 8);
  // Pixels without the colour of skin stay.
  Image blue = noise(200, 200, 3, 100, 110);
  for (std::size_t i = 2; i < blue.pixels.size(); i += 3) blue.pixels[i] = 220;
  const Image same = blue;
  enhance(blue, s, &face);
  EXPECT_EQ(blue.pixels, same.pixels);
}

TEST(Enhance, SharpenSteepensEdges) {
  for (const int channels : {1, 3, 4}) {
    for (const double radius : {0.3, 1.0, 10.0}) {
      Image picture = Image::blank(80, 20, channels);
      for (std::size_t i = 0; i < picture.pixels.size(); ++i) {
        picture.pixels[i] = i / static_cast<std::size_t>(channels) % 80 < 40 ? 80 : 160;
      }
      Enhance s;
      s.sharpen = 1;
      s.sharpen_radius = radius;
      enhance(picture, s);
      EXPECT_EQ(picture.row(10)[0], 80);
      EXPECT_LE(picture.row(10)[39 * channels], 80);
      EXPECT_GE(picture.row(10)[40 * channels], 160);
      if (radius >= 1) {
        EXPECT_LT(picture.row(10)[39 * channels], 70);
      }
      if (channels == 4) {
        EXPECT_EQ(picture.row(10)[39 * 4 + 3], 80);
      }
    }
  }
}

TEST(Enhance, TheBackgroundIsBlurredWithoutTheFacesColours) {
  const Face face = face_at(80, 80, 40, 40);  // in focus: 72 x 80 around (100, 100), soft to half as much more
  for (const double radius : {1.0, 4.0, 15.0, 50.0}) {
    Image picture = noise(200, 200, 3, 100, 140);
    for (int y = 60; y < 140; ++y) {
      for (int x = 64; x < 136; ++x) {
        if (std::hypot((x - 100) / 36.0, (y - 100) / 40.0) < 1) put(picture, x, y, {255, 0, 0});
      }
    }
    const Image before = picture;
    Enhance s;
    s.blur_background = radius;
    enhance(picture, s, &face);
    EXPECT_LT(roughness(picture, 0, 0, 200, 35) * 2, roughness(before, 0, 0, 200, 35)) << radius;
    for (int y = 0; y < 200; ++y) {
      for (int x = 0; x < 200; ++x) {
        const double r = std::hypot((x + 0.5 - 100) / 36.0, (y + 0.5 - 100) / 40.0);
        if (r < 1) {
          ASSERT_EQ(at(picture, x, y), at(before, x, y)) << radius;
        }
        if (r > 1.1) {
          ASSERT_GE(at(picture, x, y)[1], 99) << radius;
        }
      }
    }
  }
}

TEST(Enhance, ExtremeValues) {
  Enhance s = parse_enhance("professional,blur_background=50,sharpen_radius=10,smooth_skin=1");
  constexpr float kHuge = std::numeric_limits<float>::max(), kNan = std::numeric_limits<float>::quiet_NaN();
  for (const int channels : {1, 3, 4}) {
    for (const auto& [width, height] : {std::pair{1, 1}, std::pair{1, 300}, std::pair{300, 1}, std::pair{37, 23}}) {
      for (const Box& box : {Box{0, 0, 1, 1}, Box{-kHuge, -kHuge, kHuge, kHuge}, Box{0, 0, kHuge, kHuge},
                             Box{5, 5, 1e-30F, 1e-30F}, Box{1e9F, 5, 10, 10}, Box{-3, -3, 500, 500}}) {
        Image picture = noise(width, height, channels);
        Face face = face_at(3, 3, 10, 10);
        face.box = box;
        face.points.left_eye = {kHuge, kNan};
        enhance(picture, s, &face);
        face.points.left_eye = {1e20F, -1e20F};
        enhance(picture, s, &face);
        for (const Anonymise method : {Anonymise::blur, Anonymise::mosaic, Anonymise::box}) anonymise(picture, face, method, 10);
        EXPECT_EQ(picture.pixels.size(), static_cast<std::size_t>(width * height * channels));
      }
    }
  }
  Image picture = noise(9, 9, 3);
  Face face = face_at(kNan, 3, 10, 10);
  EXPECT_THROW(enhance(picture, s, &face), Error);
  s.contrast = std::nan("");
  EXPECT_THROW(enhance(picture, s), Error);
}

TEST(ParseEnhance, PresetsAndSettings) {
  EXPECT_FALSE(parse_enhance("none").auto_colour);
  EXPECT_TRUE(parse_enhance("natural").auto_colour);
  EXPECT_GT(parse_enhance("vivid").saturation, 1.2);
  EXPECT_GT(parse_enhance("professional").blur_background, 0);
  const Enhance s = parse_enhance("natural,sharpen=0.8,red_eye=false,exposure=-1.5");
  EXPECT_EQ(s.sharpen, 0.8);
  EXPECT_EQ(s.exposure, -1.5);
  EXPECT_FALSE(s.red_eye);
  EXPECT_TRUE(parse_enhance("auto_colour").auto_colour);
  for (const char* bad : {"", "splendid", "natural,vivid", "sharpen", "sharpen=", "sharpen=3", "sharpen=1x", "sharpen=nan",
                          "red_eye=2", "exposure=2.01", "saturation=-0.1", "natural,,sharpen=1", "=1"}) {
    EXPECT_THROW(parse_enhance(bad), Error) << bad;
  }
}

// The share of the detail inside the face that is left: correlation with the original after means of cells are subtracted.
double likeness(const Image& a, const Image& b, int left, int top, int right, int bottom) {
  double ab = 0, aa = 0, bb = 0;
  for (int y = top; y < bottom; ++y) {
    for (int x = left + 1; x < right; ++x) {
      const double u = at(a, x, y)[1] - at(a, x - 1, y)[1], v = at(b, x, y)[1] - at(b, x - 1, y)[1];
      ab += u * v;
      aa += u * u;
      bb += v * v;
    }
  }
  return aa > 0 && bb > 0 ? std::abs(ab) / std::sqrt(aa * bb) : 0;
}

TEST(Anonymise, DetailIsGoneInsideAndKeptOutside) {
  for (const float size : {6.0F, 20.0F, 60.0F, 120.0F}) {
    for (const Anonymise method : {Anonymise::blur, Anonymise::mosaic, Anonymise::box}) {
      const Face face = face_at(100 - size / 2, 100 - size / 2, size, size);
      const Image before = noise(200, 200, 3);
      Image picture = before;
      anonymise(picture, face, method, 0.1);
      const int inner = static_cast<int>(size * 0.35F);
      EXPECT_LT(likeness(picture, before, 100 - inner, 100 - inner, 100 + inner, 100 + inner), size < 10 ? 0.75 : 0.35) << size;
      EXPECT_LT(roughness(picture, 100 - inner, 100 - inner, 100 + inner, 100 + inner) * 2,
                roughness(before, 100 - inner, 100 - inner, 100 + inner, 100 + inner));
      for (int y = 0; y < 200; ++y) {
        for (int x = 0; x < 200; ++x) {
          const double dx = (x + 0.5 - 100) / (size * 0.6), dy = (y + 0.5 - 100) / (size * 0.6);
          const bool outside =
              method == Anonymise::box ? std::max(std::abs(dx), std::abs(dy)) > 1 + 2 / size : dx * dx + dy * dy > 1.001;
          if (outside) {
            ASSERT_EQ(at(picture, x, y), at(before, x, y)) << x << ' ' << y;
          }
        }
      }
    }
  }
}

TEST(Anonymise, MosaicHasAtMostEightCellsAcrossAFace) {
  Image picture = noise(300, 300, 3);
  anonymise(picture, face_at(50, 50, 200, 200), Anonymise::mosaic, 0);
  int changes = 0;
  for (int x = 51; x < 250; ++x) changes += at(picture, x, 150) != at(picture, x - 1, 150);
  EXPECT_LE(changes, 9);
  EXPECT_GE(changes, 4);
}

TEST(Anonymise, NeverLeavesAFaceForABadBox) {
  Image picture = noise(50, 50, 3);
  EXPECT_THROW(anonymise(picture, face_at(std::nanf(""), 5, 20, 20)), Error);
  EXPECT_THROW(anonymise(picture, face_at(5, 5, 20, std::numeric_limits<float>::infinity())), Error);
  EXPECT_THROW(anonymise(picture, face_at(5, 5, 20, 20), Anonymise::box, -0.1), Error);
  const float huge = std::numeric_limits<float>::max();
  Face all = face_at(0, 0, 50, 50);
  all.box = {-huge, -huge, huge, huge};
  all.box.x = -huge / 2;
  all.box.y = -huge / 2;
  anonymise(picture, all, Anonymise::box);
  EXPECT_EQ(at(picture, 25, 25), (Colour{0, 0, 0}));
}

}  // namespace
}  // namespace sdx::faces
