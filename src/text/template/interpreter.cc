#include "text/template/interpreter.h"

#include <utility>

namespace sdx::text::jinja {

Interpreter::~Interpreter() {
  // Namespaces and variables may refer to each other, so their contents are released one by one.
  for (auto& space : namespaces_) {
    auto attributes = std::move(space->attributes);
    space->attributes.clear();
  }
  for (auto& loop : loops_) loop->changed.reset();
  for (auto& activation : activations_) activation->slots.clear();
}

std::string Interpreter::render() {
  std::string text;
  out_ = &text;
  frame_ = new_activation(program_.slots, nullptr);
  enter(program_.enter);
  run(program_.body);
  return text;
}

void Interpreter::emit(std::string_view text) {
  work(text.size());
  if (text.size() > max_output_ || out_->size() > max_output_ - text.size()) {
    limit_error("the template writes more than " + std::to_string(max_output_ >> 20) + " MiB");
  }
  out_->append(text);
}

Interpreter::Flow Interpreter::run(const std::vector<NodePtr>& body) {
  const Deeper deeper(*this);
  for (const NodePtr& node : body) {
    const Flow flow = statement(*node);
    if (flow != Flow::next) return flow;
  }
  return Flow::next;
}

Interpreter::Flow Interpreter::statement(const Node& node) {
  step();
  where_ = &node;
  switch (node.op) {
    case Op::output: output(node); return Flow::next;
    case Op::if_: return condition(node);
    case Op::for_: return for_loop(node);
    case Op::set: set(node); return Flow::next;
    case Op::set_block: return set_block(node);
    case Op::macro: define(node); return Flow::next;
    case Op::call_block: call_block(node); return Flow::next;
    case Op::filter_block: return filter_block(node);
    case Op::with_: return with(node);
    case Op::break_: return Flow::break_;
    case Op::continue_: return Flow::continue_;
    default: return Flow::next;
  }
}

void Interpreter::output(const Node& node) {
  for (const NodePtr& kid : node.kids) {
    if (kid->op == Op::text) {
      emit(kid->value.text());
      continue;
    }
    where_ = kid.get();
    const Value value = evaluate(*kid);
    if (value.is_string()) {
      emit(value.text());
    } else {
      emit(to_text(*this, value));
    }
  }
}

Interpreter::Flow Interpreter::condition(const Node& node) {
  if (truthy(*this, evaluate(*node.kids[0]))) return run(node.body);
  for (const NodePtr& other : node.positional) {
    where_ = other->kids[0].get();
    if (truthy(*this, evaluate(*other->kids[0]))) return run(other->body);
  }
  return run(node.other);
}

void Interpreter::check_namespaces(const Node& target) {
  if (target.op == Op::name_attribute && !variable(target.slot).is(Kind::name_space)) {
    throw PyError(PyError::Type::runtime, "cannot assign attribute on non-namespace object");
  }
  for (const NodePtr& kid : target.kids) check_namespaces(*kid);
}

void Interpreter::assign(const Node& target, const Value& value, bool top) {
  if (target.op == Op::name) {
    variable(target.slot) = value;
    if (top) context_[target.name] = value;
    return;
  }
  if (target.op == Op::name_attribute) {
    const Value space = variable(target.slot);
    auto& attributes = space.object<Namespace>().attributes;
    const std::string& name = target.key.text();
    for (auto& [key, held] : attributes) {
      if (key == name) {
        held = value;
        return;
      }
    }
    grow(space.object<Namespace>(), name.size() + sizeof(Value) + sizeof(std::string));
    attributes.emplace_back(name, value);
    return;
  }
  if (!iterable(value)) type_error(std::string("cannot unpack non-iterable ") + type_name(value) + " object");
  const Values items = elements(*this, value);
  if (items.size() < target.kids.size()) {
    value_error("not enough values to unpack (expected " + std::to_string(target.kids.size()) + ", got " +
                std::to_string(items.size()) + ")");
  }
  if (items.size() > target.kids.size())
    value_error("too many values to unpack (expected " + std::to_string(target.kids.size()) + ")");
  for (std::size_t i = 0; i < items.size(); i++) assign(*target.kids[i], items[i], top);
}

void Interpreter::set(const Node& node) {
  check_namespaces(*node.kids[0]);
  assign(*node.kids[0], evaluate(*node.kids[1]), node.top);
}

std::string Interpreter::capture(const std::vector<NodePtr>& body, Flow& flow) {
  std::string text;
  std::string* outer = std::exchange(out_, &text);
  try {
    flow = run(body);
  } catch (...) {
    out_ = outer;
    throw;
  }
  out_ = outer;
  return text;
}

Interpreter::Flow Interpreter::set_block(const Node& node) {
  enter(node.enter);
  Flow flow = Flow::next;
  Value text = str(capture(node.body, flow));
  if (flow != Flow::next) return flow;
  if (node.kids[1]) text = evaluate_filter(*node.kids[1], &text);
  check_namespaces(*node.kids[0]);
  assign(*node.kids[0], text, node.top);
  leave(node.enter);
  return flow;
}

Interpreter::Flow Interpreter::filter_block(const Node& node) {
  enter(node.enter);
  Flow flow = Flow::next;
  const Value text = str(capture(node.body, flow));
  if (flow != Flow::next) return flow;
  emit(to_text(*this, evaluate_filter(*node.kids[0], &text)));
  leave(node.enter);
  return flow;
}

Interpreter::Flow Interpreter::with(const Node& node) {
  enter(node.enter);
  for (std::size_t i = 0; i < node.kids.size(); i += 2) assign(*node.kids[i], evaluate(*node.kids[i + 1]), false);
  const Flow flow = run(node.body);
  leave(node.enter);
  return flow;
}

void Interpreter::define(const Node& node) {
  const Value macro(Kind::macro, closure(node));
  variable(node.slot) = macro;
  if (node.top) context_[node.name] = macro;
}

void Interpreter::call_block(const Node& node) {
  const Value caller(Kind::macro, closure(node));
  if (!node.kids[0]) return emit(to_text(*this, call(caller, {})));
  emit(to_text(*this, evaluate_call(*node.kids[0], &caller)));
}

std::shared_ptr<Namespace> Interpreter::make_namespace() {
  auto space = make<Namespace>();
  namespaces_.push_back(space);
  return space;
}

}  // namespace sdx::text::jinja
