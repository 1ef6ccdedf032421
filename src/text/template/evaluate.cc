#include <utility>

#include "text/template/interpreter.h"

namespace sdx::text::jinja {

Value Interpreter::evaluate(const Node& node) {
  step();
  const Deeper deeper(*this);
  switch (node.op) {
    case Op::constant: return node.value;
    case Op::name: return evaluate_name(node);
    case Op::tuple:
    case Op::list: return evaluate_items(node);
    case Op::dict: return evaluate_dict(node);
    case Op::attribute: return get_attribute(*this, evaluate(*node.kids[0]), node.name);
    case Op::item: return evaluate_item(node);
    case Op::slice: type_error("a slice outside of brackets");
    case Op::call: return evaluate_call(node);
    case Op::filter: return evaluate_filter(node, nullptr);
    case Op::test: return evaluate_test(node);
    case Op::condition: return evaluate_condition(node);
    case Op::not_: return Value::boolean(!truthy(*this, evaluate(*node.kids[0])));
    case Op::negative: return negate(*this, evaluate(*node.kids[0]));
    case Op::positive: return plus(*this, evaluate(*node.kids[0]));
    case Op::and_: {
      Value left = evaluate(*node.kids[0]);
      return truthy(*this, left) ? evaluate(*node.kids[1]) : left;
    }
    case Op::or_: {
      Value left = evaluate(*node.kids[0]);
      return truthy(*this, left) ? left : evaluate(*node.kids[1]);
    }
    case Op::compare: return evaluate_compare(node);
    case Op::concatenation: return evaluate_concatenation(node);
    case Op::arithmetic: {
      const Value left = evaluate(*node.kids[0]);
      return binary(*this, node.arithmetic, left, evaluate(*node.kids[1]));
    }
    default: return {};
  }
}

Value Interpreter::evaluate_items(const Node& node) {
  Values items;
  items.reserve(node.kids.size());
  for (const NodePtr& kid : node.kids) items.push_back(evaluate(*kid));
  return node.op == Op::list ? list(std::move(items)) : tuple(std::move(items));
}

Value Interpreter::evaluate_dict(const Node& node) {
  std::vector<std::pair<Value, Value>> items;
  items.reserve(node.kids.size() / 2);
  for (std::size_t i = 0; i < node.kids.size(); i += 2) {
    Value key = evaluate(*node.kids[i]);
    items.emplace_back(std::move(key), evaluate(*node.kids[i + 1]));
  }
  return dict(std::move(items));
}

Value Interpreter::evaluate_item(const Node& node) {
  const Value of = evaluate(*node.kids[0]);
  const Node& key = *node.kids[1];
  if (key.op != Op::slice) return get_item(*this, of, evaluate(key));
  const auto part = [&](const NodePtr& kid) { return kid ? evaluate(*kid) : Value(); };
  const Value start = part(key.kids[0]), stop = part(key.kids[1]), step = part(key.kids[2]);
  return slice(*this, of, start, stop, step);
}

Arguments Interpreter::arguments_of(const Node& node) {
  Arguments arguments;
  arguments.positional.reserve(node.positional.size());
  for (const NodePtr& kid : node.positional) arguments.positional.push_back(evaluate(*kid));
  for (const auto& [name, kid] : node.named) arguments.named.emplace_back(name, evaluate(*kid));
  if (node.more_positional) {
    const Value more = evaluate(*node.more_positional);
    if (!iterable(more)) type_error(std::string("argument after * must be an iterable, not ") + type_name(more));
    for (const Value& item : elements(*this, more)) arguments.positional.push_back(item);
  }
  if (node.more_named) {
    const Value more = evaluate(*node.more_named);
    if (!more.is(Kind::dict)) type_error(std::string("argument after ** must be a mapping, not ") + type_name(more));
    for (const auto& [key, value] : more.dict().items) {
      if (!key.is_string()) type_error("keywords must be strings");
      for (const auto& [name, other] : node.named) {
        if (name == key.text()) type_error("got multiple values for keyword argument '" + name + "'");
      }
      arguments.named.emplace_back(key.text(), value);
    }
  }
  return arguments;
}

Value Interpreter::evaluate_call(const Node& node, const Value* caller) {
  const Value function = evaluate(*node.kids[0]);
  Arguments arguments = arguments_of(node);
  if (caller) {
    for (const auto& [name, value] : arguments.named) {
      if (name == "caller") type_error("got multiple values for keyword argument 'caller'");
    }
    arguments.named.emplace_back("caller", *caller);
  }
  return call(function, std::move(arguments));
}

Value Interpreter::evaluate_filter(const Node& node, const Value* block) {
  const Deeper deeper(*this);
  if (!node.filter) throw PyError(PyError::Type::runtime, "No filter named '" + node.name + "' found.");
  Value value = !node.kids[0]                             ? *block
                : block && node.kids[0]->op == Op::filter ? evaluate_filter(*node.kids[0], block)
                                                          : evaluate(*node.kids[0]);
  Arguments arguments = arguments_of(node);
  return node.filter(*this, value, arguments);
}

Value Interpreter::evaluate_test(const Node& node) {
  if (!node.test) throw PyError(PyError::Type::runtime, "No test named '" + node.name + "' found.");
  const Value value = evaluate(*node.kids[0]);
  Arguments arguments = arguments_of(node);
  return Value::boolean(node.test(*this, value, arguments));
}

Value Interpreter::evaluate_compare(const Node& node) {
  Value left = evaluate(*node.kids[0]);
  for (std::size_t i = 0; i < node.comparisons.size(); i++) {
    Value right = evaluate(*node.kids[i + 1]);
    if (!compare(*this, node.comparisons[i], left, right)) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Value Interpreter::evaluate_concatenation(const Node& node) {
  std::string text;
  for (const NodePtr& kid : node.kids) {
    append_text(*this, text, evaluate(*kid));
    budget.reserve(text.size());
  }
  return str(std::move(text));
}

Value Interpreter::evaluate_condition(const Node& node) {
  if (truthy(*this, evaluate(*node.kids[0]))) return evaluate(*node.kids[1]);
  if (node.kids[2]) return evaluate(*node.kids[2]);
  return undefined("the inline if-expression on line " + std::to_string(node.line) +
                   " evaluated to false and no else section was defined.");
}

Value Interpreter::call_filter(const Value& name, Value value, Arguments arguments) {
  const Filter filter = name.is_string() ? find_filter(name.text()) : nullptr;
  if (!filter) throw PyError(PyError::Type::runtime, "No filter named " + repr(*this, name) + ".");
  return filter(*this, value, arguments);
}

bool Interpreter::call_test(const Value& name, Value value, Arguments arguments) {
  const Test test = name.is_string() ? find_test(name.text()) : nullptr;
  if (!test) throw PyError(PyError::Type::runtime, "No test named " + repr(*this, name) + ".");
  return test(*this, value, arguments);
}

}  // namespace sdx::text::jinja
