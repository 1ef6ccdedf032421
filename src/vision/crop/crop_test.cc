#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <sdx/error.hpp>
#include <sdx/faces.hpp>

#include "vision/cases/cases.h"

namespace sdx::faces {
namespace {

using media::Image;

Image painted(int width, int height, int channels, const std::function<int(int, int, int)>& value) {
  Image image = Image::blank(width, height, channels);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) image.row(y)[x * channels + c] = static_cast<std::uint8_t>(value(x, y, c));
    }
  }
  return image;
}

Image noise(int width, int height, int channels) {
  return painted(width, height, channels, [](int x, int y, int c) {
    const unsigned v =
        (static_cast<unsigned>(x) * 73856093U) ^ (static_cast<unsigned>(y) * 19349663U) ^ (static_cast<unsigned>(c) * 83492791U);
    return static_cast<int>((v * 2654435761U) >> 24);
  });
}

int at(const Image& image, int x, int y, int c) { return image.row(y)[x * image.channels + c]; }

CropOptions options(int width, int height, double face_height) {
  CropOptions o;
  o.width = width;
  o.height = height;
  o.face_height = face_height;
  return o;
}

Face with_eyes(const Box& box, double degrees) {
  Face face{box, 1, {}};
  const double angle = degrees * 3.14159265358979 / 180, reach = box.width / 4;
  const double x = box.x + box.width / 2, y = box.y + box.height / 2;
  face.points.right_eye = {static_cast<float>(x - reach * std::cos(angle)), static_cast<float>(y - reach * std::sin(angle))};
  face.points.left_eye = {static_cast<float>(x + reach * std::cos(angle)), static_cast<float>(y + reach * std::sin(angle))};
  return face;
}

// The position of the white square of a black picture in a crop, as shares of its size.
std::array<double, 2> middle_of(const Image& image) {
  double x = 0, y = 0, sum = 0;
  for (int j = 0; j < image.height; ++j) {
    for (int i = 0; i < image.width; ++i) {
      const double v = at(image, i, j, 0);
      x += v * (i + 0.5);
      y += v * (j + 0.5);
      sum += v;
    }
  }
  return {x / sum / image.width, y / sum / image.height};
}

Image spot() {
  return painted(300, 300, 3, [](int x, int y, int) { return x >= 140 && x < 160 && y >= 140 && y < 160 ? 255 : 0; });
}

const Face kSpot{{140, 140, 20, 20}, 1, {}};

TEST(Crop, TheFaceMovesWithTheOffsetsSign) {
  CropOptions o = options(120, 100, 20);
  o.position = Position::custom;
  for (const double x : {-0.6, 0.0, 0.5}) {
    for (const double y : {-0.5, 0.0, 0.75}) {
      o.offset_x = x;
      o.offset_y = y;
      const auto [u, v] = middle_of(crop(spot(), kSpot, o));
      EXPECT_NEAR(u, 0.5 + x / 2, 0.003) << x << ' ' << y;
      EXPECT_NEAR(v, 0.5 + y / 2, 0.003) << x << ' ' << y;
    }
  }
}

TEST(Crop, RuleOfThirdsPutsTheFaceOnTheUpperLine) {
  CropOptions o = options(90, 120, 20);
  o.position = Position::rule_of_thirds;
  const auto [u, v] = middle_of(crop(spot(), kSpot, o));
  EXPECT_NEAR(u, 0.5, 0.003);
  EXPECT_NEAR(v, 1.0 / 3, 0.003);
}

TEST(Crop, OneToOneIsACopy) {
  const Image picture = noise(64, 48, 3);
  const Image out = crop(picture, {{10, 8, 20, 20}, 1, {}}, options(20, 20, 100));
  for (int y = 0; y < 20; ++y) {
    for (int x = 0; x < 60; ++x) ASSERT_EQ(out.row(y)[x], picture.row(y + 8)[30 + x]);
  }
}

TEST(Crop, TheFillHasASharpEdge) {
  CropOptions o = options(40, 40, 50);
  o.colour = {250, 10, 200, 255};
  const Image picture = painted(100, 100, 3, [](int, int, int) { return 90; });
  const Image out = crop(picture, {{-10, -10, 20, 20}, 1, {}}, o);  // 20 pixels to the left and above are outside
  ASSERT_EQ(out.channels, 3);
  for (int y = 0; y < 40; ++y) {
    for (int x = 0; x < 40; ++x) {
      const bool inside = x >= 20 && y >= 20;
      for (int c = 0; c < 3; ++c)
        ASSERT_EQ(at(out, x, y, c), inside ? 90 : o.colour[static_cast<std::size_t>(c)]) << x << ' ' << y;
    }
  }
}

