#include "base/system/new_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/system/mapped_file.h"
#include "support/temporary_folder.h"

namespace sdx {
namespace {

namespace fs = std::filesystem;

class NewFileOfPosix : public ::testing::Test {
 protected:
  static unsigned mode(const fs::path& path) {
    struct stat info {};
    EXPECT_EQ(::stat(path.c_str(), &info), 0);
    return info.st_mode & 0777;
  }
  const testing::TemporaryFolder temporary_;
  const fs::path& folder_ = temporary_.path();
};

TEST_F(NewFileOfPosix, HasThePermissionsThatTheMaskLeaves) {
  const mode_t before = ::umask(027);
  write_file_atomically(folder_ / "all", std::string("x"));
  write_file_atomically(folder_ / "mine", std::string("x"), 0644);
  ::umask(before);
  EXPECT_EQ(mode(folder_ / "all"), 0640U);
  EXPECT_EQ(mode(folder_ / "mine"), 0640U);
}

// A pipe instead of a file, such as /dev/stdout: renaming a file over it would end it for its readers.
TEST_F(NewFileOfPosix, WritesIntoAPipeThatIsThere) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] {
    std::ifstream in(pipe);
    std::getline(in, read);
  });
  write_file_atomically(pipe, std::string("hello\n"));
  reader.join();
  EXPECT_EQ(read, "hello");
  EXPECT_TRUE(fs::is_fifo(pipe));
}

// Folders that another thread made meanwhile were open to everybody.
TEST_F(NewFileOfPosix, LeavesTheProcessesMaskAlone) {
  const mode_t before = ::umask(022);
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (int i = 0; i < 300; ++i) write_file_atomically(folder_ / "file", std::string("x"));
    done = true;
  });
  unsigned open_to_others = 0;
  while (!done) {
    fs::create_directory(folder_ / "inner");
    open_to_others += (mode(folder_ / "inner") & 022) != 0 ? 1 : 0;
    fs::remove(folder_ / "inner");
  }
  writer.join();
  ::umask(before);
  EXPECT_EQ(open_to_others, 0U);
}

}  // namespace
}  // namespace sdx
