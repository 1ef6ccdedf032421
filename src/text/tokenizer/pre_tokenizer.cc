#include "text/tokenizer/pre_tokenizer.h"

#include <algorithm>

#include "base/text/utf8.h"
#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/scanners.h"
#include "text/unicode/unicode.h"

namespace sdx::text {
namespace {

using Kind = PreTokenizerStep::Kind;

// The words that a behaviour makes of matches and gaps, with an offset; empty ones are left out.
class Splitter {
 public:
  Splitter(std::uint32_t offset, std::vector<Split>& to) : offset_(offset), to_(to) {}

  void add(const std::vector<Match>& matches, Behavior behavior, bool invert) {
    switch (behavior) {
      case Behavior::isolated:
      case Behavior::removed:
        for (const Match& m : matches) {
          if (behavior == Behavior::isolated || m.matched == invert) put(m.begin, m.end);
        }
        return;
      case Behavior::contiguous: return join(matches, invert, [](bool matched, bool previous) { return matched == previous; });
      case Behavior::merged_with_previous:
        return join(matches, invert, [](bool matched, bool previous) { return matched && !previous; });
      case Behavior::merged_with_next: return join_next(matches, invert);
    }
  }

 private:
  void put(std::uint32_t begin, std::uint32_t end) {
    if (begin != end) to_.push_back({{offset_ + begin, offset_ + end}});
  }

  template <class F>
  void join(const std::vector<Match>& matches, bool invert, const F& joins) {
    bool previous = false, open = false;
    Match current{0, 0, false};
    for (const Match& m : matches) {
      const bool matched = m.matched != invert;
      if (open && joins(matched, previous)) {
        current.end = m.end;
      } else {
        if (open) put(current.begin, current.end);
        current = m;
        open = true;
      }
      previous = matched;
    }
    if (open) put(current.begin, current.end);
  }

  // Works from right to left: a match joins the part after it, unless that is a match.
  void join_next(const std::vector<Match>& matches, bool invert) {
    const std::size_t first = to_.size();
    bool previous = false, open = false;
    Match current{0, 0, false};
    for (auto m = matches.rbegin(); m != matches.rend(); ++m) {
      const bool matched = m->matched != invert;
      if (open && matched && !previous) {
        current.begin = m->begin;
      } else {
        if (open) put(current.begin, current.end);
        current = *m;
        open = true;
      }
      previous = matched;
    }
    if (open) put(current.begin, current.end);
    std::reverse(to_.begin() + static_cast<std::ptrdiff_t>(first), to_.end());
  }

