// Formats that are read and not written, or read from files of other programs: Pillow, libjxl's cjxl. The picture in them has 12
// x 9 pixels of red 20 x, green 28 y and blue 10 (x + y), or a palette of it.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>
#include <vector>

#include "base/error.h"
#include "media/codecs.h"
#include "media/image.h"
#include "support/errors.h"

namespace sdx::media {
namespace {

constexpr const char* kPaletteGif =
    "4749463837610c000900830000bed2aabea89b78c482be7e8c787e6928d25f28a8503c7e4b0a7e32be4678be1c697838"
    "50a0005028462d281c1e2800142c000000000c00090000084e001f0814b8808141060a143858b870814384091b486ce0"
    "d061828b092636385011630204080e8824407280c90120451e2049e0244a03300d089819a0668002380bcc9c09a02780"
    "9c3877fa041010003b";
constexpr const char* kInterlacedGif =
    "4749463837610c000900830000bed2aabea89b78c482be7e8c787e6928d25f28a8503c7e4b0a7e32be4678be1c697838"
    "50a0005028462d281c1e2800142c000000000c00090000084e001f0814b8808141060a143858b870814384091b486ce0"
    "d061828b092636385011630204080e8824407280c90120451e2049e0244a03300d089819a0668002380bcc9c09a02780"
    "9c3877fa041010003b";
constexpr const char* kClearGif =
    "4749463839610c000900810000ff000000ff0000000000000021f90401000000002c000000000c00090000081a000108"
    "1c48b0a041830112263ca87021c28607234a9c48f16040003b";
constexpr const char* kAnimatedGif =
    "4749463837610c000900820000bec4a578c482a07e7d28c45a287e41a03864a00050282a232c000000000c0009000008"
    "3c000f081468a0a041030307162cc0b040c2030d230e24402022430114331210c0b1a3c68d1d39021840926480930200"
    "a82c69f2a4ca95254fba7c19100021f90401000008002c000000000c00090082e1e3e69be3c3c39dbe4be39b4b9d82c3"
    "57a5c31f914b4964083a0001080410a060800108070c24583021c281020c3a5428a0a2450218315abc985163818f2031"
    "1e1809b2e4c893250d18387952a54b952c0f0404003b";
constexpr const char* kRunsTga =
    "00000a0000000000000000000c00090018000b50e0005ae01464e0286ee03c78e05082e0648ce07896e08ca0e0a0aae0"
    "b4b4e0c8bee0dc0b46c40050c4145ac42864c43c6ec45078c46482c4788cc48c96c4a0a0c4b4aac4c8b4c4dc0b3ca800"
    "46a81450a8285aa83c64a8506ea86478a87882a88c8ca8a096a8b4a0a8c8aaa8dc0b328c003c8c14468c28508c3c5a8c"
    "50648c646e8c78788c8c828ca08c8cb4968cc8a08cdc0b2870003270143c702846703c5070505a70646470786e708c78"
    "70a08270b48c70c89670dc0b1e54002854143254283c543c4654505054645a547864548c6e54a07854b48254c88c54dc"
    "0b1438001e381428382832383c3c38504638645038785a388c6438a06e38b47838c88238dc0b0a1c00141c141e1c2828"
    "1c3c321c503c1c64461c78501c8c5a1ca0641cb46e1cc8781cdc0b0000000a00141400281e003c2800503200643c0078"
    "46008c5000a05a00b46400c86e00dc000000000000000054525545564953494f4e2d5846494c452e00";
constexpr const char* kPaletteTga =
    "0001010000100018000000000c0009000800aad2be9ba8be82c4788c7ebe697e785fd22850a8284b7e3c327e0a7846be"
    "691cbe5038785000a02d46281e1c28140028050505050502020200000000050505050202020200000000080606060602"
    "0202010101010808070707040404030303030808070707040404030303030d0d0d0d070b0b0b090909090d0d0d0d0b0b"
    "0b0b090909090e0e0e0e0e0b0b0b0c0a0a0a0f0f0f0f0f0b0c0c0c0c0a0a000000000000000054525545564953494f4e"
    "2d5846494c452e00";
constexpr const char* kAnimatedWebp =
    "524946468e01000057454250565038580a000000020000000b0000080000414e494d06000000000000000000414e4d46"
    "ac0000000000000000000b0000080000000000025650384c930000002f0b0002005fa3a66d03a640d2c19f6bffa1100b"
    "26ddf3a7896efeeb200500000000d81d00000e0300205a4dd96eb66ddbb66d23a2ff019092de114c953bd3dd1da46483"
    "3394ae7467fb07442b8cae70a6da9b1f9e30a334b923d95a7f717c21accaec89e6ea83e5e98d726a8b37966f0c57e70f"
    "c66bacbe78a1395a5fbeb8a0b5f913c5d67873fd11a2ce1e4896da93eded0f00414e4d46ae0000000000000000000b00"
    "00080000000000005650384c960000002f0b0002005f432660516443ffae7e81408a83d860b160f2cf2aede8e6bf0ebd"
    "00000000006b070080c30000885653b69b6ddbb66ddb88e87ffc6fdb49bb940cd87522f1bb6ec6ad62c26fd30af8f7b2"
    "1e350b719f55c3639ff36ad8c8c7bc163587be4fcb413d17f598552cf23a2efab56cc46d5232f0f330ef553361975141"
    "438ffdac5b49879c069902efbb69a79c0a3af4120900";
constexpr const char* kJxl =
    "ff0a403010505c0808020100f8004b386898c283f715144c00281a6363ec4a003c80dab3b205809ba931c618b3e6623c"
    "66d91f12fd33468f104270ff08218410bacba3f752a7de7b0150ee05";
constexpr const char* kOpaqueJxl =
    "ff0a4030b0a0b8100808100024014b386898c283f715144c00281aa362ec4a233c801aa3d01b8071693bc618633c81fe"
    "186dcfcaf28e388f10f2d24208218410ba46b7f7e65ade7bed3beed5eb44082184104208294003";
constexpr const char* kGreyJxl =
    "ff0a4030101417020802010094004b2824c6b71524048c48628cc11a11515191a3009e1ae15f20acd3f4778b7e3f2d65"
    "0a2025";
constexpr const char* kAnimatedJxl =
    "ff0a4030c100028a4b02080292090000f8004b386898c283f715144c00281a6363ec4a003c80dab3b205809ba931c618"
    "b3e6623c66d91f12fd33468f104270ff08218410bacba3f752a7de7b0150ee05080292050010014b386898c283fb1414"
    "4c002b711075638c8d8df10ea03e5207003037f95ff9807befbd0c24f762be07c09a2b002b669c73ce7ada39e79c7370"
    "a528c676db1863d84b8c01";
constexpr const char* kTurnedJxl =
    "0000000c4a584c200d0a870a00000014667479706a786c20000000006a786c20000000136a786c7000000000ff0a4030"
    "0bc404000001e36a627264c070db008220082d0302403400a1468190ab4a000040c851d982a138ff27888c11ca38a714"
    "b41f214398a50e32cc40e90e35581f329c7ccc80430e2a2c72d0b003db470dfdfb23cb1c76dc8186a2fb5f8c71c62497"
    "6cf2c928a73c33cd35db7c33ce390b3d34d1451b7d34d2494b3d35d5555b7d35d6598b3d36d9659b7d36da69cb3d37dd"
    "75db7d37de790b3e38e1851b7e38e289472ef9e494576ef9e598671ebae8a3935ebae9a7a39e7aecb2cf4e7bedb6df8e"
    "7beec10b3f3cf1c51b7f3cf2c9472ffdf4d4576ffdf5d8670f7ef8e28f4f7ef9e69f8f7efaf0c72ffffcf4d76ffffdf8"
    "e7ffaf60aaaa040040c851d982a138ff2f8884524659a71489f18090cda841864975a0a17ab0e1dc438e1950900f1a72"
    "d06107361659e6a8dfedc38e1b5ad11f7966f04986f7bf18e38c4b36f9649453a6b9669b6fc63967a18726ba68a38f46"
    "3a69a9a7a6ba6aabafc63a6bb1c726bb6cb3cf463b6db9e7a6bb6ebbefc63befc0051f9cf0c20d3f1cf1c423977c72ca"
    "2bb7fc72cc330f5df4d1492fddf4d3514f3d76d967a7bd76db6fc73df7e0851f9ef8e28d3f1ef9e4a3977e7aeaabb7fe"
    "7aecb30f5ffcf1c92fdffcf3d14f3f7ef9e7a7bf7efbefc73fff7f811f00a82c000b0880e000104a4649460001010000"
    "0100010000030000004062726f62457869661b2f0000046a6ef7b0311a1b25184c9d120c269be09003f6ec4b282c0b3c"
    "86ef947804c80cbb9f980a13912e356e6bd173e7dd0f000000fd6a786c7080000001e05b021000a803086008600860fe"
    "ff0e0000180008000100000000008080258922e3d80969ee58010046a4a0a02b1011c3e8e8e81883b5a26230242924c4"
    "60a5e8e86888a9a19f09580029089c0030b0f540cb0601a40c80423801c490b0dc010ca80300084601107b0000000000"
    "0000000000f233c561bc20d62eda3603ce9c48c780a4000a8815000c82b00fa0348600f0640240020700000046000000"
    "000000000000000000000028a4c08e5622452a2a2a06835112c518a3146324bb419a0028a8ff8372fffc2dfb8c5a8091"
    "edeeaf9f05a360038153eb9b192c75e0e6e3de921352548a8bffb4650da1c2f50a960e";

std::string unhexed(std::string_view hex) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) out += static_cast<char>(digit(hex[i]) << 4 | digit(hex[i + 1]));
  return out;
}

