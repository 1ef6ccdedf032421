#include "array/transforms/tape.h"

#include <algorithm>
#include <cstring>

#include <sdx/array.hpp>

#include "array/emitter.h"
#include "array/evaluate.h"
#include "array/ops/common.h"

namespace sdx::array {
namespace detail {
namespace {

void emit_identity(Emitter& e) { e.result(e.op("Identity", {e.in(0)})); }
void emit_placeholder(Emitter&) {
  refuse("eval", "a function inside vmap or compile needs the value of an array that depends on its arguments");
}
std::vector<array> pass(const VjpCall& c) { return {c.of_outputs[0]}; }

const Kind kTracer{.name = "argument", .emit = emit_identity, .vjp = pass, .elementwise = true};
const Kind kPlaceholder{.name = "argument", .emit = emit_placeholder};

// Compares names, because other files have kinds that stop as well.
bool is_stop(const Node& node) { return std::strcmp(node.kind->name, "stop_gradient") == 0; }

}  // namespace

array tracer(const array& a) {
  const bool data = a.is_evaluated() && a.node()->traced == 0;
  array made = data ? array(a.tensor()) : make(kTracer, a.dtype(), a.shape(), {a});
  made.node()->traced = next_traced();
  return made;
}

std::vector<array> tracers(const std::vector<array>& arrays) {
  std::vector<array> made;
  made.reserve(arrays.size());
  for (const array& a : arrays) made.push_back(tracer(a));
  return made;
}

array placeholder(Dtype dtype, Shape shape) {
  array made = make(kPlaceholder, dtype, std::move(shape), {});
  made.node()->traced = next_traced();
  return made;
}

array zeros_of(Dtype dtype, const Shape& shape) { return broadcast_to(array(0, dtype), shape); }

std::vector<array> results_of(Node& node) {
  std::vector<array> results;
  results.reserve(node.results.size());
  for (std::uint32_t i = 0; i < node.results.size(); ++i) {
    retain(&node);
    results.emplace_back(&node, i);
  }
  return results;
}

std::vector<array> again(const Node& node, std::vector<array> inputs) {
  if (node.results.size() == 1) {
    const Result& r = node.results[0];
    return {make(*node.kind, r.dtype, r.shape, std::move(inputs), node.params, node.stream)};
  }
  std::vector<std::pair<Dtype, Shape>> types;
  for (const Result& r : node.results) types.emplace_back(r.dtype, r.shape);
  return make_many(*node.kind, std::move(types), std::move(inputs), node.params, node.stream);
}

Tape tape_of(std::span<const array> results, std::span<const array> arguments, bool stops) {
  Tape tape;
  tape.arguments = arguments.size();
  std::uint64_t first = UINT64_MAX;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    tape.places.emplace(arguments[i].node(), static_cast<std::uint32_t>(i));
    first = std::min(first, arguments[i].node()->traced);
  }
  struct Step {
    Node* node;
    std::size_t next;
    bool depends;
  };
  // Other threads may compute nodes that do not depend on the arguments at this moment.
  const auto held = hold_states();
  std::unordered_map<const Node*, bool> seen;  // whether it depends, once that is known
  std::vector<Step> path;
  // Returns whether a node depends on the arguments, or nothing if the walk has to go there first.
  const auto known = [&](Node* node) -> std::optional<bool> {
    if (node->traced < first) return false;
    if (tape.places.count(node) != 0) return true;
    if (node->kind == nullptr || (stops && is_stop(*node))) return false;
    if (const auto it = seen.find(node); it != seen.end()) return it->second;
    path.push_back({node, 0, false});
    return std::nullopt;
  };
  for (const array& result : results) {
    if (known(result.node())) continue;
    while (!path.empty()) {
      Step& step = path.back();
      if (step.next < step.node->inputs.size()) {
        // Stays at this input if the walk has to go there first, and looks again.
        const std::size_t at = step.next;
        if (const auto depends = known(step.node->inputs[at].node())) {
          step.depends = step.depends || *depends;
          ++step.next;
        }
        continue;
      }
      const Step done = step;
      path.pop_back();
      seen.emplace(done.node, done.depends);
      if (!done.depends) continue;
      tape.places.emplace(done.node, static_cast<std::uint32_t>(tape.order.size()));
      tape.order.push_back(done.node);
    }
  }
  return tape;
}

}  // namespace detail

}  // namespace sdx::array
