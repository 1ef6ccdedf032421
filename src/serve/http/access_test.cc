#include "serve/http/access.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace sdx::serve {
namespace {

const std::vector<std::string> kNames{"127.0.0.1", "localhost"};

TEST(Access, TokensAreLongAndDiffer) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    const std::string token = random_token();
    EXPECT_EQ(token.size(), 32u);
    EXPECT_EQ(token.find_first_not_of("0123456789abcdef"), std::string::npos);
    seen.insert(token);
  }
  EXPECT_EQ(seen.size(), 100u);
}

TEST(Access, SecretsAreEqualOnlyWhenEveryByteIs) {
  EXPECT_TRUE(equal_secrets("", ""));
  EXPECT_TRUE(equal_secrets("abc", "abc"));
  EXPECT_FALSE(equal_secrets("abc", "abd"));
  EXPECT_FALSE(equal_secrets("bbc", "abc"));
  EXPECT_FALSE(equal_secrets("abc", "abcd"));
  EXPECT_FALSE(equal_secrets("abc", ""));
}

TEST(Access, HostsAreNamesAndPort) {
  EXPECT_TRUE(host_is_ours("127.0.0.1:8080", kNames, 8080));
  EXPECT_TRUE(host_is_ours("LOCALHOST:8080", kNames, 8080));
  EXPECT_TRUE(host_is_ours("localhost", kNames, 80));
  for (const char* host : {"", "localhost", "localhost:8081", "evil.example:8080", "localhost.evil.example:8080",
                           "127.0.0.1:8080 ", ":8080", "127.0.0.1:", "127.0.0.1:8080:8080", "127.0.0.1:08080"}) {
    EXPECT_FALSE(host_is_ours(host, kNames, 8080)) << host;
  }
}

}  // namespace
}  // namespace sdx::serve
