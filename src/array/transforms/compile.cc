// compile(): keeps the operations of a function, which become one operation of the graph.

#include <algorithm>
#include <atomic>
#include <list>
#include <mutex>
#include <set>

#include <sdx/array.hpp>

#include "array/emitter.h"
#include "array/ops/common.h"
#include "array/trace.h"
#include "array/transforms/tape.h"

namespace sdx::array {
namespace detail {
namespace {

using Arrays = std::vector<array>;

// The number of traces that one function keeps: those used last.
constexpr std::size_t kMostTraces = 64;

std::atomic<bool> compiling{true};

// One traced function: operations whose inputs are parameters, earlier operations, or constants of one element. Immutable.
struct Recipe {
  Arrays parameters;  // placeholders
  Arrays outputs;     // keep all operations alive
  std::vector<Node*> order;
  std::unordered_map<const Node*, std::uint32_t> places;  // of operations and parameters
};

// Maps each operation to what takes the place of its results.
template <class T, class Make>
std::vector<T> follow(const Recipe& recipe, const std::vector<T>& parameters, const Make& step,
                      const std::function<T(const array&)>& constant) {
  std::vector<std::vector<T>> done(recipe.order.size());
  const auto of = [&](const array& a) -> T {
    const auto place = recipe.places.find(a.node());
    if (place == recipe.places.end()) return constant(a);
    const std::uint32_t at = place->second;
    if (at >= recipe.order.size() || recipe.order[at] != a.node()) return parameters[at];
    return done[at][a.index()];
  };
  for (std::size_t i = 0; i < recipe.order.size(); ++i) {
    const Node& node = *recipe.order[i];
    std::vector<T> inputs;
    inputs.reserve(node.inputs.size());
    for (const array& input : node.inputs) inputs.push_back(of(input));
    done[i] = step(node, std::move(inputs));
  }
  std::vector<T> outputs;
  for (const array& output : recipe.outputs) outputs.push_back(of(output));
  return outputs;
}

const Recipe& recipe_of(const Params& params) { return *static_cast<const Recipe*>(params.held.get()); }

Arrays replayed(const Recipe& recipe, const Arrays& parameters) {
  return follow<array>(recipe, parameters, again, [](const array& a) { return a; });
}

void emit_compiled(Emitter& e) {
  std::vector<ValueId> parameters;
  for (std::size_t i = 0; i < e.num_inputs(); ++i) parameters.push_back(e.in(i));
  const std::vector<ValueId> outputs = follow<ValueId>(
      recipe_of(e.params()), parameters,
      [&](const Node& node, std::vector<ValueId> inputs) { return e.inlined(node, std::move(inputs)); },
      [&](const array& a) { return e.constant(a.tensor()); });
  std::set<ValueId> taken(parameters.begin(), parameters.end());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    e.result(taken.insert(outputs[i]).second ? outputs[i] : e.op("Identity", {outputs[i]}), i);
  }
}

Arrays compiled_vjp(const VjpCall& c) {
  Arrays inputs = c.inputs, arguments;
  for (const std::size_t i : c.wanted) arguments.push_back(inputs[i] = tracer(c.inputs[i]));
  const Arrays outputs = replayed(recipe_of(c.params), inputs);
  const std::vector<std::optional<array>> found = backward(outputs, c.of_outputs, arguments);
  Arrays made;
  for (std::size_t i = 0; i < found.size(); ++i) made.push_back(found[i] ? *found[i] : zeros_of(arguments[i]));
  return made;
}

VmapResult compiled_vmap(const VmapCall& c) {
  const Recipe& recipe = recipe_of(c.params);
  BatchAxes axes;
  for (const int axis : c.in_axes) axes.push_back(axis < 0 ? std::nullopt : std::optional<int>(axis));
  Arrays outputs = vmap([&](const Arrays& args) { return replayed(recipe, args); }, axes)(c.inputs);
  std::vector<int> out_axes(outputs.size(), 0);
  return {std::move(outputs), std::move(out_axes)};
}

const Kind kCompiled{.name = "compiled", .emit = emit_compiled, .vjp = compiled_vjp, .vmap = compiled_vmap};

}  // namespace
}  // namespace detail

