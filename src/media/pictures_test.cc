// Files of models/faces/pictures, where they are: docs/environment.md. What they hold is in expected.json beside them.

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "media/image.h"

namespace sdx::media {
namespace {

namespace fs = std::filesystem;

// Source: FIPS 180-4.
class Sha256 {
 public:
  static std::string hex(std::string bytes) {
    Sha256 hash;
    const std::uint64_t bits = bytes.size() * 8;
    bytes += '\x80';
    while (bytes.size() % 64 != 56) bytes += '\0';
    for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>(bits >> shift);
    for (std::size_t at = 0; at < bytes.size(); at += 64) hash.block(reinterpret_cast<const unsigned char*>(bytes.data()) + at);
    std::string out;
    for (const std::uint32_t word : hash.state_) out += fmt::format("{:08x}", word);
    return out;
  }

 private:
  // The first 32 bits of the fractional parts of the roots of the first primes.
  Sha256() {
    int found = 0;
    for (unsigned n = 2; found < 64; ++n) {
      bool prime = true;
      for (unsigned d = 2; d * d <= n; ++d) prime = prime && n % d != 0;
      if (!prime) continue;
      const auto fraction = [](long double v) { return static_cast<std::uint32_t>((v - std::floor(v)) * 4294967296.0L); };
      if (found < 8) state_[static_cast<std::size_t>(found)] = fraction(std::sqrt(static_cast<long double>(n)));
      constants_[static_cast<std::size_t>(found++)] = fraction(std::cbrt(static_cast<long double>(n)));
    }
  }
  void block(const unsigned char* p) {
    std::array<std::uint32_t, 64> w{};
    for (std::size_t i = 0; i < 16; ++i) {
      w[i] = std::uint32_t{p[i * 4]} << 24 | std::uint32_t{p[i * 4 + 1]} << 16 | std::uint32_t{p[i * 4 + 2]} << 8 | p[i * 4 + 3];
    }
    for (std::size_t i = 16; i < 64; ++i) {
      const std::uint32_t a = w[i - 15], b = w[i - 2];
      w[i] =
          w[i - 16] + w[i - 7] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) + (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
    }
    std::array<std::uint32_t, 8> s = state_;
    for (std::size_t i = 0; i < 64; ++i) {
      const std::uint32_t one = s[7] + (std::rotr(s[4], 6) ^ std::rotr(s[4], 11) ^ std::rotr(s[4], 25)) +
                                ((s[4] & s[5]) ^ (~s[4] & s[6])) + constants_[i] + w[i];
      const std::uint32_t two =
          (std::rotr(s[0], 2) ^ std::rotr(s[0], 13) ^ std::rotr(s[0], 22)) + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
      s = {one + two, s[0], s[1], s[2], s[3] + one, s[4], s[5], s[6]};
    }
    for (std::size_t i = 0; i < 8; ++i) state_[i] += s[i];
  }
  std::array<std::uint32_t, 8> state_{};
  std::array<std::uint32_t, 64> constants_{};
};

fs::path folder() {
  const char* models = std::getenv("SDX_TEST_MODELS");
  return models == nullptr ? fs::path() : fs::path(models) / "faces";
}

nlohmann::json expected() { return nlohmann::json::parse(read_file(folder() / "expected.json")); }

class Pictures : public ::testing::Test {
 protected:
  void SetUp() override {
    if (folder().empty() || !fs::exists(folder() / "expected.json")) GTEST_SKIP() << "no models/faces below SDX_TEST_MODELS";
  }
};

void check_pixels_of(const Image& image, const nlohmann::json& answer, bool lossless) {
  const std::size_t channels = static_cast<std::size_t>(image.channels), count = image.pixels.size() / channels;
  std::array<std::uint64_t, 3> sum{};
  const std::uint8_t* p = image.pixels.data();
  std::string rgb(lossless ? count * 3 : 0, '\0');
  char* to = rgb.data();
  for (std::size_t i = 0; i < count; ++i, p += channels) {
    sum[0] += p[0], sum[1] += p[1], sum[2] += p[2];
    if (lossless) std::memcpy(to + i * 3, p, 3);
  }
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_NEAR(static_cast<double>(sum[c]) / static_cast<double>(count), answer["rgb_mean"][c].get<double>(), 0.5);
  }
  if (!lossless) return;
  EXPECT_EQ(Sha256::hex(rgb), answer["rgb_sha256"].get<std::string>());
}

TEST(Sha, KnowsTheStandardsExample) {
  EXPECT_EQ(Sha256::hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_F(Pictures, AreReadAsOthersReadThem) {
  int read = 0, refused = 0;
  const nlohmann::json answers = expected();
  for (const auto& [name, answer] : answers["pictures"].items()) {
    SCOPED_TRACE(name);
    const fs::path file = folder() / "pictures" / fs::path(std::u8string(name.begin(), name.end()));
    if (answer["status"] != "ok") {
      EXPECT_THROW(open_picture(file), Error);
      ++refused;
      continue;
    }
    const DecodedImage picture = open_picture(file);
    EXPECT_EQ(picture.image.width, answer["width"].get<int>());
    EXPECT_EQ(picture.image.height, answer["height"].get<int>());
    const bool jpeg = picture.format == "jpeg" || picture.format == "heic" || picture.format == "avif";
    const bool lossless = !jpeg && (picture.format != "webp" || name == "lossless.webp");
    check_pixels_of(picture.image, answer, lossless);
    const ImageInfo info = probe_image(file);
    EXPECT_EQ(info.format, picture.format);
    EXPECT_EQ(info.width, picture.image.width);
    EXPECT_EQ(info.height, picture.image.height);
    EXPECT_EQ(info.stored_width, answer.value("stored_width", info.stored_width));
    ++read;
  }
  EXPECT_EQ(read, 62);
  EXPECT_EQ(refused, 14);
}

// Progressive, subsampled, grey and CMYK ones among them.
TEST_F(Pictures, APartOfAJpegIsWhatTheWholeShowsThere) {
  const nlohmann::json answers = expected();
  for (const auto& [name, answer] : answers["pictures"].items()) {
    const fs::path file = folder() / "pictures" / fs::path(std::u8string(name.begin(), name.end()));
    if (answer["status"] != "ok" || answer["width"].get<int>() > 1300 || probe_image(file).format != "jpeg") continue;
    const Image whole = read_image(file);
    for (const auto& [x, y, w, h] : {std::array{0.3, 0.4, 0.2, 0.3}, {0.0, 0.0, 0.55, 0.1}, {0.71, 0.83, 0.29, 0.17}}) {
      DecodeOptions options;
      options.region = Rectangle{static_cast<int>(whole.width * x), static_cast<int>(whole.height * y),
                                 std::max(1, static_cast<int>(whole.width * w)), std::max(1, static_cast<int>(whole.height * h))};
      const DecodedImage part = open_picture(file, options);
      ASSERT_EQ(part.region.x, options.region->x);
      ASSERT_EQ(part.region.y, options.region->y);
      ASSERT_EQ(part.image.height, part.region.height);
      for (int row = 0; row < part.image.height; ++row) {
        const std::uint8_t* there = whole.row(part.region.y + row) + part.region.x * 3;
        ASSERT_EQ(std::memcmp(part.image.row(row), there, part.image.stride()), 0) << name << " " << row;
      }
    }
  }
}

TEST_F(Pictures, DisplayP3BecomesSrgb) {
  const nlohmann::json icc = expected()["pictures"]["display_p3.jpg"]["icc"];
  DecodeOptions options;
  const fs::path file = folder() / "pictures" / "display_p3.jpg";
  const Image stored = open_picture(file, options).image;
  options.to_srgb = true;
  const DecodedImage converted = open_picture(file, options);
  EXPECT_EQ(converted.metadata.icc, "");
  for (std::size_t i = 0; i < icc["patches_at"].size(); ++i) {
    const int x = icc["patches_at"][i][0], y = icc["patches_at"][i][1];
    for (std::size_t c = 0; c < 3; ++c) {
      const std::size_t at = static_cast<std::size_t>(x) * 3 + c;
      EXPECT_NEAR(stored.row(y)[at], icc["stored_rgb"][i][c].get<int>(), 6);
      EXPECT_NEAR(converted.image.row(y)[at], icc["srgb_after_conversion"][i][c].get<int>(), icc["tolerance"].get<int>());
    }
  }
}

}  // namespace
}  // namespace sdx::media
