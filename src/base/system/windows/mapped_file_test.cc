#include "base/system/mapped_file.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/temporary_folder.h"

namespace sdx {
namespace {

// Windows refuses to rename a file over one that is mapped: it has to go aside first.
TEST(MappedFileOfWindows, OneThatIsReplacedIsWhatItWas) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path path = folder / "file";
  write_file_atomically(path, std::string(20000, 'a'));
  const auto file = MappedFile::open(path, 0);
  ASSERT_TRUE(file->is_mapped());
  write_file_atomically(path, std::string("new"));
  EXPECT_EQ(read_file(path), "new");
  file->check_unchanged();
  EXPECT_EQ(file->bytes().front(), std::byte{'a'});
  EXPECT_EQ(file->bytes().back(), std::byte{'a'});
}

// What cannot happen needs no handler.
TEST(MappedFileOfWindows, OneThatIsMappedCannotBeCutShort) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path path = folder.write("file", std::string(20000, 'a'));
  const auto file = MappedFile::open(path, 0);
  const File open = File::open(path, File::For::changing);
  ASSERT_TRUE(open);
  EXPECT_FALSE(open.resize(1));
  EXPECT_EQ(file->bytes().back(), std::byte{'a'});
}

}  // namespace
}  // namespace sdx
