#pragma once
// What is to be computed, in order, and the key by which traces that are alike find one program.

#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "array/node.h"

namespace sdx::array::detail {

// Where an operation's input comes from: a leaf, or a result of an earlier operation of the trace.
struct Source {
  std::uint32_t at = 0;      // number of the leaf or of the operation
  std::uint32_t result = 0;  // of the operation
  bool leaf = false;
};

// A part of a walk that is computed at once, on one stream.
struct Trace {
  std::vector<Node*> order;              // operations, producers first; kept alive by the arrays that are evaluated
  std::vector<Source> sources;           // of all operations' inputs, one operation after the other
  std::vector<array> leaves;             // data, or results of parts before; each once
  std::vector<std::uint32_t> leaf_uses;  // how many inputs of the operations each leaf is
  std::vector<std::pair<std::uint32_t, std::uint32_t>> wanted;  // results that leave: operation, result
  std::vector<std::uint64_t> key;                               // equal for traces that one program computes
  std::shared_ptr<const std::vector<array>> held;               // what is evaluated, where nobody waits for it
  bool keeps = false;      // made within a transformation, whose operations stay known; perhaps another thread computes it
  bool gave_up = false;    // memory of a leaf was written to
  bool ended = false;      // a queued one that was taken from its queue
  std::thread::id thread;  // that computes it
};

// Hash of a key.
std::uint64_t hash_of(std::span<const std::uint64_t> key);

// Whether the program depends on Params::held. What custom functions hold only their derivatives ask, and each call has its own.
bool held_in_key(const Node& node);

// Describes all that the key holds of one operation but its inputs.
void describe(const Node& node, std::vector<std::uint64_t>& key);

// Operations that are not computed yet, producers first. Slots of the nodes are their places in it.
using Walk = std::vector<Node*>;
Walk walk_from(std::span<const array> arrays);

// The trace of these operations of a walk: results that other operations or anybody outside want leave it.
Trace trace_of(std::span<Node* const> operations);

// Whether the node's operation must be put into a trace: not data, not under way.
inline bool is_lazy(const Node& node) {
  const auto state = node.state.load(std::memory_order_acquire);
  return state == Node::State::lazy;
}

}  // namespace sdx::array::detail
