// GBNF as llama.cpp has it: rules, literals, classes, groups, * + ? {m,n}, comments.

#include <map>

#include "base/error.h"
#include "base/text/utf8.h"
#include "text/grammar/readers.h"

namespace sdx::text::grammar {
namespace {

constexpr int max_depth = 100;
constexpr std::uint32_t max_repeat = 100'000;

bool word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_'; }

class Reader {
 public:
  Reader(std::string_view text, Expressions& to) : text_(text), to_(to) {}

  Rule run() {
    space(true);
    while (at_ < text_.size()) definition();
    for (const auto& [name, info] : rules_) {
      if (!info.defined) error(fmt::format("the rule '{}' is used but not defined", name), info.line);
    }
    const auto root = rules_.find("root");
    if (root == rules_.end()) fail(ErrorCode::invalid_argument, "grammar: there is no rule 'root', which is the start rule");
    return root->second.rule;
  }

 private:
  struct Info {
    Rule rule = 0;
    bool defined = false;
    std::size_t line = 0;
  };

  [[noreturn]] void error(const std::string& what, std::size_t line = 0) const {
    fail(ErrorCode::invalid_argument, "grammar, line {}: {}", line ? line : line_, what);
  }

  char now() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool here(std::string_view what) const { return text_.substr(at_).starts_with(what); }

  void space(bool lines) {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') at_++;
      } else if (c == ' ' || c == '\t') {
        at_++;
      } else if (lines && (c == '\n' || c == '\r')) {
        line_ += c == '\n' ? 1 : 0;
        at_++;
      } else {
        return;
      }
    }
  }

