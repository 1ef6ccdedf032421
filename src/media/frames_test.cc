#include <gtest/gtest.h>

#include <sstream>

#include "base/error.h"
#include "media/image.h"

namespace sdx::media {
namespace {

Image shade(int value, int width = 32, int height = 16) {
  Image image = Image::blank(width, height);
  std::fill(image.pixels.begin(), image.pixels.end(), static_cast<std::uint8_t>(value));
  return image;
}

std::string ppm(int value) {
  const Image image = shade(value, 5, 3);
  return "P6\n5 3\n255\n" + std::string(image.pixels.begin(), image.pixels.end());
}

std::vector<int> shades(FrameReader& reader) {
  std::vector<int> out;
  while (const auto image = reader.next()) out.push_back(image->pixels[0]);
  return out;
}

TEST(Frames, JpegsFollowEachOther) {
  EncodeOptions with_thumbnail;  // an end of a JPEG inside a segment is none
  with_thumbnail.format = FileFormat::jpeg;
  with_thumbnail.metadata.xmp = encode_jpeg(shade(1, 8, 8));
  std::istringstream in(encode_jpeg(shade(10)) + encode(shade(60), with_thumbnail) + "\r\n--boundary\r\n\r\n" +
                        encode_jpeg(shade(200)));
  FrameReader reader(in);
  const std::vector<int> got = shades(reader);
  ASSERT_EQ(got.size(), 3U);
  EXPECT_NEAR(got[0], 10, 3);
  EXPECT_NEAR(got[1], 60, 3);
  EXPECT_NEAR(got[2], 200, 3);
  EXPECT_EQ(reader.frames(), 3);
  EXPECT_EQ(reader.damaged(), 0);
  EXPECT_EQ(reader.next(), std::nullopt);
}

TEST(Frames, DamagedOnesAreLeftOut) {
  const std::string good = encode_jpeg(shade(100));
  std::string broken = good;
  broken[broken.find("\xFF\xC4") + 2] = '\x7F';  // the length of a table
  for (const std::string& bad : {good.substr(0, good.size() / 2), good.substr(0, good.size() - 2), broken, good.substr(0, 3)}) {
    std::istringstream in(good + bad + good + good);
    FrameReader reader(in);
    EXPECT_EQ(shades(reader).size(), 3U);
    EXPECT_GE(reader.damaged(), 1);
    EXPECT_NE(reader.last_error(), "");
  }
  std::istringstream end(good + good.substr(0, good.size() - 5));
  FrameReader reader(end);
  EXPECT_EQ(shades(reader).size(), 1U);
  EXPECT_EQ(reader.damaged(), 1);
}

TEST(Frames, MapsFollowEachOther) {
  std::istringstream in(ppm(3) + ppm(4) + "P7\nWIDTH 1\nHEIGHT 1\nDEPTH 3\nMAXVAL 255\nENDHDR\nabc" + ppm(5) +
                        ppm(6).substr(0, 30));
  FrameReader reader(in);
  EXPECT_EQ(shades(reader), (std::vector<int>{3, 4, 'a', 5}));
  EXPECT_EQ(reader.damaged(), 1);
}

TEST(Frames, WhatIsNoStreamOfPicturesIsAnError) {
  for (const char* text : {"hello, this is not a picture", "P3\n1 1\n255\n1 2 3\n", "P6\n99999 99999\n255\n", "P6\nx"}) {
    std::istringstream in(text);
    FrameReader reader(in);
    EXPECT_THROW(reader.next(), Error) << text;
  }
  std::istringstream nothing("");
  FrameReader reader(nothing);
  EXPECT_EQ(reader.next(), std::nullopt);
}

TEST(Frames, AFrameHasALimit) {
  FrameLimits limits;
  limits.bytes = 2000;
  std::string large = encode_jpeg(shade(9));
  large.insert(2, "\xFF\xE5\x0F\xFF" + std::string(0x0FFD, 'x'));
  std::istringstream in(large + encode_jpeg(shade(50)));
  FrameReader reader(in, limits);
  EXPECT_EQ(shades(reader).size(), 1U);
  EXPECT_EQ(reader.damaged(), 1);
}

}  // namespace
}  // namespace sdx::media
