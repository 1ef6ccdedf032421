#pragma once
// Tokens to a tree. parser.cc has the statements, parse_expressions.cc the expressions.

#include <string>
#include <utility>
#include <vector>

#include "text/template/ast.h"
#include "text/template/lexer.h"

namespace sdx::text::jinja {

// A string of the template itself.
Value constant_text(std::string text);

class Parser {
 public:
  Parser(std::vector<Lexeme> lexemes, Program& program) : lexemes_(std::move(lexemes)), program_(program) {}
  void run();

 private:
  using Ends = std::vector<std::string_view>;

  // parser.cc
  std::vector<NodePtr> body_until(const Ends& ends);  // stops at the name of the end tag
  std::vector<NodePtr> statements(const Ends& ends, bool drop);
  void statement(std::vector<NodePtr>& to);
  NodePtr set();
  NodePtr for_loop();
  NodePtr condition();
  NodePtr with();
  NodePtr macro();
  NodePtr call_block();
  NodePtr filter_block();
  NodePtr generation();
  NodePtr loop_control(Op op);
  void print(std::vector<NodePtr>& to);
  void signature(Node& node);
  NodePtr target(bool name_only, bool with_namespace, bool until_in);
  void check_target(const Node& node);
  void mark_stored(Node& node, bool parameter);
  [[noreturn]] void unknown_tag(const Lexeme& name);

  // parse_expressions.cc
  NodePtr tuple(bool condition = true, bool simple = false, bool parentheses = false, const char* end_name = nullptr,
                bool with_namespace = false);
  NodePtr expression(bool condition = true);
  NodePtr or_expression();
  NodePtr and_expression();
  NodePtr not_expression();
  NodePtr comparison();
  NodePtr sum();
  NodePtr concatenation();
  NodePtr product();
  NodePtr power();
  NodePtr unary(bool with_filter = true);
  NodePtr primary(bool with_namespace = false);
  NodePtr name_or_constant(bool with_namespace);
  NodePtr list();
  NodePtr dict();
  NodePtr postfix(NodePtr node);
  NodePtr filters_and_tests(NodePtr node);
  NodePtr subscript(NodePtr node);
  NodePtr subscript_part();
  NodePtr call(NodePtr node);
  NodePtr filter(NodePtr node, bool inline_first = false);
  NodePtr test(NodePtr node);
  void call_arguments(Node& node);
  std::string dotted_name();
  bool tuple_ends(const char* end_name) const;

  const Lexeme& now() const { return lexemes_[at_]; }
  const Lexeme& look() const { return lexemes_[std::min(at_ + 1, lexemes_.size() - 1)]; }
  const Lexeme& next() {
    const Lexeme& lexeme = lexemes_[at_];
    if (at_ + 1 < lexemes_.size()) at_++;
    return lexeme;
  }
  bool skip(std::string_view op) { return now().is(op) ? (next(), true) : false; }
  bool skip_name(std::string_view name) { return now().is_name(name) ? (next(), true) : false; }
  const Lexeme& expect(Token type, const char* what);
  void expect_op(std::string_view op);
  NodePtr make(Op op) const;
  NodePtr binary(Op op, NodePtr left, NodePtr right) const;
  void grow(Node& parent, const Node& child) const;

  std::vector<Lexeme> lexemes_;
  Program& program_;
  std::size_t at_ = 0;
  std::uint32_t tag_ = 0;
  int depth_ = 0;
  std::vector<std::string> open_tags_;
};

std::string describe(const Lexeme& lexeme);

}  // namespace sdx::text::jinja
