#include "text/grammar/program.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/error.h"
#include "base/text/utf8.h"

namespace sdx::text::grammar {
namespace {

using Kind = Expressions::Kind;
constexpr std::size_t max_states = 1'000'000;

// Finds the expressions that match some text at all, and those that match the empty text.
struct Facts {
  std::vector<bool> possible, nullable;  // by rule
};

class Analysis {
 public:
  explicit Analysis(const Expressions& grammar)
      : grammar_(grammar), facts_{std::vector<bool>(grammar.rules().size()), std::vector<bool>(grammar.rules().size())} {
    settle(facts_.possible, true);
    settle(facts_.nullable, false);
  }

  bool possible(Expression e) const { return holds(e, facts_.possible, true); }
  bool nullable(Expression e) const { return holds(e, facts_.nullable, false); }

  // The rules that an expression may begin with.
  void first_rules(Expression e, std::vector<Rule>& to) const {
    const auto& node = grammar_.node(e);
    switch (node.kind) {
      case Kind::rule: to.push_back(node.rule); return;
      case Kind::repeat: return first_rules(node.parts[0], to);
      case Kind::choice:
        for (const Expression part : node.parts) first_rules(part, to);
        return;
      case Kind::sequence:
        for (const Expression part : node.parts) {
          first_rules(part, to);
          if (!nullable(part)) return;
        }
        return;
      default: return;
    }
  }

  void refuse_left_recursion() const {
    const std::size_t count = grammar_.rules().size();
    std::vector<std::vector<Rule>> begins(count);
    for (Rule rule = 0; rule < count; rule++) first_rules(grammar_.rules()[rule].body, begins[rule]);
    enum class Mark : std::uint8_t { unseen, open, done };
    std::vector<Mark> marks(count, Mark::unseen);
    for (Rule root = 0; root < count; root++) {
      std::vector<std::pair<Rule, std::size_t>> path;
      if (marks[root] == Mark::unseen) path.emplace_back(root, 0);
      while (!path.empty()) {
        auto& [rule, next] = path.back();
        marks[rule] = Mark::open;
        if (next == begins[rule].size()) {
          marks[rule] = Mark::done;
          path.pop_back();
          continue;
        }
        const Rule other = begins[rule][next++];
        if (marks[other] == Mark::open) {
          fail(ErrorCode::invalid_argument,
               "the rule '{}' of the grammar begins with itself (left recursion); write the repetition with *, or put the "
               "recursion at the end",
               grammar_.rules()[other].name);
        }
        if (marks[other] == Mark::unseen) path.emplace_back(other, 0);
      }
    }
  }

 private:
  // Whether a property holds for an expression, derived from its parts: `facts` says for which rules it holds, and `otherwise`
  // whether for characters.
  bool holds(Expression e, const std::vector<bool>& facts, bool otherwise) const {
    const auto& node = grammar_.node(e);
    const auto fine = [&](Expression part) { return holds(part, facts, otherwise); };
    switch (node.kind) {
      case Kind::never: return false;
      case Kind::empty: return true;
      case Kind::sequence: return std::all_of(node.parts.begin(), node.parts.end(), fine);
      case Kind::choice: return std::any_of(node.parts.begin(), node.parts.end(), fine);
      case Kind::repeat: return node.least == 0 || fine(node.parts[0]);
      case Kind::rule: return facts[node.rule];
      default: return otherwise;
    }
  }

  void settle(std::vector<bool>& facts, bool otherwise) {
    for (bool changed = true; changed;) {
      changed = false;
      for (Rule rule = static_cast<Rule>(facts.size()); rule-- > 0;) {
        if (!facts[rule] && holds(grammar_.rules()[rule].body, facts, otherwise)) facts[rule] = changed = true;
      }
    }
  }

  const Expressions& grammar_;
  Facts facts_;
};

class Compiler {
 public:
  Compiler(const Expressions& grammar, const Analysis& analysis) : grammar_(grammar), analysis_(analysis) {}

