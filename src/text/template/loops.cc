// Loops, macros and the variables of both.

#include <utility>

#include "text/template/interpreter.h"

namespace sdx::text::jinja {
namespace {

const Value missing_value(Kind::undefined, nullptr);

bool is_missing(const Value& value) { return value.is_undefined() && !value.pointer(); }

}  // namespace

Activation* Interpreter::new_activation(std::size_t slots, Activation* outer) {
  Activation* activation = nullptr;
  if (free_.empty()) {
    budget.reserve(sizeof(Activation) + slots * sizeof(Value));
    activations_.push_back(std::make_unique<Activation>());
    activation = activations_.back().get();
  } else {
    activation = free_.back();
    free_.pop_back();
  }
  activation->slots.assign(slots, missing_value);
  activation->outer = outer;
  activation->captured = false;
  return activation;
}

void Interpreter::release(Activation* activation) {
  if (activation->captured) {
    const std::size_t bytes = sizeof(Activation) + activation->slots.size() * sizeof(Value);
    budget.live += bytes;  // until the end
    return;
  }
  activation->slots.clear();
  free_.push_back(activation);
}

Value& Interpreter::variable(Slot slot) {
  Activation* activation = frame_;
  for (std::uint16_t i = 0; i < slot.up; i++) activation = activation->outer;
  return activation->slots[slot.index];
}

Value Interpreter::lookup(const std::string& name) const {
  if (const auto found = context_.find(name); found != context_.end()) return found->second;
  if (const auto found = variables.find(name); found != variables.end()) return found->second;
  if (const auto found = globals().find(name); found != globals().end()) return found->second;
  return missing_value;
}

void Interpreter::enter(const std::vector<Load>& loads) {
  step(loads.size());
  for (const Load& load : loads) {
    switch (load.action) {
      case Load::Action::parameter: break;
      case Load::Action::resolve: variable(load.slot) = lookup(load.name); break;
      case Load::Action::alias: variable(load.slot) = variable(load.from); break;
      case Load::Action::undefined: variable(load.slot) = missing_value; break;
    }
  }
}

void Interpreter::leave(const std::vector<Load>& loads) {
  for (const Load& load : loads) variable(load.slot) = missing_value;
}

Value Interpreter::evaluate_name(const Node& node) {
  const Value& value = variable(node.slot);
  return is_missing(value) ? undefined_name(node.name) : value;
}

// ---- Loops

bool Loop::take(Value& item) {
  while (next < items.size()) {
    item = items[next++];
    if (!test_frame || interpreter->passes(*this, item)) return true;
  }
  return false;
}

const std::optional<Value>& Loop::peek() {
  Value item;
  if (!after && take(item)) after = std::move(item);
  return after;
}

bool Loop::advance() {
  Value item;
  if (after) {
    item = std::move(*after);
    after.reset();
  } else if (!take(item)) {
    return false;
  }
  index0++;
  before = std::move(current);
  current = std::move(item);
  return true;
}

Int Loop::count() {
  if (length) return *length;
  if (!test_frame) {
    length = static_cast<Int>(items.size());
    return *length;
  }
  Values rest;
  Value item;
  while (take(item)) rest.push_back(item);
  length = static_cast<Int>(rest.size()) + index0 + 1 + (after ? 1 : 0);
  items = std::move(rest);
  next = 0;
  test_frame = nullptr;
  return *length;
}

bool Interpreter::passes(const Loop& loop, const Value& item) {
  Activation* outer = std::exchange(frame_, loop.test_frame);
  try {
    assign(*loop.node->kids[3], item, false);
    const bool result = truthy(*this, evaluate(*loop.node->kids[2]));
    frame_ = outer;
    return result;
  } catch (...) {
    frame_ = outer;
    throw;
  }
}

std::shared_ptr<Loop> Interpreter::start(const Node& node, const Value& iterable, Activation* outer, Int depth) {
  auto loop = make<Loop>();
  loop->interpreter = this;
  loop->node = &node;
  loop->outer = outer;
  loop->depth0 = depth;
  loop->items = elements(*this, iterable);
  loop->depth = iterable.depth() + 1;
  if (loop->depth > max_nesting) limit_error("values are nested too deeply");
  grow(*loop, loop->items.size() * sizeof(Value));
  if (node.recursive) {
    for (Activation* a = outer; a && !a->captured; a = a->outer) a->captured = true;
  }
  if (node.kids[2]) {
    loop->test_frame = new_activation(node.test_slots, outer);
    Activation* frame = std::exchange(frame_, loop->test_frame);
    enter(node.enter_test);
    frame_ = frame;
  }
  return loop;
}

Interpreter::Flow Interpreter::iterate(const Node& node, Loop& loop, const std::shared_ptr<Loop>& shared) {
  Activation* const test_frame = loop.test_frame;
  bool any = false;
  Flow flow = Flow::next;
  while (loop.advance()) {
    step();
    assign(*node.kids[0], *loop.current, false);
    if (node.extended) variable(node.loop_slot) = Value(Kind::loop, shared);
    enter(node.enter);
    flow = run(node.body);
    if (flow == Flow::break_) break;
    any = any || flow == Flow::next;  // as jinja2: a round that `continue` or `break` cut short does not count
  }
  loop.test_frame = nullptr;
  loop.items.clear();
  loop.next = 0;
  if (test_frame) release(test_frame);
  if (!node.recursive) leave(node.enter);
  if (any) return Flow::next;
  enter(node.enter_other);
  flow = run(node.other);
  if (!node.recursive) leave(node.enter_other);
  return flow;
}

Interpreter::Flow Interpreter::for_loop(const Node& node) {
  const Value iterable = evaluate(*node.kids[1]);
  if (node.recursive) {
    emit(recurse(node, iterable, frame_, 0));
    return Flow::next;
  }
  const std::shared_ptr<Loop> loop = start(node, iterable, frame_, 0);
  return iterate(node, *loop, loop);
}

std::string Interpreter::recurse(const Node& node, const Value& iterable, Activation* outer, Int depth) {
  const Deeper deeper(*this, 10);
  std::string text;
  const std::shared_ptr<Loop> loop = start(node, iterable, outer, depth);
  Activation* frame = std::exchange(frame_, new_activation(node.slots, outer));
  std::string* out = std::exchange(out_, &text);
  const Node* where = where_;
  try {
    iterate(node, *loop, loop);
  } catch (...) {
    out_ = out;
    frame_ = frame;
    throw;
  }
  release(frame_);
  out_ = out;
  frame_ = frame;
  where_ = where;
  return text;
}

namespace {

Value loop_cycle(Runtime&, const Value& self, Arguments& arguments) {
  no_named(arguments, "cycle");
  if (arguments.positional.empty()) type_error("no items for cycling given");
  const Int index = self.object<Loop>().index0, count = static_cast<Int>(arguments.positional.size());
  return arguments.positional[static_cast<std::size_t>(((index % count) + count) % count)];
}

Value loop_changed(Runtime& rt, const Value& self, Arguments& arguments) {
  no_named(arguments, "changed");
  auto& loop = self.object<Loop>();
  Value values = rt.tuple(std::move(arguments.positional));
  if (loop.changed && equal(rt, *loop.changed, values)) return Value::boolean(false);
  if (!loop.changed) loop.interpreter->keep(std::static_pointer_cast<Loop>(self.pointer()));
  loop.changed = std::move(values);
  return Value::boolean(true);
}

}  // namespace

std::optional<Value> loop_attribute(Runtime& rt, const Value& of, std::string_view name) {
  auto& loop = of.object<Loop>();
  if (name == "first") return Value::boolean(loop.index0 == 0);
  if (name == "last") return Value::boolean(!loop.peek());
  if (name == "index0") return Value::integer(loop.index0);
  if (name == "index") return Value::integer(loop.index0 + 1);
  if (name == "length") return Value::integer(loop.count());
  if (name == "revindex0") return Value::integer(loop.count() - loop.index0 - 1);
  if (name == "revindex") return Value::integer(loop.count() - loop.index0);
  if (name == "depth0") return Value::integer(loop.depth0);
  if (name == "depth") return Value::integer(loop.depth0 + 1);
  if (name == "previtem") return loop.index0 > 0 ? *loop.before : rt.undefined("there is no previous item");
  if (name == "nextitem") return loop.peek() ? *loop.peek() : rt.undefined("there is no next item");
  if (name == "cycle") return rt.method("cycle", of, loop_cycle);
  if (name == "changed") return rt.method("changed", of, loop_changed);
  if (name == "__repr__") return rt.str("<LoopContext " + repr_int(loop.index0 + 1) + "/" + repr_int(loop.count()) + ">");
  return std::nullopt;
}

Values loop_elements(Runtime&, const Value&) { type_error("a template may not iterate over 'loop' itself"); }
Int loop_length(Runtime&, const Value& of) { return of.object<Loop>().count(); }

// ---- Macros

std::shared_ptr<Macro> Interpreter::closure(const Node& node) {
  auto macro = make<Macro>();
  macro->node = &node;
  macro->outer = frame_;
  for (Activation* a = frame_; a && !a->captured; a = a->outer) a->captured = true;
  return macro;
}

std::optional<Value> macro_attribute(Runtime& rt, const Value& of, std::string_view name) {
  const Node& node = *of.object<Macro>().node;
  const bool named = node.op == Op::macro;
  if (name == "name") return named ? rt.str(node.name) : Value();
  if (name == "arguments") {
    Values names;
    for (const std::string& parameter : node.parameters) names.push_back(rt.str(parameter));
    return rt.tuple(std::move(names));
  }
  if (name == "caller") return Value::boolean(node.takes_caller);
  if (name == "catch_kwargs") return Value::boolean(node.takes_kwargs);
  if (name == "catch_varargs") return Value::boolean(node.takes_varargs);
  if (name == "explicit_caller") return Value::boolean(node.explicit_caller);
  if (name == "__repr__") {
    std::string quoted;
    append_quoted(quoted, node.name);
    return rt.str("<Macro " + (named ? quoted : "anonymous") + ">");
  }
  return std::nullopt;
}

void Interpreter::bind(const Macro& macro, Arguments& arguments, Activation& frame) {
  const Node& node = *macro.node;
  const auto place = [&](Slot slot) -> Value& { return frame.slots[slot.index]; };
  const auto take = [&](const std::string& name) -> std::optional<Value> {
    for (auto it = arguments.named.begin(); it != arguments.named.end(); ++it) {
      if (it->first != name) continue;
      Value value = std::move(it->second);
      arguments.named.erase(it);
      return value;
    }
    return std::nullopt;
  };
  const std::size_t count = node.parameters.size(), given = std::min(count, arguments.positional.size());
  bool found_caller = given == count && node.explicit_caller;
  for (std::size_t i = 0; i < count; i++) {
    if (i < given) {
      place(node.parameter_slots[i]) = arguments.positional[i];
      continue;
    }
    if (node.parameters[i] == "caller") found_caller = true;
    if (auto value = take(node.parameters[i])) place(node.parameter_slots[i]) = *value;
  }
  if (node.takes_caller && !found_caller) {
    const auto caller = take("caller");
    place(node.caller_slot) = caller && !caller->is_none() ? *caller : undefined("No caller defined");
  }
  const std::string quoted = "macro '" + node.name + "' ";
  if (node.takes_kwargs) {
    std::vector<std::pair<Value, Value>> pairs;
    for (auto& [name, value] : arguments.named) pairs.emplace_back(str(name), value);
    place(node.kwargs_slot) = dict(std::move(pairs));
  } else if (!arguments.named.empty()) {
    type_error(quoted + "takes no keyword argument '" + arguments.named[0].first + "'");
  }
  if (node.takes_varargs) {
    place(node.varargs_slot) =
        tuple(Values(arguments.positional.begin() + static_cast<std::ptrdiff_t>(given), arguments.positional.end()));
  } else if (arguments.positional.size() > count) {
    type_error(quoted + "takes not more than " + std::to_string(count) + " argument(s)");
  }
}

Value Interpreter::call_macro(const Macro& macro, Arguments& arguments) {
  const Deeper deeper(*this, 5);
  const Node& node = *macro.node;
  Activation* activation = new_activation(node.slots, macro.outer);
  Activation* frame = std::exchange(frame_, activation);
  std::string text;
  std::string* out = std::exchange(out_, &text);
  const Node* where = where_;
  try {
    bind(macro, arguments, *activation);
    enter(node.enter);
    const std::size_t first = node.op == Op::macro ? 0 : 1, defaults = node.kids.size() - first;
    for (std::size_t i = 0; i < node.parameters.size(); i++) {
      Value& place = activation->slots[node.parameter_slots[i].index];
      if (!is_missing(place)) continue;
      if (i + defaults < node.parameters.size()) {
        place = undefined("parameter '" + node.parameters[i] + "' was not provided");
      } else {
        Value value = evaluate(*node.kids[first + i + defaults - node.parameters.size()]);
        activation->slots[node.parameter_slots[i].index] = std::move(value);
      }
    }
    run(node.body);
  } catch (...) {
    frame_ = frame;
    out_ = out;
    throw;
  }
  release(activation);
  frame_ = frame;
  out_ = out;
  where_ = where;
  return str(std::move(text));
}

Value Interpreter::call(const Value& function, Arguments arguments) {
  step();
  switch (function.kind()) {
    case Kind::function: {
      const auto& callee = function.object<Function>();
      return callee.call(*this, callee.self, arguments);
    }
    case Kind::macro: return call_macro(function.object<Macro>(), arguments);
    case Kind::loop: {
      const auto& loop = function.object<Loop>();
      const Bound args(arguments, "loop", {"iterable"}, 1);
      if (!loop.node->recursive) type_error("The loop must have the 'recursive' marker to be called recursively.");
      return str(recurse(*loop.node, args[0], loop.outer, loop.depth0 + 1));
    }
    case Kind::joiner: {
      auto& joiner = function.object<Joiner>();
      return std::exchange(joiner.used, true) ? joiner.separator : str("");
    }
    case Kind::undefined: {
      const auto& info = function.object<UndefinedInfo>();
      throw PyError(info.unsafe ? PyError::Type::security : PyError::Type::undefined, info.message());
    }
    default: type_error(std::string("'") + type_name(function) + "' object is not callable");
  }
}

}  // namespace sdx::text::jinja