  std::uint32_t offset_;
  std::vector<Split>& to_;
};

// f(view, matches) finds matches in each word.
template <class F>
void split_by(PreTokenized& text, Behavior behavior, bool invert, const F& find) {
  std::vector<Split> splits;
  splits.reserve(text.splits.size() + text.text.text().size() / 4);
  std::vector<Match> matches;
  for (const Split& s : text.splits) {
    if (s.is_token) {
      splits.push_back(s);
      continue;
    }
    find(text.text.view(s.range), matches);
    Splitter(s.range.begin, splits).add(matches, behavior, invert);
  }
  text.splits = std::move(splits);
}

// Each character that `is` says is a match of its own.
template <class F>
void split_chars(PreTokenized& text, Behavior behavior, const F& is) {
  split_by(text, behavior, false, [&](std::string_view view, std::vector<Match>& to) {
    to.clear();
    std::uint32_t last = 0;
    for (std::size_t at = 0; at < view.size();) {
      const auto begin = static_cast<std::uint32_t>(at);
      if (!is(next_char(view, at))) continue;
      if (begin != last) to.push_back({last, begin, false});
      last = static_cast<std::uint32_t>(at);
      to.push_back({begin, last, true});
    }
    if (last != view.size()) to.push_back({last, static_cast<std::uint32_t>(view.size()), false});
  });
}

// Rewrites the words: f(word, range) appends each to the text that replaces the old one.
template <class F>
void rewrite(PreTokenized& text, const F& f) {
  AlignedText to;
  to.reserve(text.text.text().size() + text.text.text().size() / 4);
  const auto size = [&] { return static_cast<std::uint32_t>(to.text().size()); };
  for (Split& s : text.splits) {
    const std::uint32_t begin = size();
    if (s.is_token) {
      to.append(text.text, s.range);
    } else {
      f(to, s.range);
    }
    s.range = {begin, size()};
  }
  text.text = std::move(to);
}

void add_prefix_spaces(PreTokenized& text) {
  const auto needs = [&](const Split& s) { return !s.is_token && text.text.view(s.range).front() != ' '; };
  if (std::none_of(text.splits.begin(), text.splits.end(), needs)) return;
  rewrite(text, [&](AlignedText& to, Span range) {
    if (text.text.view(range).front() != ' ') to.append(" ", text.text.origin({range.begin, range.begin + 1}));
    to.append(text.text, range);
  });
}

void byte_level(const PreTokenizerStep& step, bool keep_bytes, PreTokenized& text) {
  if (step.add_prefix_space) add_prefix_spaces(text);
  if (step.use_regex) {
    static const Pattern words = Pattern::scanner(scan_gpt2);
    split_by(text, Behavior::isolated, false, [](std::string_view view, std::vector<Match>& to) { words.find(view, to); });
  }
  if (keep_bytes) {
    text.bytes = true;
    return;
  }
  std::string chars;
  rewrite(text, [&](AlignedText& to, Span range) {
    const std::string_view view = text.text.view(range);
    for (std::size_t at = 0; at < view.size();) {
      const std::size_t size = bytes_of_lead(view[at]);
      chars.clear();
      for (std::size_t i = 0; i < size; ++i) append_byte_char(chars, static_cast<unsigned char>(view[at + i]));
      const auto begin = static_cast<std::uint32_t>(range.begin + at);
      to.append(chars, text.text.origin({begin, begin + 1}));
      at += size;
    }
  });
}

void metaspace(const PreTokenizerStep& step, PreTokenized& text) {
  std::string mark;
  append_utf8(mark, step.character);
  const auto replaced = [&](const Split& s) {
    const std::string_view view = text.text.view(s.range);
    return !s.is_token && (view.find(' ') != std::string_view::npos || !view.starts_with(mark));
  };
  if (std::any_of(text.splits.begin(), text.splits.end(), replaced)) {
    rewrite(text, [&](AlignedText& to, Span range) {
      const std::string_view view = text.text.view(range);
      const bool marked = view.front() == ' ' || view.starts_with(mark);
      const Span first = text.text.origin({range.begin, range.begin + 1});
      const bool wanted = step.prepend == Prepend::always || (step.prepend == Prepend::first && first.begin == 0);
      if (!marked && wanted) to.append(mark, first);
      std::uint32_t at = range.begin;
      while (at < range.end) {
        const std::size_t space = std::min<std::size_t>(view.find(' ', at - range.begin), view.size());
        const auto end = static_cast<std::uint32_t>(range.begin + space);
        to.append(text.text, {at, end});
        if (end < range.end) to.append(mark, text.text.origin({end, end + 1}));
        at = end + 1;
      }
    });
  }
  if (step.split) split_chars(text, Behavior::merged_with_next, [&](char32_t c) { return c == step.character; });
}

void whitespace(PreTokenized& text) {
  static const Pattern words = Pattern::scanner(scan_words);
  split_by(text, Behavior::removed, true, [](std::string_view view, std::vector<Match>& to) { words.find(view, to); });
}

// Splits where the script changes. As in `tokenizers`, text before the first character with a script is lost.
void unicode_scripts(PreTokenized& text) {
  std::vector<Split> splits;
  static const std::uint8_t han = script_of(0x4E00), hiragana = script_of(0x3042), katakana = script_of(0x30A2);
  for (const Split& s : text.splits) {
    if (s.is_token) {
      splits.push_back(s);
      continue;
    }
    const std::string_view view = text.text.view(s.range);
    std::uint8_t last = kNoScript;
    std::uint32_t begin = s.range.end;
    for (std::size_t at = 0; at < view.size();) {
      const auto place = static_cast<std::uint32_t>(s.range.begin + at);
      const char32_t c = next_char(view, at);
      std::uint8_t script = c == ' ' ? kNoScript : script_of(c);
      if (c == 0x30FC || script == hiragana || script == katakana) script = han;
      if (script == kNoScript || script == last) continue;
      last = script;
      if (begin < place) splits.push_back({{begin, place}});
      begin = place;
    }
    if (begin < s.range.end) splits.push_back({{begin, s.range.end}});
  }
  text.splits = std::move(splits);
}

void fixed_length(const PreTokenizerStep& step, PreTokenized& text) {
  std::vector<Split> splits;
  for (const Split& s : text.splits) {
    if (s.is_token) {
      splits.push_back(s);
      continue;
    }
    const std::string_view view = text.text.view(s.range);
    for (std::size_t at = 0; at < view.size();) {
      const std::size_t begin = at;
      for (std::uint64_t i = 0; i < step.length && at < view.size(); ++i) at += bytes_of_lead(view[at]);
      splits.push_back({{static_cast<std::uint32_t>(s.range.begin + begin), static_cast<std::uint32_t>(s.range.begin + at)}});
    }
  }
  text.splits = std::move(splits);
}

void apply(const PreTokenizerStep& step, bool keep_bytes, PreTokenized& text) {
  switch (step.kind) {
    case Kind::bert:
      split_chars(text, Behavior::removed, is_white_space);
      return split_chars(text, Behavior::isolated, is_punctuation);
    case Kind::byte_level: return byte_level(step, keep_bytes, text);
    case Kind::char_delimiter: return split_chars(text, Behavior::removed, [&](char32_t c) { return c == step.character; });
    case Kind::metaspace: return metaspace(step, text);
    case Kind::whitespace: return whitespace(text);
    case Kind::whitespace_split: return split_chars(text, Behavior::removed, is_white_space);
    case Kind::split:
      return split_by(text, step.behavior, step.invert,
                      [&](std::string_view view, std::vector<Match>& to) { step.pattern.find(view, to); });
    case Kind::punctuation: return split_chars(text, step.behavior, is_punctuation);
    case Kind::digits: return split_chars(text, step.individual ? Behavior::isolated : Behavior::contiguous, is_numeric);
    case Kind::unicode_scripts: return unicode_scripts(text);
    case Kind::fixed_length: return fixed_length(step, text);
  }
}

}  // namespace

void pre_tokenize(const std::vector<PreTokenizerStep>& steps, bool keep_bytes, PreTokenized& text) {
  for (std::size_t i = 0; i < steps.size(); ++i) apply(steps[i], keep_bytes && i + 1 == steps.size(), text);
}

}  // namespace sdx::text