namespace {

using detail::refuse;
using Arrays = std::vector<array>;

// The trace of calls with arguments of certain types and shapes.
struct Traced {
  std::vector<std::uint64_t> key;
  std::shared_ptr<const detail::Recipe> recipe;
  Arrays captures;                             // further parameters of the recipe: data that the function uses
  std::vector<std::pair<Dtype, Shape>> types;  // of its results
  std::vector<std::optional<array>> fixed;     // by output of the function: one that does not depend on the arguments
  std::size_t of_function = 0;                 // outputs that are the function's own; the others are state
};

void describe(const Arrays& arrays, std::vector<std::uint64_t>& key) {
  key.push_back(arrays.size());
  for (const array& a : arrays) {
    key.push_back(static_cast<std::uint64_t>(a.dtype()) << 32 | a.shape().size());
    for (const std::int64_t extent : a.shape()) key.push_back(static_cast<std::uint64_t>(extent));
  }
}

// Restores the state when it goes out of scope.
class Restored {
 public:
  Restored(const Capture& capture, Arrays state) : capture_(capture), state_(std::move(state)) {}
  ~Restored() {
    if (capture_.write) capture_.write(state_);
  }
  Restored(const Restored&) = delete;
  Restored& operator=(const Restored&) = delete;

 private:
  const Capture& capture_;
  Arrays state_;
};

Arrays read(const Capture& capture) { return capture.read ? capture.read() : Arrays{}; }

// Calls the function with placeholders: the first `args` are its arguments, the others the state that it reads. Returns its
// results, then the state that it changes.
Arrays call_with_placeholders(const ArraysFunction& fun, const CompileOptions& options, const Arrays& arguments, std::size_t args,
                              Traced& traced) {
  const auto middle = arguments.begin() + static_cast<std::ptrdiff_t>(args);
  const Restored outputs_again(options.outputs, read(options.outputs));
  const Restored inputs_again(options.inputs, read(options.inputs));
  if (options.inputs.write) options.inputs.write({middle, arguments.end()});
  Arrays results = fun({arguments.begin(), middle});
  traced.of_function = results.size();
  for (array& a : read(options.outputs)) results.push_back(std::move(a));
  return results;
}

// Records the operations of a trace. Inputs that do not depend on the arguments are computed, and become constants and further
// parameters.
class Recorder {
 public:
  Recorder(const detail::Tape& tape, const Arrays& arguments, Traced& traced) : traced_(traced) {
    auto recipe = std::make_shared<detail::Recipe>();
    for (const array& a : arguments) add_parameter(*recipe, a);
    find_captures(tape);
    for (detail::Node* node : tape.order) {
      Arrays inputs;
      for (const array& input : node->inputs)
        inputs.push_back(tape.depends(input) ? made_.at(key(input)) : captured(*recipe, input));
      const Arrays results = detail::again(*node, std::move(inputs));
      for (std::uint32_t i = 0; i < results.size(); ++i) made_.emplace(std::pair(node, i), results[i]);
      recipe->places.emplace(results[0].node(), static_cast<std::uint32_t>(recipe->order.size()));
      recipe->order.push_back(results[0].node());
    }
    recipe_ = std::move(recipe);
  }

  void finish(const detail::Tape& tape, const Arrays& results) {
    for (const array& r : results) {
      if (!tape.depends(r)) {
        traced_.fixed.emplace_back(r);
        continue;
      }
      traced_.fixed.emplace_back(std::nullopt);
      recipe_->outputs.push_back(made_.at(key(r)));
      traced_.types.emplace_back(r.dtype(), r.shape());
    }
    traced_.recipe = std::move(recipe_);
  }

 private:
  using Key = std::pair<const detail::Node*, std::uint32_t>;
  static Key key(const array& a) { return {a.node(), a.index()}; }

  array add_parameter(detail::Recipe& recipe, const array& like) {
    array made = detail::placeholder(like.dtype(), like.shape());
    recipe.places.emplace(made.node(), static_cast<std::uint32_t>(recipe.parameters.size()));
    recipe.parameters.push_back(made);
    made_.emplace(key(like), made);
    return made;
  }

  void find_captures(const detail::Tape& tape) const {
    Arrays pending;
    for (const detail::Node* node : tape.order) {
      for (const array& input : node->inputs) {
        if (tape.depends(input)) continue;
        if (detail::tracing() && input.node()->traced != 0 && input.node()->kind != nullptr) {
          refuse("compile", "the function uses an array of an outer transformation beside its arguments: pass it as an argument");
        }
        if (!input.is_evaluated()) pending.push_back(input);
      }
    }
    if (!pending.empty()) eval(pending);
  }

