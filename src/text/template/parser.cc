#include "text/template/parser.h"

#include <algorithm>

#include "text/template/unicode.h"

namespace sdx::text::jinja {
namespace {

constexpr std::size_t max_blocks = 100;

}  // namespace

void Parser::run() { program_.body = body_until({}); }

std::vector<NodePtr> Parser::body_until(const Ends& ends) {
  std::vector<NodePtr> body;
  const auto output = [&]() -> Node& {
    if (body.empty() || body.back()->op != Op::output) body.push_back(make(Op::output));
    return *body.back();
  };
  while (now().type != Token::end) {
    tag_ = now().at;
    if (now().type == Token::data) {
      NodePtr text = make(Op::text);
      text->value = constant_text(now().text);
      output().kids.push_back(std::move(text));
      next();
    } else if (now().type == Token::variable_begin) {
      next();
      Node& to = output();
      to.kids.push_back(tuple());
      to.kids.back()->at = tag_;
      expect(Token::variable_end, "end of print statement");
    } else {
      expect(Token::block_begin, "begin of statement block");
      if (now().type == Token::name && std::find(ends.begin(), ends.end(), now().text) != ends.end()) return body;
      statement(body);
      expect(Token::block_end, "end of statement block");
    }
  }
  if (!ends.empty()) {
    std::string wanted;
    for (const std::string_view end : ends) wanted += (wanted.empty() ? "'" : " or '") + std::string(end) + "'";
    syntax_error(now().line, "Unexpected end of template. Jinja was looking for the following tags: " + wanted +
                                 ". The innermost block that needs to be closed is '" + open_tags_.back() + "'.");
  }
  return body;
}

std::vector<NodePtr> Parser::statements(const Ends& ends, bool drop) {
  skip(":");
  expect(Token::block_end, "end of statement block");
  std::vector<NodePtr> body = body_until(ends);
  if (drop) next();
  return body;
}

void Parser::unknown_tag(const Lexeme& name) {
  std::string message = "Encountered unknown tag '" + name.text + "'.";
  if (!open_tags_.empty()) message += " The innermost block that needs to be closed is '" + open_tags_.back() + "'.";
  syntax_error(name.line, message);
}

void Parser::statement(std::vector<NodePtr>& to) {
  if (now().type != Token::name) syntax_error(now().line, "tag name expected");
  const std::string tag = now().text;
  for (const char* other : {"block", "extends", "include", "import", "from", "autoescape"}) {
    if (tag == other) {
      syntax_error(now().line,
                   "'" + tag + "' is not supported: a chat template is one file, without other templates, blocks and escaping");
    }
  }
  if (open_tags_.size() >= max_blocks) syntax_error(now().line, "blocks are nested more than 100 deep");
  if (tag == "print") return print(to);
  NodePtr (Parser::*parse)() = nullptr;
  if (tag == "for") parse = &Parser::for_loop;
  if (tag == "if") parse = &Parser::condition;
  if (tag == "set") parse = &Parser::set;
  if (tag == "macro") parse = &Parser::macro;
  if (tag == "with") parse = &Parser::with;
  if (tag == "call") parse = &Parser::call_block;
  if (tag == "filter") parse = &Parser::filter_block;
  if (tag == "generation") parse = &Parser::generation;
  if (tag == "break" || tag == "continue") {
    to.push_back(loop_control(tag == "break" ? Op::break_ : Op::continue_));
    return;
  }
  if (!parse) unknown_tag(now());
  open_tags_.push_back(tag);
  const std::uint32_t at = tag_;
  NodePtr node = (this->*parse)();
  node->at = at;
  to.push_back(std::move(node));
  open_tags_.pop_back();
}

void Parser::print(std::vector<NodePtr>& to) {
  NodePtr node = make(Op::output);
  next();
  while (now().type != Token::block_end) {
    if (!node->kids.empty()) expect_op(",");
    node->kids.push_back(expression());
  }
  to.push_back(std::move(node));
}

NodePtr Parser::loop_control(Op op) {
  NodePtr node = make(op);
  next();
  return node;
}

void Parser::check_target(const Node& node) {
  if (node.op == Op::name || node.op == Op::name_attribute) return;
  if (node.op != Op::tuple) syntax_error(node.line, "can't assign to this expression");
  for (const NodePtr& kid : node.kids) check_target(*kid);
}

void Parser::mark_stored(Node& node, bool parameter) {
  node.store = true;
  node.parameter = parameter;
  for (const NodePtr& kid : node.kids) mark_stored(*kid, parameter);
}

NodePtr Parser::target(bool name_only, bool with_namespace, bool until_in) {
  NodePtr node;
  if (name_only) {
    node = make(Op::name);
    node->name = expect(Token::name, "name").text;
    for (const char* constant : {"true", "false", "none", "True", "False", "None"}) {
      if (node->name == constant) syntax_error(node->line, "can't assign to 'name'");
    }
  } else {
    node = tuple(true, true, false, until_in ? "in" : nullptr, with_namespace);
  }
  check_target(*node);
  mark_stored(*node, false);
  return node;
}

NodePtr Parser::set() {
  NodePtr node = make(Op::set);
  next();
  node->kids.push_back(target(false, true, false));
  if (skip("=")) {
    node->kids.push_back(tuple());
    return node;
  }
  node->op = Op::set_block;
  node->kids.push_back(filter(nullptr));
  node->body = statements({"endset"}, true);
  return node;
}

NodePtr Parser::for_loop() {
  NodePtr node = make(Op::for_);
  next();
  const std::size_t begin = at_;
  node->kids.push_back(target(false, false, true));
  mark_stored(*node->kids[0], true);
  if (!skip_name("in")) syntax_error(now().line, "expected token 'in', got '" + describe(now()) + "'");
  node->kids.push_back(tuple(false, false, false, "recursive"));
  node->kids.push_back(skip_name("if") ? expression() : nullptr);
  if (node->kids[2]) {  // the test has the target in a scope of its own
    const std::size_t resume = std::exchange(at_, begin);
    node->kids.push_back(target(false, false, true));
    mark_stored(*node->kids[3], true);
    at_ = resume;
  }
  node->recursive = skip_name("recursive");
  node->body = statements({"endfor", "else"}, false);
  if (next().text == "else") node->other = statements({"endfor"}, true);
  return node;
}

NodePtr Parser::condition() {
  NodePtr first = make(Op::if_);
  next();
  Node* node = first.get();
  while (true) {
    node->kids.push_back(tuple(false));
    node->kids.back()->at = tag_;
    node->body = statements({"elif", "else", "endif"}, false);
    const std::string end = next().text;
    if (end != "elif") {
      if (end == "else") first->other = statements({"endif"}, true);
      return first;
    }
    first->positional.push_back(make(Op::if_));
    node = first->positional.back().get();
  }
}

NodePtr Parser::with() {
  NodePtr node = make(Op::with_);
  next();
  while (now().type != Token::block_end) {
    if (!node->kids.empty()) expect_op(",");
    node->kids.push_back(target(false, false, false));
    mark_stored(*node->kids.back(), true);
    expect_op("=");
    node->kids.push_back(expression());
  }
  node->body = statements({"endwith"}, true);
  return node;
}

void Parser::signature(Node& node) {
  expect_op("(");
  while (!now().is(")")) {
    if (!node.parameters.empty()) expect_op(",");
    node.parameters.push_back(target(true, false, false)->name);
    if (skip("=")) {
      node.kids.push_back(expression());
    } else if (!node.kids.empty() && !(node.op == Op::call_block && node.kids.size() == 1)) {
      syntax_error(now().line, "non-default argument follows default argument");
    }
  }
  expect_op(")");
}

NodePtr Parser::macro() {
  NodePtr node = make(Op::macro);
  next();
  node->name = target(true, false, false)->name;
  signature(*node);
  node->body = statements({"endmacro"}, true);
  return node;
}

NodePtr Parser::call_block() {
  NodePtr node = make(Op::call_block);
  next();
  node->kids.push_back(nullptr);
  if (now().is("(")) signature(*node);
  NodePtr call = expression();
  if (call->op != Op::call) syntax_error(node->line, "expected call");
  node->kids[0] = std::move(call);
  node->body = statements({"endcall"}, true);
  return node;
}

NodePtr Parser::generation() {
  NodePtr node = make(Op::call_block);
  next();
  node->kids.push_back(nullptr);
  node->body = statements({"endgeneration"}, true);
  return node;
}

NodePtr Parser::filter_block() {
  NodePtr node = make(Op::filter_block);
  next();
  node->kids.push_back(filter(nullptr, true));
  node->body = statements({"endfilter"}, true);
  return node;
}

Program parse(std::string_view source, const std::string& name) {
  Program program;
  program.name = name;
  program.source = normalize_lines(source);
  Parser(tokenize(program.source), program).run();
  resolve(program);
  return program;
}

}  // namespace sdx::text::jinja