std::span<const std::byte> bytes_of(const std::string& s) { return std::as_bytes(std::span<const char>(s)); }

using Pixel = std::vector<int>;

Pixel at(const Image& image, int x, int y) {
  const std::uint8_t* p = image.row(y) + x * image.channels;
  return {p, p + image.channels};
}

void expect_pattern(const Image& image, int tolerance, const char* what) {
  ASSERT_EQ(image.width, 12) << what;
  ASSERT_EQ(image.height, 9) << what;
  for (int y = 0; y < 9; ++y) {
    for (int x = 0; x < 12; ++x) {
      const Pixel p = at(image, x, y);
      ASSERT_NEAR(p[0], 20 * x, tolerance) << what << " at " << x << ", " << y;
      ASSERT_NEAR(p[1], 28 * y, tolerance) << what << " at " << x << ", " << y;
      ASSERT_NEAR(p[2], 10 * (x + y), tolerance) << what << " at " << x << ", " << y;
    }
  }
}

DecodedImage decoded(const std::string& file, std::string_view format) {
  const ImageInfo info = probe_image(bytes_of(file));
  EXPECT_EQ(info.format, format);
  DecodedImage out = decode_picture(bytes_of(file));
  EXPECT_EQ(out.format, format);
  EXPECT_EQ(info.width, out.image.width);
  EXPECT_EQ(info.height, out.image.height);
  EXPECT_EQ(info.alpha, out.image.channels == 4);
  return out;
}

