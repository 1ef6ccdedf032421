// A camera's raw file, made here: DNG 1.4 (Adobe, 2012), a colour filter array of 16 bits, stored plainly.

#include <gtest/gtest.h>

#include "base/error.h"
#include "media/image.h"

namespace sdx::media {
namespace {

std::span<const std::byte> bytes_of(const std::string& s) { return std::as_bytes(std::span<const char>(s)); }

std::string little(std::size_t value, int width) {
  std::string out;
  for (int i = 0; i < width; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

// Entries in order of their tags; values of more than four bytes follow.
class Directory {
 public:
  void add(int tag, int type, std::size_t count, const std::string& value) { entries_.push_back({tag, type, count, value}); }
  std::string bytes(std::size_t start) const {
    std::string table = little(entries_.size(), 2), data;
    const std::size_t behind = start + 2 + entries_.size() * 12 + 4;
    for (const Entry& e : entries_) {
      table += little(static_cast<std::size_t>(e.tag), 2) + little(static_cast<std::size_t>(e.type), 2) + little(e.count, 4);
      if (e.value.size() <= 4) {
        table += e.value + std::string(4 - e.value.size(), '\0');
      } else {
        table += little(behind + data.size(), 4);
        data += e.value;
        if (data.size() % 2 != 0) data += '\0';
      }
    }
    return table + little(0, 4) + data;
  }

 private:
  struct Entry {
    int tag, type;
    std::size_t count;
    std::string value;
  };
  std::vector<Entry> entries_;
};

// Red everywhere but for the lower half, which is dark.
std::string dng(int width, int height, std::size_t declared_width) {
  const auto directory = [&](std::size_t pixels) {
    Directory d;
    d.add(254, 4, 1, little(0, 4));
    d.add(256, 4, 1, little(declared_width, 4));
    d.add(257, 4, 1, little(static_cast<std::size_t>(height), 4));
    d.add(258, 3, 1, little(16, 2));
    d.add(259, 3, 1, little(1, 2));
    d.add(262, 3, 1, little(32803, 2));
    d.add(271, 2, 5, std::string("Acme\0", 5));
    d.add(272, 2, 4, std::string("One\0", 4));
    d.add(273, 4, 1, little(pixels, 4));
    d.add(274, 3, 1, little(6, 2));
    d.add(277, 3, 1, little(1, 2));
    d.add(278, 4, 1, little(static_cast<std::size_t>(height), 4));
    d.add(279, 4, 1, little(2 * static_cast<std::size_t>(width) * static_cast<std::size_t>(height), 4));
    d.add(33421, 3, 2, little(2, 2) + little(2, 2));
    d.add(33422, 1, 4, std::string("\0\1\1\2", 4));
    d.add(50706, 1, 4, std::string("\1\4\0\0", 4));
    d.add(50708, 2, 9, std::string("Acme One\0", 9));
    d.add(50717, 4, 1, little(65535, 4));
    std::string matrix;  // sRGB from XYZ, D65, in tens of thousandths
    for (const int v : {32406, -15372, -4986, -9689, 18758, 415, 557, -2040, 10570}) {
      matrix += little(static_cast<std::size_t>(static_cast<std::uint32_t>(v)), 4) + little(10000, 4);
    }
    d.add(50721, 10, 9, matrix);
    d.add(50728, 5, 3, little(1, 4) + little(1, 4) + little(1, 4) + little(1, 4) + little(1, 4) + little(1, 4));
    d.add(50778, 3, 1, little(21, 2));
    return d.bytes(8);
  };
  const std::size_t pixels = 8 + directory(0).size();
  std::string file = "II*" + std::string(1, '\0') + little(8, 4) + directory(pixels);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const bool red = y % 2 == 0 && x % 2 == 0;
      file += little(y >= height / 2 ? 600U : red ? 60000U : 3000U, 2);
    }
  }
  return file;
}

TEST(Raw, IsDevelopedAtHalfItsSizeAndTurned) {
  const std::string file = dng(128, 96, 128);
  const ImageInfo info = probe_image(bytes_of(file));
  EXPECT_EQ(info.format, "raw");
  EXPECT_EQ(info.orientation, 6);
  EXPECT_EQ(info.width, 96);
  EXPECT_EQ(info.height, 128);
  const DecodedImage raw = decode_picture(bytes_of(file));
  EXPECT_EQ(raw.format, "raw");
  ASSERT_EQ(raw.image.width, 48);
  ASSERT_EQ(raw.image.height, 64);
  // A quarter with the clock: the dark lower half comes to lie on the left.
  const std::uint8_t* dark = raw.image.row(32) + 8 * 3;
  const std::uint8_t* red = raw.image.row(32) + 40 * 3;
  EXPECT_GT(red[0], dark[0] + 60);
  EXPECT_GT(red[0], red[2] + 60);
}

TEST(Raw, DamagedFilesAreErrors) {
  const std::string good = dng(128, 96, 128);
  for (const std::size_t size : {20U, 150U, 300U, 400U})
    EXPECT_THROW(decode_image(bytes_of(good.substr(0, size))), Error) << size;
  EXPECT_THROW(decode_image(bytes_of(dng(128, 96, 60000))), Error);
  DecodeLimits tight;
  tight.pixels = 100;
  EXPECT_THROW(decode_image(bytes_of(good), tight), Error);
}

}  // namespace
}  // namespace sdx::media
