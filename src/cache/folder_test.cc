#include "cache/folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <optional>

#include "base/error.h"
#include "cache/entry.h"
#include "support/temporary_folder.h"

namespace sdx::cache {
namespace {

namespace fs = std::filesystem;

// Sets variables, and puts back what they were.
class Environment {
 public:
  ~Environment() {
    for (const auto& [name, value] : before_) put(name, value);
  }
  void set(const char* name, const std::optional<std::string>& value) {
    const char* now = std::getenv(name);
    before_.emplace_back(name, now != nullptr ? std::optional<std::string>(now) : std::nullopt);
    put(name, value);
  }

 private:
  static void put(const std::string& name, const std::optional<std::string>& value) {
    if (value) {
      setenv(name.c_str(), value->c_str(), 1);
    } else {
      unsetenv(name.c_str());
    }
  }
  std::vector<std::pair<std::string, std::optional<std::string>>> before_;
};

class CacheFolderTest : public ::testing::Test {
 protected:
  void make() const {
    make_cache_folder(folder_);
    std::ofstream(file_) << "text";
    ::chmod(file_.c_str(), 0644);
  }
  static unsigned mode_of(const fs::path& path) {
    struct stat about {};
    return ::stat(path.c_str(), &about) == 0 ? about.st_mode & 07777U : 0;
  }

  const testing::TemporaryFolder temporary_;
  const fs::path root_ = temporary_ / "cache";
  const fs::path folder_ = root_ / "cpu" / "key", file_ = folder_ / "file";
};

TEST_F(CacheFolderTest, WhereItIs) {
  Environment e;
  e.set("SDX_CACHE_DIR", "/own");
  e.set("XDG_CACHE_HOME", "/xdg");
  e.set("HOME", "/home");
  EXPECT_EQ(cache_folder("given"), "given");
  EXPECT_EQ(cache_folder(), "/own");
  e.set("SDX_CACHE_DIR", std::nullopt);
  EXPECT_EQ(cache_folder(), "/xdg/sdx");
  e.set("XDG_CACHE_HOME", "relative");
  EXPECT_EQ(cache_folder(), "/home/.cache/sdx");
  for (const std::optional<std::string>& none : {std::optional<std::string>(), std::optional<std::string>("")}) {
    e.set("HOME", none);
    EXPECT_EQ(cache_folder(), "");
    EXPECT_EQ(cache_file({}, "tuned.json"), "");
  }
}

TEST_F(CacheFolderTest, IsMadeForItsOwnerAlone) {
  make();
  for (const fs::path& p : {root_, root_ / "cpu", folder_}) EXPECT_EQ(mode_of(p), 0700U) << p;
  EXPECT_EQ(cache_problem(root_, file_), "");
  EXPECT_EQ(cache_file(root_, "cpu/key/file"), file_);
  make_cache_folder(folder_);  // there already
  EXPECT_THROW(make_cache_folder(file_ / "inside"), Error);
}

TEST_F(CacheFolderTest, WhatIsNotThereIsNoProblem) { EXPECT_EQ(cache_problem(root_, file_), ""); }

TEST_F(CacheFolderTest, NothingOnTheWayMayBeWrittenByOthers) {
  for (const fs::path& p : {root_, root_ / "cpu", folder_, file_}) {
    for (const unsigned more : {0020U, 0002U}) {
      make();
      const unsigned mode = mode_of(p);
      ::chmod(p.c_str(), mode | more);
      const std::string problem = cache_problem(root_, file_);
      EXPECT_NE(problem.find("may write to '" + p.string() + "'"), std::string::npos) << p << problem;
      EXPECT_EQ(cache_distrust(root_, file_), problem);
      EXPECT_EQ(cache_file(root_, "cpu/key/file"), "");
      ::chmod(p.c_str(), mode);
      EXPECT_EQ(cache_problem(root_, file_), "");
    }
  }
}

TEST_F(CacheFolderTest, NorBelongToSomebodyElse) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  for (const fs::path& p : {root_, root_ / "cpu", folder_, file_}) {
    make();
    ASSERT_EQ(::chown(p.c_str(), 12345, 12345), 0);
    EXPECT_NE(cache_problem(root_, file_).find("'" + p.string() + "' belongs to user 12345"), std::string::npos);
    ASSERT_EQ(::chown(p.c_str(), 0, 0), 0);
  }
}

TEST_F(CacheFolderTest, LinksAreFollowed) {
  make();
  const fs::path link = root_.string() + ".link";
  fs::create_directory_symlink(root_, link);
  EXPECT_EQ(cache_problem(link, link / "cpu/key/file"), "");
  ::chmod(root_.c_str(), 0777);
  EXPECT_NE(cache_problem(link, link / "cpu/key/file"), "");
  ::chmod(root_.c_str(), 0700);
  if (::geteuid() == 0) {
    ASSERT_EQ(::lchown(link.c_str(), 12345, 12345), 0);
    EXPECT_NE(cache_problem(link, link / "cpu/key/file").find("the link"), std::string::npos);
  }
  fs::remove(link);
}

TEST_F(CacheFolderTest, VendorsGetNoFolderThatOthersMayWriteTo) {
  EXPECT_TRUE(CacheEntry::open(root_ / "vendor", "key", "model.onnx"));
  EXPECT_EQ(mode_of(root_ / "vendor" / "key"), 0700U);
  ::chmod((root_ / "vendor").c_str(), 0777);
  EXPECT_EQ(CacheEntry::open(root_ / "vendor", "key", "model.onnx"), nullptr);
}

}  // namespace
}  // namespace sdx::cache