  std::string name() {
    const std::size_t begin = at_;
    while (word(now())) at_++;
    if (begin == at_) error(fmt::format("expected a name, found {}", found()));
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::string found() const {
    if (at_ >= text_.size()) return "the end";
    const CodePoint c = decode_utf8(text_, at_);
    return now() == '\n' ? "the end of the line" : "'" + std::string(text_.substr(at_, c.bytes ? c.bytes : 1)) + "'";
  }

  Info& rule(const std::string& called) {
    const auto [place, added] = rules_.try_emplace(called);
    if (added) {
      place->second.rule = to_.add_rule(called);
      place->second.line = line_;
    }
    return place->second;
  }

  void definition() {
    const std::size_t line = line_;
    const std::string called = name();
    space(false);
    if (!here("::=")) error(fmt::format("expected '::=' after '{}', found {}", called, found()));
    at_ += 3;
    space(true);
    Info& info = rule(called);
    if (info.defined) error(fmt::format("the rule '{}' is defined twice", called), line);
    info.defined = true;
    const Rule which = info.rule;
    to_.define(which, alternatives(0));
    if (now() == '\r') at_++;
    if (at_ < text_.size() && now() != '\n') error(fmt::format("expected the end of the rule '{}', found {}", called, found()));
    space(true);
  }

  Expression alternatives(int depth) {
    if (depth > max_depth) error("groups are nested more than 100 deep");
    std::vector<Expression> parts{sequence(depth)};
    while (now() == '|') {
      at_++;
      space(true);
      parts.push_back(sequence(depth));
    }
    return to_.choice(std::move(parts));
  }

  Expression sequence(int depth) {
    std::vector<Expression> parts;
    while (at_ < text_.size()) {
      const char c = now();
      Expression part;
      if (c == '"') {
        part = literal();
      } else if (c == '[') {
        part = characters();
      } else if (c == '(') {
        at_++;
        space(true);
        part = alternatives(depth + 1);
        if (now() != ')') error(fmt::format("expected ')', found {}", found()));
        at_++;
      } else if (c == '.') {
        at_++;
        part = to_.characters({{0, last_character}});
      } else if (word(c)) {
        part = to_.use(rule(name()).rule);
      } else if (c == '<' || (c == '!' && here("!<"))) {
        error("tokens in grammars (<…>) are not supported");
      } else {
        break;
      }
      space(depth > 0);
      parts.push_back(repeated(part, depth));
      space(depth > 0);
    }
    return to_.sequence(std::move(parts));
  }

  Expression repeated(Expression part, int depth) {
    while (true) {
      const char c = now();
      if (c == '*' || c == '+' || c == '?') {
        at_++;
        part = to_.repeat(part, c == '+' ? 1 : 0, c == '?' ? 1 : unlimited);
      } else if (c == '{') {
        part = counted(part);
      } else {
        return part;
      }
      space(depth > 0);
    }
  }

  std::uint32_t number() {
    if (now() < '0' || now() > '9') error(fmt::format("expected a number, found {}", found()));
    std::uint32_t value = 0;
    for (; now() >= '0' && now() <= '9'; at_++) {
      value = value * 10 + static_cast<std::uint32_t>(now() - '0');
      if (value > max_repeat) error(fmt::format("more than {} repetitions", max_repeat));
    }
    space(false);
    return value;
  }

  Expression counted(Expression part) {
    at_++;
    space(false);
    const std::uint32_t least = now() == ',' ? 0 : number();
    std::uint32_t most = least;
    if (now() == ',') {
      at_++;
      space(false);
      most = now() == '}' ? unlimited : number();
    }
    if (now() != '}') error(fmt::format("expected '}}', found {}", found()));
    at_++;
    if (most < least) error(fmt::format("{{{},{}}}: the least number of repetitions is greater than the most", least, most));
    return to_.repeat(part, least, most);
  }

  char32_t hexadecimal(std::size_t size) {
    char32_t value = 0;
    for (std::size_t i = 0; i < size; i++) {
      const char c = now();
      const int digit = c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;
      if (digit < 0) error(fmt::format("expected {} hexadecimal digits, found {}", size, found()));
      value = value * 16 + static_cast<char32_t>(digit);
      at_++;
    }
    if (value > last_character || (value >= 0xd800 && value <= 0xdfff)) error("an escape that is not a character");
    return value;
  }

  char32_t character() {
    if (now() != '\\') {
      const CodePoint c = decode_utf8(text_, at_);
      if (!c.bytes) error("not valid UTF-8");
      if (c.value == '\n') error("a literal or class ends at the end of the line");
      at_ += c.bytes;
      return c.value;
    }
    at_++;
    const char c = now();
    at_++;
    switch (c) {
      case 'n': return '\n';
      case 'r': return '\r';
      case 't': return '\t';
      case 'x': return hexadecimal(2);
      case 'u': return hexadecimal(4);
      case 'U': return hexadecimal(8);
      case '\\':
      case '"':
      case '[':
      case ']':
      case '-':
      case '^': return static_cast<char32_t>(c);
      default: at_--; error(fmt::format("unknown escape: \\ and {}", found()));
    }
  }

  Expression literal() {
    at_++;
    std::string content;
    while (now() != '"') {
      if (at_ >= text_.size()) error("a literal without its closing \"");
      append_utf8(content, character());
    }
    at_++;
    return to_.text(content);
  }

  Expression characters() {
    at_++;
    const bool negated = now() == '^';
    if (negated) at_++;
    Characters set;
    while (now() != ']') {
      if (at_ >= text_.size()) error("a class without its closing ]");
      const char32_t first = character();
      char32_t last = first;
      if (now() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        at_++;
        last = character();
      }
      if (last < first) error("a range of characters that ends before it begins");
      set.push_back({first, last});
    }
    at_++;
    return to_.characters(negated ? complement(std::move(set)) : std::move(set));
  }

  std::string_view text_;
  Expressions& to_;
  std::size_t at_ = 0, line_ = 1;
  std::map<std::string, Info> rules_;
};

}  // namespace

Rule read_gbnf(std::string_view text, Expressions& to) { return Reader(text, to).run(); }

}  // namespace sdx::text::grammar