TEST(Crop, EdgeRepeatsThePicturesOwn) {
  CropOptions o = options(40, 40, 50);
  o.fill = Fill::edge;
  const Image out = crop(painted(100, 100, 1, [](int x, int, int) { return x; }), {{-10, 40, 20, 20}, 1, {}}, o);
  for (int x = 0; x < 20; ++x) EXPECT_EQ(at(out, x, 5, 0), 0);
  EXPECT_EQ(at(out, 39, 5, 2), 19);
}

TEST(Crop, BlurGoesOnWithThePicture) {
  CropOptions o = options(80, 80, 50);
  o.fill = Fill::blur;
  const Image picture = noise(100, 100, 3);
  const Image out = crop(picture, {{-20, 30, 40, 40}, 1, {}}, o);
  double inside = 0, outside = 0;
  for (int y = 10; y < 70; ++y) {
    for (int x = 1; x < 38; ++x) outside += std::abs(at(out, x, y, 0) - at(out, x - 1, y, 0));
    for (int x = 42; x < 79; ++x) inside += std::abs(at(out, x, y, 0) - at(out, x - 1, y, 0));
  }
  EXPECT_LT(outside * 20, inside);
  EXPECT_NEAR(at(out, 10, 40, 1), 128, 60);  // of the picture's colours, not black
}

TEST(Crop, ShiftMovesInsideAndShrinksOnlyWhatIsLarger) {
  CropOptions o = options(40, 40, 50);
  o.fill = Fill::shift;
  const Image picture = painted(100, 60, 1, [](int x, int y, int) { return x + y; });
  const Image moved = crop(picture, {{-10, -10, 20, 20}, 1, {}}, o);
  EXPECT_EQ(at(moved, 0, 0, 0), 0);
  EXPECT_EQ(at(moved, 39, 39, 0), 78);                               // not shrunk: a copy of 40 x 40
  const Image large = crop(picture, {{40, 20, 20, 100}, 1, {}}, o);  // 200 high: becomes 60 x 60
  EXPECT_NEAR(at(large, 39, 39, 0) - at(large, 0, 0, 0), 2 * 60 * 39 / 40, 3);
}

TEST(Crop, EyesBecomeLevelWithoutFilledCorners) {
  // Stripes along the eyes' line, which is turned by 20 degrees.
  const double angle = 20 * 3.14159265358979 / 180;
  const Image picture = painted(400, 400, 3, [&](int x, int y, int) {
    const double across = -(x + 0.5) * std::sin(angle) + (y + 0.5) * std::cos(angle);
    return static_cast<int>(127.5 + 100 * std::sin(across / 6));
  });
  CropOptions o = options(150, 150, 60);
  o.align_eyes = true;
  o.colour = {255, 0, 255, 255};
  const Image out = crop(picture, with_eyes({160, 160, 90, 90}, 20), o);
  for (int y = 0; y < 150; ++y) {
    for (int x = 1; x < 150; ++x) {
      ASSERT_NEAR(at(out, x, y, 0), at(out, 0, y, 0), 4) << x << ' ' << y;  // level stripes
      ASSERT_EQ(at(out, x, y, 0), at(out, x, y, 1));                        // nothing of the fill
    }
  }
}

TEST(Crop, ATurnOfNothingIsTheUprightCrop) {
  const Image picture = noise(300, 200, 3);
  CropOptions o = options(70, 90, 70);
  o.align_eyes = true;
  const Image upright = crop(picture, with_eyes({100, 60, 60, 80}, 0), o);
  o.align_eyes = false;
  EXPECT_EQ(upright.pixels, crop(picture, with_eyes({100, 60, 60, 80}, 0), o).pixels);
  // Nearly nothing: two ways of computing the same.
  o.align_eyes = true;
  const Image turned = crop(picture, with_eyes({100, 60, 60, 80}, 0.02), o);
  double sum = 0;
  for (std::size_t i = 0; i < turned.pixels.size(); ++i) sum += std::abs(turned.pixels[i] - upright.pixels[i]);
  EXPECT_LT(sum / static_cast<double>(turned.pixels.size()), 2);
}

