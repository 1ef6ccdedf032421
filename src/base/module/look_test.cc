#include "base/module/look.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/system/process.h"
#include "support/temporary_folder.h"
#include "support/test_module.h"

namespace sdx {
namespace {

namespace fs = std::filesystem;
using State = LibraryLook::State;

constexpr ModuleName kGood{"sardonyx/libsdx_test_module.so", "sdx_test_module", "SDX_TEST_LOOK_LIB", "testing", "libother"};
constexpr ModuleName kOtherRelease{kGood.file, "sdx_test_other_release", kGood.variable, "testing"};
constexpr ModuleName kShortTable{kGood.file, "sdx_test_short_table", kGood.variable, "testing"};
constexpr ModuleName kNoSymbol{kGood.file, "sdx_test_no_symbol", kGood.variable, "testing"};
constexpr ModuleName kMissing{"sardonyx/libsdx_test_missing.so", "sdx_test_module", kGood.variable, "testing"};

LibraryAsked ask_for_file(const fs::path& file) {
  LibraryAsked asked = ask_for<TestModule, kGood>();
  asked.files = {file};
  return asked;
}

LibraryLook look_at(const LibraryAsked& asked) { return look_at_libraries({&asked, 1}).front(); }

std::string content_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class Look : public ::testing::Test {
 protected:
  testing::TemporaryFolder folder_;
};

void expect_part(const std::string& text, const std::string& part) { EXPECT_NE(text.find(part), std::string::npos) << text; }

TEST_F(Look, AModuleOfThisBuildWorks) {
  const LibraryLook look = look_at(ask_for<TestModule, kGood>());
  EXPECT_EQ(look.state, State::works) << look.reason;
  EXPECT_EQ(look.file.filename(), fs::path(SDX_TEST_MODULE_FILE).filename());
  EXPECT_EQ(look.reason + look.hint, "");
}

TEST_F(Look, OthersFailWithTheReason) {
  const LibraryAsked asked[] = {ask_for<TestModule, kOtherRelease>(), ask_for<TestModule, kShortTable>(),
                                ask_for<TestModule, kNoSymbol>()};
  const std::vector<LibraryLook> looks = look_at_libraries(asked);
  for (const LibraryLook& look : looks) {
    EXPECT_EQ(look.state, State::fails);
    EXPECT_EQ(look.hint, "install all files of this release again");
  }
  EXPECT_EQ(looks[0].reason, "of release 0.0.1");
  expect_part(looks[1].reason, "of another build: its table has ");
  EXPECT_EQ(looks[2].reason, "it has no function sdx_test_no_symbol");
}

TEST_F(Look, AMissingOneIsAbsentUnlessAVariableNamesIt) {
  const LibraryLook absent = look_at(ask_for<TestModule, kMissing>());
  EXPECT_EQ(absent.state, State::absent);
  EXPECT_EQ(absent.reason, "");
  const std::string nowhere = fs::absolute("/nowhere/module.so").string();
  set_environment(kGood.variable, nowhere.c_str());
  const LibraryLook named = look_at(ask_for<TestModule, kMissing>());
  set_environment(kGood.variable, nullptr);
  EXPECT_EQ(named.state, State::fails);
  EXPECT_EQ(named.file, nowhere);
  EXPECT_EQ(named.reason, "not there");
  EXPECT_EQ(named.hint, "correct or unset SDX_TEST_LOOK_LIB");
}

TEST_F(Look, ADamagedOneDoesNotHideOthers) {
  const std::string whole = content_of(SDX_TEST_MODULE_FILE);
  const LibraryAsked asked[] = {ask_for_file(folder_.write("half.so", whole.substr(0, whole.size() / 2))),
                                ask_for_file(folder_.write("head.so", whole.substr(0, 4096))),
                                ask_for_file(folder_.write("empty.so", "")),
                                ask_for_file(folder_.write("text.so", "not a library")), ask_for<TestModule, kGood>()};
  const std::vector<LibraryLook> looks = look_at_libraries(asked);
  ASSERT_EQ(looks.size(), 5U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(looks[i].state, State::fails) << i;
    EXPECT_NE(looks[i].reason, "") << i;
    EXPECT_EQ(looks[i].file, asked[i].files[0]);
  }
  EXPECT_EQ(looks[4].state, State::works) << looks[4].reason;
}

TEST_F(Look, TheFirstFileThatWorksCounts) {
  LibraryAsked asked = ask_for<TestModule, kGood>();
  const fs::path bad = folder_.write("text.so", "not a library");
  asked.files.insert(asked.files.begin(), bad);
  EXPECT_EQ(look_at(asked).state, State::works);
  asked.files = {folder_ / "nowhere.so", bad};
  EXPECT_EQ(look_at(asked).file, bad);
  EXPECT_EQ(look_at({}).state, State::absent);
}

constexpr ModuleName kLinked{"sardonyx/libsdx_nowhere.so", "sdx_look_linked", "SDX_TEST_NOWHERE_LIB", "testing"};
constexpr ModuleName kLinkedWrongly{kLinked.file, "sdx_look_linked_wrongly", kLinked.variable, "testing"};

const ModuleHead* linked_head() {
  static constexpr ModuleHead kHead = module_head<TestModule>(SDX_VERSION);
  return &kHead;
}
const ModuleHead* head_of_another_release() {
  static constexpr ModuleHead kHead = module_head<TestModule>("0.0.1");
  return &kHead;
}

TEST_F(Look, OneThatIsLinkedNeedsNoFile) {
  static const LinkedModule kModule(kLinked.symbol, &linked_head), kOther(kLinkedWrongly.symbol, &head_of_another_release);
  LibraryAsked without_head = ask_for_library("libsdx_nowhere.so");
  without_head.linked = true;
  const LibraryAsked asked[] = {ask_for<TestModule, kLinked>(), ask_for<TestModule, kLinkedWrongly>(), without_head};
  const std::vector<LibraryLook> looks = look_at_libraries(asked);
  EXPECT_EQ(looks[0].state, State::works);
  EXPECT_EQ(looks[0].file, "");
  EXPECT_EQ(looks[1].state, State::fails);
  EXPECT_EQ(looks[1].reason, "of release 0.0.1");
  EXPECT_EQ(looks[2].state, State::works);
}

}  // namespace
}  // namespace sdx
