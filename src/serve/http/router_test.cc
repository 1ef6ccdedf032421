#include "serve/http/router.h"

#include <gtest/gtest.h>

#include <sdx/error.hpp>

namespace sdx::serve {
namespace {

using Parts = std::vector<std::pair<std::string, std::string>>;

Route route(const char* method, const char* pattern) {
  Route out;
  out.method = method;
  out.pattern = pattern;
  return out;
}

Response nothing(const Request&) { return {}; }

std::string found(const Router& router, const char* method, const char* path) {
  const Router::Match match = router.find(method, path);
  if (match.entry == nullptr) return "[" + match.allowed + "]";
  std::string out = match.entry->route.method + " " + match.entry->route.pattern;
  for (const auto& [name, value] : match.parts) out += " " + name + "=" + value;
  return out;
}

TEST(Router, FindsTheClosest) {
  Router router;
  for (const char* pattern : {"/", "/v1/models/{model...}", "/v1/models", "/v2/models/{model}/versions/{version}/infer",
                              "/v2/models/{model}/{what}", "/v2/models/{model}/infer", "/v2/models/{model}"}) {
    router.add(route("GET", pattern), Handler(nothing));
  }
  router.add(route("POST", "/v2/models/{model}/infer"), Handler(nothing));
  EXPECT_EQ(found(router, "GET", "/"), "GET /");
  EXPECT_EQ(found(router, "HEAD", "/"), "GET /");
  EXPECT_EQ(found(router, "GET", "/v1/models"), "GET /v1/models");
  EXPECT_EQ(found(router, "GET", "/v1/models/a/b c"), "GET /v1/models/{model...} model=a/b c");
  EXPECT_EQ(found(router, "GET", "/v2/models/m"), "GET /v2/models/{model} model=m");
  EXPECT_EQ(found(router, "POST", "/v2/models/m/infer"), "POST /v2/models/{model}/infer model=m");
  EXPECT_EQ(found(router, "GET", "/v2/models/m/infer"), "GET /v2/models/{model}/infer model=m");
  EXPECT_EQ(found(router, "GET", "/v2/models/m/other"), "GET /v2/models/{model}/{what} model=m what=other");
  EXPECT_EQ(found(router, "GET", "/v2/models/m/versions/3/infer"),
            "GET /v2/models/{model}/versions/{version}/infer model=m version=3");
}

TEST(Router, SaysWhatAPathTakes) {
  Router router;
  router.add(route("GET", "/a"), Handler(nothing));
  router.add(route("POST", "/a"), Handler(nothing));
  router.add(route("DELETE", "/{x}"), Handler(nothing));
  EXPECT_EQ(found(router, "PUT", "/a"), "[GET, HEAD, POST, DELETE]");
  EXPECT_EQ(found(router, "DELETE", "/a"), "DELETE /{x} x=a");
  for (const char* path : {"/a/", "/a/b", "", "a", "//"}) EXPECT_EQ(found(router, "GET", path), "[]") << path;
  EXPECT_THROW(router.add(route("GET", "/a"), Handler(nothing)), Error);
  EXPECT_THROW(router.add(route("GET", "a"), Handler(nothing)), Error);
}

}  // namespace
}  // namespace sdx::serve
