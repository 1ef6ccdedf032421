#include "serve/http/content_encoding.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>

#include "serve/http/body_share.h"

namespace sdx::serve {
namespace {

enum Form { bare = -MAX_WBITS, with_zlib_head = MAX_WBITS, with_gzip_head = MAX_WBITS + 16 };

std::string packed(const std::string& text, Form form) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, form, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string in = text, out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

Request request_with(const std::string& encoding, std::string body) {
  Request request;
  request.headers = {{"content-Encoding", encoding}};
  request.body = std::move(body);
  return request;
}

// The status of the refusal; 0: none, and the body is what was packed.
int status_of(Request& request, std::uint64_t most = 1 << 20) {
  const auto refused = decode_body(request, most, error_response);
  return refused ? refused->status : 0;
}

std::string varied(std::size_t size) {
  std::string out(size, '\0');
  std::uint32_t state = 1;
  for (char& c : out) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return out;
}

TEST(ContentEncoding, BodiesAreUnpacked) {
  for (const std::string& text : {std::string("{\"inputs\":[]}"), std::string(), std::string(300'000, 'a'), varied(200'000)}) {
    for (const auto& [encoding, form] :
         {std::pair{"gzip", with_gzip_head}, {"X-GZip", with_gzip_head}, {"deflate", with_zlib_head}, {" deflate", bare}}) {
      Request request = request_with(encoding, packed(text, form));
      ASSERT_TRUE(is_encoded(request));
      EXPECT_EQ(status_of(request), 0) << encoding;
      EXPECT_EQ(request.body, text) << encoding;
    }
  }
  Request several = request_with("gzip", packed("one ", with_gzip_head) + packed("two", with_gzip_head));
  EXPECT_EQ(status_of(several), 0);
  EXPECT_EQ(several.body, "one two");
}

TEST(ContentEncoding, WhatIsNotEncodedStays) {
  EXPECT_FALSE(is_encoded(request_with("identity", "x")));
  EXPECT_FALSE(is_encoded(request_with("", "x")));
  EXPECT_FALSE(is_encoded(request_with("gzip", "")));
  EXPECT_FALSE(is_encoded(Request{}));
}

TEST(ContentEncoding, OtherEncodingsAreRefused) {
  for (const char* encoding : {"br", "gzip, gzip", "zstd"}) {
    Request request = request_with(encoding, "x");
    const auto refused = decode_body(request, 100, error_response);
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->status, 415);
    EXPECT_EQ(header(refused->headers, "Accept-Encoding"), "gzip, deflate");
    EXPECT_NE(refused->body.find(encoding), std::string::npos);
  }
  Request twice = request_with("gzip", packed("x", with_gzip_head));
  twice.headers.emplace_back("Content-Encoding", "gzip");
  EXPECT_EQ(status_of(twice), 415);
}

TEST(ContentEncoding, BrokenDataAreRefused) {
  const std::string whole = packed("some text that is long enough to be cut", with_gzip_head);
  for (std::size_t size = 1; size < whole.size(); ++size) {
    Request cut = request_with("gzip", whole.substr(0, size));
    EXPECT_EQ(status_of(cut), 400) << size;
  }
  Request more = request_with("gzip", whole + "x");
  EXPECT_EQ(status_of(more), 400);
  Request behind = request_with("deflate", packed("x", with_zlib_head) + "x");
  EXPECT_EQ(status_of(behind), 400);
  Request damaged = request_with("gzip", whole);
  damaged.body[damaged.body.size() - 6] ^= 1;  // the checksum
  EXPECT_EQ(status_of(damaged), 400);
  Request plain = request_with("gzip", "{\"inputs\":[]}");
  EXPECT_EQ(status_of(plain), 400);
}

TEST(ContentEncoding, LittleThatBecomesMuchIsRefused) {
  std::string zeros;
  zeros.resize(50'000'000);
  const std::string bomb = packed(zeros, with_gzip_head);
  ASSERT_LT(bomb.size(), 100'000U);
  Request request = request_with("gzip", bomb);
  EXPECT_EQ(status_of(request, 1'000'000), 413);
  Request fits = request_with("gzip", packed(std::string(1'000'000, '\0'), with_gzip_head));
  EXPECT_EQ(status_of(fits, 1'000'000), 0);
  EXPECT_EQ(fits.body.size(), 1'000'000U);
  Request over = request_with("gzip", packed(std::string(1'000'001, '\0'), with_gzip_head));
  EXPECT_EQ(status_of(over, 1'000'000), 413);
}

TEST(ContentEncoding, WhatComesOutCountsAgainstAllBodies) {
  const auto all = std::make_shared<std::atomic<std::uint64_t>>(0);
  const std::string body = packed(std::string(400'000, '\0'), with_gzip_head);
  {
    Request request = request_with("gzip", body);
    request.body_held = std::make_shared<BodyShare>(all, 200'000);
    const auto refused = decode_body(request, 1 << 20, error_response);
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->status, 503);
    EXPECT_EQ(header(refused->headers, "Retry-After"), "1");
  }
  EXPECT_EQ(*all, 0U);
  Request request = request_with("gzip", body);
  request.body_held = std::make_shared<BodyShare>(all, 2'000'000);
  EXPECT_EQ(status_of(request), 0);
  EXPECT_GE(*all, 400'000U);
}

}  // namespace
}  // namespace sdx::serve
