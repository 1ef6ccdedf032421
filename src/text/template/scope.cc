// Places of variables. Jinja decides that before a template runs: a name that a block assigns is the block's own there, and
// begins with the value that the block around it has. The rules below are those of jinja2's idtracking.py, as its compiler
// applies them.

#include <map>
#include <set>

#include "text/template/ast.h"
#include "text/template/lexer.h"

namespace sdx::text::jinja {
namespace {

// A unit with variables of its own: the template, macros, recursive loops, the tests of loops.
struct Scope {
  Scope* outer = nullptr;
  std::map<std::pair<int, std::string>, std::uint16_t> slots;

  std::uint16_t slot(int level, const std::string& name, std::uint32_t line) {
    if (slots.size() >= 60000) syntax_error(line, "the template has more than 60000 variables");
    return slots.emplace(std::pair(level, name), static_cast<std::uint16_t>(slots.size())).first->second;
  }
};

struct Symbols {
  Symbols* parent = nullptr;
  const Symbols* base = nullptr;  // of a branch: what was known before it, in the same scope
  Scope* scope = nullptr;
  int level = 0;

  struct Begin {
    Load::Action action = Load::Action::undefined;
    const Symbols* alias = nullptr;
  };
  std::set<std::string> refs, stores;
  std::map<std::string, Begin> loads;

  bool knows(const std::string& name) const {
    for (const Symbols* s = this; s; s = s->base) {
      if (s->refs.count(name)) return true;
    }
    return false;
  }
  bool stored(const std::string& name) const {
    for (const Symbols* s = this; s; s = s->base) {
      if (s->stores.count(name)) return true;
    }
    return false;
  }
  Symbols branch() const {
    Symbols symbols;
    symbols.parent = parent;
    symbols.base = this;
    symbols.scope = scope;
    symbols.level = level;
    return symbols;
  }
  Symbols* find(const std::string& name) {
    for (Symbols* s = this; s; s = s->parent) {
      if (s->knows(name)) return s;
    }
    return nullptr;
  }
  void define(const std::string& name, Begin begin) {
    refs.insert(name);
    loads[name] = begin;
  }
  void store(const std::string& name) {
    stores.insert(name);
    if (knows(name)) return;
    Symbols* outer = parent ? parent->find(name) : nullptr;
    define(name, outer ? Begin{Load::Action::alias, outer} : Begin{Load::Action::undefined, nullptr});
  }
  void parameter(const std::string& name) {
    stores.insert(name);
    define(name, {Load::Action::parameter, nullptr});
  }
  void load(const std::string& name) {
    if (!find(name)) define(name, {Load::Action::resolve, nullptr});
  }
  void join(const std::vector<Symbols>& branches) {
    std::set<std::string> added;
    for (const Symbols& branch : branches) {
      for (const std::string& name : branch.stores) {
        if (!stored(name)) added.insert(name);
      }
    }
    for (const Symbols& branch : branches) {
      refs.insert(branch.refs.begin(), branch.refs.end());
      for (const auto& [name, begin] : branch.loads) loads[name] = begin;
      stores.insert(branch.stores.begin(), branch.stores.end());
    }
    for (const std::string& name : added) {
      Symbols* outer = parent ? parent->find(name) : nullptr;
      loads[name] = outer ? Begin{Load::Action::alias, outer} : Begin{Load::Action::resolve, nullptr};
    }
  }
};

template <class F>
void each_child(Node& node, F&& visit) {
  for (auto* list : {&node.kids, &node.positional}) {
    for (NodePtr& kid : *list) {
      if (kid) visit(*kid);
    }
  }
  for (auto& [name, value] : node.named) visit(*value);
  if (node.more_positional) visit(*node.more_positional);
  if (node.more_named) visit(*node.more_named);
}

// The use of names in a scope's own statements and expressions; inner scopes are handled separately.
void note(Node& node, Symbols& symbols) {
  switch (node.op) {
    case Op::name:
      if (node.parameter) return symbols.parameter(node.name);
      return node.store ? symbols.store(node.name) : symbols.load(node.name);
    case Op::name_attribute: return symbols.load(node.name);
    case Op::if_: {
      note(*node.kids[0], symbols);
      std::vector<Symbols> branches(3, symbols.branch());
      for (NodePtr& kid : node.body) note(*kid, branches[0]);
      for (NodePtr& kid : node.positional) note(*kid, branches[1]);
      for (NodePtr& kid : node.other) note(*kid, branches[2]);
      return symbols.join(branches);
    }
    case Op::macro: return symbols.store(node.name);
    case Op::for_: return note(*node.kids[1], symbols);
    case Op::call_block:
      if (node.kids[0]) note(*node.kids[0], symbols);
      return;
    case Op::set_block: return note(*node.kids[0], symbols);
    case Op::with_:
      for (std::size_t i = 1; i < node.kids.size(); i += 2) note(*node.kids[i], symbols);
      return;
    case Op::set: note(*node.kids[1], symbols); return note(*node.kids[0], symbols);
    default: each_child(node, [&](Node& kid) { note(kid, symbols); });
  }
}

// Finds those of `names` that are read before they are assigned.
struct Undeclared {
  std::set<std::string> names, found;

