#include <algorithm>

#include "base/text/utf8.h"
#include "text/template/filters.h"
#include "text/template/unicode.h"

namespace sdx::text::jinja {
namespace {

// soft_str: strings, Markup among them, stay what they are.
Value soft(Runtime& rt, const Value& value) { return value.is_string() ? value : rt.str(to_text(rt, value)); }

Value method(Runtime& rt, const Value& value, std::string_view name, Arguments&& arguments = {}) {
  const char* canonical = nullptr;
  return (*string_method(name, canonical))(rt, soft(rt, value), arguments);
}

Value upper_filter(Runtime& rt, Value& value, Arguments& arguments) {
  no_arguments(arguments, "upper");
  return method(rt, value, "upper");
}
Value lower_filter(Runtime& rt, Value& value, Arguments& arguments) {
  no_arguments(arguments, "lower");
  return method(rt, value, "lower");
}
Value capitalize_filter(Runtime& rt, Value& value, Arguments& arguments) {
  no_arguments(arguments, "capitalize");
  return method(rt, value, "capitalize");
}

// Words begin after - ( { [ < and white space, other than in str.title.
Value title_filter(Runtime& rt, Value& value, Arguments& arguments) {
  no_arguments(arguments, "title");
  const Value of = soft(rt, value);
  const std::u32string text = decode(of.text());
  rt.work(text.size() * 4);
  std::string result, word;
  const auto breaks = [](char32_t c) { return c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || is_space(c); };
  for (std::size_t i = 0; i < text.size();) {
    if (breaks(text[i])) {
      append_utf8(result, text[i++]);
      continue;
    }
    append_upper(result, text[i++]);
    std::size_t end = i;
    while (end < text.size() && !breaks(text[end])) end++;
    result += lower(encode(std::u32string_view(text).substr(i, end - i)));
    i = end;
  }
  return rt.str(std::move(result));
}

Value trim_filter(Runtime& rt, Value& value, Arguments& arguments) {
  const Bound args(arguments, "trim", {"chars"});
  Arguments chars;
  if (args.has(0)) chars.positional.push_back(args[0]);
  return method(rt, value, "strip", std::move(chars));
}

Value string_filter(Runtime& rt, Value& value, Arguments& arguments) {
  no_arguments(arguments, "string");
  return soft(rt, value);
}

Value replace_filter(Runtime& rt, Value& value, Arguments& arguments) {
  const Bound args(arguments, "replace", {"old", "new", "count"}, 2);
  const Int limit = args.has(2) && !args[2].is_none() ? index_of(args[2]) : Int{-1};
  return replaced(rt, rt.str(to_text(rt, value)), to_text(rt, args[0]), to_text(rt, args[1]), limit);
}

Value center_filter(Runtime& rt, Value& value, Arguments& arguments) {
  const Bound args(arguments, "center", {"width"});
  const Value of = soft(rt, value);
  return rt.str(justified(rt, of, args.has(0) ? index_of(args[0]) : Int{80}, " ", '^'), of.str().markup);
}

Value escape_filter(Runtime& rt, Value& value, Arguments& arguments) {
  no_arguments(arguments, "escape");
  return escaped(rt, value);
}
Value force_escape(Runtime& rt, Value& value, Arguments& arguments) {
  no_arguments(arguments, "forceescape");
  return rt.str(escape_html(to_text(rt, value)), true);
}
Value safe_filter(Runtime& rt, Value& value, Arguments& arguments) {
  no_arguments(arguments, "safe");
  return rt.str(to_text(rt, value), true);
}

// The position after the "-->" of a comment that began before `rest`: as in MarkupSafe, hyphens of its beginning may be part of
// the end.
std::size_t comment_end(std::string_view rest) {
  if (rest.starts_with('>')) return 1;
  if (rest.starts_with("->")) return 2;
  const std::size_t end = rest.find("-->");
  return end == std::string_view::npos ? end : end + 3;
}

// Removes comments, including those that arise when another one is removed.
std::string without_comments(std::string_view text) {
  std::string kept;
  for (std::size_t at = 0; at < text.size();) {
    kept += text[at++];
    if (!kept.ends_with("<!--")) continue;
    const std::size_t end = comment_end(text.substr(at));
    if (end == std::string_view::npos) return kept += text.substr(at);
    kept.resize(kept.size() - 4);
    at += end;
  }
  return kept;
}

std::string without_tags(std::string_view text) {
  std::string kept;
  while (true) {
    const std::size_t open = text.find('<'), close = open == std::string_view::npos ? open : text.find('>', open);
    if (close == std::string_view::npos) return kept += text;
    kept += text.substr(0, open);
    text.remove_prefix(close + 1);
  }
}

Value striptags(Runtime& rt, Value& value, Arguments& arguments) {
  no_arguments(arguments, "striptags");
  const std::string text = to_text(rt, value);
  rt.work(text.size());
  const std::string kept = without_tags(without_comments(text));
  std::string result;
  for (std::string_view rest = strip(kept); !rest.empty(); rest = strip_left(rest)) {
    std::size_t end = 0;
    while (end < rest.size() && !is_space(decode_utf8(rest, end).value))
      end += std::max<std::size_t>(decode_utf8(rest, end).bytes, 1);
    result += (result.empty() ? "" : " ") + std::string(rest.substr(0, end));
    rest.remove_prefix(end);
  }
  static constexpr std::pair<std::string_view, std::string_view> entities[] = {{"&lt;", "<"},    {"&gt;", ">"},  {"&#34;", "\""},
                                                                               {"&quot;", "\""}, {"&#39;", "'"}, {"&amp;", "&"}};
  std::string plain;
  for (std::size_t at = 0; at < result.size();) {
    const auto* found = std::find_if(std::begin(entities), std::end(entities),
                                     [&](const auto& e) { return result.compare(at, e.first.size(), e.first) == 0; });
    plain += found == std::end(entities) ? std::string_view(result).substr(at, 1) : found->second;
    at += found == std::end(entities) ? 1 : found->first.size();
  }
  return rt.str(std::move(plain));
}

Value indent_filter(Runtime& rt, Value& value, Arguments& arguments) {
  const Bound args(arguments, "indent", {"width", "first", "blank"});
  if (!value.is_string()) {
    if (value.is_undefined()) throw PyError(PyError::Type::undefined, value.object<UndefinedInfo>().message());
    type_error(std::string("unsupported operand type(s) for +=: '") + type_name(value) + "' and 'str'");
  }
  std::string indentation(4, ' ');
  if (args.has(0) && args[0].is_string()) {
    indentation = args[0].text();
  } else if (args.has(0)) {
    const Int width = index_of(args[0]);
    if (width > 10000) limit_error("indent by more than 10000");
    indentation.assign(static_cast<std::size_t>(std::max<Int>(width, 0)), ' ');
  }
  const bool first = args.flag(rt, 1), blank = args.flag(rt, 2);
  const std::string text = value.text() + "\n";
  std::string result = first ? indentation : "";
  bool begun = false;
  for (const std::string_view line : split_lines(text)) {
    if (begun) {
      result += '\n';
      if (blank || !line.empty()) result += indentation;
    }
    result += line;
    begun = true;
    rt.work(line.size() + indentation.size());
    rt.budget.reserve(result.size());
  }
  return rt.str(std::move(result), value.str().markup);
}

Value truncate_filter(Runtime& rt, Value& value, Arguments& arguments) {
  const Bound args(arguments, "truncate", {"length", "killwords", "end", "leeway"});
  const Int most = args.has(0) ? index_of(args[0]) : Int{255},
            leeway = args.has(3) && !args[3].is_none() ? index_of(args[3]) : Int{5};
  const std::string end = args.has(2) ? to_text(rt, args[2]) : "...";
  const auto end_size = static_cast<Int>(count_chars(end));
  if (most < end_size || leeway < 0)
    throw PyError(PyError::Type::runtime, "truncate: expected length >= " + repr_int(end_size) + " and leeway >= 0");
  const auto size = length(rt, value);
  if (!size) type_error(std::string("object of type '") + type_name(value) + "' has no len()");
  if (*size <= most + leeway) return value;
  const Value cut = slice(rt, value, {}, Value::integer(most - end_size), {});
  if (!cut.is_string()) type_error("truncate needs a string");
  std::string_view text = cut.text();
  if (!args.flag(rt, 1)) text = text.substr(0, text.rfind(' '));
  return rt.str(std::string(text) + end);
}

Value wordcount_filter(Runtime& rt, Value& value, Arguments& arguments) {
  no_arguments(arguments, "wordcount");
  Int words = 0;
  bool inside = false;
  const Value of = soft(rt, value);
  rt.work(of.text().size() * 4);
  for (const char32_t c : decode(of.text())) {
    const bool word = is_word(c);
    words += word && !inside ? 1 : 0;
    inside = word;
  }
  return Value::integer(words);
}

std::string percent_encoded(std::string_view text, bool query) {
  std::string result;
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_' || c == '.' || c == '-' ||
                       c == '~' || (c == '/' && !query);
    if (plain) {
      result += c;
    } else if (query && c == ' ') {
      result += '+';
    } else {
      constexpr char digits[] = "0123456789ABCDEF";
      result += {'%', digits[static_cast<unsigned char>(c) >> 4], digits[c & 15]};
    }
  }
  return result;
}

Value urlencode_filter(Runtime& rt, Value& value, Arguments& arguments) {
  no_arguments(arguments, "urlencode");
  if (value.is_string() || !iterable(value)) return rt.str(percent_encoded(to_text(rt, value), false));
  std::string result;
  Values pairs;
  if (value.is(Kind::dict)) {
    for (const auto& [key, item] : value.dict().items) pairs.push_back(rt.tuple({key, item}));
  } else {
    pairs = elements(rt, value);
  }
  for (const Value& pair : pairs) {
    if (!iterable(pair)) type_error(std::string("cannot unpack non-iterable ") + type_name(pair) + " object");
    const Values parts = elements(rt, pair);
    if (parts.size() != 2) value_error("urlencode needs pairs");
    result += (result.empty() ? "" : "&") + percent_encoded(to_text(rt, parts[0]), true) + "=" +
              percent_encoded(to_text(rt, parts[1]), true);
  }
  return rt.str(std::move(result));
}

Value xmlattr_filter(Runtime& rt, Value& value, Arguments& arguments) {
  const Bound args(arguments, "xmlattr", {"autospace"});
  if (!value.is(Kind::dict)) type_error("xmlattr needs a mapping");
  std::string result;
  for (const auto& [key, item] : value.dict().items) {
    if (item.is_none() || item.is_undefined()) continue;
    if (!key.is_string()) type_error("expected string or bytes-like object");
    if (key.text().find_first_of(" \t\n\r\f\v/>=") != std::string::npos)
      value_error("Invalid character in attribute name: " + repr(rt, key));
    result += (result.empty() ? "" : " ") + escaped(rt, key).text() + "=\"" + escaped(rt, item).text() + "\"";
  }
  if (args.flag(rt, 0, true) && !result.empty()) result.insert(0, " ");
  return rt.str(std::move(result));
}

Value format_filter(Runtime& rt, Value& value, Arguments& arguments) {
  if (!arguments.positional.empty() && !arguments.named.empty())
    filter_error("can't handle positional and keyword arguments at the same time");
  if (arguments.named.empty()) return format_percent(rt, soft(rt, value), rt.tuple(std::move(arguments.positional)));
  std::vector<std::pair<Value, Value>> items;
  for (auto& [name, item] : arguments.named) items.emplace_back(rt.str(name), item);
  return format_percent(rt, soft(rt, value), rt.dict(std::move(items)));
}

Value tojson_filter(Runtime& rt, Value& value, Arguments& arguments) {
  const Bound args(arguments, "tojson", {"ensure_ascii", "indent", "separators", "sort_keys"});
  Value items, keys;
  if (args.has(2) && !args[2].is_none()) {
    if (!iterable(args[2])) type_error(std::string("cannot unpack non-iterable ") + type_name(args[2]) + " object");
    const Values pair = elements(rt, args[2]);
    if (pair.size() != 2) value_error("separators must be a pair");
    items = pair[0];
    keys = pair[1];
  }
  return rt.str(to_json(rt, value, args.get(1), items, keys, args.flag(rt, 3), args.flag(rt, 0)));
}

Value pprint_filter(Runtime& rt, Value& value, Arguments& arguments) {
  no_arguments(arguments, "pprint");
  std::string text = repr(rt, value);
  if (count_chars(text) > 80) throw PyError(PyError::Type::runtime, "pprint of more than 80 characters is not supported");
  return rt.str(std::move(text));
}

Value refused(Runtime&, Value&, Arguments&) {
  throw PyError(PyError::Type::runtime,
                "the filters random, urlize, wordwrap and filesizeformat are not supported in chat templates");
}

constexpr NamedFilter table[] = {
    {"capitalize", capitalize_filter},
    {"center", center_filter},
    {"e", escape_filter},
    {"escape", escape_filter},
    {"filesizeformat", refused},
    {"forceescape", force_escape},
    {"format", format_filter},
    {"indent", indent_filter},
    {"lower", lower_filter},
    {"pprint", pprint_filter},
    {"random", refused},
    {"replace", replace_filter},
    {"safe", safe_filter},
    {"string", string_filter},
    {"striptags", striptags},
    {"title", title_filter},
    {"tojson", tojson_filter},
    {"trim", trim_filter},
    {"truncate", truncate_filter},
    {"upper", upper_filter},
    {"urlencode", urlencode_filter},
    {"urlize", refused},
    {"wordcount", wordcount_filter},
    {"wordwrap", refused},
    {"xmlattr", xmlattr_filter},
};

}  // namespace

std::span<const NamedFilter> text_filters() { return table; }

}  // namespace sdx::text::jinja
