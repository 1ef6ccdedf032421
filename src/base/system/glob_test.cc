#include "base/system/glob.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

namespace sdx {
namespace {

namespace fs = std::filesystem;

TEST(Glob, MatchesParts) {
  EXPECT_TRUE(matches_part("*.jpg", "a.jpg"));
  EXPECT_TRUE(matches_part("*", "a.jpg"));
  EXPECT_TRUE(matches_part("a?c", "abc"));
  EXPECT_TRUE(matches_part("a?c", "aéc"));
  EXPECT_TRUE(matches_part("[a-c]1", "b1"));
  EXPECT_TRUE(matches_part("[!a-c]1", "d1"));
  EXPECT_TRUE(matches_part("*a*b*c", "xxaxxbxxc"));
  EXPECT_TRUE(matches_part("[]]", "]"));
  EXPECT_TRUE(matches_part("a\\*", "a*"));
  EXPECT_TRUE(matches_part("[x", "[x"));
  EXPECT_TRUE(matches_part(".*", ".hidden"));
  EXPECT_FALSE(matches_part("*", ".hidden"));
  EXPECT_FALSE(matches_part("?hidden", ".hidden"));
  EXPECT_FALSE(matches_part("*.jpg", "a.jpeg"));
  EXPECT_FALSE(matches_part("[!a-c]1", "b1"));
  EXPECT_FALSE(matches_part("a?c", "ac"));
  EXPECT_FALSE(matches_part("", "a"));
}

TEST(Glob, DoesNotTakeExponentialTime) {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "*a";
  EXPECT_FALSE(matches_part(pattern + "b", std::string(2000, 'a')));
}

TEST(Glob, CrossesFolders) {
  const testing::TemporaryFolder folder;
  for (const char* file : {"a.jpg", "b.txt", "one/c.jpg", "one/two/d.jpg", ".git/e.jpg"}) folder.write(file, "x");
  const fs::path& root = folder.path();
  const auto names = [&](const std::string& pattern) {
    std::string out;
    for (const fs::path& file : expand_pattern((root / pattern).string()).files)
      out += file.lexically_relative(root).string() + " ";
    return out;
  };
  EXPECT_EQ(names("*.jpg"), "a.jpg ");
  EXPECT_EQ(names("**/*.jpg"), "a.jpg one/c.jpg one/two/d.jpg ");
  EXPECT_EQ(names("**"), "a.jpg b.txt one/c.jpg one/two/d.jpg ");
  EXPECT_EQ(names("*/*.jpg"), "one/c.jpg ");
  EXPECT_EQ(names("**/**/d.*"), "one/two/d.jpg ");
  EXPECT_EQ(names("[ab].*"), "a.jpg b.txt ");
  EXPECT_EQ(names("no*"), "");
  EXPECT_EQ(expand_pattern((root / "one/*/d.jpg").string()).base, root / "one");
}

TEST(Glob, WalksFoldersInTheOrderOfPaths) {
  const testing::TemporaryFolder folder;
  for (const char* file : {"b.txt", "a/z.txt", "a/two/d.txt", "a.txt", ".git/e.txt", "out/f.txt", ".hidden"})
    folder.write(file, "x");
  fs::create_directory_symlink(folder.path(), folder.path() / "a/loop");
  std::string names;
  FolderWalk walk;
  walk.skips = [](const fs::path& below) { return below.filename() == "out"; };
  walk.file = [&](const fs::path& file) { names += file.lexically_relative(folder.path()).string() + " "; };
  walk.unreadable = [&](const fs::path& at, const std::error_code& why) {
    names += at.filename().string() + ": " + why.message();
  };
  walk_folder(folder.path(), walk);
  EXPECT_EQ(names, ".hidden a/two/d.txt a/z.txt a.txt b.txt ");
  names.clear();
  walk_folder(folder.path() / "none", walk);
  EXPECT_EQ(names, "none: No such file or directory");
}

}  // namespace
}  // namespace sdx
