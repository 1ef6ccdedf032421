#include "text/tokenizer/normalizer.h"

#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/sentencepiece_rules.h"
#include "text/unicode/unicode.h"

namespace sdx::text {
namespace {

// Without the characters that `drop` says. Those behind a kept one belong to its change.
template <class F>
void filter(AlignedText& text, const F& drop) {
  const std::string& from = text.text();
  std::vector<Change> kept;
  std::size_t leading = 0;
  bool any = false;
  for (std::size_t at = 0; at < from.size();) {
    const char32_t c = next_char(from, at);
    if (!drop(c)) {
      kept.push_back({c, 0});
    } else {
      any = true;
      if (kept.empty()) {
        ++leading;
      } else {
        --kept.back().change;
      }
    }
  }
  if (any) text.transform(kept, leading);
}

// Replaces each character by the result of f.
template <class F>
void map(AlignedText& text, const F& f) {
  if (is_ascii(text.text())) {
    // No mapping here makes another character of an ASCII one.
    text.map_ascii([&](char c) { return static_cast<char>(f(static_cast<char32_t>(static_cast<unsigned char>(c)))); });
    return;
  }
  const std::string& from = text.text();
  std::vector<Change> chars;
  chars.reserve(from.size());
  bool any = false;
  for (std::size_t at = 0; at < from.size();) {
    const char32_t c = next_char(from, at), to = f(c);
    any = any || c != to;
    chars.push_back({to, 0});
  }
  if (any) text.transform(chars);
}

void form(AlignedText& text, Form f) {
  std::vector<Change> chars;
  if (normalize(text.text(), f, chars)) text.transform(chars);
}

void lowercase(AlignedText& text) {
  if (is_ascii(text.text())) {
    text.map_ascii([](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    return;
  }
  const std::string& from = text.text();
  std::vector<Change> chars;
  chars.reserve(from.size());
  bool any = false;
  for (std::size_t at = 0; at < from.size();) {
    const char32_t c = next_char(from, at);
    const Lower lower = to_lower(c);
    any = any || lower.first != c;
    chars.push_back({lower.first, 0});
    if (lower.second != 0) chars.push_back({lower.second, 1});
  }
  if (any) text.transform(chars);
}

void separate_chinese(AlignedText& text) {
  const std::string& from = text.text();
  if (is_ascii(from)) return;
  std::vector<Change> chars;
  chars.reserve(from.size());
  bool any = false;
  for (std::size_t at = 0; at < from.size();) {
    const char32_t c = next_char(from, at);
    if (is_chinese(c)) {
      any = true;
      chars.insert(chars.end(), {{' ', 0}, {c, 1}, {' ', 1}});
    } else {
      chars.push_back({c, 0});
    }
  }
  if (any) text.transform(chars);
}

void bert(const NormalizerStep& step, AlignedText& text) {
  if (step.clean_text) {
    filter(text, [](char32_t c) { return c == 0 || c == 0xFFFD || (c != '\t' && c != '\n' && c != '\r' && is_other(c)); });
    map(text, [](char32_t c) { return is_white_space(c) ? U' ' : c; });
  }
  if (step.chinese_chars) separate_chinese(text);
  if (step.accents) {
    form(text, Form::nfd);
    if (!is_ascii(text.text())) filter(text, is_nonspacing);
  }
  if (step.lowercase) lowercase(text);
}

void strip(const NormalizerStep& step, AlignedText& text) {
  const std::string& s = text.text();
  std::size_t left = 0, right = s.size();
  while (step.left && left < s.size()) {
    std::size_t after = left;
    if (!is_white_space(next_char(s, after))) break;
    left = after;
  }
  while (step.right && right > left) {
    std::size_t before = right - 1;
    while (continues_char(s[before])) --before;
    std::size_t at = before;
    if (!is_white_space(next_char(s, at))) break;
    right = before;
  }
  text.trim(left, s.size() - right);
}

bool nmt_drops(char32_t c) {
  return (c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F;
}
char32_t nmt_map(char32_t c) {
  const bool space = c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 || (c >= 0x200B && c <= 0x200F) || c == 0x2028 ||
                     c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
  return space ? U' ' : c;
}

// Appends a replacement of `old_chars` characters: additional ones come at the end, and if there are fewer, the last accounts for
// the removed ones.
void append_replacement(std::vector<Change>& to, std::size_t old_chars, std::string_view replacement) {
  const std::size_t before = to.size();
  for (std::size_t at = 0; at < replacement.size();) to.push_back({next_char(replacement, at), 0});
  const std::size_t chars = to.size() - before;
  if (chars > old_chars) {
    for (std::size_t i = before + old_chars; i < to.size(); ++i) to[i].change = 1;
  } else if (chars < old_chars && !to.empty()) {
    to.back().change -= static_cast<std::int32_t>(old_chars - chars);
  }
}

// As in `tokenizers`, whole grapheme clusters of up to 5 bytes are replaced by the shortest entry that they begin with, others
// character by character.
void precompiled(const Charsmap& map, AlignedText& text) {
  const std::string& from = text.text();
  std::vector<Change> chars;
  chars.reserve(from.size());
  bool any = false;
  for (std::size_t at = 0; at < from.size();) {
    const std::size_t end = grapheme_end(from, at);
    const std::string_view cluster = std::string_view(from).substr(at, end - at);
    at = end;
    if (cluster.size() < 6) {
      if (const auto found = map.shortest(cluster)) {
        any = true;
        append_replacement(chars, count_chars(cluster), found->replacement);
        text.check_size(chars.size());
        continue;
      }
    }
    for (std::size_t i = 0; i < cluster.size();) {
      const std::size_t begin = i;
      const char32_t c = next_char(cluster, i);
      if (const auto found = map.shortest(cluster.substr(begin, i - begin))) {
        any = true;
        append_replacement(chars, 1, found->replacement);
        text.check_size(chars.size());
      } else {
        chars.push_back({c, 0});
      }
    }
  }
  if (any) text.transform(chars);
}

void byte_level(AlignedText& text) {
  std::vector<Change> chars;
  chars.reserve(text.text().size());
  for (const char c : text.text()) chars.push_back({byte_chars()[static_cast<unsigned char>(c)], continues_char(c) ? 1 : 0});
  text.transform(chars);
}

void replace(const NormalizerStep& step, AlignedText& text) {
  std::vector<Match> matches;
  step.pattern.find(text.text(), matches);
  text.replace(matches, step.content);
}

}  // namespace

void normalize(const NormalizerStep& step, AlignedText& text) {
  if (text.text().empty()) return;
  switch (step.kind) {
    case NormalizerStep::Kind::bert: return bert(step, text);
    case NormalizerStep::Kind::strip: return strip(step, text);
    case NormalizerStep::Kind::strip_accents: return filter(text, is_mark);
    case NormalizerStep::Kind::nfc: return form(text, Form::nfc);
    case NormalizerStep::Kind::nfd: return form(text, Form::nfd);
    case NormalizerStep::Kind::nfkc: return form(text, Form::nfkc);
    case NormalizerStep::Kind::nfkd: return form(text, Form::nfkd);
    case NormalizerStep::Kind::lowercase: return lowercase(text);
    case NormalizerStep::Kind::nmt: filter(text, nmt_drops); return map(text, nmt_map);
    case NormalizerStep::Kind::precompiled: return precompiled(*step.charsmap, text);
    case NormalizerStep::Kind::replace: return replace(step, text);
    case NormalizerStep::Kind::prepend: return text.prepend(step.content);
    case NormalizerStep::Kind::byte_level: return byte_level(text);
    case NormalizerStep::Kind::sentencepiece: return normalize_sentencepiece(*step.rules, step.charsmap.get(), text);
  }
}

}  // namespace sdx::text
