#pragma once
// Nodes that change their inputs in place: they add up gradients and update parameters. They are inserted after all passes,
// which know nothing of them.

#include <span>
#include <vector>

#include "graph/graph.h"
#include "kernels/cpu/optimizer/update.h"

namespace sdx::train {

// A node without results, or with small ones, that writes to inputs of the graph.
struct InPlaceNode {
  Node node;
  std::vector<ValueId> written;
  std::size_t after = SIZE_MAX;  // number in the list of one that must come before
  bool last = false;             // after all other nodes of the graph, in the order of the list
};

// `guard`: a float32 scalar; if it is not finite, nothing is changed. kNoValue: no check.

// buffer += gradient
InPlaceNode accumulate_node(ValueId guard, ValueId gradient, ValueId buffer);

struct UpdateValues {
  ValueId parameter = kNoValue, gradient = kNoValue, m = kNoValue, v = kNoValue;  // m, v: kNoValue where the rule has none
};
// `rule`: uint8[sizeof(cpu::UpdateRule)], the bytes of one. `clip`: above 0, the guard is the norm of all gradients, and they are
// scaled so that it is at most this.
InPlaceNode update_node(ValueId guard, ValueId rule, const std::vector<UpdateValues>& values, float clip);

// norm (float32[1]) as norm_of() gives it; NaN where the guard is not finite.
InPlaceNode norm_node(ValueId guard, const std::vector<ValueId>& gradients, ValueId norm);

// The norm of all gradients together, at most the largest float; NaN where one of their elements is not finite.
float norm_of(std::span<const cpu::FloatSpan> gradients);

// The factor that brings `norm` down to `clip`, as torch's clip_grad_norm_.
float clip_factor(double norm, float clip);

// Gradients whose memory may be an input's become copies: that input may be a parameter, which changes before they are read.
void own_gradients(Graph& graph, std::vector<UpdateValues>& values);

// Inserts each at the first place where its inputs exist and nothing later reads what it overwrites. The nodes are in order.
void insert_in_place(Graph& graph, std::vector<InPlaceNode> nodes);

}  // namespace sdx::train