TEST(Crop, ShapesAreTransparentOutside) {
  CropOptions o = options(100, 60, 100);
  const Image picture = painted(200, 200, 3, [](int, int, int) { return 77; });
  const Face face{{70, 70, 60, 60}, 1, {}};
  o.shape = Shape::ellipse;
  const Image ellipse = crop(picture, face, o);
  ASSERT_EQ(ellipse.channels, 4);
  EXPECT_EQ(at(ellipse, 0, 0, 3), 0);
  EXPECT_EQ(at(ellipse, 50, 30, 3), 255);
  double opaque = 0;
  int partly = 0;
  for (int y = 0; y < 60; ++y) {
    for (int x = 0; x < 100; ++x) {
      opaque += at(ellipse, x, y, 3) / 255.0;
      partly += at(ellipse, x, y, 3) % 255 != 0;
      ASSERT_EQ(at(ellipse, x, y, 0), 77);
    }
  }
  EXPECT_NEAR(opaque, 3.14159265 * 50 * 30, 6);
  EXPECT_GT(partly, 100);  // an antialiased edge
  o.shape = Shape::rounded;
  o.radius = 0.5;
  opaque = 0;
  const Image rounded = crop(picture, face, o);
  for (int i = 0; i < 6000; ++i) opaque += rounded.pixels[static_cast<std::size_t>(i) * 4 + 3] / 255.0;
  EXPECT_NEAR(opaque, 40 * 60 + 3.14159265 * 30 * 30, 6);
}

TEST(Crop, Channels) {
  const Face face{{5, 5, 10, 10}, 1, {}};
  CropOptions o = options(16, 16, 50);
  EXPECT_EQ(crop(noise(20, 20, 1), face, o).channels, 3);
  EXPECT_EQ(crop(noise(20, 20, 3), face, o).channels, 3);
  EXPECT_EQ(crop(noise(20, 20, 4), face, o).channels, 4);
  o.colour[3] = 0;
  EXPECT_EQ(crop(noise(20, 20, 1), face, o).channels, 4);
}

TEST(Crop, WhatIsTransparentDoesNotBleed) {
  // Opaque green beside transparent red.
  const Image picture =
      painted(100, 100, 4, [](int x, int, int c) { return x < 50 ? (c == 1 || c == 3 ? 255 : 0) : (c == 0 ? 255 : 0); });
  for (const int side : {17, 63, 200}) {
    const Image out = crop(picture, {{10, 10, 80, 80}, 1, {}}, options(side, side, 100));
    for (std::size_t i = 0; i < out.pixels.size(); i += 4) {
      if (out.pixels[i + 3] > 0) {
        ASSERT_EQ(out.pixels[i], 0) << side;
      }
    }
  }
}

TEST(Crop, FlatStaysFlatAtAnyScale) {
  for (const int channels : {1, 3, 4}) {
    const Image picture = painted(400, 300, channels, [](int, int, int c) { return c == 3 ? 255 : 200 - c; });
    for (const double degrees : {0.0, 33.0, 90.0, 180.0}) {
      for (const int side : {7, 30, 66, 150, 600}) {
        CropOptions o = options(side, side, 100);
        o.fill = Fill::edge;
        o.align_eyes = true;
        const Image out = crop(picture, with_eyes({20, 20, 260, 260}, degrees), o);
        for (std::size_t i = 0; i < out.pixels.size(); i += static_cast<std::size_t>(out.channels)) {
          ASSERT_EQ(out.pixels[i], 200) << channels << ' ' << degrees << ' ' << side;
        }
      }
    }
  }
}

TEST(Crop, NothingFinerThanThePixelsIsLeft) {
  // Stripes of one pixel become grey, whichever way they are shrunk.
  const Image picture = painted(900, 900, 1, [](int x, int, int) { return x % 2 == 0 ? 255 : 0; });
  for (const double degrees : {0.0, 25.0}) {
    for (const int side : {25, 60, 110, 200}) {
      CropOptions o = options(side, side, 100);
      o.align_eyes = true;
      const Image out = crop(picture, with_eyes({200, 200, 500, 500}, degrees), o);
      for (const std::uint8_t v : out.pixels) ASSERT_NEAR(v, 127.5, 6) << degrees << ' ' << side;
    }
  }
}

Image part_of(const Image& picture, const Region& r) {
  Image part = Image::blank(r.width, r.height, picture.channels);
  for (int y = 0; y < r.height; ++y) {
    const std::uint8_t* from = picture.row(r.y + y) + static_cast<std::ptrdiff_t>(r.x) * picture.channels;
    std::copy(from, from + part.stride(), part.row(y));
  }
  return part;
}

