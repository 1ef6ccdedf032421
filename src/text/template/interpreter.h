#pragma once
// Runs a template: interpreter.cc has the statements, loops.cc the loops and calls, evaluate.cc the expressions.

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "text/template/ast.h"
#include "text/template/runtime.h"

namespace sdx::text::jinja {

// The variables of one run of a function.
struct Activation {
  Values slots;
  Activation* outer = nullptr;
  bool captured = false;  // a macro refers to it: it lives until the rendering ends
};

struct Macro : Object {
  const Node* node = nullptr;
  Activation* outer = nullptr;
};

// `loop`, and the items of a loop.
struct Loop : Object {
  class Interpreter* interpreter = nullptr;
  const Node* node = nullptr;
  Activation* outer = nullptr;       // where a recursive loop stands
  Activation* test_frame = nullptr;  // null: no test, or no more
  Values items;
  std::size_t next = 0;
  std::optional<Value> after, before, current, changed;
  std::optional<Int> length;
  Int index0 = -1;
  Int depth0 = 0;

  bool take(Value& item);  // the next one that passes the test
  bool advance();          // to the next one; false at the end
  const std::optional<Value>& peek();
  Int count();
};

using Variables = std::unordered_map<std::string, Value>;

class Interpreter final : public Runtime {
 public:
  Interpreter(const Program& program, std::size_t max_output) : program_(program), max_output_(max_output) {}
  ~Interpreter() override;
  Interpreter(const Interpreter&) = delete;

  // Filled with values that this runtime made, before render().
  Variables variables;

  std::string render();
  // The place of a failure: the tag of the template that was being processed.
  const Node* where() const { return where_; }

  Value call(const Value& function, Arguments arguments) override;
  Value call_filter(const Value& name, Value value, Arguments arguments) override;
  bool call_test(const Value& name, Value value, Arguments arguments) override;
  std::shared_ptr<Namespace> make_namespace() override;
  bool passes(const Loop& loop, const Value& item);
  // The loop may end up owning itself, so it is emptied at the end.
  void keep(std::shared_ptr<Loop> loop) { loops_.push_back(std::move(loop)); }
  std::string recurse(const Node& node, const Value& iterable, Activation* outer, Int depth);

 private:
  enum class Flow { next, break_, continue_ };

  // interpreter.cc
  Flow run(const std::vector<NodePtr>& body);
  Flow statement(const Node& node);
  void output(const Node& node);
  void emit(std::string_view text);
  Flow condition(const Node& node);
  void set(const Node& node);
  Flow set_block(const Node& node);
  Flow filter_block(const Node& node);
  Flow with(const Node& node);
  void define(const Node& node);
  void call_block(const Node& node);
  void check_namespaces(const Node& target);
  void assign(const Node& target, const Value& value, bool top);
  std::string capture(const std::vector<NodePtr>& body, Flow& flow);

  // loops.cc
  Flow for_loop(const Node& node);
  std::shared_ptr<Loop> start(const Node& node, const Value& iterable, Activation* outer, Int depth);
  Flow iterate(const Node& node, Loop& loop, const std::shared_ptr<Loop>& shared);
  Value call_macro(const Macro& macro, Arguments& arguments);
  void bind(const Macro& macro, Arguments& arguments, Activation& frame);
  std::shared_ptr<Macro> closure(const Node& node);
  Activation* new_activation(std::size_t slots, Activation* outer);
  void release(Activation* activation);
  void enter(const std::vector<Load>& loads);
  void leave(const std::vector<Load>& loads);
  Value& variable(Slot slot);
  Value lookup(const std::string& name) const;

  // evaluate.cc
  Value evaluate(const Node& node);
  Value evaluate_name(const Node& node);
  Value evaluate_items(const Node& node);
  Value evaluate_dict(const Node& node);
  Value evaluate_item(const Node& node);
  Value evaluate_call(const Node& node, const Value* caller = nullptr);
  Value evaluate_filter(const Node& node, const Value* block);
  Value evaluate_test(const Node& node);
  Value evaluate_compare(const Node& node);
  Value evaluate_concatenation(const Node& node);
  Value evaluate_condition(const Node& node);
  Arguments arguments_of(const Node& node);

  const Program& program_;
  std::size_t max_output_;
  std::string* out_ = nullptr;
  Activation* frame_ = nullptr;
  const Node* where_ = nullptr;
  Variables context_;  // what the template's own level assigned
  std::vector<std::unique_ptr<Activation>> activations_;
  std::vector<Activation*> free_;
  std::vector<std::shared_ptr<Namespace>> namespaces_;
  std::vector<std::shared_ptr<Loop>> loops_;
};

std::optional<Value> loop_attribute(Runtime& rt, const Value& of, std::string_view name);
std::optional<Value> macro_attribute(Runtime& rt, const Value& of, std::string_view name);
Values loop_elements(Runtime& rt, const Value& of);
Int loop_length(Runtime& rt, const Value& of);

}  // namespace sdx::text::jinja
