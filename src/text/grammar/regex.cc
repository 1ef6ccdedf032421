// Regular expressions, limited to the syntax that Python's re, ECMAScript and Rust's regex understand alike. If they differ in
// the meaning of a class (is é a word character?), only the characters that all accept count.

#include <algorithm>

#include "base/error.h"
#include "base/text/utf8.h"
#include "text/grammar/properties.h"
#include "text/grammar/readers.h"

namespace sdx::text::grammar {
namespace {

constexpr int max_depth = 100;
constexpr std::uint32_t max_repeat = 100'000;
constexpr char32_t first_beyond_ascii = 0x80;

const Characters ascii_digits{{'0', '9'}};
const Characters ascii_words{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const Characters ascii_spaces{{'\t', '\r'}, {' ', ' '}};
const Characters all_spaces{{'\t', '\r'},     {0x1c, 0x20},     {0x85, 0x85},     {0xa0, 0xa0},
                            {0x1680, 0x1680}, {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f},
                            {0x205f, 0x205f}, {0x3000, 0x3000}, {0xfeff, 0xfeff}};
const Characters line_ends{{'\n', '\n'}, {'\r', '\r'}, {0x85, 0x85}, {0x2028, 0x2029}};

Characters with_others(Characters set) {
  set.push_back({first_beyond_ascii, last_character});
  return set;
}

// The characters that \d, \w, \s and their opposites certainly mean, or (wide) may mean.
Characters class_of(char c, bool wide) {
  switch (c) {
    case 'd': return wide ? with_others(ascii_digits) : ascii_digits;
    case 'w': return wide ? with_others(ascii_words) : ascii_words;
    case 's': return wide ? all_spaces : ascii_spaces;
    case 'D': return complement(class_of('d', !wide));
    case 'W': return complement(class_of('w', !wide));
    default: return complement(class_of('s', !wide));
  }
}

class Reader {
 public:
  Reader(std::string_view pattern, Expressions& to, Writing writing) : text_(pattern), to_(to), writing_(writing) {}

  Expression run(bool search) {
    if (!is_utf8(text_)) error("not valid UTF-8");
    std::vector<Expression> branches;
    const Expression anything = search ? to_.repeat(any_character(), 0) : to_.empty();
    while (true) {
      // \b holds at the end of the text if the preceding character belongs to a word.
      const bool text_begins = skip('^'), word_begins = skip("\\b");
      const Expression body = sequence(0);
      const bool word_ends = skip("\\b"), text_ends = skip('$');
      const bool begins = text_begins || word_begins, ends = text_ends || word_ends;
      if (ends && at_ < text_.size() && now() != '|') {
        error(word_ends ? "\\b is supported only at the ends" : "'$' is supported only at the end");
      }
      if ((word_begins && !is_word_at(body, true)) || (word_ends && !is_word_at(body, false))) {
        error("\\b is supported only beside letters, digits and _");
      }
      branches.push_back(to_.sequence({begins ? to_.empty() : anything, body, ends ? to_.empty() : anything}));
      if (!skip('|')) break;
    }
    if (at_ < text_.size()) error(now() == ')' ? "')' without '('" : "unexpected character");
    return to_.choice(std::move(branches));
  }

 private:
  // Whether the first (or last) character of the expression certainly belongs to a word.
  bool is_word_at(Expression e, bool first) const {
    const Expressions::Node& node = to_.node(e);
    switch (node.kind) {
      case Expressions::Kind::text: {
        const char c = first ? node.text.front() : node.text.back();
        return !intersection(ascii_words, {{static_cast<unsigned char>(c), static_cast<unsigned char>(c)}}).empty();
      }
      case Expressions::Kind::characters: return intersection(node.characters, complement(ascii_words)).empty();
      case Expressions::Kind::sequence: return is_word_at(first ? node.parts.front() : node.parts.back(), first);
      case Expressions::Kind::choice:
        return std::all_of(node.parts.begin(), node.parts.end(), [&](Expression part) { return is_word_at(part, first); });
      case Expressions::Kind::repeat: return node.least > 0 && is_word_at(node.parts[0], first);
      default: return false;
    }
  }

  [[noreturn]] void error(const std::string& what) const {
    fail(ErrorCode::invalid_argument, "regular expression '{}', byte {}: {}", text_.size() > 200 ? "…" : text_, at_, what);
  }
  char now() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool skip(char c) { return at_ < text_.size() && text_[at_] == c ? (at_++, true) : false; }
  bool skip(std::string_view what) { return text_.substr(at_).starts_with(what) ? (at_ += what.size(), true) : false; }

  // One character of a set, as it is written.
  Expression written(const Characters& set) {
    if (writing_ == Writing::plain) return to_.characters(set);
    const Characters raw{{0x20, 0x21}, {0x23, 0x5b}, {0x5d, last_character}};
    std::vector<Expression> parts{to_.characters(intersection(set, raw))};
    static constexpr std::pair<char32_t, const char*> escapes[] = {{'"', "\\\""}, {'\\', "\\\\"}, {'\n', "\\n"}, {'\r', "\\r"},
                                                                   {'\t', "\\t"}, {'\b', "\\b"},  {'\f', "\\f"}};
    for (const auto& [c, escape] : escapes) {
      if (!intersection(set, {{c, c}}).empty()) parts.push_back(to_.text(escape));
    }
    for (const CharacterRange& range : intersection(set, {{0, 7}, {0xb, 0xb}, {0xe, 0x1f}})) {
      for (char32_t c = range.first; c <= range.last; c++)
        parts.push_back(to_.text(fmt::format("\\u{:04x}", static_cast<unsigned>(c))));
    }
    return to_.choice(std::move(parts));
  }

  Expression any_character() {
    if (!any_made_) {
      any_ = to_.as_rule("any character", written({{0, last_character}}));
      any_made_ = true;
    }
    return any_;
  }

  Expression alternatives(int depth) {
    if (depth > max_depth) error("groups are nested more than 100 deep");
    std::vector<Expression> parts{sequence(depth)};
    while (skip('|')) parts.push_back(sequence(depth));
    return to_.choice(std::move(parts));
  }

  Expression sequence(int depth) {
    std::vector<Expression> parts;
    const auto at_end = [&] { return depth == 0 && (now() == '$' || text_.substr(at_).starts_with("\\b")); };
    while (at_ < text_.size() && now() != '|' && now() != ')' && !at_end()) parts.push_back(repeated(atom(depth)));
    return to_.sequence(std::move(parts));
  }

  Expression atom(int depth) {
    const char c = now();
    switch (c) {
      case '(': return group(depth);
      case '[': return to_class();
      case '.': at_++; return written(complement(line_ends));
      case '^':
      case '$': error("'^' and '$' are supported only at the beginning and the end");
      case '*':
      case '+':
      case '?': error("nothing to repeat");
      case '{': error("'{' without something to repeat; write \\{ for the character");
      case '\\':
        if (const auto set = escaped_class(false)) return written(*set);
        break;
      default: break;
    }
    const char32_t one = character();
    return written({{one, one}});
  }

  Expression group(int depth) {
    at_++;
    if (skip('?')) {
      if (skip("P<") || (now() == '<' && at_ + 1 < text_.size() && text_[at_ + 1] != '=' && text_[at_ + 1] != '!' && skip('<'))) {
        while (at_ < text_.size() && now() != '>') at_++;
        if (!skip('>')) error("a group's name without '>'");
      } else if (!skip(':')) {
        error("only plain groups, (?:…) and named groups are supported: no lookaround, no flags, no conditions");
      }
    }
    const Expression body = alternatives(depth + 1);
    if (!skip(')')) error("a group without ')'");
    return body;
  }

  std::uint32_t number() {
    std::uint32_t value = 0;
    const std::size_t begin = at_;
    for (; now() >= '0' && now() <= '9'; at_++) {
      value = value * 10 + static_cast<std::uint32_t>(now() - '0');
      if (value > max_repeat) error(fmt::format("more than {} repetitions", max_repeat));
    }
    if (begin == at_) error("expected a number of repetitions; write \\{ for the character");
    return value;
  }

  Expression repeated(Expression part) {
    std::uint32_t least = 0, most = unlimited;
    if (skip('*')) {
    } else if (skip('+')) {
      least = 1;
    } else if (skip('?')) {
      most = 1;
    } else if (skip('{')) {
      least = now() == ',' ? 0 : number();
      most = least;
      if (skip(',')) most = now() == '}' ? unlimited : number();
      if (!skip('}')) error("a number of repetitions without '}'");
      if (most < least) error("the least number of repetitions is greater than the most");
    } else {
      return part;
    }
    if (now() == '+') error("possessive repetitions are not supported");
    skip('?');  // lazy: the same texts
    if (now() == '*' || now() == '+' || now() == '?' || now() == '{') error("a repetition of a repetition; write a group");
    return to_.repeat(part, least, most);
  }

  // \p{L}, \pL and their opposites.
  Characters property() {
    const bool without = text_[at_ + 1] == 'P';
    at_ += 2;
    std::string_view name = text_.substr(at_, 1);
    if (skip('{')) {
      const std::size_t end = text_.find('}', at_);
      if (end == std::string_view::npos) error("a property without '}'");
      name = text_.substr(at_, end - at_);
      at_ = end;
    }
    const auto set = without ? characters_without_property(name) : characters_of_property(name);
    if (!set) error(fmt::format("the property '{}' is not supported; general categories (\\p{{L}}) are", name.substr(0, 50)));
    at_++;
    return *set;
  }

  std::optional<Characters> escaped_class(bool wide) {
    if (now() != '\\' || at_ + 1 >= text_.size()) return std::nullopt;
    const char c = text_[at_ + 1];
    if (c == 'p' || c == 'P') return property();
    if (std::string_view("dwsDWS").find(c) == std::string_view::npos) return std::nullopt;
    at_ += 2;
    return class_of(c, wide);
  }

  char32_t hexadecimal(std::size_t size) {
    char32_t value = 0;
    for (std::size_t i = 0; i < size; i++, at_++) {
      const char c = now();
      const int digit = c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;
      if (digit < 0) error(fmt::format("expected {} hexadecimal digits", size));
      value = value * 16 + static_cast<char32_t>(digit);
    }
    if (value > last_character || (value >= 0xd800 && value <= 0xdfff)) error("an escape that is not a character");
    return value;
  }

  char32_t character() {
    if (now() != '\\') {
      const CodePoint c = decode_utf8(text_, at_);
      at_ += c.bytes;
      return c.value;
    }
    at_++;
    if (at_ >= text_.size()) error("a backslash at the end");
    const char c = now();
    at_++;
    switch (c) {
      case 'n': return '\n';
      case 'r': return '\r';
      case 't': return '\t';
      case 'f': return '\f';
      case 'v': return '\v';
      case '0': return 0;
      case 'x': return hexadecimal(2);
      case 'u': return hexadecimal(4);
      default: break;
    }
    const bool letter =
        ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || (c >= '0' && c <= '9') || static_cast<unsigned char>(c) >= 0x80;
    if (letter)
      error(fmt::format("\\{} is not supported (no back references, \\b only at the ends)",
                        static_cast<unsigned char>(c) < 0x80 ? c : '?'));
    return static_cast<char32_t>(c);
  }

  Expression to_class() {
    at_++;
    const bool negated = skip('^');
    Characters set;
    bool begun = false;
    while (now() != ']' || !begun) {
      if (at_ >= text_.size()) error("a class without ']'");
      if (now() == ']') error("an empty class; write \\] for the character");
      begun = true;
      if (now() == '[' && at_ + 1 < text_.size() && std::string_view(":.=").find(text_[at_ + 1]) != std::string_view::npos)
        error("classes by name are not supported");
      if (const auto named = escaped_class(negated)) {
        set.insert(set.end(), named->begin(), named->end());
        if (now() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') error("a range that begins with a class");
        continue;
      }
      const char32_t first = class_character();
      char32_t last = first;
      if (now() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        at_++;
        if (escaped_class(false)) error("a range that ends with a class");
        last = class_character();
      }
      if (last < first) error("a range of characters that ends before it begins");
      set.push_back({first, last});
    }
    at_++;
    return written(negated ? complement(std::move(set)) : merged(std::move(set)));
  }

  char32_t class_character() {
    if (skip("\\b")) return '\b';
    return character();
  }

  std::string_view text_;
  Expressions& to_;
  Writing writing_;
  std::size_t at_ = 0;
  Expression any_ = 0;
  bool any_made_ = false;
};

}  // namespace

Expression read_regex(std::string_view pattern, Expressions& to, Writing writing, bool search) {
  return Reader(pattern, to, writing).run(search);
}

}  // namespace sdx::text::grammar