// Every beginning of the file, and every byte changed: an error or a picture, never anything else.
void expect_no_harm(const std::string& file) {
  DecodeLimits limits;
  limits.pixels = 100'000;
  const auto attempt = [&](const std::string& bytes) {
    try {
      decode_image(bytes_of(bytes), limits);
    } catch (const Error& e) {
      EXPECT_NE(e.code(), ErrorCode::internal) << e.what();
    }
  };
  for (std::size_t size = 0; size < file.size(); ++size) attempt(file.substr(0, size));
  for (std::size_t i = 0; i < file.size(); ++i) {
    for (const int change : {0x01, 0x80, 0xFF}) {
      std::string damaged = file;
      damaged[i] = static_cast<char>(damaged[i] ^ change);
      attempt(damaged);
    }
  }
}

// ---- GIF

TEST(Gif, PalettesAreRead) {
  const Image image = decoded(unhexed(kPaletteGif), "gif").image;
  EXPECT_EQ(image.channels, 3);
  EXPECT_EQ(at(image, 0, 0), (Pixel{40, 0, 20}));
  EXPECT_EQ(at(image, 11, 8), (Pixel{190, 210, 170}));
  int sum = 0;
  for (const std::uint8_t v : image.pixels) sum += v;
  EXPECT_EQ(sum, 34541);
  EXPECT_EQ(decoded(unhexed(kInterlacedGif), "gif").image.pixels, image.pixels) << "in another order of rows";
}

