// The scanners against Oniguruma, on texts that chance makes.

#include "text/tokenizer/scanners.h"

#include <gtest/gtest.h>

#include <random>
#include <sdx/error.hpp>

#include "base/text/utf8.h"
#include "text/unicode/unicode.h"
#include "text/unicode/unicode_versions.h"

namespace sdx::text {
namespace {

// Characters that Oniguruma's tables may be too old for.
bool is_young(char32_t c) {
  if (c == 0xCF3 || c == 0xECE || is_younger(c)) return true;
  return differs(UnicodeTable::letter, c) || differs(UnicodeTable::number_of_regex, c) ||
         differs(UnicodeTable::mark_of_regex, c) || differs(UnicodeTable::sign_of_regex, c);
}

std::string random_text(std::mt19937& random) {
  constexpr std::string_view common = "abcXYZ sStTmMdDrReEvVlL''''  \t\n\r  0123456789.,!?-_/()[]{}<>@#$%^&*+=~`|\\\":;";
  constexpr char32_t wide[] = {0x17F,  0xE9,   0x301,  0x4E2D, 0x65E5, 0x3042,  0x30FC, 0x3000, 0xA0,
                               0x2028, 0x85,   0x0660, 0x2160, 0xBD,   0x1F44D, 0x200D, 0xFE0F, 0x212A,
                               0x1C5,  0x05D0, 0x094D, 0xFF01, 0x20AC, 0x9FA5,  0x9FA6, 0x180E, 0xFEFF};
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  std::string text;
  for (std::size_t i = 0, count = below(30); i < count; ++i) {
    const std::size_t kind = below(10);
    char32_t c = static_cast<unsigned char>(common[below(common.size())]);
    if (kind >= 8) c = wide[below(std::size(wide))];
    if (kind == 9) c = static_cast<char32_t>(below(0xA000));  // beyond, versions of Unicode differ
    if ((c >= 0xD800 && c <= 0xDFFF) || is_young(c)) continue;
    for (std::size_t times = below(12) == 0 ? below(9) : 1; times > 0; --times) append_utf8(text, c);
  }
  return text;
}

std::string shown(const std::vector<Match>& matches) {
  std::string out;
  for (const Match& m : matches) out += std::to_string(m.begin) + (m.matched ? "+" : "-") + std::to_string(m.end) + " ";
  return out;
}

void compare(const KnownPattern& known, int count) {
  const Pattern slow = Pattern::slow_regex(std::string(known.expression)), fast = Pattern::regex(std::string(known.expression));
  std::mt19937 random(42);
  std::vector<Match> a, b;
  for (int i = 0; i < count; ++i) {
    const std::string text = random_text(random);
    slow.find(text, a);
    fast.find(text, b);
    ASSERT_EQ(shown(a), shown(b)) << known.expression << "\nin: " << text;
  }
}

TEST(Scanners, AgreeWithTheirExpressions) {
  for (const KnownPattern& known : known_patterns()) compare(known, 20000);
}

TEST(Scanners, WordsAgreeWithTheirExpression) {
  std::mt19937 random(7);
  const Pattern fast = Pattern::scanner(scan_words);
  std::vector<Match> matches;
  for (int i = 0; i < 2000; ++i) {
    const std::string text = random_text(random);
    fast.find(text, matches);
    std::uint32_t end = 0;
    for (const Match& m : matches) {
      EXPECT_EQ(m.begin, end);
      end = m.end;
      for (std::size_t at = m.begin; at < m.end;) EXPECT_EQ(is_white_space(next_char(text, at)), !m.matched);
    }
    EXPECT_EQ(end, text.size());
  }
}

TEST(Scanners, LongRunsAreLinear) {
  // A regular expression gives up here, or takes minutes.
  std::vector<Match> matches;
  for (const KnownPattern& known : known_patterns()) {
    const Pattern pattern = Pattern::scanner(known.scan);
    for (const char* unit : {" ", "a", "1", "\n", "'", "é", "中", "👍", "\u0301"}) {
      std::string text;
      while (text.size() < 1'000'000) text += unit;
      pattern.find(text, matches);
      EXPECT_FALSE(matches.empty());
    }
  }
}

TEST(Patterns, HostileExpressionsEnd) {
  std::vector<Match> matches;
  EXPECT_THROW(Pattern::regex("(a+)+$").find(std::string(60, 'a') + "b", matches), Error);
  EXPECT_THROW(Pattern::regex("(unclosed"), Error);
  EXPECT_THROW(Pattern::regex("[z-a]"), Error);
  EXPECT_THROW(Pattern::regex(std::string(100'000, '(')), Error);
}

TEST(Patterns, EmptyMatchesStandBetweenCharacters) {
  std::vector<Match> matches;
  Pattern::regex("").find("aé", matches);
  EXPECT_EQ(shown(matches), "0+0 0-1 1+1 1-3 3+3 ");
  Pattern::literal("ab").find("xababy", matches);
  EXPECT_EQ(shown(matches), "0-1 1+3 3+5 5-6 ");
}

}  // namespace
}  // namespace sdx::text
