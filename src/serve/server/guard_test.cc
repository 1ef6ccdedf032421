#include "serve/server/guard.h"

#include <gtest/gtest.h>

namespace sdx::serve {
namespace {

Request request(Headers headers, const char* method = "POST") {
  Request out;
  out.method = method;
  out.headers = std::move(headers);
  out.headers.emplace_back("Host", "localhost:8080");
  return out;
}

int status(const std::optional<Response>& response) { return response ? response->status : 0; }

TEST(Guard, KnowsItsNames) {
  Guard guard({.hosts = {"localhost", "[::1]"}, .origins = {}}, nullptr);
  for (const auto& [host, expected] : std::vector<std::pair<std::string, int>>{{"localhost", 0},
                                                                               {"LOCALHOST:1", 0},
                                                                               {"[::1]:80", 0},
                                                                               {"rebound.example:8080", 421},
                                                                               {"localhost.example", 421},
                                                                               {"", 421}}) {
    Request r;
    r.headers = {{"Host", host}};
    EXPECT_EQ(status(guard.check_caller(r)), expected) << host;
  }
  Guard open({}, nullptr);
  EXPECT_EQ(status(open.check_caller(request({}))), 0);
}

TEST(Guard, RefusesPagesOfOtherSites) {
  Guard guard({.hosts = {}, .origins = {"https://friend.example"}}, nullptr);
  EXPECT_EQ(status(guard.check_caller(request({}))), 0);
  EXPECT_EQ(status(guard.check_caller(request({{"Origin", "http://localhost:8080"}}))), 0);
  EXPECT_EQ(status(guard.check_caller(request({{"Origin", "https://localhost:8080"}}))), 0);
  EXPECT_EQ(status(guard.check_caller(request({{"Origin", "https://FRIEND.example"}}))), 0);
  for (const char* origin : {"http://localhost:8081", "https://evil.example", "null", "https://friend.example.evil", "http://"}) {
    EXPECT_EQ(status(guard.check_caller(request({{"Origin", origin}}))), 403) << origin;
  }
}

TEST(Guard, TellsBrowsersWhoMayAsk) {
  Guard guard({.hosts = {}, .origins = {"https://friend.example"}}, nullptr);
  const Request asked = request({{"Origin", "https://friend.example"},
                                 {"Access-Control-Request-Method", "POST"},
                                 {"Access-Control-Request-Headers", "authorization"}},
                                "OPTIONS");
  auto answer = guard.preflight(asked, "GET, HEAD, POST");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 204);
  guard.decorate(asked, *answer);
  EXPECT_EQ(header(answer->headers, "Access-Control-Allow-Origin"), "https://friend.example");
  EXPECT_EQ(header(answer->headers, "Access-Control-Allow-Methods"), "GET, HEAD, POST");
  EXPECT_EQ(header(answer->headers, "Access-Control-Allow-Headers"), "authorization");
  EXPECT_EQ(header(answer->headers, "Vary"), "Origin");
  EXPECT_FALSE(guard.preflight(asked, ""));  // there is no such path
  EXPECT_FALSE(guard.preflight(request({}), "GET"));
  Response plain;
  Guard({}, nullptr).decorate(asked, plain);
  EXPECT_TRUE(plain.headers.empty());
}

TEST(Guard, AsksForKeys) {
  Guard guard({}, std::make_unique<Keys>(parse_keys("good name=g concurrency=1\nold expires=2020-01-01", "k")));
  Route route;
  const auto ask = [&](Headers headers) {
    Request r = request(std::move(headers));
    return status(guard.check_key(r, &route));
  };
  EXPECT_EQ(ask({}), 401);
  EXPECT_EQ(ask({{"Authorization", "Bearer bad"}}), 401);
  EXPECT_EQ(ask({{"Authorization", "Basic good"}}), 401);
  EXPECT_EQ(ask({{"Authorization", "Bearer "}}), 401);
  EXPECT_EQ(ask({{"Authorization", "Bearer old"}}), 403);
  EXPECT_EQ(ask({{"Authorization", "bearer  good"}}), 0);
  Request first = request({{"Authorization", "Bearer good"}});
  EXPECT_EQ(status(guard.check_key(first, &route)), 0);
  EXPECT_EQ(first.key, "g");
  Request second = request({{"Authorization", "Bearer good"}});
  const auto refused = guard.check_key(second, &route);
  ASSERT_EQ(status(refused), 429);
  EXPECT_EQ(header(refused->headers, "Retry-After"), "1");
  EXPECT_NE(refused->body.find("\"code\":\"concurrency_limit_exceeded\""), std::string::npos) << refused->body;
  route.needs = Needs::nothing;
  EXPECT_EQ(ask({}), 0);
  Request stranger = request({});
  EXPECT_EQ(status(guard.check_key(stranger, nullptr)), 401);  // also about paths that do not exist
}

TEST(Guard, TakesSoManyAtATime) {
  Guard guard({.hosts = {}, .origins = {}, .most_running = 2}, nullptr);
  Route route;
  Request first = request({}), second = request({}), third = request({});
  EXPECT_EQ(status(guard.check_load(first, route)), 0);
  EXPECT_EQ(status(guard.check_load(second, route)), 0);
  const auto refused = guard.check_load(third, route);
  EXPECT_EQ(status(refused), 503);
  EXPECT_EQ(header(refused->headers, "Retry-After"), "1");
  Route monitor;
  monitor.limited = false;
  EXPECT_EQ(status(guard.check_load(third, monitor)), 0);
  first.held.reset();
  EXPECT_EQ(guard.running(), 1);
  EXPECT_EQ(status(guard.check_load(third, route)), 0);
}

}  // namespace
}  // namespace sdx::serve
