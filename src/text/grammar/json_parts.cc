#include <algorithm>
#include <map>

#include "base/error.h"
#include "text/grammar/readers.h"

namespace sdx::text::grammar {
namespace {

// What a JSON string may hold as it is.
const Characters plain_characters{{0x20, 0x21}, {0x23, 0x5b}, {0x5d, last_character}};

}  // namespace

Expression digits(Expressions& to, char first, char last) {
  return to.characters({{static_cast<char32_t>(first), static_cast<char32_t>(last)}});
}

Expression JsonParts::space() {
  if (!space_) {
    const Expression blanks = to_.repeat(to_.characters({{'\t', '\t'}, {' ', ' '}}), 0, 20);
    space_ = to_.as_rule("white space", to_.choice({to_.empty(), to_.text(" "), to_.sequence({to_.text("\n"), blanks})}));
  }
  return space_;
}

Expression JsonParts::character() {
  if (!character_) {
    const Characters hex{{'0', '9'}, {'A', 'F'}, {'a', 'f'}};
    const Expression digit = to_.characters(hex), d = to_.characters({{'D', 'D'}, {'d', 'd'}});
    const Expression three = to_.repeat(digit, 3, 3), two = to_.repeat(digit, 2, 2);
    // Half a pair of surrogates is not a character.
    const Expression single =
        to_.choice({to_.sequence({to_.characters({{'0', '9'}, {'A', 'C'}, {'E', 'F'}, {'a', 'c'}, {'e', 'f'}}), three}),
                    to_.sequence({d, digits(to_, '0', '7'), two})});
    const Expression high = to_.sequence({d, to_.characters({{'8', '9'}, {'A', 'B'}, {'a', 'b'}}), two});
    const Expression low = to_.sequence({d, to_.characters({{'C', 'F'}, {'c', 'f'}}), two});
    const Expression unicode = to_.sequence({to_.text("u"), to_.choice({single, to_.sequence({high, to_.text("\\u"), low})})});
    const Expression simple =
        to_.characters({{'"', '"'}, {'/', '/'}, {'\\', '\\'}, {'b', 'b'}, {'f', 'f'}, {'n', 'n'}, {'r', 'r'}, {'t', 't'}});
    character_ = to_.as_rule("character", to_.choice({to_.characters(plain_characters),
                                                      to_.sequence({to_.text("\\"), to_.choice({simple, unicode})})}));
  }
  return character_;
}

Expression JsonParts::string() {
  if (!string_) string_ = to_.as_rule("string", to_.sequence({to_.text("\""), to_.repeat(character(), 0), to_.text("\"")}));
  return string_;
}

Expression JsonParts::integer() {
  if (!integer_) {
    const Expression whole = to_.choice({to_.text("0"), to_.sequence({digits(to_, '1'), to_.repeat(digits(to_), 0, 15)})});
    integer_ = to_.as_rule("integer", to_.sequence({to_.optional(to_.text("-")), whole}));
  }
  return integer_;
}

Expression JsonParts::fraction() { return to_.sequence({to_.text("."), to_.repeat(digits(to_), 1, 16)}); }

Expression JsonParts::number() {
  if (!number_) {
    const Expression exponent =
        to_.sequence({to_.characters({{'E', 'E'}, {'e', 'e'}}), to_.optional(to_.characters({{'+', '+'}, {'-', '-'}})),
                      to_.choice({digits(to_), to_.sequence({digits(to_), digits(to_)})})});
    number_ = to_.as_rule("number", to_.sequence({integer(), to_.optional(fraction()), to_.optional(exponent)}));
  }
  return number_;
}

Expression JsonParts::value() {
  if (!value_) {
    const Rule rule = to_.add_rule("value");
    value_ = to_.use(rule);
    to_.define(rule, to_.choice({object(), array(), string(), number(), to_.text("true"), to_.text("false"), to_.text("null")}));
  }
  return value_;
}

Expression JsonParts::members(Expression member) {
  const Expression more = to_.repeat(to_.sequence({space(), to_.text(","), space(), member}), 0);
  return to_.sequence({to_.text("{"), space(), to_.optional(to_.sequence({member, more, space()})), to_.text("}")});
}

Expression JsonParts::object() {
  if (!object_) {
    const Rule rule = to_.add_rule("object");
    object_ = to_.use(rule);
    to_.define(rule, members(to_.sequence({string(), space(), to_.text(":"), space(), value()})));
  }
  return object_;
}

Expression JsonParts::elements(Expression item, std::uint32_t least, std::uint32_t most) {
  if (least > most) return to_.never();
  const Expression more = to_.sequence({space(), to_.text(","), space(), item});
  Expression content = to_.empty();
  if (most > 0) {
    content =
        to_.sequence({item, to_.repeat(more, least > 0 ? least - 1 : 0, most == unlimited ? unlimited : most - 1), space()});
    if (least == 0) content = to_.optional(content);
  }
  return to_.sequence({to_.text("["), space(), content, to_.text("]")});
}

Expression JsonParts::array() {
  if (!array_) {
    const Rule rule = to_.add_rule("array");
    array_ = to_.use(rule);
    to_.define(rule, elements(value(), 0, unlimited));
  }
  return array_;
}

Expression JsonParts::quoted(std::string_view text) { return to_.text(nlohmann::ordered_json(std::string(text)).dump()); }

Expression JsonParts::literal(const nlohmann::ordered_json& value) {
  std::vector<Expression> parts;
  if (value.is_array()) {
    parts = {to_.text("["), space()};
    for (std::size_t i = 0; i < value.size(); i++) {
      if (i) parts.insert(parts.end(), {to_.text(","), space()});
      parts.push_back(literal(value[i]));
      parts.push_back(space());
    }
    parts.push_back(to_.text("]"));
  } else if (value.is_object()) {
    parts = {to_.text("{"), space()};
    bool begun = false;
    for (const auto& [name, item] : value.items()) {
      if (begun) parts.insert(parts.end(), {to_.text(","), space()});
      begun = true;
      parts.insert(parts.end(), {quoted(name), space(), to_.text(":"), space(), literal(item), space()});
    }
    parts.push_back(to_.text("}"));
  } else {
    return to_.text(value.dump());
  }
  return to_.sequence(std::move(parts));
}

namespace {

struct Trie {
  std::map<char32_t, Trie> next;
  bool end = false;
};

}  // namespace

Expression JsonParts::other_string(const std::vector<std::string>& names) {
  // A string differs from all names where it leaves their tree, or ends within it. Names that need escapes cannot be spelled
  // here.
  Trie root;
  for (const std::string& name : names) {
    Trie* at = &root;
    const nlohmann::ordered_json json(name);
    if (json.dump().size() != name.size() + 2) continue;
    for (const char c : name) at = &at->next[static_cast<unsigned char>(c)];
    at->end = true;
  }
  const Expression rest = to_.repeat(to_.characters(plain_characters), 0);
  // By bytes, but a character is left only as a whole: names are compared in ASCII, and one that has more is told apart by its
  // ASCII beginning.
  std::vector<std::pair<const Trie*, Expression>> made;
  const auto build = [&](const auto& self, const Trie& trie, int depth) -> Expression {
    if (depth > 200)
      fail(ErrorCode::invalid_argument,
           "a property's name of more than 200 bytes beside additionalProperties cannot be told from others");
    Characters here;
    std::vector<Expression> ways;
    for (const auto& [c, next] : trie.next) {
      if (c >= 0x80) {
        here.push_back({0x80, last_character});
        continue;
      }
      here.push_back({c, c});
      ways.push_back(to_.sequence({to_.characters({{c, c}}), self(self, next, depth + 1)}));
    }
    ways.push_back(to_.sequence({to_.characters(intersection(plain_characters, complement(here))), rest}));
    if (!trie.end) ways.push_back(to_.empty());
    return to_.choice(std::move(ways));
  };
  return to_.sequence({to_.text("\""), build(build, root, 0), to_.text("\"")});
}

// ---- Ranges of numbers

Expression JsonParts::same_length(std::string_view least, std::string_view most) {
  if (least.empty()) return to_.empty();
  if (least == most) return to_.text(least);
  const auto all = [&](std::size_t count) {
    return to_.repeat(digits(to_), static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(count));
  };
  const std::size_t rest = least.size() - 1;
  if (least[0] == most[0]) return to_.sequence({to_.text(least.substr(0, 1)), same_length(least.substr(1), most.substr(1))});
  std::vector<Expression> ways;
  char first = least[0], last = most[0];
  if (least.substr(1).find_first_not_of('0') != std::string_view::npos) {
    ways.push_back(to_.sequence({to_.text(least.substr(0, 1)), same_length(least.substr(1), std::string(rest, '9'))}));
    first++;
  }
  if (most.substr(1).find_first_not_of('9') != std::string_view::npos) {
    ways.push_back(to_.sequence({to_.text(most.substr(0, 1)), same_length(std::string(rest, '0'), most.substr(1))}));
    last--;
  }
  if (first <= last) ways.push_back(to_.sequence({digits(to_, first, last), all(rest)}));
  return to_.choice(std::move(ways));
}

Expression JsonParts::between(std::uint64_t least, std::uint64_t most) {
  if (least > most) return to_.never();
  const std::string low = std::to_string(least), high = std::to_string(most);
  std::vector<Expression> ways;
  for (std::size_t size = low.size(); size <= high.size(); size++) {
    std::string first = "1" + std::string(size - 1, '0'), last(size, '9');
    if (size == low.size()) first = low;
    if (size == high.size()) last = high;
    ways.push_back(same_length(first, last));
  }
  return to_.choice(std::move(ways));
}

Expression JsonParts::from(std::uint64_t least) {
  const std::string low = std::to_string(least);
  const Expression same = same_length(low, std::string(low.size(), '9'));
  const auto size = static_cast<std::uint32_t>(low.size());
  return to_.choice({same, to_.sequence({digits(to_, '1'), to_.repeat(digits(to_), size, std::max<std::uint32_t>(size, 15))})});
}

namespace {

std::uint64_t magnitude(std::int64_t value) {
  return value < 0 ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value);
}

}  // namespace

