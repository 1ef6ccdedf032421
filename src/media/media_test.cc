#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "base/error.h"
#include "media/image.h"
#include "media/preprocess.h"
#include "media/resize.h"
#include "tensor/element.h"

namespace sdx::media {
namespace {

std::span<const std::byte> bytes_of(const std::string& s) { return std::as_bytes(std::span<const char>(s)); }

Image gradient(int width, int height, int channels) {
  Image image = Image::blank(width, height, channels);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      std::uint8_t* p = image.row(y) + x * channels;
      p[0] = static_cast<std::uint8_t>(x * 255 / std::max(width - 1, 1));
      if (channels > 1) p[1] = static_cast<std::uint8_t>(y * 255 / std::max(height - 1, 1));
      if (channels > 2) p[2] = 40;
      if (channels > 3) p[3] = static_cast<std::uint8_t>(255 - x);
    }
  }
  return image;
}

// 2 x 2 pixels, lossless: red, green / blue, white; encoded by libwebp.
const unsigned char kWebp[] = {0x52, 0x49, 0x46, 0x46, 0x2C, 0x00, 0x00, 0x00, 0x57, 0x45, 0x42, 0x50, 0x56,
                               0x50, 0x38, 0x4C, 0x1F, 0x00, 0x00, 0x00, 0x2F, 0x01, 0x40, 0x00, 0x00, 0x1F,
                               0x20, 0x10, 0x48, 0xDE, 0x1F, 0x3A, 0x8D, 0xF9, 0x17, 0x10, 0x14, 0xFC, 0x1F,
                               0xDD, 0xFC, 0x47, 0x64, 0x0F, 0xE0, 0x06, 0x0C, 0x11, 0xFD, 0x0F, 0x01, 0x00};

TEST(Image, PngRoundTrips) {
  for (const int channels : {1, 3, 4}) {
    const Image image = gradient(37, 11, channels);
    const Image back = decode_image(bytes_of(encode_png(image)));
    ASSERT_EQ(back.width, 37);
    ASSERT_EQ(back.height, 11);
    ASSERT_EQ(back.channels, channels == 4 ? 4 : 3);
    for (int y = 0; y < 11; ++y) {
      for (int x = 0; x < 37; ++x) {
        for (int c = 0; c < back.channels; ++c) {
          ASSERT_EQ(back.row(y)[x * back.channels + c], image.row(y)[x * channels + (channels == 1 ? 0 : c)]);
        }
      }
    }
  }
}

TEST(Image, JpegComesBackNearly) {
  const Image image = gradient(64, 48, 3);
  const Image back = decode_image(bytes_of(encode_jpeg(image, 95)));
  ASSERT_EQ(back.width, 64);
  ASSERT_EQ(back.height, 48);
  double error = 0;
  for (std::size_t i = 0; i < image.pixels.size(); ++i) error += std::abs(image.pixels[i] - back.pixels[i]);
  EXPECT_LT(error / static_cast<double>(image.pixels.size()), 3);
}

TEST(Image, WebpDecodes) {
  const Image image = decode_image(std::as_bytes(std::span(kWebp)));
  ASSERT_EQ(image.width, 2);
  ASSERT_EQ(image.height, 2);
  ASSERT_EQ(image.channels, 3);
  const std::uint8_t expected[] = {255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255};
  EXPECT_EQ(std::memcmp(image.pixels.data(), expected, sizeof expected), 0);
}

// Inserts an EXIF block with the given orientation behind the JPEG's start marker.
std::string with_orientation(const std::string& jpeg, int orientation, bool big) {
  std::string tiff = big ? std::string("MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0", 19)
                         : std::string("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0", 18);
  tiff += static_cast<char>(orientation);
  tiff += std::string(big ? 2 + 4 : 3 + 4, '\0');
  const std::string body = std::string("Exif\0\0", 6) + tiff;
  std::string marker("\xFF\xE1\0", 3);
  marker += static_cast<char>(body.size() + 2);
  return jpeg.substr(0, 2) + marker + body + jpeg.substr(2);
}