TEST(Gif, WhatIsTransparentIs) {
  const Image image = decoded(unhexed(kClearGif), "gif").image;
  ASSERT_EQ(image.channels, 4);
  EXPECT_EQ(at(image, 0, 0)[3], 0);
  EXPECT_EQ(at(image, 4, 3), (Pixel{0, 255, 0, 255}));
}

TEST(Gif, OfAnAnimationTheFirstPictureIsRead) {
  const std::string file = unhexed(kAnimatedGif);
  EXPECT_TRUE(probe_image(bytes_of(file)).animation);
  EXPECT_FALSE(probe_image(bytes_of(unhexed(kPaletteGif))).animation);
  EXPECT_EQ(at(decoded(file, "gif").image, 4, 3), (Pixel{40, 126, 65}));
}

// A GIF of 256 colours with codes as its own encoder makes them: their table fills up and is used full.
std::string packed_gif(const std::vector<std::uint8_t>& indices, int width, int height, int left, int top, int canvas) {
  const auto two = [](int v) { return std::string{static_cast<char>(v & 255), static_cast<char>(v >> 8)}; };
  std::string out = "GIF89a" + two(canvas) + two(canvas) + std::string("\xF7\0\0", 3);
  for (int i = 0; i < 256; ++i) out += {static_cast<char>(i), static_cast<char>(255 - i), static_cast<char>(i / 2)};
  out += "," + two(left) + two(top) + two(width) + two(height) + std::string("\0\x08", 2);
  std::string data;
  std::uint32_t bits = 0;
  int have = 0, size = 9;
  const auto put = [&](int code) {
    bits |= static_cast<std::uint32_t>(code) << have;
    for (have += size; have >= 8; have -= 8, bits >>= 8) data += static_cast<char>(bits & 255);
  };
  std::vector<std::pair<int, int>> table;  // prefix and index of code 258 + i
  put(256);
  int last = -1;
  for (const std::uint8_t index : indices) {
    const auto found = std::find(table.begin(), table.end(), std::pair{last, int{index}});
    if (last < 0 || found != table.end()) {
      last = last < 0 ? index : 258 + static_cast<int>(found - table.begin());
      continue;
    }
    put(last);
    if (table.size() < 4096 - 258) {
      table.emplace_back(last, index);
      if (258 + table.size() > std::size_t{1} << size && size < 12) ++size;
    }
    last = index;
  }
  put(last);
  put(257);
  have = (have + 7) / 8 * 8;
  data += static_cast<char>(bits & 255);
  for (std::size_t i = 0; i < data.size(); i += 255) {
    const std::string block = data.substr(i, 255);
    out += static_cast<char>(block.size()) + block;
  }
  return out + std::string("\0;", 2);
}

TEST(Gif, LongCodesAreRead) {
  std::minstd_rand random(1);
  std::vector<std::uint8_t> indices(160 * 160);
  for (std::uint8_t& i : indices) i = static_cast<std::uint8_t>(random() % 7 == 0 ? random() % 256 : 3);
  const Image image = decoded(packed_gif(indices, 160, 160, 0, 0, 160), "gif").image;
  ASSERT_EQ(image.channels, 3);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    ASSERT_EQ(image.pixels[i * 3], indices[i]) << i;
    ASSERT_EQ(image.pixels[i * 3 + 1], 255 - indices[i]);
  }
}

TEST(Gif, APartOfTheCanvasLeavesTheRestTransparent) {
  const Image image = decoded(packed_gif(std::vector<std::uint8_t>(6, 200), 3, 2, 4, 5, 10), "gif").image;
  ASSERT_EQ(image.channels, 4);
  ASSERT_EQ(image.width, 10);
  EXPECT_EQ(at(image, 0, 0), (Pixel{0, 0, 0, 0}));
  EXPECT_EQ(at(image, 4, 5), (Pixel{200, 55, 100, 255}));
  EXPECT_EQ(at(image, 6, 6)[3], 255);
  EXPECT_EQ(at(image, 7, 6)[3], 0);
  // A canvas that is too small grows.
  EXPECT_EQ(decoded(packed_gif(std::vector<std::uint8_t>(6, 200), 3, 2, 4, 5, 1), "gif").image.width, 7);
}