  Program run(Rule root) {
    const std::uint32_t end = add({});
    (void)end;  // state 0 is the end of every rule
    starts_.assign(grammar_.rules().size(), 0);
    program_.start = start_of(root);
    while (!pending_.empty()) {
      const Rule rule = pending_.back();
      pending_.pop_back();
      const std::uint32_t body = build(grammar_.rules()[rule].body, 0);
      State& entry = program_.states[starts_[rule]];
      entry.kind = State::Kind::split;
      entry.next = entry.other = body;
    }
    while (!parts_.empty()) finish_part();
    return std::move(program_);
  }

 private:
  std::uint32_t add(State state) {
    if (program_.states.size() >= max_states) {
      fail(ErrorCode::invalid_argument,
           "the grammar is too large: more than {} states; large counts in repetitions or lengths need many", max_states);
    }
    program_.states.push_back(state);
    return static_cast<std::uint32_t>(program_.states.size() - 1);
  }

  std::uint32_t start_of(Rule rule) {
    if (starts_[rule] == 0) {
      starts_[rule] = add({});
      pending_.push_back(rule);
    }
    return starts_[rule];
  }

  std::uint32_t split(std::uint32_t a, std::uint32_t b) { return add({State::Kind::split, 0, 0, a, b}); }

  // States for `e` that lead to `next`.
  std::uint32_t build(Expression e, std::uint32_t next) {
    const auto& node = grammar_.node(e);
    switch (node.kind) {
      case Kind::never: return add({State::Kind::bytes, 1, 0, 0, 0});  // no byte
      case Kind::empty: return next;
      case Kind::text:
        for (std::size_t i = node.text.size(); i-- > 0;) {
          const auto byte = static_cast<std::uint8_t>(node.text[i]);
          next = add({State::Kind::bytes, byte, byte, next, 0});
        }
        return next;
      case Kind::characters: return build_characters(node.characters, next);
      case Kind::sequence:
        for (std::size_t i = node.parts.size(); i-- > 0;) next = build(node.parts[i], next);
        return next;
      case Kind::choice: return build_choice(node, next);
      case Kind::repeat: return build_repeat(node, next);
      case Kind::rule: return add({State::Kind::call, 0, 0, next, start_of(node.rule)});
    }
    return next;
  }

  std::uint32_t build_choice(const Expressions::Node& node, std::uint32_t next) {
    std::uint32_t all = UINT32_MAX;
    for (std::size_t i = node.parts.size(); i-- > 0;) {
      if (!analysis_.possible(node.parts[i])) continue;
      const std::uint32_t one = build(node.parts[i], next);
      all = all == UINT32_MAX ? one : split(one, all);
    }
    return all == UINT32_MAX ? build(grammar_.never(), next) : all;
  }

  std::uint32_t build_repeat(const Expressions::Node& node, std::uint32_t next) {
    if (!analysis_.possible(node.parts[0])) return next;
    const std::uint32_t copies = node.most == unlimited ? node.least : node.most;
    // An expression that occurs many times is built once, and called.
    const auto& part = grammar_.node(node.parts[0]);
    const bool small = part.kind == Kind::rule || (part.kind == Kind::text && part.text.size() == 1);
    const auto one = [&](std::uint32_t then) {
      if (copies <= 2 || small) return build(node.parts[0], then);
      return add({State::Kind::call, 0, 0, then, part_start(node.parts[0])});
    };
    if (node.most == unlimited) {
      const std::uint32_t loop = split(next, next);
      const std::uint32_t body = one(loop);
      program_.states[loop].other = body;
      next = loop;
    } else {
      const std::uint32_t end = next;
      for (std::uint32_t i = node.least; i < node.most; i++) next = split(one(next), end);
    }
    for (std::uint32_t i = 0; i < node.least; i++) next = one(next);
    return next;
  }