TEST(Image, HonoursExifOrientation) {
  const std::string jpeg = encode_jpeg(gradient(32, 16, 3), 95);
  // The corners at which the stored picture's left upper corner (red 0, green 0) and right lower corner (255, 255) end up.
  const struct {
    int orientation, x, y;
  } cases[] = {{1, 0, 0}, {2, 1, 0}, {3, 1, 1}, {4, 0, 1}, {5, 0, 0}, {6, 1, 0}, {7, 1, 1}, {8, 0, 1}};
  for (const auto& c : cases) {
    for (const bool big : {false, true}) {
      const Image image = decode_image(bytes_of(with_orientation(jpeg, c.orientation, big)));
      EXPECT_EQ(image.width, c.orientation >= 5 ? 16 : 32) << c.orientation;
      const std::uint8_t* dark = image.row(c.y * (image.height - 1)) + c.x * (image.width - 1) * 3;
      const std::uint8_t* light = image.row((1 - c.y) * (image.height - 1)) + (1 - c.x) * (image.width - 1) * 3;
      EXPECT_LT(dark[0] + dark[1], 40) << c.orientation;
      EXPECT_GT(light[0] + light[1], 470) << c.orientation;
    }
  }
}

TEST(Image, RefusesWhatIsNoImage) {
  EXPECT_THROW(decode_image({}), Error);
  EXPECT_THROW(decode_image(bytes_of("GIF89a")), Error);
  EXPECT_THROW(decode_image(bytes_of("\xFF\xD8\xFF\xD9")), Error);
  DecodeLimits tight;
  tight.pixels = 100;
  EXPECT_THROW(decode_image(bytes_of(encode_png(gradient(11, 10, 3))), tight), Error);
  EXPECT_THROW(decode_image(bytes_of(encode_jpeg(gradient(11, 10, 3))), tight), Error);
  EXPECT_THROW(Image::blank(0, 5), Error);
  EXPECT_THROW(Image::blank(5, 5, 2), Error);
}

void mutate(const std::string& good, unsigned seed) {
  std::mt19937 random(seed);
  DecodeLimits limits;
  limits.pixels = 1'000'000;
  int thrown = 0;
  const auto attempt = [&](const std::string& file) {
    try {
      decode_image(bytes_of(file), limits);
    } catch (const Error&) {
      ++thrown;
    }
  };
  for (std::size_t cut = 0; cut + 12 < good.size(); ++cut) attempt(good.substr(0, cut));
  EXPECT_EQ(thrown, static_cast<int>(good.size() - 12)) << "a truncated file was accepted";
  for (int round = 0; round < 1500; ++round) {
    std::string file = good;
    for (unsigned n = random() % 4 + 1; n > 0; --n) file[random() % file.size()] = static_cast<char>(random() & 0xFF);
    attempt(file);
  }
}

TEST(Image, SurvivesDamagedFiles) {
  mutate(encode_png(gradient(23, 17, 4)), 1);
  mutate(encode_jpeg(gradient(23, 17, 3)), 2);
  mutate(std::string(reinterpret_cast<const char*>(kWebp), sizeof kWebp), 3);
}

TEST(Resize, KeepsConstantsAndMeans) {
  Image flat = Image::blank(13, 7);
  std::fill(flat.pixels.begin(), flat.pixels.end(), std::uint8_t{77});
  for (const Filter filter : {Filter::nearest, Filter::bilinear, Filter::bicubic, Filter::area}) {
    for (const bool antialias : {false, true}) {
      for (const auto& [w, h] : {std::pair{1, 1}, {5, 3}, {13, 40}, {100, 2}, {64, 64}}) {
        const Image out = resize(flat, w, h, filter, antialias);
        EXPECT_TRUE(std::all_of(out.pixels.begin(), out.pixels.end(), [](std::uint8_t p) { return p == 77; }))
            << static_cast<int>(filter) << " " << w << "x" << h;
      }
    }
  }
  const Image ramp = gradient(256, 4, 1);
  EXPECT_NEAR(resize(ramp, 1, 1, Filter::area).pixels[0], 127.5, 0.51);
  const Image halves = resize(ramp, 2, 1, Filter::area);
  EXPECT_NEAR(halves.pixels[0], 63.5, 0.51);
  EXPECT_NEAR(halves.pixels[1], 191.5, 0.51);
}

