// Tables of Unicode are the same with every version of utf8proc. The numbers are those of utf8proc 2.8, with which the tables in
// unicode_versions.cc were compared with the library `tokenizers`.

#include "text/unicode/unicode.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "base/text/utf8.h"

namespace sdx::text {
namespace {

constexpr char32_t kEnd = 0x110000;
constexpr bool is_surrogate(char32_t c) { return c >= 0xD800 && c <= 0xDFFF; }

class Digest {
 public:
  void add(std::uint64_t value) { sum_ = (sum_ ^ value) * 0x100000001B3U; }
  std::uint64_t sum() const { return sum_; }

 private:
  std::uint64_t sum_ = 0xCBF29CE484222325U;
};

std::uint64_t characters(bool (*is)(char32_t) noexcept) {
  Digest d;
  for (char32_t c = 0; c < kEnd; ++c) {
    if (is(c)) d.add(c);
  }
  return d.sum();
}

std::string normalized(const std::string& text, Form form) {
  std::vector<Change> to;
  if (!normalize(text, form, to)) return text;
  std::string out;
  for (const Change& c : to) append_utf8(out, c.c);
  return out;
}

TEST(Unicode, NormalForms) {
  EXPECT_EQ(normalized("e\u0301", Form::nfc), "é");
  EXPECT_EQ(normalized("é", Form::nfd), "e\u0301");
  EXPECT_EQ(normalized("\uFB01e\u0301", Form::nfkc), "fié");
  EXPECT_EQ(normalized("\uFB01é", Form::nfkd), "fie\u0301");
  EXPECT_EQ(normalized("か\u3099", Form::nfc), "が");
  EXPECT_EQ(normalized("\u1112\u1161\u11AB", Form::nfc), "한");
  EXPECT_EQ(normalized("e\u0323\u0302", Form::nfc), "ệ");
  EXPECT_EQ(normalized("é", Form::nfc), "é");
  EXPECT_EQ(normalized("ea", Form::nfc), "ea");
}

TEST(Unicode, ClassesOfAllCharacters) {
  EXPECT_EQ(characters(is_letter), 11149765133256742797U);
  EXPECT_EQ(characters(is_numeric), 14915513028600338668U);
  EXPECT_EQ(characters(is_number), 9838160997148423778U);
  EXPECT_EQ(characters(is_mark_of_regex), 11192953777030472084U);
  EXPECT_EQ(characters(is_punctuation), 17106685033207257412U);
  EXPECT_EQ(characters(is_punctuation_or_symbol), 8469804742127630221U);
  EXPECT_EQ(characters(is_other), 14398261220591313179U);
  EXPECT_EQ(characters(is_nonspacing), 9975366441449904435U);
  EXPECT_EQ(characters(is_mark), 14844992670269171500U);
  EXPECT_EQ(characters(is_word_char), 8424517961242970175U);
}

TEST(Unicode, CategoriesAndSmallLettersOfAllCharacters) {
  Digest categories, lower;
  for (char32_t c = 0; c < kEnd; ++c) {
    for (const char x : general_category(c)) categories.add(static_cast<unsigned char>(x));
    lower.add(to_lower(c).first);
  }
  EXPECT_EQ(categories.sum(), 10429643311672230077U);
  EXPECT_EQ(lower.sum(), 3871668909609152456U);
}

TEST(Unicode, FormsOfAllCharacters) {
  Digest all;
  for (char32_t c = 0xA0; c < kEnd; ++c) {
    if (is_surrogate(c)) continue;
    std::string text, marked;
    append_utf8(text, c);
    marked = text + "\u0301";
    for (const Form form : {Form::nfc, Form::nfkc, Form::nfd, Form::nfkd}) {
      for (const std::string& t : {text, marked}) {
        for (const char x : normalized(t, form)) all.add(static_cast<unsigned char>(x));
      }
    }
  }
  EXPECT_EQ(all.sum(), 14846670783764123362U);
}

}  // namespace
}  // namespace sdx::text
