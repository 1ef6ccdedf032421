#include "support/graph_text.h"

#include <cctype>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "onnx/writer.h"
#include "tensor/element.h"

namespace sdx::testing {
namespace {

// A graph being read, and how it sees the graph around it.
struct Scope {
  Graph* graph = nullptr;
  Scope* outer = nullptr;
  std::vector<ValueId> captures;
};

class Cursor {
 public:
  explicit Cursor(std::string_view line) : line_(line) {}

  bool at_end() {
    skip_spaces();
    return at_ == line_.size();
  }
  bool accept(std::string_view text) {
    skip_spaces();
    if (line_.substr(at_, text.size()) != text) return false;
    at_ += text.size();
    return true;
  }
  void expect(std::string_view text) {
    if (!accept(text)) error("expected '" + std::string(text) + "'");
  }
  bool sees(char c) {
    skip_spaces();
    return at_ < line_.size() && line_[at_] == c;
  }
  // Letters, digits and what else occurs in names and numbers.
  std::string word() {
    skip_spaces();
    const std::size_t start = at_;
    while (at_ < line_.size() &&
           (std::isalnum(static_cast<unsigned char>(line_[at_])) != 0 || std::string_view("_.:/+-?").find(line_[at_]) < 7)) {
      ++at_;
    }
    // "x:" is a name and a colon.
    while (at_ > start && line_[at_ - 1] == ':') --at_;
    if (at_ == start) error("expected a word");
    return std::string(line_.substr(start, at_ - start));
  }
  std::string quoted() {
    expect("\"");
    std::string out;
    while (at_ < line_.size() && line_[at_] != '"') {
      if (line_.substr(at_, 2) == "\\x" && at_ + 4 <= line_.size()) {
        out += static_cast<char>(std::stoi(std::string(line_.substr(at_ + 2, 2)), nullptr, 16));
        at_ += 4;
      } else {
        out += line_[at_++];
      }
    }
    expect("\"");
    return out;
  }
  [[noreturn]] void error(const std::string& why) const {
    fail(ErrorCode::invalid_argument, "{} at '{}' of: {}", why, line_.substr(at_), line_);
  }

 private:
  void skip_spaces() {
    while (at_ < line_.size() && line_[at_] == ' ') ++at_;
  }
  std::string_view line_;
  std::size_t at_ = 0;
};

bool is_number(const std::string& text) {
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return end != text.c_str() && *end == '\0';
}

Type parse_type(Cursor& c) {
  for (const bool sequence : {true, false}) {
    if (!c.accept(sequence ? "sequence(" : "optional(")) continue;
    Type element = parse_type(c);
    c.expect(")");
    return sequence ? Type::sequence(std::move(element)) : Type::optional(std::move(element));
  }
  const std::string elem = c.word();
  Type type = Type::tensor(parse_data_type(elem));
  if (type.elem == DataType::undefined) c.error("no element type '" + elem + "'");
  if (!c.accept("[")) return type;
  type.shape.emplace();
  while (!c.accept("]")) {
    const std::string dim = c.word();
    if (dim == "?") {
      type.shape->push_back(Dim::unknown());
    } else {
      type.shape->push_back(is_number(dim) ? Dim(std::stoll(dim)) : Dim::symbol(dim));
    }
    c.accept(",");
  }
  return type;
}

// The elements up to the end of the line or ')'.
Tensor parse_tensor(Cursor& c, const Type& type) {
  if (!type.has_static_shape()) c.error("a constant needs a fixed shape");
  Tensor out(type.elem, to_shape(*type.shape));
  std::int64_t count = 0;
  for (; !c.at_end() && !c.sees(')'); ++count) {
    if (count >= out.size()) c.error("too many elements");
    if (type.elem == DataType::string) {
      out.mutable_values<std::string>()[static_cast<std::size_t>(count)] = c.quoted();
      continue;
    }
    const std::string text = c.word();
    if (type.elem == DataType::uint64) {
      out.mutable_values<std::uint64_t>()[static_cast<std::size_t>(count)] = std::stoull(text);
    } else if (is_integer(type.elem)) {
      set_element_int(out, count, std::stoll(text));
    } else {
      set_element(out, count, text == "true" ? 1.0 : text == "false" ? 0.0 : std::stod(text));
    }
  }
  if (count != out.size() && count != 1) c.error("too few elements");
  for (; count < out.size(); ++count) set_element(out, count, element_as_double(out, 0));
  return out;
}

AttributeValue parse_attribute(Cursor& c) {
  if (c.sees('"')) return c.quoted();
  if (!c.accept("[")) {
    const std::string text = c.word();
    if (!is_number(text)) {
      Cursor again(text);
      Type type = parse_type(again);
      type.shape.emplace();
      if (c.accept("[")) {
        while (!c.accept("]")) {
          type.shape->push_back(Dim(std::stoll(c.word())));
          c.accept(",");
        }
      }
      c.expect("(");
      Tensor t = parse_tensor(c, type);
      c.expect(")");
      return t;
    }
    if (text.find_first_of(".einf") == std::string::npos) return std::int64_t{std::stoll(text)};
    return std::stof(text);
  }
  std::vector<std::int64_t> ints;
  std::vector<float> floats;
  std::vector<std::string> strings;
  while (!c.accept("]")) {
    if (c.sees('"')) {
      strings.push_back(c.quoted());
    } else {
      const std::string text = c.word();
      floats.push_back(std::stof(text));
      if (text.find_first_of(".einf") == std::string::npos) ints.push_back(std::stoll(text));
    }
    c.accept(",");
  }
  if (!strings.empty()) return strings;
  if (ints.size() == floats.size()) return ints;
  return floats;
}

// Where a comment starts: the first '#' that is not in quotes.
std::size_t comment_of(std::string_view line) {
  bool in_quotes = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') in_quotes = !in_quotes;
    if (line[i] == '#' && !in_quotes) return i;
  }
  return std::string_view::npos;
}

class Parser {
 public:
  explicit Parser(std::string_view text) {
    for (std::size_t start = 0; start < text.size();) {
      const std::size_t end = std::min(text.find('\n', start), text.size());
      std::string_view line = text.substr(start, end - start);
      line = line.substr(0, comment_of(line));
      while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.remove_suffix(1);
      if (!line.empty()) lines_.emplace_back(line);
      start = end + 1;
    }
  }

