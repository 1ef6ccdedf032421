#include "text/grammar/expressions.h"

#include <algorithm>

#include "base/error.h"

namespace sdx::text::grammar {
namespace {

constexpr std::size_t max_nodes = 500'000, max_rules = 10'000;

}  // namespace

Characters merged(Characters characters) {
  Characters result;
  std::sort(characters.begin(), characters.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const CharacterRange& range : characters) {
    if (range.first > range.last) continue;
    if (!result.empty() && range.first <= result.back().last + 1) {
      result.back().last = std::max(result.back().last, range.last);
    } else {
      result.push_back(range);
    }
  }
  Characters valid;
  for (const CharacterRange& range : result) {  // U+D800 to U+DFFF are not characters
    if (range.first < 0xd800) valid.push_back({range.first, std::min<char32_t>(range.last, 0xd7ff)});
    if (range.last > 0xdfff) valid.push_back({std::max<char32_t>(range.first, 0xe000), std::min(range.last, last_character)});
  }
  return valid;
}

Characters complement(Characters characters) {
  Characters result;
  char32_t next = 0;
  for (const CharacterRange& range : merged(std::move(characters))) {
    if (range.first > next) result.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= last_character) result.push_back({next, last_character});
  return merged(std::move(result));
}

Characters intersection(const Characters& a, const Characters& b) {
  Characters both = complement(a);
  const Characters other = complement(b);
  both.insert(both.end(), other.begin(), other.end());
  return complement(std::move(both));
}

Expressions::Expressions() {
  nodes_.push_back({.kind = Kind::never, .text = {}, .characters = {}, .parts = {}});
  nodes_.push_back({.kind = Kind::empty, .text = {}, .characters = {}, .parts = {}});
}

Expression Expressions::add(Node node) {
  if (nodes_.size() >= max_nodes)
    fail(ErrorCode::invalid_argument, "the grammar is too large: more than {} expressions", max_nodes);
  nodes_.push_back(std::move(node));
  return static_cast<Expression>(nodes_.size() - 1);
}

Expression Expressions::text(std::string_view utf8) {
  if (utf8.empty()) return empty();
  Node node;
  node.kind = Kind::text;
  node.text = utf8;
  return add(std::move(node));
}

Expression Expressions::characters(Characters set) {
  Node node;
  node.kind = Kind::characters;
  node.characters = merged(std::move(set));
  return node.characters.empty() ? never() : add(std::move(node));
}

Expression Expressions::sequence(std::vector<Expression> parts) {
  std::erase(parts, empty());
  if (std::find(parts.begin(), parts.end(), never()) != parts.end()) return never();
  if (parts.empty()) return empty();
  if (parts.size() == 1) return parts[0];
  Node node;
  node.kind = Kind::sequence;
  node.parts = std::move(parts);
  return add(std::move(node));
}

Expression Expressions::choice(std::vector<Expression> parts) {
  std::erase(parts, never());
  if (parts.empty()) return never();
  if (parts.size() == 1) return parts[0];
  Node node;
  node.kind = Kind::choice;
  node.parts = std::move(parts);
  return add(std::move(node));
}

Expression Expressions::repeat(Expression part, std::uint32_t least, std::uint32_t most) {
  if (least > most) return never();
  if (most == 0 || part == empty()) return empty();
  if (part == never()) return least == 0 ? empty() : never();
  if (least == 1 && most == 1) return part;
  Node node;
  node.kind = Kind::repeat;
  node.parts = {part};
  node.least = least;
  node.most = most;
  return add(std::move(node));
}

void Expressions::note(std::string place) {
  constexpr std::size_t most = 100;
  if (notes_.size() < most && std::find(notes_.begin(), notes_.end(), place) == notes_.end()) notes_.push_back(std::move(place));
}

void Expressions::name_notes(std::size_t first, std::string_view part) {
  for (std::size_t i = first; i < notes_.size(); ++i) notes_[i].insert(0, part);
}

Rule Expressions::add_rule(std::string name) {
  if (rules_.size() >= max_rules) fail(ErrorCode::invalid_argument, "the grammar is too large: more than {} rules", max_rules);
  rules_.push_back({std::move(name), never()});
  return static_cast<Rule>(rules_.size() - 1);
}

Expression Expressions::use(Rule rule) {
  Node node;
  node.kind = Kind::rule;
  node.rule = rule;
  return add(std::move(node));
}

}  // namespace sdx::text::grammar
