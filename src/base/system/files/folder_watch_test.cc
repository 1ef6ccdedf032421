#include "base/system/files/folder_watch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>

#include "base/system/file.h"
#include "support/temporary_folder.h"

namespace sdx {
namespace {

namespace fs = std::filesystem;
using What = FolderEvent::What;

class FolderWatchTest : public ::testing::Test {
 protected:
  FolderWatchTest() : number_(watch_.add(folder_)) {}

  // Waits until this has happened.
  bool hears(What what, const fs::path& name) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (std::chrono::steady_clock::now() < end) {
      const std::vector<FolderEvent> events = watch_.wait(100);
      const auto is_it = [&](const FolderEvent& e) { return e.folder == number_ && e.what == what && e.name == name; };
      if (std::any_of(events.begin(), events.end(), is_it)) return true;
    }
    return false;
  }

  const testing::TemporaryFolder temporary_;
  const fs::path& folder_ = temporary_.path();
  FolderWatch watch_;
  int number_;
};

TEST_F(FolderWatchTest, TellsOfFilesAndFolders) {
  EXPECT_GE(number_, 0);
  EXPECT_TRUE(watch_.wait(0).empty());
  const fs::path name = path_of("ä 日.txt");
  std::ofstream(folder_ / name) << "text";
  EXPECT_TRUE(hears(What::written, name));
  fs::create_directory(folder_ / "inner");
  EXPECT_TRUE(hears(What::folder_made, "inner"));
}

TEST_F(FolderWatchTest, TellsOfAFileOnceItIsClosed) {
  std::ofstream out(folder_ / "slow");
  out << "half" << std::flush;
  EXPECT_TRUE(is_being_written(folder_ / "slow"));
  const std::vector<FolderEvent> early = watch_.wait(50);
  EXPECT_TRUE(std::none_of(early.begin(), early.end(), [](const FolderEvent& e) { return e.what == What::written; }));
  out.close();
  EXPECT_FALSE(is_being_written(folder_ / "slow"));
  EXPECT_TRUE(hears(What::written, "slow"));
}

TEST_F(FolderWatchTest, AFolderThatIsNotThere) {
  EXPECT_EQ(watch_.add(folder_ / "none"), -1);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(watch_.add(folder_), number_);
}

TEST_F(FolderWatchTest, TellsThatAFolderIsGone) {
  const fs::path inner = folder_ / "inner";
  fs::create_directory(inner);
  const int outer = number_;
  number_ = watch_.add(inner);
  ASSERT_GE(number_, 0);
  fs::remove(inner);
  EXPECT_TRUE(hears(What::gone, {}));
  number_ = outer;
}

}  // namespace
}  // namespace sdx
