#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/system/file.h"
#include "support/temporary_folder.h"

namespace sdx {
namespace {

namespace fs = std::filesystem;

// The C++ library would widen each byte.
TEST(NarrowText, PathsReadTextAsUtf8) {
  EXPECT_EQ(fs::path("plain/name.onnx").native(), L"plain/name.onnx");
  EXPECT_EQ(fs::path("\xC3\xA4").native(), L"\u00E4");
  EXPECT_EQ(fs::path("\xE6\x97\xA5").native(), L"\u65E5");
  EXPECT_EQ(fs::path("a\xF0\x9F\x98\x80z").native(), L"a\xD83D\xDE00z");
  EXPECT_EQ(fs::path(std::string("x/\xC3\xA4.txt")).filename().string(), "\xC3\xA4.txt");
  EXPECT_EQ((fs::path("\xC3\xA4") += "\xE6\x97\xA5").native(), L"\u00E4\u65E5");
  for (const char* name : {"\xC3\xBC\xF0\x9F\x98\x80", "\xF4\x8F\xBF\xBF", "\xED\x9F\xBF", "\xEE\x80\x80", "\xEF\xBF\xBF"}) {
    EXPECT_EQ(fs::path(name), path_of(name));
    EXPECT_EQ(fs::path(name).string(), name);
  }
}

// Bytes that are no UTF-8 stand for no file, and are no reason to fail: a list of files may hold anything.
TEST(NarrowText, OtherBytesBecomeTheLetterForUnknownOnes) {
  EXPECT_EQ(fs::path("a\xFFz").native(), L"a\xFFFDz");
  EXPECT_EQ(fs::path("\xE4.png").native(), L"\xFFFD.png");                        // Latin-1
  EXPECT_EQ(fs::path("\xC0\xAF").native(), L"\xFFFD\xFFFD");                      // "/" in too many bytes
  EXPECT_EQ(fs::path("\xED\xA0\x80").native(), L"\xFFFD\xFFFD\xFFFD");            // half of a pair
  EXPECT_EQ(fs::path("\xF4\x90\x80\x80").native(), L"\xFFFD\xFFFD\xFFFD\xFFFD");  // beyond Unicode
}

TEST(NarrowText, FilesOfSuchNamesAreMadeAndFound) {
  const testing::TemporaryFolder folder;
  const std::string name = "\xC3\xA4\xE6\x97\xA5\xF0\x9F\x98\x80.txt";
  std::ofstream(folder / name) << "text";
  EXPECT_TRUE(file_facts(folder.path() / path_of(name)));
  std::string found;
  for (const auto& entry : fs::directory_iterator(folder.path())) found += entry.path().filename().string();
  EXPECT_EQ(found, name);
}

}  // namespace
}  // namespace sdx