  array captured(detail::Recipe& recipe, const array& a) {
    if (a.size() == 1) return array(a.tensor());
    if (const auto known = made_.find(key(a)); known != made_.end()) return known->second;
    traced_.captures.push_back(a);
    return add_parameter(recipe, a);
  }

  Traced& traced_;
  std::shared_ptr<detail::Recipe> recipe_;
  std::map<Key, array> made_;
};

std::shared_ptr<const Traced> trace(const ArraysFunction& fun, const CompileOptions& options, const Arrays& like,
                                    std::size_t args, std::vector<std::uint64_t> key) {
  auto traced = std::make_shared<Traced>();
  traced->key = std::move(key);
  Arrays arguments, results;
  {
    const detail::TracingScope scope;
    for (const array& a : like) arguments.push_back(detail::placeholder(a.dtype(), a.shape()));
    results = call_with_placeholders(fun, options, arguments, args, *traced);
  }
  const detail::Tape tape = detail::tape_of(results, arguments, false);
  Recorder recorder(tape, arguments, *traced);
  recorder.finish(tape, results);
  return traced;
}

}  // namespace

struct CompiledFunction::State {
  ArraysFunction fun;
  CompileOptions options;
  std::mutex mutex;
  std::list<std::shared_ptr<const Traced>> known;  // used last, first
  std::atomic<std::size_t> traces{0};

  std::shared_ptr<const Traced> find(const std::vector<std::uint64_t>& key) {
    const std::lock_guard lock(mutex);
    for (auto it = known.begin(); it != known.end(); ++it) {
      if ((*it)->key != key) continue;
      known.splice(known.begin(), known, it);
      return known.front();
    }
    return nullptr;
  }

  std::shared_ptr<const Traced> traced(const Arrays& inputs, std::size_t args, std::span<const std::uint64_t> constants) {
    std::vector<std::uint64_t> key(constants.begin(), constants.end());
    describe(inputs, key);
    key.push_back(args);
    if (auto found = find(key)) return found;
    auto made = trace(fun, options, inputs, args, std::move(key));
    ++traces;
    std::list<std::shared_ptr<const Traced>> gone;  // let go of without the lock: it may hold what is the user's own
    {
      const std::lock_guard lock(mutex);
      known.push_front(made);
      if (known.size() > detail::kMostTraces) gone.splice(gone.end(), known, std::prev(known.end()));
    }
    return made;
  }
};

CompiledFunction::CompiledFunction(ArraysFunction fun, CompileOptions options) : state_(std::make_shared<State>()) {
  state_->fun = std::move(fun);
  state_->options = std::move(options);
}

std::vector<array> CompiledFunction::operator()(const std::vector<array>& args, std::span<const std::uint64_t> constants) const {
  if (!detail::compiling.load(std::memory_order_relaxed)) return state_->fun(args);
  Arrays inputs = args;
  for (array& a : read(state_->options.inputs)) inputs.push_back(std::move(a));
  const std::shared_ptr<const Traced> traced = state_->traced(inputs, args.size(), constants);
  inputs.insert(inputs.end(), traced->captures.begin(), traced->captures.end());
  Arrays made;
  if (!traced->types.empty()) {
    detail::Params params;
    params.held = traced->recipe;
    made = detail::make_many(detail::kCompiled, traced->types, std::move(inputs), std::move(params));
  }
  Arrays outputs;
  outputs.reserve(traced->fixed.size());
  auto next = made.begin();
  for (const auto& fixed : traced->fixed) {
    if (fixed) {
      outputs.push_back(*fixed);
    } else {
      outputs.push_back(std::move(*next++));
    }
  }
  const auto own = outputs.begin() + static_cast<std::ptrdiff_t>(traced->of_function);
  if (state_->options.outputs.write) state_->options.outputs.write({own, outputs.end()});
  outputs.erase(own, outputs.end());
  return outputs;
}

std::size_t CompiledFunction::traces() const noexcept { return state_->traces; }

CompiledFunction compile(ArraysFunction fun, CompileOptions options) { return {std::move(fun), std::move(options)}; }

void enable_compile() { detail::compiling = true; }
void disable_compile() { detail::compiling = false; }

}  // namespace sdx::array
