// Derivatives along a tape: gradients from its end to its beginning, tangents in the other direction.

#include <algorithm>

#include <sdx/array.hpp>

#include "array/ops/common.h"
#include "array/transforms/tape.h"

namespace sdx::array::detail {
namespace {

using Maybe = std::optional<array>;

// Keeps what is known of the results of each operation, and of each argument.
class Ledger {
 public:
  explicit Ledger(const Tape& tape) : tape_(tape), of_arguments_(tape.arguments), of_steps_(tape.order.size()) {
    for (std::size_t i = 0; i < tape.order.size(); ++i) of_steps_[i].resize(tape.order[i]->results.size());
  }

  Maybe& at(const array& a) {
    const auto place = tape_.places.find(a.node())->second;
    // An argument is no step of the tape.
    const bool step = place < tape_.order.size() && tape_.order[place] == a.node();
    return step ? of_steps_[place][a.index()] : of_arguments_[place];
  }
  std::vector<Maybe>& step(std::size_t i) { return of_steps_[i]; }
  std::vector<Maybe>& arguments() { return of_arguments_; }

  void accumulate(const array& to, const array& gradient) {
    Maybe& sum = at(to);
    sum = sum ? add(*sum, gradient) : gradient;
  }

 private:
  const Tape& tape_;
  std::vector<Maybe> of_arguments_;
  std::vector<std::vector<Maybe>> of_steps_;
};

bool any_known(const std::vector<Maybe>& list) {
  return std::any_of(list.begin(), list.end(), [](const Maybe& m) { return m.has_value(); });
}

// Refuses operations without a rule, except those whose results are whole numbers or truth values: these do not change with their
// inputs.
void need_rule(const Node& node, const std::vector<Maybe>& known) {
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (known[i] && is_inexact(node.results[i].dtype)) refuse("vjp", "{} has no derivative", node.kind->name);
  }
}

std::vector<array> filled(const Node& node, std::vector<Maybe> known) {
  std::vector<array> all;
  for (std::size_t i = 0; i < known.size(); ++i) {
    all.push_back(known[i] ? std::move(*known[i]) : zeros_of(node.results[i].dtype, node.results[i].shape));
  }
  return all;
}

std::vector<array> gradients(const Node& node, const VjpCall& call) {
  std::vector<array> made = node.kind->vjp(call);
  if (made.size() != call.wanted.size()) {
    fail(ErrorCode::internal, "[vjp] {} gives {} gradients for {} inputs", node.kind->name, made.size(), call.wanted.size());
  }
  return made;
}

bool real(const Node& node) {
  return std::none_of(node.results.begin(), node.results.end(), [](const Result& r) { return is_complex(r.dtype); }) &&
         std::none_of(node.inputs.begin(), node.inputs.end(), [](const array& a) { return is_complex(a.dtype()); });
}

// The gradient of an elementwise operation is its slope times the cotangent. With the tangent in the cotangent's place it is the
// forward derivative.
array elementwise_tangent(Node& node, const std::vector<Maybe>& tangents, const std::vector<std::size_t>& wanted) {
  const std::vector<array> outputs = results_of(node);
  const Result& result = node.results[0];
  std::vector<array> inputs;
  for (const array& input : node.inputs) inputs.push_back(broadcast_to(input, result.shape));
  Maybe sum;
  for (const std::size_t i : wanted) {
    const std::vector<array> cotangent{as_type(broadcast_to(*tangents[i], result.shape), result.dtype)};
    const std::vector<std::size_t> one{i};
    const array part = as_type(gradients(node, {inputs, outputs, cotangent, one, node.params})[0], result.dtype);
    sum = sum ? add(*sum, part) : part;
  }
  return *sum;
}

// The gradient is linear in the cotangents u; its own gradient with respect to u, contracted with the tangents, is the forward
// derivative.
std::vector<Maybe> general_tangents(Node& node, const std::vector<Maybe>& tangents, const std::vector<std::size_t>& wanted) {
  std::vector<array> u;
  for (const Result& r : node.results) u.push_back(tracer(zeros_of(r.dtype, r.shape)));
  const std::vector<array> outputs = results_of(node);
  const std::vector<array> linear = gradients(node, {node.inputs, outputs, u, wanted, node.params});
  std::vector<array> weights;
  for (const std::size_t i : wanted) weights.push_back(*tangents[i]);
  return backward(linear, weights, u);
}

std::vector<Maybe> tangents_of(Node& node, const std::vector<Maybe>& tangents) {
  if (auto custom = custom_jvp(node, tangents)) return {custom->begin(), custom->end()};
  std::vector<std::size_t> wanted;
  for (std::size_t i = 0; i < tangents.size(); ++i) {
    if (tangents[i]) wanted.push_back(i);
  }
  if (node.kind->vjp == nullptr) {
    std::vector<Maybe> known(node.results.size(), tangents[wanted[0]]);
    need_rule(node, known);
    return std::vector<Maybe>(node.results.size());
  }
  const bool simple = node.kind->elementwise && node.results.size() == 1 && real(node);
  if (simple) return {elementwise_tangent(node, tangents, wanted)};
  return general_tangents(node, tangents, wanted);
}

}  // namespace

std::vector<Maybe> backward(std::span<const array> results, std::span<const array> cotangents, std::span<const array> arguments) {
  const Tape tape = tape_of(results, arguments, true);
  Ledger ledger(tape);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (tape.depends(results[i])) ledger.accumulate(results[i], cotangents[i]);
  }
  for (std::size_t step = tape.order.size(); step-- > 0;) {
    Node& node = *tape.order[step];
    std::vector<Maybe> known = std::move(ledger.step(step));
    if (!any_known(known)) continue;
    if (node.kind->vjp == nullptr) {
      need_rule(node, known);
      continue;
    }
    std::vector<std::size_t> wanted;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (tape.depends(node.inputs[i])) wanted.push_back(i);
    }
    const std::vector<array> outputs = results_of(node);
    const std::vector<array> of_outputs = filled(node, std::move(known));
    const std::vector<array> made = gradients(node, {node.inputs, outputs, of_outputs, wanted, node.params});
    for (std::size_t i = 0; i < wanted.size(); ++i) ledger.accumulate(node.inputs[wanted[i]], made[i]);
  }
  return std::move(ledger.arguments());
}

std::vector<Maybe> forward(std::span<const array> results, std::span<const array> arguments, std::span<const array> tangents) {
  const Tape tape = tape_of(results, arguments, true);
  Ledger ledger(tape);
  for (std::size_t i = 0; i < arguments.size(); ++i) ledger.at(arguments[i]) = tangents[i];
  for (std::size_t step = 0; step < tape.order.size(); ++step) {
    Node& node = *tape.order[step];
    std::vector<Maybe> of_inputs;
    for (const array& input : node.inputs) of_inputs.push_back(tape.depends(input) ? ledger.at(input) : std::nullopt);
    if (any_known(of_inputs)) ledger.step(step) = tangents_of(node, of_inputs);
  }
  std::vector<Maybe> out;
  for (const array& result : results) out.push_back(tape.depends(result) ? ledger.at(result) : std::nullopt);
  return out;
}

}  // namespace sdx::array::detail
