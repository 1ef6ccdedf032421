#include <algorithm>

#include "text/template/parser.h"

namespace sdx::text::jinja {
namespace {

constexpr int max_depth = 100;             // of parentheses and the like
constexpr std::uint16_t max_height = 200;  // of a tree: a.b.c… and a + b + c… grow without parentheses

// Counts one level of nesting while parsing.
class Level {
 public:
  Level(int& depth, std::uint32_t line) : depth_(depth) {
    if (++depth_ > max_depth) syntax_error(line, "an expression or block is nested more than 100 deep");
  }
  ~Level() { depth_--; }
  Level(const Level&) = delete;

 private:
  int& depth_;
};

}  // namespace

std::string describe(const Lexeme& lexeme) {
  switch (lexeme.type) {
    case Token::data: return "template data / text";
    case Token::block_begin: return "begin of statement block";
    case Token::block_end: return "end of statement block";
    case Token::variable_begin: return "begin of print statement";
    case Token::variable_end: return "end of print statement";
    case Token::string: return "string";
    case Token::integer: return "integer";
    case Token::real: return "float";
    case Token::end: return "end of template";
    default: return lexeme.text;
  }
}

const Lexeme& Parser::expect(Token type, const char* what) {
  if (now().type != type) {
    syntax_error(now().line, now().type == Token::end
                                 ? std::string("unexpected end of template, expected '") + what + "'."
                                 : std::string("expected token '") + what + "', got '" + describe(now()) + "'");
  }
  return next();
}

void Parser::expect_op(std::string_view op) {
  if (!now().is(op)) syntax_error(now().line, "expected token '" + std::string(op) + "', got '" + describe(now()) + "'");
  next();
}

NodePtr Parser::make(Op op) const {
  auto node = std::make_unique<Node>(op);
  node->line = now().line;
  node->at = tag_;
  return node;
}

void Parser::grow(Node& parent, const Node& child) const {
  parent.height = std::max<std::uint16_t>(parent.height, static_cast<std::uint16_t>(child.height + 1));
  if (parent.height > max_height) syntax_error(parent.line, "an expression has more than 200 parts that depend on each other");
}

NodePtr Parser::binary(Op op, NodePtr left, NodePtr right) const {
  NodePtr node = make(op);
  node->line = left->line;
  grow(*node, *left);
  grow(*node, *right);
  node->kids.push_back(std::move(left));
  node->kids.push_back(std::move(right));
  return node;
}

bool Parser::tuple_ends(const char* end_name) const {
  return now().type == Token::variable_end || now().type == Token::block_end || now().is(")") ||
         (end_name && now().is_name(end_name));
}

NodePtr Parser::tuple(bool condition, bool simple, bool parentheses, const char* end_name, bool with_namespace) {
  NodePtr node = make(Op::tuple);
  bool is_tuple = false;
  while (true) {
    if (!node->kids.empty()) expect_op(",");
    if (tuple_ends(end_name)) break;
    node->kids.push_back(simple ? primary(with_namespace) : expression(condition));
    grow(*node, *node->kids.back());
    if (!now().is(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) {
    if (!node->kids.empty()) return std::move(node->kids[0]);
    if (!parentheses) syntax_error(now().line, "Expected an expression, got '" + describe(now()) + "'");
  }
  return node;
}

NodePtr Parser::expression(bool condition) {
  const Level level(depth_, now().line);
  NodePtr node = or_expression();
  while (condition && skip_name("if")) {
    NodePtr whole = make(Op::condition);
    NodePtr test = or_expression(), otherwise;
    if (skip_name("else")) otherwise = expression();
    for (const NodePtr* kid : {&test, &node, &otherwise}) {
      if (*kid) grow(*whole, **kid);
    }
    whole->kids.push_back(std::move(test));
    whole->kids.push_back(std::move(node));
    whole->kids.push_back(std::move(otherwise));
    node = std::move(whole);
  }
  return node;
}

NodePtr Parser::or_expression() {
  NodePtr node = and_expression();
  while (skip_name("or")) node = binary(Op::or_, std::move(node), and_expression());
  return node;
}

NodePtr Parser::and_expression() {
  NodePtr node = not_expression();
  while (skip_name("and")) node = binary(Op::and_, std::move(node), not_expression());
  return node;
}

NodePtr Parser::not_expression() {
  if (!now().is_name("not")) return comparison();
  const Level level(depth_, now().line);
  NodePtr node = make(Op::not_);
  next();
  node->kids.push_back(not_expression());
  grow(*node, *node->kids[0]);
  return node;
}

NodePtr Parser::comparison() {
  NodePtr first = sum();
  const auto next_operator = [this]() -> std::optional<Comparison> {
    static constexpr std::pair<std::string_view, Comparison> table[] = {{"==", Comparison::eq}, {"!=", Comparison::ne},
                                                                        {"<=", Comparison::le}, {">=", Comparison::ge},
                                                                        {"<", Comparison::lt},  {">", Comparison::gt}};
    for (const auto& [text, op] : table) {
      if (skip(text)) return op;
    }
    if (skip_name("in")) return Comparison::in;
    if (now().is_name("not") && look().is_name("in")) {
      next();
      next();
      return Comparison::not_in;
    }
    return std::nullopt;
  };
  auto op = next_operator();
  if (!op) return first;
  NodePtr node = make(Op::compare);
  grow(*node, *first);
  node->kids.push_back(std::move(first));
  for (; op; op = next_operator()) {
    node->comparisons.push_back(*op);
    node->kids.push_back(sum());
    grow(*node, *node->kids.back());
  }
  return node;
}

NodePtr Parser::sum() {
  NodePtr node = concatenation();
  while (now().is("+") || now().is("-")) {
    const Binary op = next().text == "+" ? Binary::add : Binary::sub;
    node = binary(Op::arithmetic, std::move(node), concatenation());
    node->arithmetic = op;
  }
  return node;
}

NodePtr Parser::concatenation() {
  NodePtr first = product();
  if (!now().is("~")) return first;
  NodePtr node = make(Op::concatenation);
  grow(*node, *first);
  node->kids.push_back(std::move(first));
  while (skip("~")) {
    node->kids.push_back(product());
    grow(*node, *node->kids.back());
  }
  return node;
}

NodePtr Parser::product() {
  NodePtr node = power();
  while (now().is("*") || now().is("/") || now().is("//") || now().is("%")) {
    const std::string& op = next().text;
    const Binary which = op == "*" ? Binary::mul : op == "/" ? Binary::div : op == "//" ? Binary::floordiv : Binary::mod;
    node = binary(Op::arithmetic, std::move(node), power());
    node->arithmetic = which;
  }
  return node;
}

NodePtr Parser::power() {
  NodePtr node = unary();
  while (skip("**")) {
    node = binary(Op::arithmetic, std::move(node), unary());
    node->arithmetic = Binary::pow;
  }
  return node;
}

NodePtr Parser::unary(bool with_filter) {
  NodePtr node;
  if (now().is("-") || now().is("+")) {
    const Level level(depth_, now().line);
    node = make(now().is("-") ? Op::negative : Op::positive);
    next();
    node->kids.push_back(unary(false));
    grow(*node, *node->kids[0]);
  } else {
    node = primary();
  }
  node = postfix(std::move(node));
  return with_filter ? filters_and_tests(std::move(node)) : std::move(node);
}

NodePtr Parser::name_or_constant(bool with_namespace) {
  const std::string name = now().text;
  if (name == "true" || name == "True" || name == "false" || name == "False" || name == "none" || name == "None") {
    NodePtr node = make(Op::constant);
    if (name[0] == 't' || name[0] == 'T') node->value = Value::boolean(true);
    if (name[0] == 'f' || name[0] == 'F') node->value = Value::boolean(false);
    next();
    return node;
  }
  NodePtr node = make(Op::name);
  next();
  node->name = name;
  if (with_namespace && skip(".")) {
    node->op = Op::name_attribute;
    node->key = Value(Kind::string, nullptr);
    auto text = std::make_shared<Str>();
    text->text = expect(Token::name, "name").text;
    node->key = Value(Kind::string, std::move(text));
  }
  return node;
}

Value constant_text(std::string text) {
  auto object = std::make_shared<Str>();
  object->ascii = is_ascii(text);
  object->text = std::move(text);
  return Value(Kind::string, std::move(object));
}

NodePtr Parser::primary(bool with_namespace) {
  const Lexeme& token = now();
  if (token.type == Token::name) return name_or_constant(with_namespace);
  if (token.type == Token::string) {
    NodePtr node = make(Op::constant);
    std::string text;
    while (now().type == Token::string) text += next().text;
    node->value = constant_text(std::move(text));
    return node;
  }
  if (token.type == Token::integer || token.type == Token::real) {
    NodePtr node = make(Op::constant);
    node->value = token.type == Token::integer ? Value::integer(token.integer) : Value::real(token.real);
    next();
    return node;
  }
  if (token.is("(")) {
    const Level level(depth_, token.line);
    next();
    NodePtr node = tuple(true, false, true);
    expect_op(")");
    return node;
  }
  if (token.is("[")) return list();
  if (token.is("{")) return dict();
  syntax_error(token.line, "unexpected '" + describe(token) + "'");
}

NodePtr Parser::list() {
  NodePtr node = make(Op::list);
  expect_op("[");
  while (!now().is("]")) {
    if (!node->kids.empty()) expect_op(",");
    if (now().is("]")) break;
    node->kids.push_back(expression());
    grow(*node, *node->kids.back());
  }
  expect_op("]");
  return node;
}

NodePtr Parser::dict() {
  NodePtr node = make(Op::dict);
  expect_op("{");
  while (!now().is("}")) {
    if (!node->kids.empty()) expect_op(",");
    if (now().is("}")) break;
    node->kids.push_back(expression());
    grow(*node, *node->kids.back());
    expect_op(":");
    node->kids.push_back(expression());
    grow(*node, *node->kids.back());
  }
  expect_op("}");
  return node;
}

NodePtr Parser::postfix(NodePtr node) {
  while (true) {
    if (now().is(".") || now().is("[")) {
      node = subscript(std::move(node));
    } else if (now().is("(")) {
      node = call(std::move(node));
    } else {
      return node;
    }
  }
}

NodePtr Parser::filters_and_tests(NodePtr node) {
  while (true) {
    if (now().is("|")) {
      node = filter(std::move(node));
    } else if (now().is_name("is")) {
      node = test(std::move(node));
    } else if (now().is("(")) {
      node = call(std::move(node));
    } else {
      return node;
    }
  }
}

NodePtr Parser::subscript(NodePtr object) {
  NodePtr node = make(Op::item);
  grow(*node, *object);
  node->kids.push_back(std::move(object));
  if (skip(".")) {
    if (now().type == Token::name) {
      node->op = Op::attribute;
      node->name = now().text;
    } else if (now().type == Token::integer) {
      node->kids.push_back(make(Op::constant));
      node->kids.back()->value = Value::integer(now().integer);
    } else {
      syntax_error(now().line, "expected name or number");
    }
    next();
    return node;
  }
  expect_op("[");
  NodePtr key = make(Op::tuple);
  while (!now().is("]")) {
    if (!key->kids.empty()) expect_op(",");
    key->kids.push_back(subscript_part());
    grow(*key, *key->kids.back());
  }
  expect_op("]");
  if (key->kids.size() == 1) key = std::move(key->kids[0]);
  grow(*node, *key);
  node->kids.push_back(std::move(key));
  return node;
}

NodePtr Parser::subscript_part() {
  NodePtr start;
  if (!now().is(":")) {
    start = expression();
    if (!now().is(":")) return start;
  }
  next();
  NodePtr node = make(Op::slice);
  const auto part = [&]() -> NodePtr { return now().is(":") || now().is("]") || now().is(",") ? nullptr : expression(); };
  NodePtr stop = part(), step;
  if (skip(":")) step = now().is("]") || now().is(",") ? nullptr : expression();
  for (NodePtr* kid : {&start, &stop, &step}) {
    if (*kid) grow(*node, **kid);
    node->kids.push_back(std::move(*kid));
  }
  return node;
}

void Parser::call_arguments(Node& node) {
  const std::uint32_t line = now().line;
  expect_op("(");
  const auto ensure = [&](bool fine) {
    if (!fine) syntax_error(line, "invalid syntax for function call expression");
  };
  bool comma = false;
  while (!now().is(")")) {
    if (comma) {
      expect_op(",");
      if (now().is(")")) break;
    }
    comma = true;
    NodePtr* added = nullptr;
    if (skip("*")) {
      ensure(!node.more_positional && !node.more_named);
      node.more_positional = expression();
      added = &node.more_positional;
    } else if (skip("**")) {
      ensure(!node.more_named);
      node.more_named = expression();
      added = &node.more_named;
    } else if (now().type == Token::name && look().is("=")) {
      ensure(!node.more_named);
      const std::string name = next().text;
      next();
      for (const auto& other : node.named) {
        if (other.first == name) syntax_error(line, "the argument '" + name + "' is given twice");
      }
      node.named.emplace_back(name, expression());
      added = &node.named.back().second;
    } else {
      ensure(!node.more_positional && !node.more_named && node.named.empty());
      node.positional.push_back(expression());
      added = &node.positional.back();
    }
    grow(node, **added);
  }
  expect_op(")");
}

NodePtr Parser::call(NodePtr function) {
  NodePtr node = make(Op::call);
  grow(*node, *function);
  node->kids.push_back(std::move(function));
  call_arguments(*node);
  return node;
}

std::string Parser::dotted_name() {
  std::string name = expect(Token::name, "name").text;
  while (skip(".")) name += "." + expect(Token::name, "name").text;
  return name;
}

NodePtr Parser::filter(NodePtr value, bool inline_first) {
  while (now().is("|") || inline_first) {
    if (!inline_first) next();
    inline_first = false;
    NodePtr node = make(Op::filter);
    node->name = dotted_name();
    node->filter = find_filter(node->name);
    if (value) grow(*node, *value);
    node->kids.push_back(std::move(value));
    if (now().is("(")) call_arguments(*node);
    value = std::move(node);
  }
  return value;
}

NodePtr Parser::test(NodePtr value) {
  NodePtr node = make(Op::test);
  next();
  const bool negated = skip_name("not");
  node->name = dotted_name();
  node->test = find_test(node->name);
  grow(*node, *value);
  node->kids.push_back(std::move(value));
  const bool argument = now().type == Token::name || now().type == Token::string || now().type == Token::integer ||
                        now().type == Token::real || now().is("[") || now().is("{");
  if (now().is("(")) {
    call_arguments(*node);
  } else if (argument && !now().is_name("else") && !now().is_name("or") && !now().is_name("and")) {
    if (now().is_name("is")) syntax_error(now().line, "You cannot chain multiple tests with is");
    node->positional.push_back(postfix(primary()));
    grow(*node, *node->positional[0]);
  }
  if (!negated) return node;
  NodePtr turned = make(Op::not_);
  grow(*turned, *node);
  turned->kids.push_back(std::move(node));
  return turned;
}

}  // namespace sdx::text::jinja