TEST(Crop, FromThePartThatItNeedsTheSameBits) {
  int turned = 0;
  for (const int channels : {1, 3, 4}) {
    const Image picture = noise(500, 350, channels);
    for (const Fill fill : {Fill::colour, Fill::blur, Fill::edge, Fill::shift}) {
      for (const double degrees : {0.0, 17.0, -140.0}) {
        for (const Box& box : {Box{100, 90, 70, 80}, Box{-30, 200, 90, 120}, Box{400, -400, 200, 220}, Box{10, 10, 480, 330}}) {
          for (const int side : {9, 21, 64, 190}) {
            CropOptions o = options(side, side + 5, 65);
            o.fill = fill;
            o.align_eyes = true;
            const Face face = with_eyes(box, degrees);
            const Region r = needed_region(500, 350, face, o);
            ASSERT_TRUE(r.x >= 0 && r.y >= 0 && r.width >= 1 && r.height >= 1 && r.x + r.width <= 500 && r.y + r.height <= 350);
            const Image whole = crop(picture, face, o);
            ASSERT_EQ(whole.pixels, crop_part(part_of(picture, r), r.x, r.y, 500, 350, face, o).pixels);
            turned += degrees != 0;
            if (r.width > 1) {
              const Image less = part_of(picture, {r.x + 1, r.y, r.width - 1, r.height});
              ASSERT_THROW(crop_part(less, r.x + 1, r.y, 500, 350, face, o), Error);
            }
          }
        }
      }
    }
  }
  EXPECT_GT(turned, 0);
}

TEST(Crop, ExtremeValues) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinite = std::numeric_limits<float>::infinity();
  constexpr float kHuge = std::numeric_limits<float>::max();
  const Image dot = noise(1, 1, 3), strip = noise(2000, 1, 4), picture = noise(50, 40, 3);
  for (const Box& bad : {Box{kNan, 0, 5, 5}, Box{0, kInfinite, 5, 5}, Box{0, 0, kNan, 5}, Box{0, 0, 5, 0}, Box{0, 0, -3, 5}}) {
    EXPECT_THROW(crop(picture, {bad, 1, {}}), Error);
    EXPECT_THROW(needed_region(50, 40, {bad, 1, {}}, {}), Error);
  }
  for (const Box& box : {Box{0, 0, 1, 1}, Box{-1e9F, 1e9F, 3, 3}, Box{kHuge, -kHuge, 10, 10}, Box{0, 0, kHuge, kHuge},
                         Box{-kHuge, -kHuge, kHuge, kHuge}, Box{5, 5, 1e-30F, 1e-30F}, Box{0, 0, 60000, 70000}}) {
    for (const Fill fill : {Fill::colour, Fill::blur, Fill::edge, Fill::shift}) {
      for (const double degrees : {0.0, 45.0}) {
        for (const Image* image : {&dot, &strip, &picture}) {
          CropOptions o = options(33, 20, 1);
          o.fill = fill;
          o.align_eyes = true;
          o.shape = Shape::ellipse;
          Face face = with_eyes({10, 10, 10, 10}, degrees);
          face.box = box;
          const Image out = crop(*image, face, o);
          EXPECT_EQ(out.width * out.height, 33 * 20);
        }
      }
    }
  }
  Face face = with_eyes({10, 10, 10, 10}, 0);
  face.points.left_eye = {kNan, kInfinite};
  CropOptions o;
  o.align_eyes = true;
  EXPECT_EQ(crop(picture, face, o).width, 512);
}

TEST(Crop, OptionsOutOfRange) {
  const Image picture = noise(50, 40, 3);
  const Face face{{10, 10, 10, 10}, 1, {}};
  const auto fails = [&](const std::function<void(CropOptions&)>& change) {
    CropOptions o;
    change(o);
    EXPECT_THROW(crop(picture, face, o), Error);
  };
  fails([](CropOptions& o) { o.width = 0; });
  fails([](CropOptions& o) { o.height = kMaxCropSide + 1; });
  fails([](CropOptions& o) { o.face_height = 0.5; });
  fails([](CropOptions& o) { o.face_height = std::nan(""); });
  fails([](CropOptions& o) { o.position = Position::custom, o.offset_x = 1.5; });
  fails([](CropOptions& o) { o.shape = Shape::rounded, o.radius = 0.6; });
}

