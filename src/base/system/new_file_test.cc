#include "base/system/new_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

namespace sdx {
namespace {

namespace fs = std::filesystem;

class NewFileTest : public ::testing::Test {
 protected:
  static unsigned mode(const fs::path& path) {
    struct stat info {};
    EXPECT_EQ(::stat(path.c_str(), &info), 0);
    return info.st_mode & 0777;
  }
  const testing::TemporaryFolder temporary_;
  const fs::path& folder_ = temporary_.path();
};

TEST_F(NewFileTest, HasThePermissionsThatTheMaskLeaves) {
  const mode_t before = ::umask(027);
  write_file_atomically(folder_ / "all", std::string("x"));
  write_file_atomically(folder_ / "mine", std::string("x"), 0644);
  ::umask(before);
  EXPECT_EQ(mode(folder_ / "all"), 0640U);
  EXPECT_EQ(mode(folder_ / "mine"), 0640U);
}

TEST_F(NewFileTest, LeavesNothingWithoutPublish) {
  { NewFile(folder_ / "a").append(std::as_bytes(std::span<const char>("x", 1))); }
  EXPECT_TRUE(fs::is_empty(folder_));
}

std::string refusal(const fs::path& path) {
  return testing::error_message([&] { NewFile::check(path); });
}

TEST_F(NewFileTest, SaysBeforehandWhatCannotBeWritten) {
  EXPECT_EQ(refusal(folder_ / "a"), "");
  EXPECT_TRUE(fs::is_empty(folder_));
  const std::string folder = folder_.string();
  EXPECT_EQ(refusal(folder_ / "none" / "a"), "cannot write '" + folder + "/none/a': there is no folder '" + folder + "/none'");
  EXPECT_EQ(refusal(folder_), "cannot write '" + folder + "': it is a folder");
  std::ofstream(folder_ / "file") << "x";
  EXPECT_EQ(refusal(folder_ / "file" / "a"), "cannot write '" + folder + "/file/a': '" + folder + "/file' is not a folder");
  EXPECT_EQ(refusal(folder_ / "file"), "");
}

// A pipe instead of a file, such as /dev/stdout: renaming a file over it would end it for its readers.
TEST_F(NewFileTest, WritesIntoAPipeThatIsThere) {
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

TEST_F(NewFileTest, RemovesWhatNobodyWritesAnyMore) {
  NewFile live(folder_ / "r.csv");
  std::size_t before = 0;
  for (const auto& entry : fs::directory_iterator(folder_)) before += entry.is_regular_file() ? 1 : 0;
  ASSERT_EQ(before, 1U);
  for (const char* name : {"r.csv.tmp.abc123", "r.csv.tmp.ABC123", "r.csv.tmp.abc1234", "s.csv.tmp.abc123", "r.csv"}) {
    std::ofstream(folder_ / name) << "x";
  }
  write_file_atomically(folder_ / "r.csv", std::string("x"));  // one of many perhaps
  EXPECT_TRUE(fs::exists(folder_ / "r.csv.tmp.abc123"));
  { const NewFile other(folder_ / "r.csv"); }
  EXPECT_FALSE(fs::exists(folder_ / "r.csv.tmp.abc123"));
  for (const char* name : {"r.csv.tmp.ABC123", "r.csv.tmp.abc1234", "s.csv.tmp.abc123", "r.csv"}) {
    EXPECT_TRUE(fs::exists(folder_ / name)) << name;
  }
  live.append(std::as_bytes(std::span<const char>("y", 1)));
  live.publish();  // it is still there
  EXPECT_EQ(fs::file_size(folder_ / "r.csv"), 1U);
}

// A process that is killed during the check leaves its file, and the next run's own file has another name.
TEST_F(NewFileTest, ChecksLeaveNothingOfKilledOnes) {
  std::ofstream(folder_ / "r.csv.tmp.abc123") << "x";
  NewFile::check(folder_ / "r.csv");
  EXPECT_TRUE(fs::is_empty(folder_));
}

// Folders that another thread made meanwhile were open to everybody.
TEST_F(NewFileTest, LeavesTheProcessesMaskAlone) {
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
