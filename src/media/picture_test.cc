// Formats, regions, shrinking, colours and limits, with pictures made here.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <random>

#include "base/error.h"
#include "base/system/process.h"
#include "media/codecs.h"
#include "support/errors.h"

namespace sdx::media {
namespace {

std::span<const std::byte> bytes_of(const std::string& s) { return std::as_bytes(std::span<const char>(s)); }

// Smooth, with a direction, and different in every channel.
Image pattern(int width, int height, int channels = 3) {
  Image image = Image::blank(width, height, channels);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      std::uint8_t* p = image.row(y) + x * channels;
      p[0] = static_cast<std::uint8_t>(x * 200 / std::max(width - 1, 1) + 20);
      if (channels > 1) p[1] = static_cast<std::uint8_t>(y * 200 / std::max(height - 1, 1) + 30);
      if (channels > 2) p[2] = static_cast<std::uint8_t>(128 + 90 * std::sin(x * 0.2) * std::cos(y * 0.15));
      if (channels > 3) p[3] = static_cast<std::uint8_t>(x < width / 2 ? 255 : y * 255 / height);
    }
  }
  return image;
}

double mean_difference(const Image& a, const Image& b) {
  EXPECT_EQ(a.width, b.width);
  EXPECT_EQ(a.height, b.height);
  EXPECT_EQ(a.channels, b.channels);
  if (a.pixels.size() != b.pixels.size()) return 255;
  double sum = 0;
  for (std::size_t i = 0; i < a.pixels.size(); ++i) sum += std::abs(a.pixels[i] - b.pixels[i]);
  return sum / static_cast<double>(a.pixels.size());
}

std::string exif_with(int orientation, bool big) {
  std::string tiff = big ? std::string("MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0", 19)
                         : std::string("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0", 18);
  tiff += static_cast<char>(orientation);
  return tiff + std::string(big ? 2 + 4 : 3 + 4, '\0');
}

// encode() makes every orientation 1, so the codecs are asked themselves.
std::string oriented(FileFormat format, const Image& image, int orientation, bool big) {
  Metadata m;
  m.exif = exif_with(orientation, big);
  const Writing writing{format == FileFormat::webp ? 100 : 95, 0, {}, m};
  if (format == FileFormat::jpeg) return write_jpeg(image, writing);
  return format == FileFormat::png ? write_png(image, writing) : write_webp(image, writing);
}

TEST(Picture, EveryFormatComesBack) {
  for (const FileFormat format :
       {FileFormat::png, FileFormat::jpeg, FileFormat::webp, FileFormat::tiff, FileFormat::bmp, FileFormat::avif}) {
    for (const int channels : {1, 3, 4}) {
      SCOPED_TRACE(std::string(ending_of(format)) + " " + std::to_string(channels));
      const Image image = pattern(61, 43, channels);
      EncodeOptions options;
      options.format = format;
      options.quality = format == FileFormat::webp ? 100 : 95;
      options.background = {10, 20, 30};
      const std::string file = encode(image, options);
      const DecodedImage back = decode_picture(bytes_of(file));
      EXPECT_EQ(file_format(back.format), format);
      const bool keeps = format != FileFormat::jpeg;
      ASSERT_EQ(back.image.channels, channels == 4 && keeps ? 4 : 3);
      Image wanted = Image::blank(61, 43, back.image.channels);
      for (std::size_t i = 0; i < 61 * 43; ++i) {
        const std::uint8_t* from = &image.pixels[i * static_cast<std::size_t>(channels)];
        std::uint8_t* to = &wanted.pixels[i * static_cast<std::size_t>(wanted.channels)];
        const int behind[] = {10, 20, 30};
        const int alpha = channels == 4 && !keeps ? from[3] : 255;
        for (int c = 0; c < 3; ++c) {
          to[c] = static_cast<std::uint8_t>((from[channels == 1 ? 0 : c] * alpha + behind[c] * (255 - alpha) + 127) / 255);
        }
        if (wanted.channels == 4) to[3] = from[3];
      }
      const bool lossless = format != FileFormat::jpeg && format != FileFormat::avif;
      if (lossless) {
        EXPECT_EQ(back.image.pixels, wanted.pixels);
      } else {
        EXPECT_LT(mean_difference(back.image, wanted), 4);
      }
      const ImageInfo info = probe_image(bytes_of(file));
      EXPECT_EQ(info.format, back.format);
      EXPECT_EQ(info.width, 61);
      EXPECT_EQ(info.height, 43);
      EXPECT_EQ(info.alpha, back.image.channels == 4);
    }
  }
}

