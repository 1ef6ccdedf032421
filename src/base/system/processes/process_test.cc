#include "base/system/process.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/system/dynlib.h"
#include "base/system/processes/environment.h"

namespace sdx {
namespace {

bool has(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

TEST(Process, ListsTheEnvironment) {
  set_environment("SDX_TEST_ENTRY",
                  "gr\xC3\xB6\xC3\x9F"
                  "e=1");
  EXPECT_TRUE(has(environment_entries(),
                  "SDX_TEST_ENTRY=gr\xC3\xB6\xC3\x9F"
                  "e=1"));
  set_environment("SDX_TEST_ENTRY", nullptr);
  for (const std::string& entry : environment_entries()) EXPECT_FALSE(entry.starts_with("SDX_TEST_ENTRY=")) << entry;
}

TEST(Process, ReadsListsOfFolders) {
  const std::string between = std::filesystem::path::preferred_separator == '/' ? ":" : ";";
  set_environment("SDX_TEST_LIST", (between + "a b" + between + between + "c/d").c_str());
  EXPECT_EQ(listed_in("SDX_TEST_LIST"), (std::vector<std::string>{"a b", "c/d"}));
  set_environment("SDX_TEST_LIST", nullptr);
  EXPECT_TRUE(listed_in("SDX_TEST_LIST").empty());
}

TEST(Process, KnowsItsProgram) {
  EXPECT_TRUE(std::filesystem::is_regular_file(program_file()));
  EXPECT_EQ(program_file().stem(), "sdx_base_tests");
  EXPECT_EQ(program_folder(), program_file().parent_path());
}

}  // namespace
}  // namespace sdx
