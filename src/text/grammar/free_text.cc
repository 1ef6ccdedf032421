#include "text/grammar/free_text.h"

#include <algorithm>
#include <compare>
#include <map>
#include <set>
#include <utility>

#include "base/text/utf8.h"

namespace sdx::text::grammar {
namespace {

// The marks' characters as a tree, with the longest other beginning of a mark that each place ends with: Aho and Corasick's.
class MarkTree {
 public:
  explicit MarkTree(const std::vector<std::string_view>& marks) {
    for (const std::string_view mark : marks) add(mark);
    std::vector<std::size_t> order{0};
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::size_t from = order[i];
      for (const auto& [c, to] : nodes_[from].next) {
        nodes_[to].back = from == 0 ? 0 : step(nodes_[from].back, c);
        nodes_[to].whole = nodes_[to].whole || nodes_[nodes_[to].back].whole;
        order.push_back(to);
      }
    }
  }

  std::size_t step(std::size_t at, char32_t c) const {
    for (;;) {
      const auto found = nodes_[at].next.find(c);
      if (found != nodes_[at].next.end()) return found->second;
      if (at == 0) return 0;
      at = nodes_[at].back;
    }
  }

  bool whole(std::size_t at) const { return nodes_[at].whole; }
  const std::set<char32_t>& characters() const { return characters_; }

 private:
  struct Node {
    std::map<char32_t, std::size_t> next;
    std::size_t back = 0;
    bool whole = false;  // a mark ends here
  };

  void add(std::string_view mark) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < mark.size();) {
      const CodePoint decoded = decode_utf8(mark, i);
      const char32_t c = decoded.value;
      i += std::max<std::size_t>(1, decoded.bytes);
      characters_.insert(c);
      const auto [found, added] = nodes_[at].next.try_emplace(c, nodes_.size());
      at = found->second;
      if (added) nodes_.emplace_back();
    }
    nodes_[at].whole = true;
  }

  std::vector<Node> nodes_{1};
  std::set<char32_t> characters_;
};

// A rule for each place in the tree; each but the last character leads to another rule, so that none is within another.
class FreeText {
 public:
  FreeText(const std::vector<std::string_view>& marks, bool until, Beginning beginning, Expressions& to)
      : tree_(marks), until_(until), beginning_(beginning), to_(to), alphabet_(tree_.characters()) {
    if (beginning != Beginning::any) alphabet_.insert({U'{', U'[', U' ', U'\n', U'\r', U'\t'});
    for (const char32_t c : alphabet_) others_.push_back({c, c});
    others_ = complement(std::move(others_));
  }

  Expression make() {
    const Rule first = rule({beginning_ == Beginning::any ? Phase::free : Phase::start, 0});
    while (!open_.empty()) {
      const auto [place, of] = open_.back();
      open_.pop_back();
      to_.define(of, body(place));
    }
    return to_.use(first);
  }

 private:
  enum class Phase : std::uint8_t { start, bracket, free };
  struct At {
    Phase phase = Phase::free;
    std::size_t node = 0;
    auto operator<=>(const At&) const = default;
  };

  Rule rule(At at) {
    const auto found = rules_.find(at);
    if (found != rules_.end()) return found->second;
    const Rule made = to_.add_rule("text");
    rules_.emplace(at, made);
    open_.emplace_back(at, made);
    return made;
  }

  // The phase behind a character, or false where it may not come.
  bool pass(Phase& phase, char32_t c) const {
    const bool blank = c == U' ' || c == U'\n' || c == U'\r' || c == U'\t';
    if (phase == Phase::start) {
      if (c == U'{' || (c == U'[' && beginning_ == Beginning::no_list)) return false;
      phase = blank ? Phase::start : c == U'[' ? Phase::bracket : Phase::free;
      return true;
    }
    if (phase == Phase::bracket && (blank || c == U'{')) return false;
    phase = Phase::free;
    return true;
  }

  Expression body(At at) {
    if (until_ && tree_.whole(at.node)) return to_.empty();
    std::map<At, Characters> ways;
    for (const char32_t c : alphabet_) {
      At next{at.phase, tree_.step(at.node, c)};
      if (!pass(next.phase, c) || (!until_ && tree_.whole(next.node))) continue;
      ways[next].push_back({c, c});
    }
    Characters& others = ways[{Phase::free, 0}];
    others.insert(others.end(), others_.begin(), others_.end());
    std::vector<Expression> all;
    if (!until_) all.push_back(to_.empty());
    for (auto& [next, set] : ways) all.push_back(to_.sequence({to_.characters(std::move(set)), to_.use(rule(next))}));
    return to_.choice(std::move(all));
  }

  MarkTree tree_;
  bool until_;
  Beginning beginning_;
  Expressions& to_;
  std::set<char32_t> alphabet_;
  Characters others_;
  std::map<At, Rule> rules_;
  std::vector<std::pair<At, Rule>> open_;
};

}  // namespace

Expression without_marks(const std::vector<std::string_view>& marks, Beginning beginning, Expressions& to) {
  return FreeText(marks, false, beginning, to).make();
}

Expression up_to_mark(std::string_view mark, Expressions& to) { return FreeText({mark}, true, Beginning::any, to).make(); }

}  // namespace sdx::text::grammar
