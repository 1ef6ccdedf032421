#pragma once
// A grammar while it is put together: expressions over characters, in rules that may use each other. compile() turns it into
// states over UTF-8 bytes.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sdx::text::grammar {

using Expression = std::uint32_t;  // a place in Expressions
using Rule = std::uint32_t;

struct CharacterRange {
  char32_t first = 0, last = 0;
};
using Characters = std::vector<CharacterRange>;  // any order

Characters merged(Characters characters);      // sorted, without overlaps, without surrogates
Characters complement(Characters characters);  // of all characters
Characters intersection(const Characters& a, const Characters& b);
constexpr char32_t last_character = 0x10ffff;
constexpr std::uint32_t unlimited = UINT32_MAX;

class Expressions {
 public:
  enum class Kind : std::uint8_t { never, empty, text, characters, sequence, choice, repeat, rule };
  struct Node {
    Kind kind = Kind::empty;
    std::string text;
    Characters characters;
    std::vector<Expression> parts;
    std::uint32_t least = 0, most = 0;
    Rule rule = 0;
  };

  Expressions();

  Expression never() const { return 0; }  // matches nothing
  Expression empty() const { return 1; }
  Expression text(std::string_view utf8);
  Expression characters(Characters set);
  Expression sequence(std::vector<Expression> parts);
  Expression choice(std::vector<Expression> parts);
  Expression repeat(Expression part, std::uint32_t least, std::uint32_t most = unlimited);
  Expression optional(Expression part) { return repeat(part, 0, 1); }

  // Notes a condition that the grammar does not enforce, by its place: the caller must check it.
  void note(std::string place);
  const std::vector<std::string>& notes() const { return notes_; }
  // Prefixes the notes from `first` on with the name of their part.
  void name_notes(std::size_t first, std::string_view part);

  Rule add_rule(std::string name);
  void define(Rule rule, Expression body) { rules_[rule].body = body; }
  Expression use(Rule rule);
  Expression as_rule(std::string name, Expression body) {
    const Rule rule = add_rule(std::move(name));
    define(rule, body);
    return use(rule);
  }

  struct Definition {
    std::string name;
    Expression body = 0;
  };
  const Node& node(Expression e) const { return nodes_[e]; }
  const std::vector<Definition>& rules() const { return rules_; }

 private:
  Expression add(Node node);
  std::vector<Node> nodes_;
  std::vector<Definition> rules_;
  std::vector<std::string> notes_;
};

}  // namespace sdx::text::grammar
