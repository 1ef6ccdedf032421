#pragma once
// A template after parsing. Names were resolved to places (scope.h) before it runs; then it does not change any more.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "text/template/runtime.h"

namespace sdx::text::jinja {

enum class Op : std::uint8_t {
  // expressions
  constant,
  name,
  name_attribute,  // ns.x as a target
  tuple,
  list,
  dict,       // kids: key, value, key, value …
  attribute,  // kids: object
  item,       // kids: object, key
  slice,      // kids: start, stop, step; each may be null
  call,       // kids: function
  filter,     // kids: value; null in a filter block
  test,       // kids: value
  condition,  // kids: test, then, otherwise (may be null)
  not_,
  negative,
  positive,
  and_,
  or_,
  compare,  // kids: first, others
  concatenation,
  arithmetic,
  // statements
  text,
  output,        // kids: what is printed
  if_,           // kids: test; body, other; positional: the elif branches
  for_,          // kids: target, iterable, test (may be null), the target again for the test; body, other
  set,           // kids: target, value
  set_block,     // kids: target, filter (may be null)
  macro,         // arguments and kids (defaults)
  call_block,    // kids: call (null: generation), defaults
  filter_block,  // kids: filter
  with_,         // kids: target, value, target, value …
  break_,
  continue_,
};

// The place of a variable: the number of functions outwards, and the index there.
struct Slot {
  std::uint16_t up = 0, index = 0;
};

// The initial state of a variable in a scope.
struct Load {
  enum class Action : std::uint8_t { parameter, resolve, alias, undefined } action = Action::undefined;
  Slot slot, from;
  std::string name;
};

struct Node;
using NodePtr = std::unique_ptr<Node>;

struct Node {
  Op op;
  std::uint32_t line = 1;
  std::uint32_t at = 0;  // byte of the tag in the source
  std::uint16_t height = 1;
  bool store = false;      // a name that is assigned
  bool parameter = false;  // a name that belongs to its scope alone
  bool recursive = false, extended = false;
  bool soft = false;  // an unknown filter or test is an error only when it is used
  Binary arithmetic = Binary::add;
  std::string name;
  Value value;  // constants and text
  Value key;    // the name as a value
  std::vector<NodePtr> kids, body, other;
  std::vector<NodePtr> positional;
  std::vector<std::pair<std::string, NodePtr>> named;
  NodePtr more_positional, more_named;
  std::vector<Comparison> comparisons;
  std::vector<std::string> parameters;  // macro, call block
  Filter filter = nullptr;
  Test test = nullptr;

  // Set by resolve().
  Slot slot;
  std::vector<Slot> parameter_slots;
  Slot loop_slot, caller_slot, kwargs_slot, varargs_slot;
  bool takes_caller = false, takes_kwargs = false, takes_varargs = false, explicit_caller = false;
  bool top = false;  // assignments are seen by macros, too
  std::vector<Load> enter, enter_other, enter_test;
  std::uint16_t slots = 0, test_slots = 0;  // of functions: macros, call blocks, recursive loops, tests of loops

  explicit Node(Op which) : op(which) {}
};

struct Program {
  std::string name, source;
  std::vector<NodePtr> body;
  std::vector<Load> enter;
  std::uint16_t slots = 0;
};

// Throws PyError(syntax) with the line in front.
Program parse(std::string_view source, const std::string& name);
void resolve(Program& program);

}  // namespace sdx::text::jinja
