#pragma once
// What an operation is: how it becomes operators of a graph, its derivative, and how it is applied to a batch.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <sdx/array/array.hpp>

namespace sdx::array::detail {

class Emitter;
struct Node;
struct Result;

// What tells two operations of one kind apart beside their inputs: axes, bounds, flags. The kind says what is at which place.
// Numbers that users pass as operands are inputs, not params: traces that differ in params are compiled separately.
struct Params {
  std::vector<std::int64_t> ints;
  std::vector<double> reals;
  std::string text;
  // Anything else (a user's function). Compared by address.
  std::shared_ptr<const void> held;
};

// One call of a derivative. `of_outputs` has one array for each result: zeros for results that nothing depends on.
struct VjpCall {
  const std::vector<array>& inputs;
  const std::vector<array>& outputs;
  const std::vector<array>& of_outputs;
  const std::vector<std::size_t>& wanted;  // inputs whose gradient is asked for
  const Params& params;
};

// One call on a batch: in_axes[i] is the axis of input i along which it is batched, or -1.
struct VmapCall {
  const std::vector<array>& inputs;
  const std::vector<int>& in_axes;
  const Params& params;
  std::int64_t batch;
};

struct VmapResult {
  std::vector<array> outputs;
  std::vector<int> out_axes;
};

struct Kind {
  const char* name;  // "add", for messages
  // Adds operators to the graph, and says which of their outputs are the results.
  void (*emit)(Emitter&);
  // Gradients of the wanted inputs, in the order of `wanted`. Null: there is none. The forward derivative is made from it: the
  // gradient is linear in `of_outputs`, and its own gradient with respect to them is the forward derivative.
  std::vector<array> (*vjp)(const VjpCall&) = nullptr;
  // Null: elementwise kinds broadcast; others are applied to one element of the batch after the other.
  VmapResult (*vmap)(const VmapCall&) = nullptr;
  // Each element of the result depends on the same element of the inputs, which broadcast as NumPy's do.
  bool elementwise = false;
  // The result for an input that is data already, where it shares that memory: then no program runs. Null: none.
  Tensor (*view)(const Tensor& input, const Shape& shape) = nullptr;
  // Makes all results, for an input that is data already: for many small ones, where a program costs more than they do
  // (has_many_parts() in evaluate.h). Null: none.
  void (*parts)(const Tensor& input, const Params& params, std::vector<Result>& results) = nullptr;
  // Computed anew each time, never shared (random numbers from a hidden state).
  bool impure = false;
};

}  // namespace sdx::array::detail
