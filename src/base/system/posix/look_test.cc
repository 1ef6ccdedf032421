#include "base/module/look.h"

#include <gtest/gtest.h>

#include <string>

#include "base/system/elf.h"
#include "base/system/mapped_file.h"
#include "support/temporary_folder.h"
#include "support/test_module.h"

namespace sdx {
namespace {

namespace fs = std::filesystem;
using State = LibraryLook::State;

constexpr ModuleName kModule{"sardonyx/libsdx_test_module.so", "sdx_test_module", "SDX_TEST_LOOK_LIB", "testing", "libother"};

void expect_part(const std::string& text, const std::string& part) { EXPECT_NE(text.find(part), std::string::npos) << text; }

TEST(LookOnPosix, AMissingPackageIsNoFailureOfTheInstallation) {
  std::string bytes = read_file(SDX_TEST_MODULE_FILE);
  std::string needed = read_elf(fs::path(SDX_TEST_MODULE_FILE)).needed.at(0);
  const std::size_t at = bytes.find('\0' + needed + '\0');
  ASSERT_NE(at, std::string::npos);
  needed[3] = '_';
  bytes.replace(at + 1, needed.size(), needed);
  const testing::TemporaryFolder folder;
  LibraryAsked asked = ask_for<TestModule, kModule>();
  asked.files = {folder.write("needy.so", bytes)};
  LibraryLook look = look_at_libraries({&asked, 1}).front();
  EXPECT_EQ(look.state, State::absent);
  EXPECT_EQ(look.hint, "install Debian's package libother");
  expect_part(look.reason, needed + ": not found");
  asked.package = nullptr;
  look = look_at_libraries({&asked, 1}).front();
  EXPECT_EQ(look.state, State::fails);
  expect_part(look.reason, needed + ": not found");
}

}  // namespace
}  // namespace sdx