TEST(Picture, EveryOrientationOfEveryFormat) {
  const Image image = pattern(48, 20);
  for (const FileFormat format : {FileFormat::png, FileFormat::jpeg, FileFormat::webp}) {
    for (int orientation = 0; orientation <= 9; ++orientation) {
      for (const bool big : {false, true}) {
        const std::string file = oriented(format, image, orientation, big);
        DecodeLimits as_stored;
        as_stored.upright = false;
        const Image stored = decode_image(bytes_of(file), as_stored);
        EXPECT_EQ(stored.width, 48);
        const DecodedImage turned = decode_picture(bytes_of(file));
        const int valid = orientation >= 1 && orientation <= 8 ? orientation : 1;
        EXPECT_EQ(turned.orientation, valid);
        EXPECT_EQ(turned.image.pixels, apply_orientation(stored, valid).pixels) << ending_of(format) << " " << orientation;
        EXPECT_EQ(turned.full_width, valid >= 5 ? 20 : 48);
        const ImageInfo info = probe_image(bytes_of(file));
        EXPECT_EQ(info.width, turned.full_width);
        EXPECT_EQ(info.stored_width, 48);
        EXPECT_EQ(info.orientation, valid);
      }
    }
  }
}

TEST(Picture, OrientationMovesEveryPixelWhereExifSays) {
  // 3 x 2: a b c / d e f. Source: EXIF 2.32, 4.6.4 A: where the 0th row and column lie.
  Image image = Image::blank(3, 2, 1);
  image.pixels = {'a', 'b', 'c', 'd', 'e', 'f'};
  const char* const wanted[] = {"abcdef", "cbafed", "fedcba", "defabc", "adbecf", "daebfc", "fcebda", "cfbead"};
  for (int o = 1; o <= 8; ++o) {
    const Image turned = apply_orientation(image, o);
    EXPECT_EQ(turned.width, o >= 5 ? 2 : 3);
    EXPECT_EQ(std::string(turned.pixels.begin(), turned.pixels.end()), wanted[o - 1]) << o;
  }
}

TEST(Picture, ARegionIsWhatTheWholePictureShowsThere) {
  const Image image = pattern(201, 133);
  const std::array<Rectangle, 5> regions{
      {{0, 0, 201, 133}, {70, 40, 50, 30}, {-20, -5, 60, 50}, {150, 100, 500, 500}, {37, 91, 1, 1}}};
  for (const FileFormat format : {FileFormat::jpeg, FileFormat::png}) {
    for (int orientation = 1; orientation <= 8; ++orientation) {
      const std::string file = oriented(format, image, orientation, false);
      const Image whole = decode_image(bytes_of(file));
      for (const Rectangle& region : regions) {
        DecodeOptions options;
        options.region = region;
        const int x0 = std::max(region.x, 0), y0 = std::max(region.y, 0);
        if (x0 >= whole.width || y0 >= whole.height) continue;
        const DecodedImage part = decode_picture(bytes_of(file), options);
        EXPECT_EQ(part.region.x, x0);
        EXPECT_EQ(part.region.y, y0);
        EXPECT_EQ(part.region.width, std::min(region.x + region.width, whole.width) - x0);
        ASSERT_EQ(part.image.width, part.region.width);
        ASSERT_EQ(part.image.height, part.region.height);
        EXPECT_EQ(part.full_width, whole.width);
        EXPECT_EQ(part.image.pixels, cut(whole, part.region).pixels)
            << ending_of(format) << " " << orientation << ": " << region.width << "x" << region.height;
      }
      DecodeOptions outside;
      outside.region = Rectangle{500, 0, 10, 10};
      EXPECT_THROW(decode_picture(bytes_of(file), outside), Error);
      outside.region = Rectangle{INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX};
      EXPECT_THROW(decode_picture(bytes_of(file), outside), Error);
      outside.region = Rectangle{10, 10, -5, 5};
      EXPECT_THROW(decode_picture(bytes_of(file), outside), Error);
    }
  }
}