  std::uint32_t part_start(Expression e) {
    const auto [found, added] = part_starts_.try_emplace(e, 0);
    if (added) {
      const std::uint32_t start = add({State::Kind::split, 0, 0, 0, 0});
      part_starts_[e] = start;
      parts_.push_back(e);
      return start;
    }
    return found->second;
  }

  void finish_part() {
    const Expression e = parts_.back();
    parts_.pop_back();
    const std::uint32_t body = build(e, 0);
    State& entry = program_.states[part_starts_[e]];
    entry.next = entry.other = body;
    while (!pending_.empty()) {
      const Rule rule = pending_.back();
      pending_.pop_back();
      const std::uint32_t start = build(grammar_.rules()[rule].body, 0);
      program_.states[starts_[rule]] = {State::Kind::split, 0, 0, start, start};
    }
  }

  struct Bytes {
    std::array<std::uint8_t, 4> first{}, last{};
    int size = 0;
  };

  // Cuts a range of characters into runs of byte ranges, as UTF-8 spells them.
  static void cut(char32_t first, char32_t last, std::vector<Bytes>& to) {
    constexpr char32_t ends[] = {0x7f, 0x7ff, 0xffff, last_character};
    for (const char32_t end : ends) {
      if (first <= end && last > end) {
        cut(first, end, to);
        return cut(end + 1, last, to);
      }
    }
    for (int i = 1; i < 4; i++) {
      const char32_t mask = (char32_t{1} << (6 * i)) - 1;
      if ((first & ~mask) == (last & ~mask) || last < 0x80) continue;
      if (first & mask) {
        cut(first, first | mask, to);
        return cut((first | mask) + 1, last, to);
      }
      if ((last & mask) != mask) {
        cut(first, (last & ~mask) - 1, to);
        return cut(last & ~mask, last, to);
      }
    }
    std::string low, high;
    append_utf8(low, first);
    append_utf8(high, last);
    Bytes bytes;
    bytes.size = static_cast<int>(low.size());
    for (std::size_t i = 0; i < low.size(); i++) {
      bytes.first[i] = static_cast<std::uint8_t>(low[i]);
      bytes.last[i] = static_cast<std::uint8_t>(high[i]);
    }
    to.push_back(bytes);
  }

  std::uint32_t build_characters(const Characters& characters, std::uint32_t next) {
    std::vector<Bytes> runs;
    for (const CharacterRange& range : characters) cut(range.first, range.last, runs);
    std::map<std::array<std::uint32_t, 3>, std::uint32_t> made;  // endings are shared
    std::uint32_t all = UINT32_MAX;
    for (const Bytes& run : runs) {
      std::uint32_t state = next;
      for (int i = run.size; i-- > 0;) {
        const auto place = static_cast<std::size_t>(i);
        const std::array<std::uint32_t, 3> key{run.first[place], run.last[place], state};
        const auto found = made.find(key);
        state = found != made.end() ? found->second
                                    : (made[key] = add({State::Kind::bytes, run.first[place], run.last[place], state, 0}));
      }
      all = all == UINT32_MAX ? state : split(state, all);
    }
    return all;
  }

  const Expressions& grammar_;
  const Analysis& analysis_;
  Program program_;
  std::vector<std::uint32_t> starts_;
  std::vector<Rule> pending_;
  std::map<Expression, std::uint32_t> part_starts_;
  std::vector<Expression> parts_;
};

}  // namespace

Program compile(const Expressions& grammar, Rule root) {
  const Analysis analysis(grammar);
  analysis.refuse_left_recursion();
  if (!analysis.possible(grammar.rules()[root].body)) {
    fail(ErrorCode::invalid_argument,
         "the grammar matches no text: its rules never end, or its conditions contradict each other");
  }
  return Compiler(grammar, analysis).run(root);
}

}  // namespace sdx::text::grammar
