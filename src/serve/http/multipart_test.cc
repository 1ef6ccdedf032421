#include "serve/http/multipart.h"

#include <gtest/gtest.h>

#include <random>
#include <sdx/error.hpp>

namespace sdx::serve {
namespace {

const std::string kForm =
    "--XX\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nvalue\r\n"
    "--XX\r\nContent-Disposition: form-data; name=\"file\"; filename=\"p\\\"ic; ture.jpg\"\r\nContent-Type: "
    "image/jpeg\r\n\r\n\x01\r\n--X\r\n"
    "\r\n--XX\r\ncontent-disposition:form-data;name=empty\r\n\r\n\r\n--XX--\r\n";

TEST(Multipart, Boundary) {
  EXPECT_EQ(multipart_boundary("multipart/form-data; boundary=XX"), "XX");
  EXPECT_EQ(multipart_boundary("Multipart/Form-Data; charset=x; boundary=\"a b\""), "a b");
  EXPECT_EQ(multipart_boundary("multipart/mixed; boundary=XX"), "");
  EXPECT_EQ(multipart_boundary("multipart/form-data"), "");
  EXPECT_EQ(multipart_boundary("multipart/form-data; boundary=" + std::string(71, 'x')), "");
  EXPECT_EQ(multipart_boundary(""), "");
}

TEST(Multipart, Parts) {
  const auto parts = parse_multipart(kForm, "XX");
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].name, "a");
  EXPECT_EQ(parts[0].file_name, "");
  EXPECT_EQ(parts[0].body, "value");
  EXPECT_EQ(parts[1].name, "file");
  EXPECT_EQ(parts[1].file_name, "p\"ic; ture.jpg");
  EXPECT_EQ(parts[1].type, "image/jpeg");
  EXPECT_EQ(parts[1].body, "\x01\r\n--X\r\n");
  EXPECT_EQ(parts[2].name, "empty");
  EXPECT_EQ(parts[2].body, "");
  EXPECT_EQ(parse_multipart("preamble\r\n" + kForm, "XX").size(), 3u);
  EXPECT_TRUE(parse_multipart("--XX--\r\n", "XX").empty());
}

TEST(Multipart, EveryTruncationIsNoticed) {
  const std::size_t whole = kForm.size() - 2;  // the last line end may be missing
  for (std::size_t n = 0; n < whole; ++n) EXPECT_THROW(parse_multipart(std::string_view(kForm).substr(0, n), "XX"), Error) << n;
  EXPECT_EQ(parse_multipart(std::string_view(kForm).substr(0, whole), "XX").size(), 3u);
}

TEST(Multipart, BrokenForms) {
  for (const char* body :
       {"", "--YY\r\n", "--XX\r\n\r\nno disposition\r\n--XX--", "--XXtext\r\nContent-Disposition: form-data\r\n\r\n\r\n--XX--",
        "--XX\r\nContent-Disposition: attachment; name=a\r\n\r\n\r\n--XX--", "--XX\r\nnonsense\r\n\r\n\r\n--XX--"}) {
    EXPECT_THROW(parse_multipart(body, "XX"), Error) << body;
  }
  EXPECT_THROW(parse_multipart(kForm, ""), Error);
  EXPECT_THROW(parse_multipart(kForm, "XX", {.parts = 2}), Error);
  EXPECT_THROW(parse_multipart(kForm, "XX", {.head_bytes = 20}), Error);
}

// Changed and random bytes: parts lie within the body, or the form is refused.
TEST(Multipart, RandomBytes) {
  std::mt19937 random(2);
  const std::string_view alphabet = "-X\r\n: ;=\"\\a\0\xff";
  int taken = 0;
  for (int round = 0; round < 50000; ++round) {
    std::string body = round % 4 != 0 ? kForm : "--XX\r\n";
    const int changes = static_cast<int>(random() % 6);
    for (int i = 0; i < changes; ++i) {
      const std::size_t at = random() % body.size();
      const char c = alphabet[random() % alphabet.size()];
      if (random() % 3 == 0) {
        body.erase(at, 1 + random() % 4);
        if (body.empty()) body = "-";
      } else if (random() % 2 != 0) {
        body.insert(body.begin() + static_cast<std::ptrdiff_t>(at), c);
      } else {
        body[at] = c;
      }
    }
    try {
      for (const Part& part : parse_multipart(body, "XX")) {
        ASSERT_GE(part.body.data(), body.data());
        ASSERT_LE(part.body.data() + part.body.size(), body.data() + body.size());
      }
      ++taken;
    } catch (const Error& e) {
      ASSERT_EQ(e.code(), ErrorCode::invalid_argument);
    }
  }
  EXPECT_GT(taken, 1000);
}

}  // namespace
}  // namespace sdx::serve
