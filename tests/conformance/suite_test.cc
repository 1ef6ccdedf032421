#include "conformance/suite.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/error.h"

namespace sdx::testing {
namespace {

namespace fs = std::filesystem;

Ignored ignored_of(const std::string& text, const std::string& release = "") {
  std::istringstream in(text);
  return read_ignored(in, release);
}

TEST(Ignored, NamesHaveReasons) {
  const Ignored list = ignored_of("# comment\n\ntest_a random numbers\ntest_b unsupported\n");
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list.at("test_a"), "random numbers");
  EXPECT_THROW(ignored_of("test_a\n"), Error);
  EXPECT_THROW(ignored_of("test_a \n"), Error);
  EXPECT_THROW(ignored_of("test_a one\ntest_a two\n"), Error);
}

TEST(Ignored, EntriesOfOneReleaseCountForThatOne) {
  const std::string text = "test_a@old its data are wrong\ntest_b random\n";
  EXPECT_EQ(ignored_of(text, "old").size(), 2U);
  EXPECT_EQ(ignored_of(text, "new").count("test_a"), 0U);
  EXPECT_EQ(ignored_of(text).size(), 1U);
}

TEST(Ignored, AListedCaseThatPassesHasFailed) {
  const Ignored list{{"listed", "why"}};
  EXPECT_EQ(judge(list, "listed", {Outcome::Kind::passed, ""}).kind, Outcome::Kind::failed);
  const Outcome known = judge(list, "listed", {Outcome::Kind::failed, "differs"});
  EXPECT_EQ(known.kind, Outcome::Kind::skipped);
  EXPECT_EQ(known.reason, "why");
  EXPECT_EQ(judge(list, "other", {Outcome::Kind::failed, "differs"}).kind, Outcome::Kind::failed);
  EXPECT_EQ(judge(list, "other", {Outcome::Kind::passed, ""}).kind, Outcome::Kind::passed);
}

TEST(Ways, EveryNameIsOne) {
  for (const std::string& name : way_names()) EXPECT_EQ(way(name).name, name);
  EXPECT_FALSE(way("no-passes").optimize);
  EXPECT_TRUE(way("reference").reference);
  EXPECT_EQ(way("two-threads").threads, 2);
  EXPECT_EQ(way("scalar").isa, "scalar");
  EXPECT_TRUE(possible(way("scalar")));
  EXPECT_TRUE(way("default").isa.empty());
  EXPECT_TRUE(way("vulkan").vulkan);
  EXPECT_TRUE(way("vulkan").isa.empty());
  EXPECT_THROW(way("avx1024"), Error);
}

TEST(Cases, AreFoundInFoldersAndInFoldersOfFolders) {
  const fs::path root = fs::path(::testing::TempDir()) / "sdx_conformance_cases";
  fs::remove_all(root);
  for (const char* name : {"node/test_b", "node/test_a", "node/empty"}) fs::create_directories(root / name);
  std::ofstream(root / "node/test_a/model.onnx") << "x";
  std::ofstream(root / "node/test_b/model.onnx") << "x";
  const std::vector<fs::path> expected{root / "node/test_a", root / "node/test_b"};
  EXPECT_EQ(find_cases(root), expected);
  EXPECT_EQ(find_cases(root / "node"), expected);
  EXPECT_EQ(find_cases(root / "node/test_a"), std::vector<fs::path>{root / "node/test_a"});
  // A file that is not a model is a failure of that case, not of the run.
  EXPECT_EQ(run_in_child(root / "node/test_a", way("default"), 20).kind, Outcome::Kind::failed);
  fs::remove_all(root);
}

}  // namespace
}  // namespace sdx::testing