Expression JsonParts::whole_range(const std::int64_t* least, const std::int64_t* most) {
  if (!least && !most) return integer();
  if (least && most && *least > *most) return to_.never();
  std::vector<Expression> ways;
  if (!most || *most >= 0) {
    const std::uint64_t low = least && *least > 0 ? magnitude(*least) : 0;
    ways.push_back(most ? between(low, magnitude(*most)) : from(low));
  }
  if (!least || *least < 0) {
    const std::uint64_t low = most && *most < 0 ? magnitude(*most) : 1;
    ways.push_back(to_.sequence({to_.text("-"), least ? between(low, magnitude(*least)) : from(low)}));
  }
  return to_.choice(std::move(ways));
}

// Whole parts with any fraction, and at each end what the bound itself allows.
Expression JsonParts::real_range(const Bound* least, const Bound* most) {
  if (!least && !most) return number();
  const Expression zeros = to_.sequence({to_.text("."), to_.repeat(to_.text("0"), 1, 16)});
  const Expression nonzero =
      to_.sequence({to_.text("."), to_.repeat(to_.text("0"), 0, 15), digits(to_, '1'), to_.repeat(digits(to_), 0, 15)});
  const Expression any = to_.optional(fraction());
  // Magnitudes from `low` (exclusive or not) to `high`, with a sign in front.
  const auto magnitudes = [&](std::uint64_t low, bool above, const std::uint64_t* high, bool below) -> Expression {
    std::vector<Expression> ways;
    if (high && low > *high) return to_.never();
    if (high && low == *high)
      return above || below ? to_.never() : to_.sequence({to_.text(std::to_string(low)), to_.optional(zeros)});
    ways.push_back(to_.sequence({to_.text(std::to_string(low)), above ? nonzero : any}));
    const Expression whole = high ? (*high > low + 1 ? between(low + 1, *high - 1) : to_.never()) : from(low + 1);
    ways.push_back(to_.sequence({whole, any}));
    if (high && !below) ways.push_back(to_.sequence({to_.text(std::to_string(*high)), to_.optional(zeros)}));
    return to_.choice(std::move(ways));
  };
  std::vector<Expression> ways;
  if (!most || most->value > 0 || (most->value == 0 && !most->exclusive)) {
    const bool positive = least && least->value >= 0;
    const std::uint64_t high = most ? magnitude(most->value) : 0;
    ways.push_back(magnitudes(positive ? magnitude(least->value) : 0, positive && least->exclusive, most ? &high : nullptr,
                              most && most->exclusive));
  }
  if (!least || least->value < 0) {
    const bool negative = most && most->value <= 0;
    const std::uint64_t low = negative ? magnitude(most->value) : 0, high = least ? magnitude(least->value) : 0;
    const bool above = negative ? most->exclusive || most->value == 0 : true;  // no -0
    ways.push_back(to_.sequence({to_.text("-"), magnitudes(low, above, least ? &high : nullptr, least && least->exclusive)}));
  }
  return to_.choice(std::move(ways));
}

}  // namespace sdx::text::grammar