TEST(Picture, JpegShrinksWhileItDecodes) {
  const Image image = pattern(801, 402);
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const std::string file = oriented(FileFormat::jpeg, image, orientation, true);
    const Image whole = decode_image(bytes_of(file));
    for (const auto& [at_least, shrink] : {std::pair{0, 1}, {802, 1}, {402, 1}, {401, 2}, {300, 2}, {201, 4}, {101, 8}, {1, 8}}) {
      DecodeOptions options;
      options.at_least = at_least;
      const DecodedImage small = decode_picture(bytes_of(file), options);
      EXPECT_EQ(small.scale, 1.0 / shrink) << at_least;
      EXPECT_EQ(std::max(small.image.width, small.image.height), (801 + shrink - 1) / shrink);
      EXPECT_EQ(small.full_width, whole.width);
      // Each pixel is about the mean of its area in the original.
      for (const auto& [u, v] : {std::pair{5, 7}, {small.image.width - 6, small.image.height - 8}}) {
        const double x = small.region.x + (u + 0.5) * shrink, y = small.region.y + (v + 0.5) * shrink;
        const std::uint8_t* near = whole.row(static_cast<int>(y)) + static_cast<int>(x) * 3;
        const std::uint8_t* got = small.image.row(v) + u * 3;
        EXPECT_NEAR(got[0], near[0], 6) << orientation << " " << shrink;
        EXPECT_NEAR(got[1], near[1], 6) << orientation << " " << shrink;
      }
    }
    DecodeOptions options;
    options.region = Rectangle{100, 120, 200, 180};
    options.at_least = 50;
    const DecodedImage part = decode_picture(bytes_of(file), options);
    EXPECT_EQ(part.scale, 0.25);
    EXPECT_LE(part.region.x, 100);
    EXPECT_GT(part.region.x, 100 - 8);
    EXPECT_GE(part.region.x + part.region.width, 300);
    const std::uint8_t* near = whole.row(part.region.y + 42) + (part.region.x + 82) * 3;
    EXPECT_NEAR((part.image.row(10) + 20 * 3)[0], near[0], 6);
    EXPECT_NEAR((part.image.row(10) + 20 * 3)[1], near[1], 6);
  }
}

TEST(Picture, SixteenBitsBecomeTheHighByte) {
  std::string pgm = "P5 2 1 65535\n";
  pgm += std::string("\x12\xFF\xFE\x00", 4);
  const Image image = decode_image(bytes_of(pgm));
  EXPECT_EQ(image.pixels, (std::vector<std::uint8_t>{0x12, 0x12, 0x12, 0xFE, 0xFE, 0xFE}));
}

TEST(Picture, ArbitraryMapsHaveOpacity) {
  const std::string pam = "P7\nWIDTH 1\nHEIGHT 2\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\nabcdefgh";
  const Image image = decode_image(bytes_of(pam));
  ASSERT_EQ(image.channels, 4);
  EXPECT_EQ(std::string(image.pixels.begin(), image.pixels.end()), "abcdefgh");
  const std::string grey = "P7\n# a comment\nHEIGHT 1\nWIDTH 2\nMAXVAL 255\nDEPTH 2\nENDHDR\na1b2";
  const Image two = decode_image(bytes_of(grey));
  EXPECT_EQ(std::string(two.pixels.begin(), two.pixels.end()), "aaa1bbb2");
  EXPECT_THROW(decode_image(bytes_of("P7\nWIDTH 1\nHEIGHT 2\nDEPTH 5\nMAXVAL 255\nENDHDR\n0123456789")), Error);
  EXPECT_THROW(decode_image(bytes_of("P7\nWIDTH 1\nHEIGHT 2\n")), Error);
}

TEST(Picture, LimitsHoldBeforeMemoryIsTaken) {
  DecodeLimits tight;
  tight.pixels = 61 * 43 - 1;
  for (const FileFormat format :
       {FileFormat::png, FileFormat::jpeg, FileFormat::webp, FileFormat::tiff, FileFormat::bmp, FileFormat::avif}) {
    EncodeOptions options;
    options.format = format;
    const std::string file = encode(pattern(61, 43), options);
    testing::error_of(ErrorCode::out_of_memory, [&] { decode_image(bytes_of(file), tight); });
  }
}

TEST(Picture, WhatMakesNoSenseIsRefused) {
  const Image image = pattern(8, 8);
  EncodeOptions options;
  for (const int quality : {0, 101, -1}) {
    options.quality = quality;
    EXPECT_THROW(encode(image, options), Error);
  }
  options.quality = 90;
  for (const double dpi : {-1.0, 65536.0, std::nan("")}) {
    options.dpi = dpi;
    EXPECT_THROW(encode(image, options), Error);
  }
  EXPECT_THROW(encode(Image{}), Error);
  EXPECT_THROW(write_image("picture.gif", image), Error);
  EXPECT_EQ(file_format(".JPeG"), FileFormat::jpeg);
  EXPECT_EQ(file_format("gif"), std::nullopt);
}

TEST(Picture, FormatsAreToldByTheirContent) {
  const auto format = [](const std::string& text) { return image_format(bytes_of(text + std::string(300, '\0'))); };
  using namespace std::string_literals;
  EXPECT_EQ(format("\0\0\0\x18"
                   "ftypheic"s),
            "heic");
  EXPECT_EQ(format("\0\0\0\x20"
                   "ftypmif1\0\0\0\0mif1miafavif"s),
            "avif");
  EXPECT_EQ(format("\0\0\0\x18"
                   "ftypcrx "s),
            "raw");
  EXPECT_EQ(format("\0\0\0\x18"
                   "ftypisom"s),
            "");
  EXPECT_EQ(format("II*\0\x10\0\0\0CR\x02\0"s), "raw");
  EXPECT_EQ(format("II*\0\x08\0\0\0\x01\0\x12\xC6\x01\0\x04\0\0\0"s), "raw");  // DNGVersion
  EXPECT_EQ(format("II*\0\x08\0\0\0\x01\0\x00\x01\x03\0\x01\0\0\0"s), "tiff");
  EXPECT_EQ(format("FUJIFILMCCD-RAW"), "raw");
}

