#pragma once
// What transformations have in common: arrays that stand for arguments, and walks from results back to them.

#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include <sdx/array/array.hpp>

#include "array/kind.h"
#include "array/node.h"

namespace sdx::array::detail {

// The same numbers as `a`, of which derivatives are taken. Derivatives of an outer transformation pass through it.
array tracer(const array& a);
std::vector<array> tracers(const std::vector<array>& arrays);
// An argument without numbers: computing it, or what depends on it, fails.
array placeholder(Dtype dtype, Shape shape);

array zeros_of(Dtype dtype, const Shape& shape);
inline array zeros_of(const array& a) { return zeros_of(a.dtype(), a.shape()); }

// Results of one operation.
std::vector<array> results_of(Node& node);
// The same operation on other inputs, with results of the same types and shapes.
std::vector<array> again(const Node& node, std::vector<array> inputs);

// The operations between arguments and results that depend on arguments, producers first. The results keep them alive.
struct Tape {
  std::vector<Node*> order;
  std::unordered_map<const Node*, std::uint32_t> places;  // of operations and arguments; an argument's is its number
  std::size_t arguments = 0;

  bool depends(const array& a) const { return places.count(a.node()) != 0; }
};
// `arguments` were made by tracer() or placeholder() since nothing that is known to depend on them existed. With `stops`,
// stop_gradient() ends the walk.
Tape tape_of(std::span<const array> results, std::span<const array> arguments, bool stops);

// Gradients of the arguments; nothing for those on which no result depends.
std::vector<std::optional<array>> backward(std::span<const array> results, std::span<const array> cotangents,
                                           std::span<const array> arguments);
// Tangents of the results.
std::vector<std::optional<array>> forward(std::span<const array> results, std::span<const array> arguments,
                                          std::span<const array> tangents);

// Whether custom_function() made it.
bool is_custom(const Node& node);
// Its rule of forward derivatives, if `node` is one and has one: tangents of its results.
std::optional<std::vector<array>> custom_jvp(const Node& node, const std::vector<std::optional<array>>& tangents);

// `node` for a batch of inputs; in_axes as in VmapCall.
VmapResult batched(const Node& node, const std::vector<array>& inputs, const std::vector<int>& in_axes, std::int64_t batch);

}  // namespace sdx::array::detail
