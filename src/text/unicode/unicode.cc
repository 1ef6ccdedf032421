#include "text/unicode/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "text/unicode/unicode_versions.h"

namespace sdx::text {
namespace {

// As utf8proc 2.8 has it, whatever the version in use: what unicode_versions.cc adds to it was found with that one.
const utf8proc_property_t& property_of(char32_t c) noexcept {
  constexpr char32_t kUnassigned = 0x378;
  return *utf8proc_get_property(static_cast<utf8proc_int32_t>(is_younger(c) ? kUnassigned : c));
}
utf8proc_category_t category_of(char32_t c) noexcept {
  if (c == 0x295) return UTF8PROC_CATEGORY_LL;  // in Unicode 15; 17 has LO, and MC for the other
  if (c == 0x1171E) return UTF8PROC_CATEGORY_MN;
  return static_cast<utf8proc_category_t>(property_of(c).category);
}

// The first of a pair that becomes one character, and the second. utf8proc 2.10 changed how its tables say so.
template <class P>
bool is_first_of_pairs(const P& p) noexcept {
  if constexpr (requires { p.comb_issecond; }) {
    return p.comb_length > 0;
  } else {
    return p.comb_index < 0x8000;
  }
}
template <class P>
bool is_second_of_pairs(const P& p) noexcept {
  if constexpr (requires { p.comb_issecond; }) {
    return p.comb_issecond != 0;
  } else {
    return p.comb_index >= 0x8000 && p.comb_index != 0xFFFF;
  }
}

bool is_surrounded(char32_t c, char32_t first, char32_t last) noexcept { return c >= first && c <= last; }

// Hangul syllables and their parts are composed by arithmetic (Unicode, section 3.12).
constexpr char32_t kHangulFirst = 0xAC00, kHangulLast = 0xD7A3, kLeadFirst = 0x1100, kVowelFirst = 0x1161, kTrailBefore = 0x11A7;
constexpr char32_t kLeads = 19, kVowels = 21, kTrails = 28;

// 0 for marks that are younger than the tables of normalization forms.
int class_of(char32_t c) noexcept {
  const int own = property_of(c).combining_class;
  return own != 0 && differs(UnicodeTable::mark, c) ? 0 : own;
}

bool may_compose_backward(char32_t c) noexcept {
  if (is_surrounded(c, kVowelFirst, kTrailBefore + kTrails - 1)) return true;
  return is_second_of_pairs(property_of(c));
}

char32_t compose(char32_t a, char32_t b) noexcept {
  if (is_surrounded(a, kLeadFirst, kLeadFirst + kLeads - 1) && is_surrounded(b, kVowelFirst, kVowelFirst + kVowels - 1)) {
    return kHangulFirst + ((a - kLeadFirst) * kVowels + (b - kVowelFirst)) * kTrails;
  }
  if (is_surrounded(a, kHangulFirst, kHangulLast) && (a - kHangulFirst) % kTrails == 0 &&
      is_surrounded(b, kTrailBefore + 1, kTrailBefore + kTrails - 1)) {
    return a + (b - kTrailBefore);
  }
  if (!may_compose_backward(b) || !is_first_of_pairs(property_of(a))) return 0;
  std::array<utf8proc_int32_t, 2> pair = {static_cast<utf8proc_int32_t>(a), static_cast<utf8proc_int32_t>(b)};
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  if (utf8proc_normalize_utf32(pair.data(), 2, options) != 1) return 0;
  const auto composed = static_cast<char32_t>(pair[0]);
  return is_younger(composed) || differs(UnicodeTable::undecomposed, composed) ? 0 : composed;
}

// Characters that no form changes, whatever surrounds them.
bool is_inert(char32_t c, Form form) noexcept {
  const bool composes = form == Form::nfc || form == Form::nfkc;
  constexpr char32_t below[] = {0xC0, 0xA0, 0x300, 0xA0};
  if (c < below[static_cast<std::size_t>(form)]) return true;
  if (is_surrounded(c, kHangulFirst, kHangulLast)) return false;
  if (differs(UnicodeTable::undecomposed, c)) return true;
  const utf8proc_property_t& p = property_of(c);
  if (p.combining_class != 0 && class_of(c) != 0) return false;
  if (composes && may_compose_backward(c)) return false;
  if (p.decomp_seqindex == 0xFFFF) return true;
  const bool compatibility = p.decomp_type != 0;
  return compatibility && (form == Form::nfd || form == Form::nfc);
}

void decompose(char32_t c, bool compatibility, std::vector<Change>& to) {
  if (is_younger(c) || differs(UnicodeTable::undecomposed, c)) {
    to.push_back({c, 0});
    return;
  }
  std::array<utf8proc_int32_t, 32> parts;
  int boundary = 0;
  const auto options =
      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (compatibility ? UTF8PROC_COMPAT : 0));
  const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts.data(), parts.size(), options, &boundary);
  if (count < 1 || count > static_cast<utf8proc_ssize_t>(parts.size())) {
    to.push_back({c, 0});
    return;
  }
  for (utf8proc_ssize_t i = 0; i < count; ++i) to.push_back({static_cast<char32_t>(parts[static_cast<std::size_t>(i)]), i > 0});
}