  void look(Node& node) {
    if (names.empty()) return;
    if (node.op == Op::name) {
      if (!node.store && names.count(node.name)) {
        found.insert(node.name);
      } else {
        names.erase(node.name);
      }
      return;
    }
    for (const std::string& parameter : node.parameters) names.erase(parameter);
    if (node.op == Op::filter_block) look(node.body);
    each_child(node, [this](Node& kid) { look(kid); });
    if (node.op != Op::filter_block) look(node.body);
    look(node.other);
  }
  void look(std::vector<NodePtr>& nodes) {
    for (NodePtr& node : nodes) look(*node);
  }
};

class Resolver {
 public:
  explicit Resolver(Program& program) : program_(program) {}

  void run() {
    Scope scope;
    Symbols root;
    root.scope = &scope;
    for (NodePtr& node : program_.body) note(*node, root);
    block(program_.body, {&root, true, false});
    program_.enter = loads(root);
    program_.slots = static_cast<std::uint16_t>(scope.slots.size());
  }

 private:
  struct Frame {
    Symbols* symbols;
    bool top = false, soft = false;
    int loops = 0;  // of this function

    Frame inner(Symbols& symbols_) const { return {&symbols_, false, false, loops}; }
    Frame softer() const { return {symbols, top, true, loops}; }
  };

  static Symbols below(const Frame& frame, Scope* scope = nullptr) {
    Symbols symbols;
    symbols.parent = frame.symbols;
    symbols.level = frame.symbols->level + 1;
    symbols.scope = scope ? scope : frame.symbols->scope;
    return symbols;
  }

  Slot place(const Symbols& at, const std::string& name, const Symbols& from) const {
    std::uint16_t up = 0;
    for (const Scope* s = from.scope; s != at.scope; s = s->outer) up++;
    return {up, at.scope->slot(at.level, name, line_)};
  }

  std::vector<Load> loads(Symbols& symbols) const {
    std::vector<Load> result;
    for (const auto& [name, begin] : symbols.loads) {
      Load load;
      load.action = begin.action;
      load.name = name;
      load.slot = place(symbols, name, symbols);
      if (begin.alias) load.from = place(*begin.alias, name, symbols);
      result.push_back(std::move(load));
    }
    return result;
  }

  Slot find(const std::string& name, const Frame& frame) {
    Symbols* found = frame.symbols->find(name);
    if (!found) {
      frame.symbols->load(name);
      found = frame.symbols;
    }
    return place(*found, name, *frame.symbols);
  }

  void block(std::vector<NodePtr>& body, const Frame& frame) {
    for (NodePtr& node : body) visit(*node, frame);
  }

  void visit(Node& node, const Frame& frame) {
    line_ = node.line;
    switch (node.op) {
      case Op::name:
      case Op::name_attribute: node.slot = find(node.name, frame); return;
      case Op::filter:
        node.soft = frame.soft;
        if (!node.filter && !frame.soft) syntax_error(node.line, "No filter named '" + node.name + "'.");
        break;
      case Op::test:
        node.soft = frame.soft;
        if (!node.test && !frame.soft) syntax_error(node.line, "No test named '" + node.name + "'.");
        break;
      case Op::condition: return each_child(node, [&](Node& kid) { visit(kid, frame.softer()); });
      case Op::if_:
        each_child(node, [&](Node& kid) { visit(kid, frame.softer()); });
        block(node.body, frame.softer());
        return block(node.other, frame.softer());
      case Op::for_: return for_loop(node, frame);
      case Op::macro:
        function(node, frame);
        node.slot = find(node.name, frame);
        node.top = frame.top;
        return;
      case Op::call_block:
        function(node, frame);
        if (node.kids[0]) visit(*node.kids[0], frame);
        return;
      case Op::set: node.top = frame.top; break;
      case Op::set_block:
      case Op::filter_block: return captured(node, frame);
      case Op::with_: return with(node, frame);
      case Op::break_:
      case Op::continue_:
        if (frame.loops == 0) syntax_error(node.line, "'break' or 'continue' outside of a loop");
        return;
      default: break;
    }
    each_child(node, [&](Node& kid) { visit(kid, frame); });
  }

  void captured(Node& node, const Frame& frame) {
    Symbols symbols = below(frame);
    for (NodePtr& kid : node.body) note(*kid, symbols);
    NodePtr& filter = node.kids.back();
    if (node.op == Op::filter_block) note(*filter, symbols);
    const Frame inner = frame.inner(symbols);
    block(node.body, inner);
    if (filter) visit(*filter, inner);
    if (node.op == Op::set_block) visit(*node.kids[0], frame);
    node.top = frame.top;
    node.enter = loads(symbols);
  }

  void with(Node& node, const Frame& frame) {
    Symbols symbols = below(frame);
    for (std::size_t i = 0; i < node.kids.size(); i += 2) note(*node.kids[i], symbols);
    for (NodePtr& kid : node.body) note(*kid, symbols);
    const Frame inner = frame.inner(symbols);
    for (std::size_t i = 0; i < node.kids.size(); i += 2) {
      visit(*node.kids[i], inner);
      visit(*node.kids[i + 1], frame);
    }
    block(node.body, inner);
    node.enter = loads(symbols);
  }

