#include "tensor/zip/writer.h"

#include <gtest/gtest.h>

namespace sdx {
namespace {

std::uint32_t number(const std::string& zip, std::size_t at, int bytes) {
  std::uint32_t value = 0;
  for (int i = 0; i < bytes; ++i)
    value |= static_cast<std::uint32_t>(static_cast<unsigned char>(zip[at + static_cast<std::size_t>(i)])) << (8 * i);
  return value;
}

TEST(ZipWriter, WritesWhatTheFormatAsksFor) {
  ZipWriter writer;
  writer.add("a.txt", "hello");
  writer.add("b.txt", "");
  const std::string zip = writer.finish();
  EXPECT_TRUE(zip.starts_with("PK\x03\x04"));
  EXPECT_EQ(number(zip, 14, 4), 0x3610a686u);  // CRC-32 of "hello"
  EXPECT_EQ(number(zip, 18, 4), 5u);
  EXPECT_EQ(zip.substr(30, 10), "a.txthello");
  const std::size_t end = zip.size() - 22;
  EXPECT_EQ(number(zip, end, 4), 0x06054b50u);
  EXPECT_EQ(number(zip, end + 10, 2), 2u);
  const std::size_t directory = number(zip, end + 16, 4);
  EXPECT_EQ(number(zip, directory, 4), 0x02014b50u);
  EXPECT_EQ(directory + number(zip, end + 12, 4), end);
}

TEST(ZipWriter, AlignsContent) {
  ZipWriter writer;
  writer.add("odd", "x", false, 64);
  writer.add("name", "hello", false, 64);
  EXPECT_EQ(writer.finish().find("hello") % 64, 0U);
}

TEST(ZipWriter, KnowsItsLimits) {
  ZipWriter writer;
  EXPECT_TRUE(writer.fits(1 << 20));
  EXPECT_FALSE(writer.fits(std::size_t{1} << 32));
  for (int i = 0; i < 0xFFFE; ++i) writer.add("", "");
  EXPECT_FALSE(writer.fits(0));
}

}  // namespace
}  // namespace sdx