TEST(Gif, DamagedFilesAreErrors) {
  for (const char* file : {kPaletteGif, kClearGif, kAnimatedGif}) expect_no_harm(unhexed(file));
  const std::string whole = unhexed(kPaletteGif);
  EXPECT_THROW(decode_image(bytes_of(whole.substr(0, whole.size() - 20))), Error) << "never half a picture";
  EXPECT_THROW(decode_image(bytes_of(std::string("GIF89a\x05\0\x05\0\0\0\0;", 14))), Error) << "none";
}

// ---- TGA

std::string tga(int kind, int bits, int flags, const std::string& pixels, int width, int height) {
  std::string out(18, '\0');
  out[2] = static_cast<char>(kind);
  out[12] = static_cast<char>(width);
  out[14] = static_cast<char>(height);
  out[16] = static_cast<char>(bits);
  out[17] = static_cast<char>(flags);
  return out + pixels;
}

TEST(Tga, RunsAndPalettesAreRead) {
  expect_pattern(decoded(unhexed(kRunsTga), "tga").image, 0, "runs");
  const Image palette = decoded(unhexed(kPaletteTga), "tga").image;
  EXPECT_EQ(palette.pixels, decode_image(bytes_of(unhexed(kPaletteGif))).pixels);
}

TEST(Tga, DirectionsAndDepthsAreRead) {
  const std::string four = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};  // blue, green, red
  EXPECT_EQ(at(decoded(tga(2, 24, 0, four, 2, 2), "tga").image, 0, 1), (Pixel{3, 2, 1})) << "from below";
  EXPECT_EQ(at(decoded(tga(2, 24, 32, four, 2, 2), "tga").image, 0, 0), (Pixel{3, 2, 1}));
  EXPECT_EQ(at(decoded(tga(2, 24, 48, four, 2, 2), "tga").image, 1, 0), (Pixel{3, 2, 1})) << "from the right";
  EXPECT_EQ(at(decoded(tga(2, 32, 40, four, 3, 1), "tga").image, 1, 0), (Pixel{7, 6, 5, 8}));
  EXPECT_EQ(at(decoded(tga(2, 32, 32, four, 3, 1), "tga").image, 1, 0), (Pixel{7, 6, 5})) << "without opacity";
  EXPECT_EQ(at(decoded(tga(3, 8, 32, four, 4, 3), "tga").image, 1, 1), (Pixel{6, 6, 6}));
  EXPECT_EQ(at(decoded(tga(3, 16, 40, four, 2, 3), "tga").image, 1, 1), (Pixel{7, 7, 7, 8}));
  const std::string fifteen{'\x1F', '\x7C'};  // red and blue in full
  EXPECT_EQ(at(decoded(tga(2, 16, 32, fifteen, 1, 1), "tga").image, 0, 0), (Pixel{255, 0, 255}));
}

TEST(Tga, WhatMakesNoSenseIsNone) {
  const std::string four(12, 'x');
  EXPECT_EQ(image_format(bytes_of(tga(2, 24, 0, four, 2, 2))), "tga");
  EXPECT_EQ(image_format(bytes_of(tga(2, 24, 0, four, 2, 3))), "") << "too short";
  EXPECT_EQ(image_format(bytes_of(tga(4, 24, 0, four, 2, 2))), "");
  EXPECT_EQ(image_format(bytes_of(tga(2, 23, 0, four, 2, 2))), "");
  EXPECT_EQ(image_format(bytes_of(tga(1, 8, 0, four, 2, 2))), "") << "without its table of colours";
  EXPECT_EQ(image_format(bytes_of(std::string(1000, '\0'))), "");
  expect_no_harm(unhexed(kRunsTga));
  expect_no_harm(unhexed(kPaletteTga));
}

// ---- WebP

TEST(AnimatedWebp, TheFirstPictureIsRead) {
  const std::string file = unhexed(kAnimatedWebp);
  EXPECT_TRUE(probe_image(bytes_of(file)).animation);
  expect_pattern(decoded(file, "webp").image, 0, "the first");
  expect_no_harm(file);
}

// ---- TIFF

