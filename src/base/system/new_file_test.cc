#include "base/system/new_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

namespace sdx {
namespace {

namespace fs = std::filesystem;

class NewFileTest : public ::testing::Test {
 protected:
  const testing::TemporaryFolder temporary_;
  const fs::path& folder_ = temporary_.path();
};

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
  EXPECT_EQ(refusal(folder_ / "none" / "a"),
            "cannot write '" + (folder_ / "none" / "a").string() + "': there is no folder '" + (folder_ / "none").string() + "'");
  EXPECT_EQ(refusal(folder_), "cannot write '" + folder + "': it is a folder");
  std::ofstream(folder_ / "file") << "x";
  EXPECT_EQ(refusal(folder_ / "file" / "a"),
            "cannot write '" + (folder_ / "file" / "a").string() + "': '" + (folder_ / "file").string() + "' is not a folder");
  EXPECT_EQ(refusal(folder_ / "file"), "");
}

TEST_F(NewFileTest, RemovesWhatNobodyWritesAnyMore) {
  NewFile live(folder_ / "r.csv");
  std::size_t before = 0;
  for (const auto& entry : fs::directory_iterator(folder_)) before += entry.is_regular_file() ? 1 : 0;
  ASSERT_EQ(before, 1U);
  for (const char* name : {"r.csv.tmp.abc123", "r.csv.tmp.ABD123", "r.csv.tmp.abc1234", "s.csv.tmp.abc123", "r.csv"}) {
    std::ofstream(folder_ / name) << "x";
  }
  write_file_atomically(folder_ / "r.csv", std::string("x"));  // one of many perhaps
  EXPECT_TRUE(fs::exists(folder_ / "r.csv.tmp.abc123"));
  { const NewFile other(folder_ / "r.csv"); }
  EXPECT_FALSE(fs::exists(folder_ / "r.csv.tmp.abc123"));
  for (const char* name : {"r.csv.tmp.ABD123", "r.csv.tmp.abc1234", "s.csv.tmp.abc123", "r.csv"}) {
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

}  // namespace
}  // namespace sdx
