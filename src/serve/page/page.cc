#include "serve/page/page.h"

#include <fmt/format.h>

#include "serve/http/access.h"
#include "serve/page/assets.h"

namespace sdx::serve {
namespace {

constexpr std::string_view kNonceMark = "@NONCE@";

std::string page_with(std::string_view nonce) {
  std::string text;
  text.reserve(kPage.size() + 64);
  std::size_t from = 0;
  for (std::size_t at = kPage.find(kNonceMark); at != std::string_view::npos; at = kPage.find(kNonceMark, from)) {
    text.append(kPage.substr(from, at - from)).append(nonce);
    from = at + kNonceMark.size();
  }
  return text.append(kPage.substr(from));
}

// Text that models write must never run as code: only the page's own script is allowed, nothing from elsewhere, and no other site
// may frame it.
Response answer(const Request&) {
  const std::string nonce = random_token();
  Response response;
  response.body = page_with(nonce);
  response.headers = {
      {"Content-Type", "text/html; charset=utf-8"},
      {"Content-Security-Policy",
       fmt::format("default-src 'none'; script-src 'nonce-{0}'; style-src 'nonce-{0}'; img-src 'self' blob: data:; connect-src "
                   "'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
                   nonce)},
      {"X-Content-Type-Options", "nosniff"},
      {"X-Frame-Options", "DENY"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Opener-Policy", "same-origin"},
      {"Cache-Control", "no-store"}};
  return response;
}

}  // namespace

void add_page(Router& router) {
  Route route;
  route.method = "GET";
  route.pattern = "/";
  route.runs = Runs::at_once;
  route.body_bytes = 0;
  route.needs = Needs::nothing;
  route.limited = false;
  router.add(route, Handler(answer));
}

}  // namespace sdx::serve
