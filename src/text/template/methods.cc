// The methods of str.

#include <algorithm>
#include <unordered_map>

#include "base/text/utf8.h"
#include "text/template/runtime.h"
#include "text/template/search.h"
#include "text/template/unicode.h"

namespace sdx::text::jinja {
namespace {

Value like(Runtime& rt, const Value& self, std::string_view text) { return rt.str(std::string(text), self.str().markup); }

const std::string& need_text(const Value& value, const char* function) {
  if (!value.is_string()) type_error(std::string(function) + "() argument must be str, not " + type_name(value));
  return value.text();
}
// Markup escapes what it is combined with.
std::string text_for(const Value& self, const Value& value, const char* function) {
  const std::string& text = need_text(value, function);
  return self.str().markup && !value.str().markup ? escape_html(text) : text;
}

// The part that optional start and end (arguments 1 and 2) select, and where it begins, in characters; nothing where start is
// beyond the end.
struct Part {
  std::string_view text;
  Int begin = 0;
};
std::optional<Part> part_of(Runtime& rt, const Value& self, const Bound& args) {
  const std::string& text = self.text();
  rt.work(text.size());
  if (!args.has(1) && !args.has(2)) return Part{text, 0};
  const Int size = *length(rt, self);
  const auto bound = [&](std::size_t i, Int otherwise) {
    if (!args.has(i) || args[i].is_none()) return otherwise;
    Int at = index_of(args[i]);
    if (at < 0) at = std::max<Int>(at + size, 0);
    return at;
  };
  const Int begin = bound(1, 0), end = std::min(bound(2, size), size);
  if (begin > size || begin > end) return std::nullopt;
  const std::size_t from = byte_offset(text, static_cast<std::size_t>(begin)),
                    to = byte_offset(text, static_cast<std::size_t>(end));
  return Part{std::string_view(text).substr(from, to - from), begin};
}

template <std::string (*change)(std::string_view)>
Value changed(Runtime& rt, const Value& self, Arguments& arguments) {
  no_arguments(arguments, "str method");
  rt.work(self.text().size() * 4);
  return like(rt, self, change(self.text()));
}

enum Side { left = 1, right = 2, both = 3 };
template <Side side>
Value strip_side(Runtime& rt, const Value& self, Arguments& arguments) {
  no_named(arguments, "strip");
  const Bound args(arguments, "strip", {"chars"});
  std::string_view text = self.text();
  rt.work(text.size());
  if (!args.has(0) || args[0].is_none()) {
    if (side & left) text = strip_left(text);
    if (side & right) text = strip_right(text);
    return like(rt, self, text);
  }
  std::u32string characters = decode(need_text(args[0], "strip"));
  const std::u32string all = decode(text);
  rt.work((characters.size() + all.size()) * 8);
  std::sort(characters.begin(), characters.end());
  const auto removed = [&](char32_t c) { return std::binary_search(characters.begin(), characters.end(), c); };
  std::size_t begin = 0, end = all.size();
  while ((side & left) && begin < end && removed(all[begin])) begin++;
  while ((side & right) && end > begin && removed(all[end - 1])) end--;
  return like(rt, self, encode(std::u32string_view(all).substr(begin, end - begin)));
}

Value replace(Runtime& rt, const Value& self, Arguments& arguments) {
  no_named(arguments, "replace");
  const Bound args(arguments, "replace", {"old", "new", "count"}, 2);
  return replaced(rt, self, text_for(self, args[0], "replace"), text_for(self, args[1], "replace"),
                  args.has(2) ? index_of(args[2]) : Int{-1});
}

template <bool at_end>
Value starts_or_ends(Runtime& rt, const Value& self, Arguments& arguments) {
  const char* name = at_end ? "endswith" : "startswith";
  no_named(arguments, name);
  const Bound args(arguments, name, {"prefix", "start", "end"}, 1);
  const auto part = part_of(rt, self, args);
  const auto fits = [&](const Value& v) {
    if (!v.is_string()) type_error(std::string(name) + " first arg must be str or a tuple of str, not " + type_name(v));
    return part && (at_end ? part->text.ends_with(v.text()) : part->text.starts_with(v.text()));
  };
  if (!args[0].is(Kind::tuple)) return Value::boolean(fits(args[0]));
  const Values& options = args[0].sequence().items;
  return Value::boolean(std::any_of(options.begin(), options.end(), fits));
}

template <bool backwards, bool must>
Value find_text(Runtime& rt, const Value& self, Arguments& arguments) {
  no_named(arguments, "find");
  const Bound args(arguments, "find", {"sub", "start", "end"}, 1);
  const std::string& sub = need_text(args[0], "find");
  if (const auto part = part_of(rt, self, args)) {
    const std::size_t at = backwards ? find_last(rt, part->text, sub) : find_from(part->text, sub);
    if (at != std::string_view::npos)
      return Value::integer(part->begin + static_cast<Int>(count_chars(part->text.substr(0, at))));
  }
  if (must) value_error("substring not found");
  return Value::integer(-1);
}

Value count(Runtime& rt, const Value& self, Arguments& arguments) {
  no_named(arguments, "count");
  const Bound args(arguments, "count", {"sub", "start", "end"}, 1);
  const std::string& sub = need_text(args[0], "count");
  const auto part = part_of(rt, self, args);
  if (!part) return Value::integer(0);
  if (sub.empty()) return Value::integer(static_cast<Int>(count_chars(part->text)) + 1);
  Int found = 0;
  for (std::size_t at = 0; (at = find_from(part->text, sub, at)) != std::string_view::npos; at += sub.size()) found++;
  return Value::integer(found);
}

Values split_space(Runtime& rt, const Value& self, Int limit, bool backwards) {
  std::vector<std::string_view> parts;
  std::string_view rest = backwards ? strip_right(self.text()) : strip_left(self.text());
  const std::u32string characters = decode(rest);
  std::size_t byte = backwards ? rest.size() : 0, word = byte;
  const auto width = [](char32_t c) { return c < 0x80 ? 1U : c < 0x800 ? 2U : c < 0x10000 ? 3U : 4U; };
  bool inside = false;
  for (std::size_t i = 0; i < characters.size(); i++) {
    const char32_t c = backwards ? characters[characters.size() - 1 - i] : characters[i];
    if (is_space(c)) {
      if (inside) parts.push_back(backwards ? rest.substr(byte, word - byte) : rest.substr(word, byte - word));
      inside = false;
    } else if (!inside) {
      if (limit >= 0 && static_cast<Int>(parts.size()) >= limit) break;
      inside = true;
      word = byte;
    }
    byte = backwards ? byte - width(c) : byte + width(c);
    if (i + 1 == characters.size() && inside) {
      parts.push_back(backwards ? rest.substr(byte, word - byte) : rest.substr(word, byte - word));
      byte = backwards ? 0 : rest.size();
    }
  }
  const std::string_view remainder = backwards ? strip_right(rest.substr(0, byte)) : strip_left(rest.substr(byte));
  if (!remainder.empty()) parts.push_back(remainder);
  if (backwards) std::reverse(parts.begin(), parts.end());
  Values items;
  for (const std::string_view part : parts) items.push_back(like(rt, self, part));
  return items;
}

Values split_at(Runtime& rt, const Value& self, const std::string& separator, Int limit, bool backwards) {
  if (separator.empty()) value_error("empty separator");
  if (backwards) rt.work(self.text().size() * (separator.size() / 8 + 1));
  std::vector<std::string_view> parts;
  std::string_view rest = self.text();
  while (limit < 0 || static_cast<Int>(parts.size()) < limit) {
    const std::size_t at = backwards ? rest.rfind(separator) : find_from(rest, separator);
    if (at == std::string_view::npos) break;
    parts.push_back(backwards ? rest.substr(at + separator.size()) : rest.substr(0, at));
    rest = backwards ? rest.substr(0, at) : rest.substr(at + separator.size());
  }
  parts.push_back(rest);
  if (backwards) std::reverse(parts.begin(), parts.end());
  rt.budget.reserve(parts.size() * 2 * sizeof(Value));
  Values items;
  for (const std::string_view part : parts) items.push_back(like(rt, self, part));
  return items;
}

template <bool backwards>
Value split(Runtime& rt, const Value& self, Arguments& arguments) {
  const Bound args(arguments, "split", {"sep", "maxsplit"});
  rt.work(self.text().size() * 4);
  const Int limit = args.has(1) ? index_of(args[1]) : Int{-1};
  if (!args.has(0) || args[0].is_none()) return rt.list(split_space(rt, self, limit, backwards));
  return rt.list(split_at(rt, self, need_text(args[0], "split"), limit, backwards));
}

Value splitlines(Runtime& rt, const Value& self, Arguments& arguments) {
  const Bound args(arguments, "splitlines", {"keepends"});
  rt.work(self.text().size());
  Values items;
  for (const std::string_view line : split_lines(self.text(), args.flag(rt, 0))) items.push_back(like(rt, self, line));
  return rt.list(std::move(items));
}

template <bool backwards>
Value partition(Runtime& rt, const Value& self, Arguments& arguments) {
  no_named(arguments, "partition");
  const Bound args(arguments, "partition", {"sep"}, 1);
  const std::string& separator = need_text(args[0], "partition");
  if (separator.empty()) value_error("empty separator");
  const std::string_view text = self.text();
  const std::size_t at = backwards ? find_last(rt, text, separator) : find_from(text, separator);
  const Value whole = like(rt, self, text), nothing = like(rt, self, "");
  if (at == std::string_view::npos) return backwards ? rt.tuple({nothing, nothing, whole}) : rt.tuple({whole, nothing, nothing});
  return rt.tuple(
      {like(rt, self, text.substr(0, at)), like(rt, self, separator), like(rt, self, text.substr(at + separator.size()))});
}

Value join(Runtime& rt, const Value& self, Arguments& arguments) {
  no_named(arguments, "join");
  const Bound args(arguments, "join", {"iterable"}, 1);
  if (!iterable(args[0])) type_error("can only join an iterable");
  std::string text;
  std::size_t i = 0;
  for (const Value& item : elements(rt, args[0])) {
    if (i) text += self.text();
    if (self.str().markup) {
      text += escaped(rt, item).text();
    } else {
      if (!item.is_string())
        type_error("sequence item " + std::to_string(i) + ": expected str instance, " + type_name(item) + " found");
      text += item.text();
    }
    rt.work(item.is_string() ? item.text().size() : 8);
    rt.budget.reserve(text.size());
    i++;
  }
  return like(rt, self, text);
}

Value justify(Runtime& rt, const Value& self, Arguments& arguments, char how) {
  no_named(arguments, "just");
  const Bound args(arguments, "just", {"width", "fillchar"}, 1);
  return rt.str(justified(rt, self, index_of(args[0]), args.has(1) ? need_text(args[1], "just") : " ", how), self.str().markup);
}
Value center(Runtime& rt, const Value& self, Arguments& arguments) { return justify(rt, self, arguments, '^'); }
Value ljust(Runtime& rt, const Value& self, Arguments& arguments) { return justify(rt, self, arguments, '<'); }
Value rjust(Runtime& rt, const Value& self, Arguments& arguments) { return justify(rt, self, arguments, '>'); }
Value zfill(Runtime& rt, const Value& self, Arguments& arguments) {
  no_named(arguments, "zfill");
  const Bound args(arguments, "zfill", {"width"}, 1);
  std::string text = justified(rt, self, index_of(args[0]), "0", '>');
  const std::string& before = self.text();
  if (!before.empty() && (before[0] == '+' || before[0] == '-') && text.size() > before.size()) {
    text[text.size() - before.size()] = '0';
    text[0] = before[0];
  }
  return like(rt, self, text);
}

template <bool suffix>
Value remove_affix(Runtime& rt, const Value& self, Arguments& arguments) {
  no_named(arguments, "removeprefix");
  const Bound args(arguments, "removeprefix", {"prefix"}, 1);
  const std::string part = text_for(self, args[0], "removeprefix");
  std::string_view text = self.text();
  if (suffix && !part.empty() && text.ends_with(part)) text.remove_suffix(part.size());
  if (!suffix && text.starts_with(part)) text.remove_prefix(part.size());
  return like(rt, self, text);
}

Value expandtabs(Runtime& rt, const Value& self, Arguments& arguments) {
  const Bound args(arguments, "expandtabs", {"tabsize"});
  const Int size = args.has(0) ? index_of(args[0]) : Int{8};
  if (size > 1000) limit_error("expandtabs of more than 1000");
  std::string text;
  Int column = 0;
  rt.work(self.text().size());
  for (const char c : self.text()) {
    if (c == '\t') {
      const Int spaces = size > 0 ? size - column % size : 0;
      rt.work(static_cast<std::size_t>(spaces));
      text.append(static_cast<std::size_t>(spaces), ' ');
      rt.budget.reserve(text.size());
      column += spaces;
    } else {
      text += c;
      if (!continues_char(c)) column++;
      if (c == '\n' || c == '\r') column = 0;
    }
  }
  return like(rt, self, text);
}

template <bool (*test)(char32_t), bool empty = false>
Value all_are(Runtime& rt, const Value& self, Arguments& arguments) {
  no_arguments(arguments, "str method");
  rt.work(self.text().size() * 4);
  const std::u32string text = decode(self.text());
  return Value::boolean(text.empty() ? empty : std::all_of(text.begin(), text.end(), test));
}
bool alphanumeric(char32_t c) { return is_alpha(c) || is_decimal(c) || is_digit(c) || is_numeric(c); }
bool ascii(char32_t c) { return c < 0x80; }

Value isupper(Runtime& rt, const Value& self, Arguments& arguments) {
  no_arguments(arguments, "isupper");
  return Value::boolean(all_upper(rt, self.text()));
}
Value islower(Runtime& rt, const Value& self, Arguments& arguments) {
  no_arguments(arguments, "islower");
  return Value::boolean(all_lower(rt, self.text()));
}
Value istitle(Runtime& rt, const Value& self, Arguments& arguments) {
  no_arguments(arguments, "istitle");
  rt.work(self.text().size() * 4);
  bool inside = false, any = false;
  for (const char32_t c : decode(self.text())) {
    if (is_upper(c) || is_title(c)) {
      if (inside) return Value::boolean(false);
      inside = any = true;
    } else if (is_lower(c)) {
      if (!inside) return Value::boolean(false);
      any = true;
    } else {
      inside = false;
    }
  }
  return Value::boolean(any);
}
Value isidentifier(Runtime& rt, const Value& self, Arguments& arguments) {
  no_arguments(arguments, "isidentifier");
  rt.work(self.text().size() * 4);
  const std::u32string text = decode(self.text());
  return Value::boolean(!text.empty() && is_identifier_start(text[0]) &&
                        std::all_of(text.begin(), text.end(), is_identifier_part));
}

Value format(Runtime& rt, const Value& self, Arguments& arguments) { return like(rt, self, format_braces(rt, self, arguments)); }
Value format_map(Runtime& rt, const Value& self, Arguments& arguments) {
  no_named(arguments, "format_map");
  const Bound args(arguments, "format_map", {"mapping"}, 1);
  Arguments named;
  if (!args[0].is(Kind::dict)) type_error("format_map() argument must be a mapping");
  for (const auto& [key, value] : args[0].dict().items) {
    if (key.is_string()) named.named.emplace_back(key.text(), value);
  }
  return like(rt, self, format_braces(rt, self, named));
}

Value unsupported(Runtime&, const Value&, Arguments&) {
  throw PyError(PyError::Type::runtime, "str.encode, str.maketrans and str.translate are not supported in templates");
}

}  // namespace

Value replaced(Runtime& rt, const Value& self, const std::string& old, const std::string& by, Int limit) {
  const std::string& text = self.text();
  rt.work(text.size());
  std::string result;
  const auto add = [&](std::string_view part) {
    result += part;
    if (result.size() > text.size() + 4096) rt.budget.reserve(result.size());
  };
  std::size_t at = 0;
  if (old.empty()) {
    for (; limit != 0 && at <= text.size(); limit--) {
      rt.work(by.size());
      add(by);
      if (at == text.size()) return like(rt, self, result);
      const std::size_t size = byte_offset(std::string_view(text).substr(at), 1);
      add(std::string_view(text).substr(at, size));
      at += size;
    }
  } else {
    for (std::size_t found = 0; limit != 0 && (found = find_from(text, old, at)) != std::string::npos; limit--) {
      rt.work(by.size());
      add(std::string_view(text).substr(at, found - at));
      add(by);
      at = found + old.size();
    }
  }
  add(std::string_view(text).substr(at));
  return like(rt, self, result);
}

std::string justified(Runtime& rt, const Value& self, Int width, const std::string& fill, char how) {
  if (count_chars(fill) != 1) type_error("The fill character must be exactly one character long");
  const Int size = *length(rt, self);
  if (width <= size) return self.text();
  const Int padding = width - size;
  if (padding > Int{1} << 26) limit_error("a text that is padded too far");
  const Int before = how == '^' ? padding / 2 + (padding & width & 1) : how == '<' ? 0 : padding;
  rt.budget.reserve(static_cast<std::size_t>(padding) * fill.size());
  rt.work(static_cast<std::size_t>(padding) * fill.size());
  std::string text;
  for (Int i = 0; i < before; i++) text += fill;
  text += self.text();
  for (Int i = before; i < padding; i++) text += fill;
  return text;
}

namespace {

// At least one letter of the wanted case, and none of another.
bool all_of_case(Runtime& rt, std::string_view text, bool (*wanted)(char32_t), bool (*other)(char32_t)) {
  rt.work(text.size() * 4);
  bool any = false;
  for (const char32_t c : decode(text)) {
    if (other(c) || is_title(c)) return false;
    any = any || wanted(c);
  }
  return any;
}

}  // namespace

bool all_upper(Runtime& rt, std::string_view text) { return all_of_case(rt, text, is_upper, is_lower); }
bool all_lower(Runtime& rt, std::string_view text) { return all_of_case(rt, text, is_lower, is_upper); }

std::optional<Function::Call> string_method(std::string_view name, const char*& canonical) {
  static const std::unordered_map<std::string_view, Function::Call> methods = {
      {"capitalize", changed<capitalize>},
      {"casefold", changed<casefold>},
      {"center", center},
      {"count", count},
      {"encode", unsupported},
      {"endswith", starts_or_ends<true>},
      {"expandtabs", expandtabs},
      {"find", find_text<false, false>},
      {"format", format},
      {"format_map", format_map},
      {"index", find_text<false, true>},
      {"isalnum", all_are<alphanumeric>},
      {"isalpha", all_are<is_alpha>},
      {"isascii", all_are<ascii, true>},
      {"isdecimal", all_are<is_decimal>},
      {"isdigit", all_are<is_digit>},
      {"isidentifier", isidentifier},
      {"islower", islower},
      {"isnumeric", all_are<is_numeric>},
      {"isprintable", all_are<is_printable, true>},
      {"isspace", all_are<is_space>},
      {"istitle", istitle},
      {"isupper", isupper},
      {"join", join},
      {"ljust", ljust},
      {"lower", changed<lower>},
      {"lstrip", strip_side<left>},
      {"maketrans", unsupported},
      {"partition", partition<false>},
      {"removeprefix", remove_affix<false>},
      {"removesuffix", remove_affix<true>},
      {"replace", replace},
      {"rfind", find_text<true, false>},
      {"rindex", find_text<true, true>},
      {"rjust", rjust},
      {"rpartition", partition<true>},
      {"rsplit", split<true>},
      {"rstrip", strip_side<right>},
      {"split", split<false>},
      {"splitlines", splitlines},
      {"startswith", starts_or_ends<false>},
      {"strip", strip_side<both>},
      {"swapcase", changed<swapcase>},
      {"title", changed<title>},
      {"translate", unsupported},
      {"upper", changed<upper>},
      {"zfill", zfill},
  };
  const auto found = methods.find(name);
  if (found == methods.end()) return std::nullopt;
  canonical = found->first.data();
  return found->second;
}

}  // namespace sdx::text::jinja