TEST(Picture, DamagedFilesAreErrors) {
  for (const FileFormat format : {FileFormat::tiff, FileFormat::avif, FileFormat::bmp, FileFormat::webp}) {
    EncodeOptions options;
    options.format = format;
    options.metadata.exif = exif_with(6, false);
    const std::string good = encode(pattern(40, 30), options);
    std::mt19937 random(7);
    DecodeLimits limits;
    limits.pixels = 100'000;
    const auto attempt = [&](const std::string& file) {
      try {
        decode_picture(bytes_of(file), {.limits = limits});
        return true;
      } catch (const Error&) {
        return false;
      }
    };
    ASSERT_TRUE(attempt(good));
    for (std::size_t cut = 0; cut < good.size() * 3 / 4; cut += 1 + good.size() / 60) EXPECT_FALSE(attempt(good.substr(0, cut)));
    for (int round = 0; round < 150; ++round) {
      std::string file = good;
      for (unsigned n = random() % 4 + 1; n > 0; --n) file[random() % file.size()] = static_cast<char>(random() & 0xFF);
      attempt(file);
    }
  }
}

// In a process of its own: a library that has been loaded stays.
TEST(PictureDeathTest, ALibraryThatIsMissingIsNamedWithItsPackage) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto refused = [](const char* variable, const std::string& file, const char* package, bool convert) {
    set_environment(variable, "/nowhere/libsdx.so");
    try {
      decode_picture(bytes_of(file), {.to_srgb = convert});
    } catch (const Error& e) {
      const bool named = std::string_view(e.what()).find(package) != std::string_view::npos;
      std::exit(named && e.code() == ErrorCode::io ? 7 : 8);
    }
    std::exit(9);
  };
  using namespace std::string_literals;
  const std::string heif =
      "\0\0\0\x18"
      "ftypheic\0\0\0\0heicmif1"s;
  EXPECT_EXIT(refused("SDX_TIFF_LIB", "II*\0\x08\0\0\0\0\0\0\0\0\0"s, "libtiff6", false), ::testing::ExitedWithCode(7), "");
  EXPECT_EXIT(refused("SDX_HEIF_LIB", heif, "libheif1", false), ::testing::ExitedWithCode(7), "");
  EXPECT_EXIT(refused("SDX_RAW_LIB", "FUJIFILMCCD-RAW "s, "libraw20", false), ::testing::ExitedWithCode(7), "");
  Metadata m;
  m.icc = "a profile";
  const Writing writing{100, 0, {}, m};
  EXPECT_EXIT(refused("SDX_COLOR_LIB", write_webp(pattern(4, 4), writing), "liblcms2-2", true), ::testing::ExitedWithCode(7), "");
}

// A CMYK file by libjpeg is not at hand; TIFF's own are easily written by hand.
std::string cmyk_tiff(std::string_view pixels, int width) {
  using namespace std::string_literals;
  const auto entry = [](int tag, int type, int count, int value) {
    std::string e;
    for (const auto& [v, n] : {std::pair{tag, 2}, {type, 2}, {count, 4}, {value, 4}}) {
      for (int i = 0; i < n; ++i) e += static_cast<char>(v >> (8 * i));
    }
    return e;
  };
  const int entries = 9, data = 8 + 2 + entries * 12 + 4 + 8;
  std::string file = "II*\0\x08\0\0\0"s;
  file += static_cast<char>(entries);
  file += '\0';
  file += entry(256, 3, 1, width) + entry(257, 3, 1, 1) + entry(258, 3, 4, data - 8) + entry(259, 3, 1, 1) + entry(262, 3, 1, 5) +
          entry(273, 4, 1, data) + entry(277, 3, 1, 4) + entry(278, 3, 1, 1) + entry(279, 4, 1, width * 4);
  file += "\0\0\0\0"s + "\x08\0\x08\0\x08\0\x08\0"s;
  return file + std::string(pixels);
}

TEST(Picture, InksBecomeLight) {
  using namespace std::string_literals;
  const std::string file = cmyk_tiff("\0\0\0\0"s + "\xFF\0\0\0"s + "\0\xFF\xFF\0"s + "\0\0\0\xFF"s + "\0\x80\0\x80"s, 5);
  const Image image = decode_image(bytes_of(file));
  EXPECT_EQ(image.channels, 3);
  EXPECT_EQ(image.pixels, (std::vector<std::uint8_t>{255, 255, 255, 0, 255, 255, 255, 0, 0, 0, 0, 0, 127, 63, 127}));
}

}  // namespace
}  // namespace sdx::media