// One strip, not compressed.
std::string tiff(const std::string& pixels, int bits, int samples, int format, bool large, bool big_endian = false) {
  std::string out = big_endian ? "MM" : "II";
  const auto put = [&](std::uint64_t value, int width) {
    for (int i = 0; i < width; ++i) out += static_cast<char>(value >> 8 * (big_endian ? width - 1 - i : i));
  };
  const int pointer = large ? 8 : 4;
  put(large ? 43 : 42, 2);
  if (large) put(8, 2), put(0, 2);
  put(large ? 16 : 8, pointer);
  const std::uint64_t directory = large ? 16 + 8 + 10 * 20 + 8 : 8 + 2 + 10 * 12 + 4;
  const auto entry = [&](std::uint64_t tag, int type, std::uint64_t value) {
    put(tag, 2), put(static_cast<std::uint64_t>(type), 2), put(1, pointer);
    put(value, type == 3 ? 2 : 4);
    out.append(static_cast<std::size_t>(pointer - (type == 3 ? 2 : 4)), '\0');
  };
  put(10, large ? 8 : 2);
  entry(256, 4, 12), entry(257, 4, 9);
  // All samples of a pixel have the same size, which one number says.
  entry(258, 3, static_cast<std::uint64_t>(bits)), entry(259, 3, 1), entry(262, 3, samples >= 3 ? 2 : 1);
  entry(273, 4, directory), entry(277, 3, static_cast<std::uint64_t>(samples)), entry(278, 4, 9), entry(279, 4, pixels.size());
  entry(339, 3, static_cast<std::uint64_t>(format));
  put(0, pointer);
  return out + pixels;
}

// The picture's samples as numbers of type T: of 0 to 255, times `factor`.
template <class T>
std::string samples_of(double factor, bool swapped = false) {
  std::string out;
  for (int y = 0; y < 9; ++y) {
    for (int x = 0; x < 12; ++x) {
      for (const int v : {20 * x, 28 * y, 10 * (x + y)}) {
        const T number = static_cast<T>(v * factor);
        char bytes[sizeof number];
        std::memcpy(bytes, &number, sizeof number);
        if (swapped) std::reverse(std::begin(bytes), std::end(bytes));
        out.append(bytes, sizeof number);
      }
    }
  }
  return out;
}

constexpr int kUnsigned = 1, kSigned = 2, kFloating = 3;

TEST(Tiff, BigTiffIsRead) {
  const std::string pixels = samples_of<std::uint8_t>(1);
  for (const bool large : {false, true}) {
    for (const bool big_endian : {false, true}) {
      expect_pattern(decoded(tiff(pixels, 8, 3, kUnsigned, large, big_endian), "tiff").image, 0, large ? "BigTIFF" : "TIFF");
    }
  }
}

TEST(Tiff, NumbersOfEveryKindAreRead) {
  const bool little = std::endian::native == std::endian::little;
  expect_pattern(decoded(tiff(samples_of<float>(1 / 255.0), 32, 3, kFloating, false, !little), "tiff").image, 0, "float");
  expect_pattern(decoded(tiff(samples_of<float>(1 / 255.0, true), 32, 3, kFloating, false, little), "tiff").image, 0, "swapped");
  expect_pattern(decoded(tiff(samples_of<float>(1), 32, 3, kFloating, true, !little), "tiff").image, 0, "0 to 255");
  expect_pattern(decoded(tiff(samples_of<double>(1 / 255.0), 64, 3, kFloating, false, !little), "tiff").image, 0, "double");
  expect_pattern(decoded(tiff(samples_of<std::uint32_t>(16777216.0), 32, 3, kUnsigned, false, !little), "tiff").image, 0,
                 "32 bits");
  expect_pattern(decoded(tiff(samples_of<std::int16_t>(128), 16, 3, kSigned, false, !little), "tiff").image, 0, "with a sign");
  expect_pattern(decoded(tiff(samples_of<std::int8_t>(0.5), 8, 3, kSigned, false, !little), "tiff").image, 2, "signed bytes");
}

TEST(Tiff, TwelveBitsAreRead) {
  std::string packed;
  std::uint32_t bits = 0;
  int have = 0;
  for (const char v : samples_of<std::uint8_t>(1)) {
    bits = bits << 12 | std::uint32_t{static_cast<unsigned char>(v)} << 4;
    for (have += 12; have >= 8; have -= 8) packed += static_cast<char>(bits >> (have - 8));
  }
  expect_pattern(decoded(tiff(packed, 12, 3, kUnsigned, false), "tiff").image, 0, "12 bits");
}