  Model parse() {
    model_.ir_version = 10;
    model_.opsets = {{"", 20}};
    model_.graph.name = "test";
    Scope scope{&model_.graph, nullptr, {}};
    parse_graph(scope, false);
    return std::move(model_);
  }

 private:
  void parse_graph(Scope& scope, bool nested) {
    while (at_ < lines_.size()) {
      Cursor c(lines_[at_++]);
      if (nested && c.accept("}")) return;
      if (c.accept("input ")) {
        parse_input(c, scope);
      } else if (c.accept("constant ")) {
        const std::string name = c.word();
        c.expect(":");
        const Type type = parse_type(c);
        scope.graph->add_constant(name, parse_tensor(c, type));
      } else if (c.accept("output ")) {
        parse_output(c, scope);
      } else if (c.accept("opset ")) {
        const std::string first = c.word();
        const bool plain = c.at_end();
        model_.opsets[plain ? "" : first] = std::stoi(plain ? first : c.word());
      } else {
        parse_node(c, scope);
      }
      if (!c.at_end()) c.error("left over");
    }
    if (nested) fail(ErrorCode::invalid_argument, "a subgraph without '}}'");
  }

  static void parse_input(Cursor& c, Scope& scope) {
    const std::string name = c.word();
    c.expect(":");
    const Type type = parse_type(c);
    const ValueId id = scope.graph->add_input(name, type);
    scope.graph->value(id).declared = type;
    if (c.accept("=")) scope.graph->value(id).constant = parse_tensor(c, type);
  }

  void parse_output(Cursor& c, Scope& scope) {
    const std::string name = c.word();
    const ValueId id = find(scope, name, c);
    if (c.accept(":")) {
      const Type type = parse_type(c);
      scope.graph->value(id).declared = type;
      if (scope.graph->value(id).producer != kNoNode) scope.graph->value(id).type = type;
    }
    scope.graph->add_output(id, c.accept("as ") ? c.word() : std::string());
  }

  void parse_node(Cursor& c, Scope& scope) {
    Node node;
    std::vector<std::string> outputs;
    do outputs.push_back(c.word());
    while (c.accept(","));
    c.expect("=");
    node.op_type = c.word();
    if (const std::size_t dot = node.op_type.rfind('.'); dot != std::string::npos) {
      node.domain = node.op_type.substr(0, dot);
      node.op_type = node.op_type.substr(dot + 1);
    }
    node.version = model_.opsets.try_emplace(node.domain, node.domain == "ai.onnx.ml" ? 3 : 1).first->second;
    c.expect("(");
    while (!c.accept(")")) {
      const std::string name = c.word();
      node.inputs.push_back(name == "_" ? kNoValue : find(scope, name, c));
      c.accept(",");
    }
    if (c.accept("{")) {
      while (!c.accept("}")) {
        const std::string name = c.word();
        c.expect("=");
        node.attributes.set(name, parse_attribute(c));
        c.accept(",");
      }
    }
    while (at_ < lines_.size() && lines_[at_].ends_with("{")) node.subgraphs.push_back(parse_subgraph(scope));
    for (const std::string& name : outputs) node.outputs.push_back(name == "_" ? kNoValue : scope.graph->add_value(name));
    scope.graph->add_node(std::move(node));
  }

  Subgraph parse_subgraph(Scope& outer) {
    Cursor c(lines_[at_++]);
    Subgraph s;
    s.attribute = c.word();
    s.graph = std::make_unique<Graph>();
    s.graph->name = s.attribute;
    Scope scope{s.graph.get(), &outer, {}};
    parse_graph(scope, true);
    s.captures = std::move(scope.captures);
    return s;
  }

  ValueId find(Scope& scope, const std::string& name, const Cursor& c) {
    if (const auto id = scope.graph->find(name)) return *id;
    if (scope.outer == nullptr) c.error("no value '" + name + "'");
    const ValueId outside = find(*scope.outer, name, c);
    scope.captures.push_back(outside);
    return scope.graph->add_input(name, scope.outer->graph->value(outside).type);
  }

  Model model_;
  std::vector<std::string> lines_;
  std::size_t at_ = 0;
};

}  // namespace

Model parse_model(std::string_view text) {
  Model model = Parser(text).parse();
  model.graph.verify();
  return model;
}

std::string model_bytes(std::string_view text) { return write_model(parse_model(text)); }

}  // namespace sdx::testing
