#include "text/tokenizer/scanners.h"

#include <array>

#include "text/unicode/unicode.h"

namespace sdx::text {
namespace {

// The class of a character. Others are punctuation, symbols, marks, controls and unassigned ones.
enum class Class : unsigned char { space, letter, number, other };

Class class_of_wide(char32_t c) {
  if (is_white_space(c)) return Class::space;
  if (is_letter(c)) return Class::letter;
  return is_number(c) ? Class::number : Class::other;
}

constexpr std::array<Class, 128> make_ascii() {
  std::array<Class, 128> all{};
  for (unsigned c = 0; c < 128; ++c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    all[c] = c == ' ' || (c >= 9 && c <= 13) ? Class::space
             : letter                        ? Class::letter
             : c >= '0' && c <= '9'          ? Class::number
                                             : Class::other;
  }
  return all;
}
constexpr std::array<Class, 128> kAscii = make_ascii();

struct Char {
  Class kind;
  std::size_t end;  // where the next begins
};

Char char_at(std::string_view text, std::size_t at) {
  const auto c = static_cast<unsigned char>(text[at]);
  if (c < 128) return {kAscii[c], at + 1};
  const char32_t wide = next_char(text, at);
  return {class_of_wide(wide), at};
}

std::size_t run(std::string_view text, std::size_t at, Class kind, std::size_t most = ~std::size_t{0}) {
  while (at < text.size() && most-- > 0) {
    const Char c = char_at(text, at);
    if (c.kind != kind) break;
    at = c.end;
  }
  return at;
}

bool is_newline(char c) { return c == '\r' || c == '\n'; }

// \s+(?!\S)|\s+ where a space is: all spaces but the last, if something follows and there are several.
std::size_t spaces(std::string_view text, std::size_t at) {
  const std::size_t end = run(text, at, Class::space);
  if (end == text.size()) return end;
  std::size_t last = end - 1;
  while (continues_char(text[last])) --last;
  return last > at ? last : end;
}

// \s*[\r\n]+|\s+(?!\S)|\s+ where a space is.
std::size_t lines_or_spaces(std::string_view text, std::size_t at) {
  const std::size_t end = run(text, at, Class::space);
  for (std::size_t i = end; i > at; --i) {
    if (is_newline(text[i - 1])) return i;
  }
  return spaces(text, at);
}

// 's|'t|'re|'ve|'m|'ll|'d, in small letters.
std::size_t contraction(std::string_view text, std::size_t at) {
  if (text[at] != '\'' || at + 1 >= text.size()) return at;
  const char a = text[at + 1], b = at + 2 < text.size() ? text[at + 2] : '\0';
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return at + 2;
  if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l')) return at + 3;
  return at;
}

// The same in letters of any case, which makes the long s an s.
std::size_t any_contraction(std::string_view text, std::size_t at) {
  if (text[at] != '\'' || at + 1 >= text.size()) return at;
  if (text.substr(at + 1).starts_with("\xC5\xBF")) return at + 3;
  const auto lower = [&](std::size_t i) {
    const char c = i < text.size() ? text[i] : '\0';
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  };
  const char pair[] = {'\'', lower(at + 1), lower(at + 2)};
  const std::size_t end = contraction({pair, 3}, 0);
  return at + end;
}

// Matches ` ?[^\s\p{L}\p{N}]+`, then `[\r
// ]*` if `lines`.
std::size_t others(std::string_view text, std::size_t at, bool lines) {
  const std::size_t from = text[at] == ' ' ? at + 1 : at;
  std::size_t end = run(text, from, Class::other);
  if (end == from) return at;
  while (lines && end < text.size() && is_newline(text[end])) ++end;
  return end;
}

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,most}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
std::size_t scan_cl100k(std::string_view text, std::size_t at, std::size_t most) {
  if (const std::size_t end = any_contraction(text, at); end != at) return end;
  const Char first = char_at(text, at);
  if (first.kind == Class::letter) return run(text, first.end, Class::letter);
  if (first.kind == Class::number) return run(text, at, Class::number, most);
  if (!is_newline(text[at]) && first.end < text.size()) {
    const Char second = char_at(text, first.end);
    if (second.kind == Class::letter) return run(text, second.end, Class::letter);
  }
  if (const std::size_t end = others(text, at, true); end != at) return end;
  return lines_or_spaces(text, at);
}

std::size_t scan_cl100k_3(std::string_view text, std::size_t at) { return scan_cl100k(text, at, 3); }
std::size_t scan_cl100k_1(std::string_view text, std::size_t at) { return scan_cl100k(text, at, 1); }

std::size_t scan_numbers_3(std::string_view text, std::size_t at) { return run(text, at, Class::number, 3); }
std::size_t scan_number(std::string_view text, std::size_t at) { return run(text, at, Class::number, 1); }

// [一-龥぀-ゟ゠-ヿ]+
std::size_t scan_chinese_japanese(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    std::size_t end = at;
    const char32_t c = next_char(text, end);
    if (!((c >= 0x4E00 && c <= 0x9FA5) || (c >= 0x3040 && c <= 0x30FF))) break;
    at = end;
  }
  return at;
}