TEST(Tiff, HalvesAreRead) {
  std::string packed;
  for (int i = 0; i < 12 * 9; ++i) packed += {'\0', static_cast<char>(i == 1 ? 0x38 : i == 2 ? 0xBC : i == 3 ? 0x7E : 0x3C)};
  const Image image = decoded(tiff(packed, 16, 1, kFloating, false), "tiff").image;
  EXPECT_EQ(at(image, 0, 0), (Pixel{255, 255, 255}));
  EXPECT_EQ(at(image, 1, 0), (Pixel{128, 128, 128}));
  EXPECT_EQ(at(image, 2, 0), (Pixel{0, 0, 0})) << "-1";
  EXPECT_EQ(at(image, 3, 0), (Pixel{0, 0, 0})) << "not a number";
}

TEST(Tiff, WhatCannotBeReadIsNotCalledDamaged) {
  testing::expect_error(
      [&] {
        decode_image(bytes_of(tiff(std::string(12 * 9 * 8, '\0'), 64, 1, 5, false)));  // complex whole numbers
      },
      {"not supported"});
  expect_no_harm(tiff(samples_of<float>(1).substr(0, 400), 32, 3, kFloating, true));
}

// ---- JPEG XL

class JpegXl : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      probe_image(bytes_of(unhexed(kJxl)));
    } catch (const Error& e) {
      if (e.code() == ErrorCode::io) GTEST_SKIP() << e.what();  // built without libjxl
      throw;
    }
  }
};

TEST_F(JpegXl, PicturesAreRead) {
  expect_pattern(decoded(unhexed(kJxl), "jpegxl").image, 0, "lossless");
  const Image opaque = decoded(unhexed(kOpaqueJxl), "jpegxl").image;
  ASSERT_EQ(opaque.channels, 4);
  expect_pattern(opaque, 0, "with opacity");
  EXPECT_EQ(at(opaque, 5, 2)[3], 100);
  const Image grey = decoded(unhexed(kGreyJxl), "jpegxl").image;
  ASSERT_EQ(grey.channels, 3);
  EXPECT_EQ(at(grey, 11, 8)[0], at(grey, 11, 8)[2]);
  EXPECT_NEAR(at(grey, 11, 8)[0], 0.299 * 220 + 0.587 * 224 + 0.114 * 190, 2);
  EXPECT_FALSE(probe_image(bytes_of(unhexed(kJxl))).icc) << "sRGB needs no profile";
}

TEST_F(JpegXl, OfAnAnimationTheFirstPictureIsRead) {
  const std::string file = unhexed(kAnimatedJxl);
  EXPECT_TRUE(probe_image(bytes_of(file)).animation);
  expect_pattern(decoded(file, "jpegxl").image, 0, "the first");
}

TEST_F(JpegXl, MetadataComeAlongAndTheTurnIsMadeOnce) {
  const DecodedImage turned = decoded(unhexed(kTurnedJxl), "jpegxl");  // from a JPEG with orientation 6
  EXPECT_EQ(turned.image.width, 9);
  EXPECT_EQ(turned.image.height, 12);
  EXPECT_NE(turned.metadata.exif.find("Maker"), std::string::npos);
  EXPECT_TRUE(turned.metadata.exif.starts_with("MM") || turned.metadata.exif.starts_with("II"));
}

TEST_F(JpegXl, DamagedFilesAreErrors) {
  for (const char* file : {kJxl, kOpaqueJxl, kAnimatedJxl}) expect_no_harm(unhexed(file));
}

TEST(Endings, AreKnownInAnyCase) {
  for (const char* name : {"a.jpg", "b.JPEG", "c.Gif", "d/e.tga", "f.jxl", "g.btf", "h.CR2"})
    EXPECT_TRUE(has_picture_ending(name)) << name;
  for (const char* name : {"a.txt", "jpg", ".jpg", "b.jpg.bak", ""}) EXPECT_FALSE(has_picture_ending(name)) << name;
}

}  // namespace
}  // namespace sdx::media
