#include "serve/page/page.h"

#include <gtest/gtest.h>

#include "serve/page/assets.h"

namespace sdx::serve {
namespace {

Response ask() {
  Router router;
  add_page(router);
  const Router::Match match = router.find("GET", "/");
  return match.entry->handler(Request{});
}

std::size_t count(std::string_view text, std::string_view what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + what.size())) ++found;
  return found;
}

TEST(ServePage, EachAnswerHasANonceOfItsOwn) {
  const Response a = ask(), b = ask();
  EXPECT_EQ(count(a.body, "@NONCE@"), 0U);
  const std::string_view policy = header(a.headers, "Content-Security-Policy");
  const std::size_t at = policy.find("'nonce-") + 7;
  const std::string nonce(policy.substr(at, policy.find('\'', at) - at));
  EXPECT_GE(nonce.size(), 16U);
  EXPECT_EQ(count(a.body, "nonce=\"" + nonce + "\""), 2U);
  EXPECT_EQ(count(b.body, nonce), 0U);
  EXPECT_EQ(policy.find("unsafe"), std::string_view::npos);
}

// Under the policy a browser would refuse these: an attribute for style or events, markup made from text, and whatever is
// elsewhere.
TEST(ServePage, IsWholeAndKeepsToItsPolicy) {
  EXPECT_EQ(count(kPage, "<script"), count(kPage, "</script>"));
  EXPECT_EQ(count(kPage, "</html>"), 1U);
  EXPECT_EQ(count(kPage, "/*STYLE*/") + count(kPage, "/*SCRIPT*/"), 0U);
  for (const char* refused :
       {" style=\"", " onclick=\"", "innerHTML", "insertAdjacentHTML", "eval(", "src=\"http", "@import", "url("}) {
    EXPECT_EQ(count(kPage, refused), 0U) << refused;
  }
  EXPECT_EQ(count(kPage, "http://") + count(kPage, "https://"), 1U) << "the names of SVG's elements";
}

TEST(ServePage, NeedsNoKeyAndCountsAgainstNoLimit) {
  Router router;
  add_page(router);
  const Route& route = router.find("HEAD", "/").entry->route;
  EXPECT_EQ(route.needs, Needs::nothing);
  EXPECT_FALSE(route.limited);
  EXPECT_EQ(router.find("GET", "/page").entry, nullptr);
}

}  // namespace
}  // namespace sdx::serve
