#include "base/system/mapped_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "support/temporary_folder.h"

namespace sdx {
namespace {

class MappedFileTest : public ::testing::Test {
 protected:
  MappedFileTest() { write(path_, std::string(kBytes, 'a')); }
  static void write(const std::filesystem::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary | std::ios::trunc).write(text.data(), static_cast<std::streamsize>(text.size()));
  }
  static constexpr std::size_t kBytes = 20000;
  const testing::TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / "file";
};

TEST_F(MappedFileTest, ACopyIsNobodyElses) {
  const auto file = MappedFile::open(path_, kBytes);
  EXPECT_FALSE(file->is_mapped());
  std::filesystem::resize_file(path_, 1);
  file->check_unchanged();
  release_mapped_pages(file->bytes().data(), kBytes);  // would lose a copy's contents
  for (const std::byte b : file->bytes()) ASSERT_EQ(b, std::byte{'a'});
}

TEST_F(MappedFileTest, TheFileThatHoldsAnAddress) {
  for (const std::size_t copied : {std::size_t{0}, kBytes}) {
    const auto file = MappedFile::open(path_, copied);
    EXPECT_EQ(MappedFile::holding(file->bytes().data() + 7), file);
    EXPECT_EQ(MappedFile::holding(this), nullptr);
    const auto place = MappedFile::place_of(file->bytes().data() + 7);
    ASSERT_TRUE(place);
    EXPECT_EQ(place->path, path_);
    EXPECT_EQ(place->offset, 7U);
  }
}

TEST_F(MappedFileTest, PiecesMakeUpTheFile) {
  std::string text(std::size_t{2} << 20, 'x');
  text += "end";
  write(path_, text);
  std::string read;
  read_pieces(path_,
              [&](std::span<const std::byte> piece) { read.append(reinterpret_cast<const char*>(piece.data()), piece.size()); });
  EXPECT_EQ(read, text);
  EXPECT_THROW(read_pieces(path_.string() + ".none", [](auto) {}), Error);
}

}  // namespace
}  // namespace sdx
