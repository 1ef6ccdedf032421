#include "serve/http/head.h"

#include <gtest/gtest.h>

#include <random>

namespace sdx::serve {
namespace {

int status(std::string_view fields, std::string_view line = "GET / HTTP/1.1") {
  const auto error = check_head(std::string(line) + "\r\n" + std::string(fields) + "\r\n");
  return error ? error->status : 200;
}

TEST(Head, IsRead) {
  const std::string head =
      "POST /a?b HTTP/1.1\r\nHost: x\r\nX-Y:  two words\t\r\nEmpty:\r\nConnection: foo, Close\r\nTransfer-Encoding: "
      "chunked\r\n\r\n";
  ASSERT_FALSE(check_head(head));
  Request request;
  const Framing framing = read_head(head, request);
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target, "/a?b");
  EXPECT_EQ(request.headers.size(), 5u);
  EXPECT_EQ(request.header("x-y"), "two words");
  EXPECT_EQ(request.header("empty"), "");
  EXPECT_FALSE(framing.old);
  EXPECT_FALSE(framing.keep_alive);
  EXPECT_FALSE(framing.length);
}

TEST(Head, SaysWhatFollows) {
  const auto framing = [](const std::string& head) {
    Request request;
    EXPECT_FALSE(check_head(head)) << head;
    return read_head(head, request);
  };
  EXPECT_EQ(framing("GET / HTTP/1.1\r\nHost: x\r\n\r\n").length, 0u);
  EXPECT_TRUE(framing("GET / HTTP/1.1\r\nHost: x\r\n\r\n").keep_alive);
  EXPECT_EQ(framing("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 0012\r\n\r\n").length, 12u);
  EXPECT_FALSE(framing("GET / HTTP/1.0\r\n\r\n").keep_alive);
  EXPECT_TRUE(framing("GET / HTTP/1.0\r\n\r\n").old);
  EXPECT_TRUE(framing("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").keep_alive);
  EXPECT_FALSE(framing("GET / HTTP/1.1\r\nHost: x\r\nConnection: a\r\nConnection: close\r\n\r\n").keep_alive);
  EXPECT_TRUE(check_head("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"));
}

TEST(Head, EndsAtTheEmptyLine) {
  const std::string head = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  EXPECT_EQ(find_head_end(head + "body").size, head.size());
  for (std::size_t n = 0; n < head.size(); ++n) {
    EXPECT_EQ(find_head_end(head.substr(0, n)).state, HeadState::incomplete) << n;
    // Found also when it comes in two pieces, wherever they meet.
    EXPECT_EQ(find_head_end(head, n).size, head.size()) << n;
  }
}

TEST(Head, LinesEndWithBothCharacters) {
  EXPECT_EQ(find_head_end("GET / HTTP/1.1\nHost: a\n\n").state, HeadState::broken);
  EXPECT_EQ(find_head_end("GET / HTTP/1.1\r\nA: b\rc\r\n\r\n").state, HeadState::broken);
  EXPECT_EQ(find_head_end("GET / HTTP/1.1\r\nA: b\n c\r\n\r\n").state, HeadState::broken);
  EXPECT_EQ(find_head_end(std::string_view("GET /\0 HTTP/1.1\r\n\r\n", 19)).state, HeadState::broken);
}

TEST(Head, OrdinaryRequestsPass) {
  EXPECT_EQ(status("Host: a\r\n"), 200);
  EXPECT_EQ(status("", "GET / HTTP/1.0"), 200);
  EXPECT_EQ(status("Host: a\r\nContent-Length: 10\r\n", "POST /x?y HTTP/1.1"), 200);
  EXPECT_EQ(status("host:a\r\ntransfer-encoding: Chunked\r\nexpect: 100-continue\r\n", "POST / HTTP/1.1"), 200);
}

TEST(Head, AmbiguousRequestsDoNot) {
  EXPECT_EQ(status("Host: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n"), 400);
  EXPECT_EQ(status("Host: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n"), 400);
  EXPECT_EQ(status("Host: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 400);
  EXPECT_EQ(status("Host: a\r\nTransfer-Encoding: gzip, chunked\r\n"), 501);
  EXPECT_EQ(status("Host: a\r\nTransfer-Encoding: xchunked\r\n"), 501);
  EXPECT_EQ(status("Host: a\r\nTransfer-Encoding : chunked\r\n"), 400);
  EXPECT_EQ(status("Host: a\r\nContent-Length: +1\r\n"), 400);
  EXPECT_EQ(status("Host: a\r\nContent-Length: 1, 1\r\n"), 400);
  EXPECT_EQ(status("Host: a\r\nContent-Length:\r\n"), 400);
  EXPECT_EQ(status("Host: a\r\nContent-Length: 99999999999999999999\r\n"), 400);
  EXPECT_EQ(status("Host: a\r\nX: y\r\n folded\r\n"), 400);
  EXPECT_EQ(status("Host: a\r\nHost: a\r\n"), 400);
  EXPECT_EQ(status(""), 400);
  EXPECT_EQ(status("Host: a\r\n: x\r\n"), 400);
  EXPECT_EQ(status("Host: a\r\nno colon\r\n"), 400);
  EXPECT_EQ(status("Host: a\r\nExpect: more\r\n"), 417);
}

TEST(Head, RequestLines) {
  for (const char* line : {"GET /", "GET", "", "GET  HTTP/1.1", "G(T / HTTP/1.1", "GET http://a/ HTTP/1.1", "GET * HTTP/1.1",
                           " / HTTP/1.1", "GET / b HTTP/1.1", "CONNECT a:1 HTTP/1.1", "GET /\x80 HTTP/1.1"}) {
    EXPECT_EQ(status("Host: a\r\n", line), 400) << line;
  }
  EXPECT_EQ(status("Host: a\r\n", "GET / HTTP/2.0"), 505);
  EXPECT_EQ(status("Host: a\r\n", "GET / http/1.1"), 505);
}

Request split(std::string target) {
  Request request;
  request.target = std::move(target);
  if (!split_target(request)) request.path = "refused";
  return request;
}

TEST(Target, IsSplitAndDecoded) {
  const Request request = split("/a%20b/c?x=1&y=a+b%26&z&&=q");
  EXPECT_EQ(request.path, "/a b/c");
  EXPECT_EQ(request.parameter("x"), "1");
  EXPECT_EQ(request.parameter("y"), "a b&");
  EXPECT_EQ(request.parameter("z"), "");
  EXPECT_EQ(request.query.size(), 4u);
  EXPECT_EQ(split("/").path, "/");
  EXPECT_EQ(split("/a/").path, "/a/");
}

TEST(Target, LeadsNowhereElse) {
  for (const char* target : {"/..", "/../x", "/a/../b", "/a/..", "/%2e%2e/x", "/a/%2E./b", "/.", "/a/./b", "//a", "/a//b",
                             "/a%00b", "/%2", "/%zz", "/a%5c..%5cb", "/a?%", "/..%2fx"}) {
    EXPECT_EQ(split(target).path, "refused") << target;
  }
  EXPECT_EQ(split("/...").path, "/...");
  EXPECT_EQ(split("/a..b").path, "/a..b");
}

// Whatever the bytes are, an answer comes back, and a head that is taken has the shape that the rest of the server counts on.
TEST(Head, RandomBytes) {
  std::mt19937 random(1);
  const std::string_view alphabet = "GET /HTP1.\r\n\r\n:%2e. \t\0\xffHost: Content-Length";
  for (int round = 0; round < 50000; ++round) {
    std::string text = round % 2 != 0 ? "GET /a HTTP/1.1\r\nHost: b\r\nContent-Length: 3\r\n\r\n" : "";
    const int changes = static_cast<int>(random() % 40);
    for (int i = 0; i < changes; ++i) {
      const char c = alphabet[random() % alphabet.size()];
      if (text.empty() || random() % 3 != 0) {
        text.insert(text.begin() + static_cast<std::ptrdiff_t>(random() % (text.size() + 1)), c);
      } else {
        text[random() % text.size()] = c;
      }
    }
    const HeadEnd end = find_head_end(text);
    if (end.state != HeadState::complete) continue;
    ASSERT_LE(end.size, text.size());
    ASSERT_TRUE(text.substr(0, end.size).ends_with("\r\n\r\n"));
    if (check_head(text.substr(0, end.size))) continue;
    Request request;
    request.target = text.substr(text.find(' ') + 1, text.find(' ', text.find(' ') + 1) - text.find(' ') - 1);
    if (split_target(request)) {
      ASSERT_EQ(request.path.find("/../"), std::string::npos);
      ASSERT_EQ(request.path.front(), '/');
    }
  }
}

}  // namespace
}  // namespace sdx::serve
