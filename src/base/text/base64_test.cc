#include "base/text/base64.h"

#include <gtest/gtest.h>

namespace sdx {
namespace {

TEST(Base64, ThereAndBack) {
  // RFC 4648, section 10.
  const std::pair<std::string, std::string> known[] = {{"", ""},
                                                       {"f", "Zg=="},
                                                       {"fo", "Zm8="},
                                                       {"foo", "Zm9v"},
                                                       {"foob", "Zm9vYg=="},
                                                       {"fooba", "Zm9vYmE="},
                                                       {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : known) {
    EXPECT_EQ(encode_base64(bytes), text);
    EXPECT_EQ(decode_base64(text), bytes);
    EXPECT_EQ(decode_base64(text.substr(0, text.find('='))), bytes);
  }
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  EXPECT_EQ(decode_base64(encode_base64(all)), all);
}

TEST(Base64, RefusesWhatIsNone) {
  for (const char* text : {"Z", "Zm9vY", "Zm 9v", "Zm9v\n", "Zg==Zg==", "Z-8_"})
    EXPECT_EQ(decode_base64(text), std::nullopt) << text;
}

}  // namespace
}  // namespace sdx
