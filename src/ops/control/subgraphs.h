#pragma once
// Shared by If, Loop, Scan, SequenceMap and the decoding loops.

#include <cstddef>
#include <string_view>
#include <vector>

#include "ops/context.h"

namespace sdx::ops {

// Index of the node's graph attribute. Throws Error(invalid_model) when it is missing.
std::size_t subgraph_index(const Node& node, std::string_view attribute);

// Number of inputs and outputs of the subgraph, without captures.
std::size_t formal_inputs(const Node& node, std::size_t index);
std::size_t formal_outputs(const Node& node, std::size_t index);

// Throws Error(invalid_model) naming `op` unless the subgraph has exactly these numbers of inputs and outputs.
void check_signature(const Node& node, std::size_t index, std::size_t inputs, std::size_t outputs);

// The type that inference stored for formal output `i` of the subgraph, with the extents that the model declares where those say
// more.
Type subgraph_output_type(const Node& node, std::size_t index, std::size_t i);
const Type& subgraph_input_type(const Node& node, std::size_t index, std::size_t i);

// An empty tensor [0, item...] for stacked outputs of a body that never ran: unknown extents are 0.
// Throws Error(runtime_failure) when the element type is unknown.
Tensor empty_stack(const Type& item, std::size_t axis = 0);

// The sole element of a boolean or integer tensor. Throws Error(runtime_failure).
bool single_bool(const Tensor& tensor, std::string_view what);
std::int64_t single_int(const Tensor& tensor, std::string_view what);

// The type with every extent (at any depth) turned unknown but the rank kept.
Type without_extents(const Type& type);

// Generalises each type so that it also covers `next`; true when one changed. Throws Error(invalid_model) when a value
// changes its element type.
bool widen(std::vector<Type>& types, const std::vector<Type>& next, const char* what);

// Repeats widen() with `step(types)`, the types after one iteration, until `types` describe every iteration. widen() only
// takes knowledge away, so few rounds are needed; a chain of states that hand one change on per round loses all extents.
template <class Step>
void widen_until_stable(std::vector<Type>& types, const char* what, Step&& step) {
  constexpr int kRounds = 8;
  for (int round = 0; widen(types, step(types), what); ++round) {
    if (round < kRounds) continue;
    for (Type& t : types) {
      if (round == kRounds) {
        t = without_extents(t);
      } else {
        t = t.is_tensor() && round < 4 * kRounds ? Type::tensor(t.elem) : Type{};
      }
    }
  }
}

}  // namespace sdx::ops