TEST(Presets, SizesAndHeads) {
  EXPECT_EQ(preset("linkedin").width, 400);
  EXPECT_EQ(preset("passport").height, 531);
  EXPECT_EQ(preset("us").width, 600);
  EXPECT_EQ(preset("canada").height, 827);
  EXPECT_THROW(preset("nobody"), Error);
  EXPECT_EQ(mm_to_pixels(35, 300), 413);
  EXPECT_EQ(mm_to_pixels(45, 300), 531);
  EXPECT_THROW(mm_to_pixels(-1, 300), Error);
  EXPECT_THROW(mm_to_pixels(1e9, 300), Error);
  // In a Japanese photo the head is 34 of 45 mm, 4 mm below the upper edge; the box its lower four fifths.
  const CropOptions japan = preset("japan");
  const Box face{100, 100, 80, 100};
  const Box part = crop_box(face, japan);
  const double mm = part.height / 45.0;
  EXPECT_NEAR(face.height / 0.8 / mm, 34, 0.01);
  EXPECT_NEAR((face.y + face.height - face.height / 0.8 - part.y) / mm, 4, 0.01);
  for (const Preset& p : presets()) {
    const Box box = crop_box(face, p.options);
    EXPECT_LE(box.y, face.y) << p.name;
    EXPECT_GE(box.y + box.height, face.y + face.height) << p.name;
    EXPECT_FALSE(p.description.empty());
  }
}

TEST(CropCases, Rectangles) {
  if (vision::cases::folder().empty()) GTEST_SKIP() << "no test data (SDX_TEST_MODELS)";
  int count = 0;
  for (const std::string& line : vision::cases::lines("rectangles")) {
    const auto faces = vision::cases::faces_of(vision::cases::text(line, "picture"));
    const auto index = static_cast<std::size_t>(vision::cases::number(line, "face"));
    ASSERT_LT(index, faces.size()) << line;
    const auto size = vision::cases::numbers(line, "output"), offsets = vision::cases::numbers(line, "offsets");
    CropOptions o =
        options(static_cast<int>(size.at(0)), static_cast<int>(size.at(1)), vision::cases::number(line, "face_height_pct"));
    const std::string mode = vision::cases::text(line, "mode");
    o.position = mode == "center" ? Position::center : mode == "custom" ? Position::custom : Position::rule_of_thirds;
    o.offset_x = offsets.at(0);
    o.offset_y = offsets.at(1);
    const Box box = crop_box(faces[index].box, o);
    const auto rect = vision::cases::numbers(line, "rect");
    EXPECT_NEAR(box.x, rect.at(0), 1e-3) << line;
    EXPECT_NEAR(box.y, rect.at(1), 1e-3) << line;
    EXPECT_NEAR(box.width, rect.at(2), 1e-3) << line;
    EXPECT_NEAR(box.height, rect.at(3), 1e-3) << line;
    ++count;
  }
  EXPECT_EQ(count, 350);
}

TEST(CropCases, Rendered) {
  if (vision::cases::folder().empty()) GTEST_SKIP() << "no test data (SDX_TEST_MODELS)";
  for (const std::string& line : vision::cases::lines("rendered")) {
    const std::string name = vision::cases::text(line, "picture");
    const Image picture = vision::cases::picture(name);
    const Face face = vision::cases::faces_of(name).at(static_cast<std::size_t>(vision::cases::number(line, "face")));
    const auto size = vision::cases::numbers(line, "output"), rect = vision::cases::numbers(line, "rect");
    CropOptions o =
        options(static_cast<int>(size.at(0)), static_cast<int>(size.at(1)), vision::cases::number(line, "face_height_pct"));
    if (vision::cases::text(line, "mode") != "center") o.position = Position::rule_of_thirds;
    o.colour = {32, 64, 96, 255};
    const Image out = crop(picture, face, o);
    const Image expected = media::read_image(vision::cases::folder() / vision::cases::text(line, "png"));
    ASSERT_EQ(out.width, expected.width);
    ASSERT_EQ(out.height, expected.height);
    double sum = 0, count = 0;
    const double scale = rect.at(3) / o.height;
    for (int y = 0; y < out.height; ++y) {
      for (int x = 0; x < out.width; ++x) {
        // In pixels of the result, inwards from the picture's border.
        const double u = (rect.at(0) / scale) + x + 0.5, v = (rect.at(1) / scale) + y + 0.5;
        const double border = std::min({u, picture.width / scale - u, v, picture.height / scale - v});
        if (std::abs(border) <= 2) continue;
        for (int c = 0; c < 3; ++c, ++count) sum += std::abs(at(out, x, y, c) - at(expected, x, y, c));
      }
    }
    EXPECT_GT(count, 0);
    EXPECT_LE(sum / count, 4) << line;
    RecordProperty(name, std::to_string(sum / count));
  }
}

}  // namespace
}  // namespace sdx::faces