// Marks in the order of their classes; the changes move with them, as `tokenizers` has it.
void reorder(std::vector<Change>& chars) {
  const auto mark = [](const Change& c) { return c.c >= 0x300 && class_of(c.c) != 0; };
  for (auto i = chars.begin(); i != chars.end();) {
    if (!mark(*i)) {
      ++i;
      continue;
    }
    const auto end = std::find_if_not(i, chars.end(), mark);
    std::stable_sort(i, end, [](const Change& a, const Change& b) { return class_of(a.c) < class_of(b.c); });
    i = end;
  }
}

std::vector<Change> recompose(const std::vector<Change>& chars) {
  std::vector<Change> out;
  out.reserve(chars.size());
  std::size_t starter = 0;  // place in `out`, where there is one
  bool has_starter = false;
  int last_class = -1;  // of the marks behind the starter that did not combine; -1: there is none
  for (const Change& next : chars) {
    const int mark_class = next.c < 0x300 ? 0 : class_of(next.c);
    if (has_starter && (last_class < 0 || last_class < mark_class)) {
      if (const char32_t composed = compose(out[starter].c, next.c); composed != 0) {
        out[starter] = {composed, out[starter].change + next.change - 1};
        continue;
      }
    }
    if (mark_class == 0) {
      starter = out.size();
      has_starter = true;
      last_class = -1;
    } else if (has_starter) {
      last_class = mark_class;
    }
    out.push_back(next);
  }
  return out;
}

bool is_word_of_utf8proc(char32_t c) noexcept {
  switch (category_of(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC: return true;
    // Outside these categories, Other_Alphabetic is letters in circles and squares; Join_Control is two characters.
    default:
      return c == 0x200C || c == 0x200D || is_surrounded(c, 0x24B6, 0x24E9) || is_surrounded(c, 0x1F130, 0x1F149) ||
             is_surrounded(c, 0x1F150, 0x1F169) || is_surrounded(c, 0x1F170, 0x1F189);
  }
}

}  // namespace

std::string_view general_category(char32_t c) noexcept {
  constexpr std::string_view kNames[] = {"Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd",
                                         "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm",
                                         "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co"};
  return kNames[category_of(c)];
}

bool is_ascii(std::string_view text) noexcept {
  unsigned char all = 0;
  for (const char c : text) all |= static_cast<unsigned char>(c);
  return all < 0x80;
}