TEST(Resize, BilinearMatchesTheFormula) {
  Image two = Image::blank(2, 1, 1);
  two.pixels = {0, 200};
  // centres of the four pixels lie at 0.25, 0.75, 1.25, 1.75 of the source: weights of the right pixel 0, .25, .75, 1
  EXPECT_EQ(resize(two, 4, 1, Filter::bilinear).pixels, (std::vector<std::uint8_t>{0, 50, 150, 200}));
  EXPECT_EQ(resize(two, 4, 1, Filter::bilinear, false).pixels, (std::vector<std::uint8_t>{0, 50, 150, 200}));
  EXPECT_EQ(resize(two, 4, 1, Filter::nearest).pixels, (std::vector<std::uint8_t>{0, 0, 200, 200}));
  Image four = Image::blank(4, 1, 1);
  four.pixels = {0, 100, 100, 200};
  // triangle of half-width 2 about 1.0: weights 1.5/2, 1.5/2, 0.5/2 of pixels 0, 1, 2 → 3:3:1
  EXPECT_EQ(resize(four, 2, 1, Filter::bilinear).pixels, (std::vector<std::uint8_t>{57, 143}));
  EXPECT_EQ(resize(four, 2, 1, Filter::bilinear, false).pixels, (std::vector<std::uint8_t>{50, 150}));
}

TEST(Resize, LetterboxAndCropReportThePlacement) {
  const Image wide = gradient(40, 20, 3);
  Placement p;
  const Image boxed = letterbox(wide, 20, 20, Filter::bilinear, 9, true, &p);
  EXPECT_EQ(boxed.row(0)[0], 9);
  EXPECT_EQ(boxed.row(19)[0], 9);
  EXPECT_EQ(boxed.row(5)[2], 40);
  EXPECT_DOUBLE_EQ(p.scale_x, 0.5);
  EXPECT_DOUBLE_EQ(p.offset_x, 0);
  EXPECT_DOUBLE_EQ(p.offset_y, 5);
  const Image corner = letterbox(wide, 20, 20, Filter::bilinear, 9, false, &p);
  EXPECT_EQ(corner.row(0)[2], 40);
  EXPECT_DOUBLE_EQ(p.offset_y, 0);
  const Image middle = center_crop(wide, 10, 10, Filter::bilinear, &p);
  EXPECT_EQ(middle.width, 10);
  EXPECT_DOUBLE_EQ(p.scale_y, 0.5);
  EXPECT_DOUBLE_EQ(p.offset_x, -5);
  EXPECT_NEAR(middle.row(0)[0], 64, 8);
  EXPECT_THROW(resize(wide, 0, 4), Error);
}

ValueSpec of_type(DataType dtype) {
  ValueSpec spec;
  spec.dtype = dtype;
  return spec;
}