bool is_ascii_punctuation(char c) {
  return static_cast<unsigned char>(c) < 0x80 && is_punctuation(static_cast<unsigned char>(c));
}
bool is_ascii_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

template <class F>
std::size_t run_of(std::string_view text, std::size_t at, const F& belongs) {
  while (at < text.size()) {
    std::size_t end = at;
    if (!belongs(next_char(text, end))) break;
    at = end;
  }
  return at;
}

// [!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|
// ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
std::size_t scan_deepseek(std::string_view text, std::size_t at) {
  const auto word = [](char32_t c) { return is_letter(c) || is_mark_of_regex(c); };
  const auto sign = [](char32_t c) { return is_punctuation_or_symbol(c); };
  if (is_ascii_punctuation(text[at]) && at + 1 < text.size() && is_ascii_letter(text[at + 1])) {
    ++at;
    while (at < text.size() && is_ascii_letter(text[at])) ++at;
    return at;
  }
  std::size_t after = at;
  const char32_t first = next_char(text, after);
  if (!is_letter(first) && !sign(first) && !is_newline(text[at])) {
    if (const std::size_t end = run_of(text, after, word); end != after) return end;
  }
  if (const std::size_t end = run_of(text, at, word); end != at) return end;
  const std::size_t from = text[at] == ' ' ? at + 1 : at;
  if (std::size_t end = run_of(text, from, sign); end != from) {
    while (end < text.size() && is_newline(text[end])) ++end;
    return end;
  }
  return is_white_space(first) ? lines_or_spaces(text, at) : at;
}

}  // namespace

std::size_t scan_gpt2(std::string_view text, std::size_t at) {
  if (const std::size_t end = contraction(text, at); end != at) return end;
  const std::size_t from = text[at] == ' ' ? at + 1 : at;
  if (from < text.size()) {
    const Char first = char_at(text, from);
    if (first.kind != Class::space) return run(text, first.end, first.kind);
  }
  return spaces(text, at);
}

std::size_t scan_words(std::string_view text, std::size_t at) {
  if (const std::size_t end = run_of(text, at, is_word_char); end != at) return end;
  return run_of(text, at, [](char32_t c) { return !is_word_char(c) && !is_white_space(c); });
}

const std::vector<KnownPattern>& known_patterns() {
  static const std::vector<KnownPattern> all = {
      {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", scan_gpt2},
      {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
       scan_cl100k_3},
      {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
       scan_cl100k_1},
      {R"(\p{N}{1,3})", scan_numbers_3},
      {R"(\p{N})", scan_number},
      {"[一-龥぀-ゟ゠-ヿ]+", scan_chinese_japanese},
      {"[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| "
       "?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|"
       "\\s+(?!\\S)|\\s+",
       scan_deepseek},
  };
  return all;
}

Scanner find_scanner(std::string_view expression) {
  for (const KnownPattern& p : known_patterns()) {
    if (p.expression == expression) return p.scan;
  }
  return nullptr;
}

}  // namespace sdx::text