  static void refuse_loop_target(Node& node) {
    if (node.op == Op::name && node.store && node.name == "loop" && !node.parameter) {
      syntax_error(node.line, "Can't assign to special loop variable in for-loop target");
    }
    each_child(node, refuse_loop_target);
    for (auto* list : {&node.body, &node.other}) {
      for (NodePtr& kid : *list) refuse_loop_target(*kid);
    }
  }

  static void refuse_loop_name(const Node& target) {
    if (target.name == "loop") syntax_error(target.line, "Can't assign to special loop variable in for-loop target");
    for (const NodePtr& kid : target.kids) refuse_loop_name(*kid);
  }

  void for_loop(Node& node, const Frame& frame) {
    Scope recursion, filter;
    recursion.outer = filter.outer = frame.symbols->scope;
    Symbols body = below(frame, node.recursive ? &recursion : nullptr), other = body, test = below(frame, &filter);
    Undeclared loop{{"loop"}, {}};
    loop.look(node.body);
    node.extended = node.recursive || !loop.found.empty();
    if (node.extended) body.parameter("loop");
    refuse_loop_name(*node.kids[0]);
    refuse_loop_target(node);
    note(*node.kids[0], body);
    for (NodePtr& kid : node.body) note(*kid, body);
    for (NodePtr& kid : node.other) note(*kid, other);
    Frame inner = frame.inner(body);
    inner.loops = node.recursive ? 1 : frame.loops + 1;
    visit(*node.kids[0], inner);
    if (node.kids[2]) {
      note(*node.kids[3], test);
      note(*node.kids[2], test);
      const Frame tested = frame.inner(test);
      visit(*node.kids[3], tested);
      visit(*node.kids[2], tested);
      node.enter_test = loads(test);
      node.test_slots = static_cast<std::uint16_t>(filter.slots.size());
    }
    visit(*node.kids[1], frame);
    block(node.body, inner);
    Frame otherwise = frame.inner(other);
    otherwise.loops = node.recursive ? 0 : frame.loops;
    block(node.other, otherwise);
    if (node.extended) node.loop_slot = place(body, "loop", body);
    node.enter = loads(body);
    node.enter_other = loads(other);
    node.slots = static_cast<std::uint16_t>(recursion.slots.size());
  }

  void function(Node& node, const Frame& frame) {
    Scope scope;
    scope.outer = frame.symbols->scope;
    Symbols symbols = below(frame, &scope);
    const std::size_t first = node.op == Op::macro ? 0 : 1, defaults = node.kids.size() - first;
    const auto analyze = [&] {
      for (const std::string& parameter : node.parameters) symbols.parameter(parameter);
      for (std::size_t i = first; i < node.kids.size(); i++) note(*node.kids[i], symbols);
      for (NodePtr& kid : node.body) note(*kid, symbols);
    };
    analyze();
    Undeclared special{{"caller", "kwargs", "varargs"}, {}};
    special.look(node.body);
    std::set<std::string> own(node.parameters.begin(), node.parameters.end());
    node.explicit_caller = own.count("caller") != 0;
    if (special.found.count("caller")) {
      node.takes_caller = true;
      if (!node.explicit_caller) {
        symbols.parameter("caller");
      } else if (caller_needs_default(node, defaults)) {
        syntax_error(
            node.line,
            "When defining macros or call blocks the special \"caller\" argument must be omitted or be given a default.");
      }
    }
    node.takes_kwargs = special.found.count("kwargs") && !own.count("kwargs");
    node.takes_varargs = special.found.count("varargs") && !own.count("varargs");
    if (node.takes_kwargs) symbols.parameter("kwargs");
    if (node.takes_varargs) symbols.parameter("varargs");
    analyze();
    Frame inner = frame.inner(symbols);
    inner.loops = 0;
    for (std::size_t i = first; i < node.kids.size(); i++) visit(*node.kids[i], inner);
    block(node.body, inner);
    node.parameter_slots.clear();
    for (const std::string& parameter : node.parameters) node.parameter_slots.push_back(place(symbols, parameter, symbols));
    if (node.takes_caller && !node.explicit_caller) node.caller_slot = place(symbols, "caller", symbols);
    if (node.takes_kwargs) node.kwargs_slot = place(symbols, "kwargs", symbols);
    if (node.takes_varargs) node.varargs_slot = place(symbols, "varargs", symbols);
    node.enter = loads(symbols);
    node.slots = static_cast<std::uint16_t>(scope.slots.size());
  }

  static bool caller_needs_default(const Node& node, std::size_t defaults) {
    for (std::size_t i = 0; i < node.parameters.size(); i++) {
      if (node.parameters[i] == "caller") return i + defaults < node.parameters.size();
    }
    return false;
  }

  Program& program_;
  mutable std::uint32_t line_ = 1;
};

}  // namespace

void resolve(Program& program) { Resolver(program).run(); }

}  // namespace sdx::text::jinja