TEST(Preprocessing, LaysOutChannels) {
  Image image = Image::blank(2, 1);
  image.pixels = {1, 2, 3, 4, 5, 6};
  Preprocessing p;
  p.normalize = "none";
  Tensor t = to_tensor(image, p);
  EXPECT_EQ(t.type_string(), "float32[1,3,1,2]");
  EXPECT_EQ(to_floats(t), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  p.color = Color::bgr;
  EXPECT_EQ(to_floats(to_tensor(image, p)), (std::vector<float>{3, 6, 2, 5, 1, 4}));
  p.layout = Layout::nhwc;
  const ValueSpec bytes = of_type(DataType::uint8);
  t = to_tensor(image, p, &bytes);
  EXPECT_EQ(t.type_string(), "uint8[1,1,2,3]");
  EXPECT_EQ(to_ints(t), (std::vector<std::int64_t>{3, 2, 1, 6, 5, 4}));
  p.color = Color::gray;
  p.layout = Layout::hw;
  EXPECT_EQ(to_tensor(image, p, &bytes).type_string(), "uint8[1,2]");
  p.color = Color::rgb;
  EXPECT_THROW(to_tensor(image, p, &bytes), Error);
}

TEST(Preprocessing, Normalises) {
  Image image = Image::blank(1, 1);
  image.pixels = {255, 0, 128};
  Preprocessing p;
  EXPECT_NEAR(to_floats(to_tensor(image, p))[2], 128 / 255.0, 1e-6);  // nothing is said
  p.normalize = "imagenet";
  auto v = to_floats(to_tensor(image, p));
  EXPECT_NEAR(v[0], (1 - 0.485) / 0.229, 1e-5);
  EXPECT_NEAR(v[1], -0.456 / 0.224, 1e-5);
  EXPECT_NEAR(v[2], (128 / 255.0 - 0.406) / 0.225, 1e-5);
  p.color = Color::bgr;
  EXPECT_NEAR(to_floats(to_tensor(image, p))[2], (1 - 0.485) / 0.229, 1e-5);
  const ValueSpec half = of_type(DataType::float16);
  EXPECT_NEAR(to_floats(to_tensor(image, p, &half))[2], (1 - 0.485) / 0.229, 2e-3);
  p.normalize = "-1-1";
  EXPECT_NEAR(to_floats(to_tensor(image, p))[1], -1, 1e-6);
  p.normalize = "0-1";
  EXPECT_NEAR(to_floats(to_tensor(image, p))[2], 1, 1e-6);
  p.mean = {1, 2};
  EXPECT_THROW(to_tensor(image, p), Error);
  p.mean = {};
  p.deviation = {0};
  EXPECT_THROW(to_tensor(image, p), Error);
  EXPECT_THROW(normalization("imagnet", Color::rgb), Error);
  EXPECT_THROW(parse_layout("nwhc"), Error);
}

TEST(Preprocessing, TellsWhereThePictureLies) {
  const Image wide = gradient(40, 20, 3);
  Preprocessing p;
  p.width = p.height = 20;
  p.fit = Fit::letterbox;
  Placement where;
  to_tensor(wide, p, nullptr, &where);
  EXPECT_DOUBLE_EQ(where.scale_x, 0.5);
  EXPECT_DOUBLE_EQ(where.offset_y, 5);
  Preprocessing middle;
  middle.shorter_side = 10;
  middle.crop_width = middle.crop_height = 8;
  EXPECT_EQ(to_tensor(wide, middle, nullptr, &where).shape(), (Shape{1, 3, 8, 8}));
  EXPECT_DOUBLE_EQ(where.scale_x, 0.5);
  EXPECT_DOUBLE_EQ(where.offset_x, -6);
  EXPECT_DOUBLE_EQ(where.offset_y, -1);
}

TEST(Preprocessing, PicturesThatContradictThemselvesAreErrors) {
  Image image = Image::blank(4, 4);
  image.pixels.pop_back();
  EXPECT_THROW(to_tensor(image), Error);
  EXPECT_THROW(resize(image, 2, 2), Error);
  EXPECT_THROW(encode_png(image), Error);
  EXPECT_THROW(encode_jpeg(image), Error);
  EXPECT_THROW(draw_disc(image, 1, 1, 1, {}), Error);
  EXPECT_THROW(draw_rectangle(image, 0, 0, 2, 2, {}), Error);
}

TEST(Draw, ClipsAtTheEdges) {
  Image image = Image::blank(10, 10);
  draw_rectangle(image, 2, 3, 5, 4, {255, 0, 0}, 1);
  EXPECT_EQ(image.row(3)[2 * 3], 255);
  EXPECT_EQ(image.row(6)[6 * 3], 255);
  EXPECT_EQ(image.row(4)[3 * 3], 0);
  EXPECT_EQ(image.row(7)[2 * 3], 0);
  for (const int at : {INT32_MIN, -5, 0, 8, INT32_MAX}) {
    draw_rectangle(image, at, at, INT32_MAX, INT32_MAX, {1, 2, 3}, 3);
    draw_rectangle(image, at, at, 3, 3, {1, 2, 3}, INT32_MAX);
    draw_disc(image, at, at, INT32_MAX, {4, 5, 6});
    draw_number(image, at, at, "0.97% -", {7, 8, 9}, 3);
  }
  Image digits = Image::blank(12, 5, 1);
  draw_number(digits, 0, 0, "1", {255, 255, 255}, 1);
  EXPECT_EQ(digits.row(0)[1], 255);
  EXPECT_EQ(digits.row(4)[0], 255);
  EXPECT_EQ(digits.row(0)[0], 0);
}

}  // namespace
}  // namespace sdx::media
