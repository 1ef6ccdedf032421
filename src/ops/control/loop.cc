// Loop: ai.onnx 1, 11, 13 (sequences), 16 (optionals), 19, 21, 23, 24, 25.

#include <limits>

#include "ops/control/element_types.h"
#include "ops/control/slices.h"
#include "ops/control/subgraphs.h"
#include "ops/last_use.h"
#include "ops/op.h"

namespace sdx::ops {
namespace {

struct Sizes {
  std::size_t body, states, scans;
};

Sizes sizes_of(const Node& node) {
  Sizes s{subgraph_index(node, "body"), node.inputs.size() > 2 ? node.inputs.size() - 2 : 0, 0};
  if (node.outputs.size() < s.states) {
    fail(ErrorCode::invalid_model, "Loop has {} loop-carried values but only {} outputs", s.states, node.outputs.size());
  }
  s.scans = node.outputs.size() - s.states;
  check_signature(node, s.body, 2 + s.states, 1 + s.states + s.scans);
  return s;
}

// The counter and the condition are scalars by the specification, but bodies that declare them as [1] are common.
Shape counter_shape(const Node& node, std::size_t body, std::size_t formal) {
  const Type& t = subgraph_input_type(node, body, formal);
  return t.shape && t.shape->size() == 1 ? Shape{1} : Shape{};
}

// Whether the body certainly runs at least once.
bool surely_runs(const InferContext& c) {
  const Tensor* limit = c.value(0);
  if (c.has_input(0) && (limit == nullptr || limit->size() != 1 || single_int(*limit, "the trip count of Loop") < 1))
    return false;
  const Tensor* condition = c.value(1);
  return !c.has_input(1) || (condition != nullptr && condition->size() == 1 && single_bool(*condition, "the condition of Loop"));
}

void infer_loop(InferContext& c) {
  const Sizes s = sizes_of(c.node());
  std::vector<Type> states;
  for (std::size_t i = 0; i < s.states; ++i) states.push_back(c.type(2 + i));
  std::vector<Type> results;
  widen_until_stable(states, "the loop-carried value", [&](const std::vector<Type>& now) {
    std::vector<Type> formals{Type::tensor(DataType::int64, to_sym(counter_shape(c.node(), s.body, 0))),
                              Type::tensor(DataType::boolean, to_sym(counter_shape(c.node(), s.body, 1)))};
    formals.insert(formals.end(), now.begin(), now.end());
    results = c.infer_subgraph(s.body, formals);
    return std::vector<Type>(results.begin() + 1, results.begin() + 1 + static_cast<std::ptrdiff_t>(s.states));
  });
  for (std::size_t i = 0; i < s.states; ++i) c.output(i, states[i]);
  for (std::size_t i = 0; i < s.scans; ++i) {
    Type item = results[1 + s.states + i];
    if (!item.is_tensor()) continue;
    if (!surely_runs(c)) item = element_of_any_run(c.node(), s.states + i, std::move(item));
    if (!item.shape) {
      c.output(s.states + i, item.elem);
      continue;
    }
    SymShape shape = *item.shape;
    shape.insert(shape.begin(), Dim::unknown());
    c.output(s.states + i, item.elem, std::move(shape));
  }
}

// A Loop without a trip count whose condition never turns false would run for ever. 2^22 iterations take a few seconds with the
// smallest body; programs that need more can state a trip count. INT64_MAX is how exporters write "no trip count".
constexpr std::int64_t kMostUnboundedIterations = std::int64_t{1} << 22;

[[noreturn]] void endless(const OpContext& c) {
  c.fail(
      "the condition is still true after {} iterations, and there is no trip count; correct the condition that the body "
      "gives, or set the trip count (input M) of a loop that should run that long",
      kMostUnboundedIterations);
}

void run_loop(OpContext& c) {
  const Sizes s = sizes_of(c.node());
  std::int64_t limit = std::numeric_limits<std::int64_t>::max();
  if (const Tensor* m = c.optional_input(0)) limit = single_int(*m, "the trip count of Loop");
  bool go_on = true;
  if (const Tensor* cond = c.optional_input(1)) go_on = single_bool(*cond, "the condition of Loop");
  std::vector<Value> states;
  for (std::size_t i = 0; i < s.states; ++i) states.push_back(take_container(c, 2 + i));
  std::vector<SliceCollector> scans(s.scans);
  const Shape counter = counter_shape(c.node(), s.body, 0);
  const Shape condition = counter_shape(c.node(), s.body, 1);
  for (std::int64_t i = 0; go_on && i < limit; ++i) {
    c.stop().check();
    if (i == kMostUnboundedIterations && limit == std::numeric_limits<std::int64_t>::max()) endless(c);
    std::vector<Value> formals;
    formals.reserve(2 + s.states);
    formals.emplace_back(Tensor::of<std::int64_t>(counter, {i}));
    formals.emplace_back(Tensor::of<bool>(condition, {true}));
    for (Value& v : states) formals.push_back(std::move(v));
    std::vector<Value> results = c.run_subgraph(s.body, std::move(formals));
    if (results.size() != 1 + s.states + s.scans) c.fail("the body of Loop gave {} outputs", results.size());
    go_on = single_bool(results[0].tensor(), "the condition that the body of Loop gives");
    for (std::size_t k = 0; k < s.states; ++k) states[k] = std::move(results[1 + k]);
    for (std::size_t k = 0; k < s.scans; ++k) scans[k].append(results[1 + s.states + k].tensor());
  }
  for (std::size_t k = 0; k < s.states; ++k) c.set_output(k, std::move(states[k]));
  for (std::size_t k = 0; k < s.scans; ++k) {
    c.set_output(s.states + k, scans[k].count() > 0
                                   ? scans[k].finish()
                                   : empty_stack(unrun_element(c.node(), s.body, 1 + s.states + k, s.states + k)));
  }
}

}  // namespace

void register_loop(OpTable& t) {
  t.add(OpDef("Loop", 1)
            .in("M", "I", types::int64, Arity::optional)
            .in("cond", "B", types::boolean, Arity::optional)
            .in("v_initial", "", types::anything, Arity::variadic)
            .out("v_final_and_scan_outputs", "", types::anything, Arity::variadic)
            .attr("body", AttrKind::g, true)
            .infer_with(infer_loop)
            .run_with(run_loop));
}

}  // namespace sdx::ops
