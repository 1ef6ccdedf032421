#include <algorithm>
#include <map>

#include "base/error.h"
#include "text/grammar/readers.h"

namespace sdx::text::grammar {
namespace {

// Characters that a JSON string may hold unescaped.
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
  // Works by bytes, but leaves the trie only between characters: names are compared in ASCII, and a name with other characters is
  // distinguished by its ASCII beginning.
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

}  // namespace sdx::text::grammar
