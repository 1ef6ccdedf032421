#include "base/module/module.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/system/loader.h"
#include "base/system/process.h"
#include "support/test_module.h"

namespace sdx {
namespace {

constexpr ModuleName kGood{"sardonyx/libsdx_test_module.so", "sdx_test_module", "SDX_TEST_MODULE_LIB", "testing"};
constexpr ModuleName kOtherRelease{kGood.file, "sdx_test_other_release", kGood.variable, "testing", "libother"};
constexpr ModuleName kOtherMagic{kGood.file, "sdx_test_other_magic", kGood.variable, "testing"};
constexpr ModuleName kShortTable{kGood.file, "sdx_test_short_table", kGood.variable, "testing"};
constexpr ModuleName kOtherTypes{kGood.file, "sdx_test_other_types", kGood.variable, "testing"};
constexpr ModuleName kNoSymbol{kGood.file, "sdx_test_no_symbol", kGood.variable, "testing"};
constexpr ModuleName kMissing{"sardonyx/libsdx_test_missing.so", "sdx_test_module", "SDX_TEST_MISSING_LIB", "testing"};

template <const ModuleName& name>
std::string why_not() {
  try {
    load_module<TestModule, name>();
    return "";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::io);
    EXPECT_EQ(e.message().find("testing needs libsdx_test_"), 0U) << e.message();
    EXPECT_NE(e.message().find("install all files of this release"), std::string::npos) << e.message();
    return e.message();
  }
}

void expect_part(const std::string& message, const std::string& part) {
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(Module, ThreadsGetTheSameTable) {
  std::vector<std::thread> threads;
  std::vector<const TestModule*> tables(8);
  for (const TestModule*& table : tables) threads.emplace_back([&table] { table = &load_module<TestModule, kGood>(); });
  for (std::thread& thread : threads) thread.join();
  for (const TestModule* table : tables) EXPECT_EQ(table, tables[0]);
  EXPECT_EQ(tables[0]->answer(), 42);
}

TEST(Module, AnotherReleaseIsRefused) {
  expect_part(why_not<kOtherRelease>(), "libsdx_test_module.so: of release 0.0.1");
  expect_part(why_not<kOtherRelease>(), "Debian's package libother");
  expect_part(why_not<kOtherMagic>(), "libsdx_test_module.so: of another release");
}

TEST(Module, AnotherBuildIsRefused) {
  const std::string bytes = std::to_string(sizeof(TestModule));
  expect_part(why_not<kShortTable>(), "its table has " + std::to_string(sizeof(ModuleHead)) + " bytes instead of " + bytes);
  expect_part(why_not<kOtherTypes>(), "its structures have 1 bytes instead of 8");
}

TEST(Module, AMissingSymbolIsNamed) { expect_part(why_not<kNoSymbol>(), "it has no function sdx_test_no_symbol"); }

constexpr ModuleName kLinked{"sardonyx/libsdx_nowhere.so", "sdx_test_linked", "SDX_TEST_NOWHERE_LIB", "testing"};
constexpr ModuleName kLinkedWrongly{"sardonyx/libsdx_nowhere.so", "sdx_test_linked_wrongly", "SDX_TEST_NOWHERE_LIB", "testing"};

const ModuleHead* linked_head() {
  static constexpr TestModule kTable{module_head<TestModule>(SDX_VERSION), [] { return 7; }};
  return &kTable.head;
}
const ModuleHead* head_of_another_release() {
  static constexpr TestModule kTable{module_head<TestModule>("0.0.1"), [] { return 8; }};
  return &kTable.head;
}

TEST(Module, OneThatIsLinkedIsTakenWithoutAFile) {
  static const LinkedModule kModule("sdx_test_linked", &linked_head), kOther("sdx_test_linked_wrongly", &head_of_another_release);
  EXPECT_EQ((load_module<TestModule, kLinked>().answer()), 7);
  EXPECT_EQ(LinkedModule::find("sdx_test_missing"), nullptr);
  try {
    load_module<TestModule, kLinkedWrongly>();
    FAIL() << "a table of another release is taken";
  } catch (const Error& e) {
    expect_part(e.message(), "sdx_test_linked_wrongly, which is of release 0.0.1");
  }
}

TEST(Module, AMissingLibraryIsNamedWithItsPlacesAndTriedAgain) {
  expect_part(why_not<kMissing>(), library_file("libsdx_test_missing.so").string() + ": not there");
  const std::string nowhere = std::filesystem::absolute("/nowhere/module.so").string();
  set_environment(kMissing.variable, nowhere.c_str());
  expect_part(why_not<kMissing>(), "\n  " + nowhere + ": not there");
  set_environment(kMissing.variable, SDX_TEST_MODULE_FILE);
  EXPECT_EQ(why_not<kMissing>(), "");
  set_environment(kMissing.variable, nullptr);
}

}  // namespace
}  // namespace sdx