bool is_white_space(char32_t c) noexcept {
  if (c < 0x80) return c == ' ' || is_surrounded(c, 9, 13);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || is_surrounded(c, 0x2000, 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

bool is_letter(char32_t c) noexcept {
  const auto category = category_of(c);
  return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO) != differs(UnicodeTable::letter, c);
}

bool is_numeric(char32_t c) noexcept {
  const auto category = category_of(c);
  return (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO) != differs(UnicodeTable::numeric, c);
}

bool is_number(char32_t c) noexcept {
  const auto category = category_of(c);
  return (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO) != differs(UnicodeTable::number_of_regex, c);
}

bool is_mark_of_regex(char32_t c) noexcept {
  const auto category = category_of(c);
  return (category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME) != differs(UnicodeTable::mark_of_regex, c);
}

bool is_punctuation(char32_t c) noexcept {
  if (c < 0x80)
    return is_surrounded(c, '!', '/') || is_surrounded(c, ':', '@') || is_surrounded(c, '[', '`') || is_surrounded(c, '{', '~');
  const auto category = category_of(c);
  return (category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO) != differs(UnicodeTable::punctuation, c);
}

bool is_punctuation_or_symbol(char32_t c) noexcept {
  const auto category = category_of(c);
  return (category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_SO) != differs(UnicodeTable::sign_of_regex, c);
}

bool is_other(char32_t c) noexcept {
  const auto category = category_of(c);
  const bool other = category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_CO;
  return other != differs(UnicodeTable::other, c);
}

bool is_nonspacing(char32_t c) noexcept {
  return (category_of(c) == UTF8PROC_CATEGORY_MN) != differs(UnicodeTable::nonspacing, c);
}

bool is_mark(char32_t c) noexcept {
  const auto category = category_of(c);
  return (category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME) != differs(UnicodeTable::mark, c);
}

bool is_word_char(char32_t c) noexcept {
  if (c < 0x80) return is_surrounded(c, 'a', 'z') || is_surrounded(c, 'A', 'Z') || is_surrounded(c, '0', '9') || c == '_';
  return is_word_of_utf8proc(c) != differs(UnicodeTable::word, c);
}

bool is_chinese(char32_t c) noexcept {
  return is_surrounded(c, 0x4E00, 0x9FFF) || is_surrounded(c, 0x3400, 0x4DBF) || is_surrounded(c, 0x20000, 0x2A6DF) ||
         is_surrounded(c, 0x2A700, 0x2B73F) || is_surrounded(c, 0x2B740, 0x2B81F) || is_surrounded(c, 0x2B920, 0x2CEAF) ||
         is_surrounded(c, 0xF900, 0xFAFF) || is_surrounded(c, 0x2F800, 0x2FA1F);
}

Lower to_lower(char32_t c) noexcept {
  if (c < 0x80) return {is_surrounded(c, 'A', 'Z') ? c + 32 : c, 0};
  if (c == 0x130) return {'i', 0x307};
  // Unicode 16 and 17.
  if (is_surrounded(c, 0x10D50, 0x10D65)) return {c + 0x20, 0};
  if (is_surrounded(c, 0x16EA0, 0x16EB8)) return {c + 0x1B, 0};
  if (c == 0xA7CB) return {0x264, 0};
  if (c == 0xA7DC) return {0x19B, 0};
  if (c == 0x1C89 || c == 0xA7CC || c == 0xA7CE || c == 0xA7D2 || c == 0xA7D4 || c == 0xA7DA) return {c + 1, 0};
  if (is_younger(c)) return {c, 0};
  return {static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))), 0};
}

bool normalize(std::string_view text, Form form, std::vector<Change>& to) {
  bool changes = false;
  for (std::size_t at = 0; at < text.size() && !changes;) changes = !is_inert(next_char(text, at), form);
  if (!changes) return false;
  const bool compatibility = form == Form::nfkd || form == Form::nfkc;
  to.clear();
  to.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_char(text, at);
    if (c < 0xA0) {
      to.push_back({c, 0});
    } else {
      decompose(c, compatibility, to);
    }
  }
  reorder(to);
  if (form == Form::nfc || form == Form::nfkc) to = recompose(to);
  return true;
}

std::size_t grapheme_end(std::string_view text, std::size_t at) noexcept {
  char32_t last = next_char(text, at);
  utf8proc_int32_t state = 0;
  while (at < text.size()) {
    std::size_t after = at;
    const char32_t next = next_char(text, after);
    if (last < 0x80 && next < 0x80 && !(last == '\r' && next == '\n')) break;
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(last), static_cast<utf8proc_int32_t>(next), &state)) break;
    last = next;
    at = after;
  }
  return at;
}

}  // namespace sdx::text
