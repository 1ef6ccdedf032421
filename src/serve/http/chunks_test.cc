#include "serve/http/chunks.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace sdx::serve {
namespace {

using State = Chunks::State;

// The same in pieces of any size.
std::pair<State, std::string> decode(std::string_view text, std::size_t piece, std::uint64_t limit = 1000) {
  Chunks chunks;
  std::string body, pending;
  State state = State::size;
  while (!text.empty()) {
    pending += text.substr(0, piece);
    text.remove_prefix(std::min(piece, text.size()));
    std::string_view view = pending;
    state = chunks.take(view, body, limit);
    pending.erase(0, pending.size() - view.size());
  }
  if (state == State::done) body += "|" + pending;
  return {state, body};
}

TEST(Chunks, AreDecoded) {
  for (const std::size_t piece : {1, 2, 3, 5, 100}) {
    EXPECT_EQ(decode("3\r\nabc\r\n0\r\n\r\n", piece), std::pair(State::done, std::string("abc|")));
    EXPECT_EQ(decode("0\r\n\r\n", piece), std::pair(State::done, std::string("|")));
    EXPECT_EQ(decode("A;x=\"y\"\r\n0123456789\r\n0000\r\nTrailer: x\r\n\r\n", piece).second, "0123456789|");
    EXPECT_EQ(decode("1\r\n\r\r\n1\r\n\n\r\n0\r\n\r\n", piece).second, "\r\n|");
  }
  EXPECT_EQ(decode("0\r\n\r\nGET /", 100).second, "|GET /");
  EXPECT_EQ(decode("3\r\nab", 100), std::pair(State::data, std::string("ab")));
}

TEST(Chunks, AreRefused) {
  for (const std::size_t piece : {1, 2, 7, 100}) {
    for (const char* text :
         {"\r\n", "x\r\n", "-1\r\n", "+1\r\na\r\n", "0x1\r\na\r\n", " 1\r\na\r\n", "1 \r\na\r\n", "1\na\n0\n\n", "1\r\nab\r\n",
          "1\r\na\n\n", "1\r\na0\r\n\r\n", "ffffffffffffffff1\r\n", "1;\x01\r\na\r\n", "0\r\n folded: x\r\n\r\n",
          "0\r\nnofield\r\n\r\n", "0\r\nA: b\n\r\n", "1\r\r\na\r\n"}) {
      EXPECT_EQ(decode(text, piece).first, State::broken) << text;
    }
  }
  EXPECT_EQ(decode("0\r\n" + std::string(9000, 'a') + ":\r\n", 10000).first, State::broken);
}

TEST(Chunks, HaveALimit) {
  EXPECT_EQ(decode("5\r\nabcde\r\n5\r\nabcde\r\n0\r\n\r\n", 100, 10).first, State::done);
  EXPECT_EQ(decode("5\r\nabcde\r\n6\r\nabcdef\r\n0\r\n\r\n", 100, 10).first, State::too_large);
  EXPECT_EQ(decode("fffffffffffffffe\r\n", 100, 10).first, State::too_large);
}

}  // namespace
}  // namespace sdx::serve
