#pragma once
// What an array's handle points to: an operation that is to be computed, or its results.

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include <sdx/array/array.hpp>

#include "array/kind.h"

namespace sdx::array::detail {

struct Result {
  Dtype dtype = Dtype::undefined;
  Shape shape;
  Tensor tensor;  // once computed; may stay undefined for a result that nobody can ask for
};

// Built by make(); immutable but for `results[i].tensor`, and for `inputs` and `params`, which go when all results are there.
// `state` says which of these may be read: see evaluate.h.
struct Node {
  std::atomic<std::uint32_t> refs{1};
  enum class State : std::uint8_t { lazy, running, done, failed };
  std::atomic<State> state{State::lazy};
  // Within a transformation: the operation stays known although its results are computed, because derivatives follow it. Not 0
  // for what depends on a transformation's arguments: later ones have larger numbers, so that a walk back from results ends
  // where it comes before the arguments.
  std::uint64_t traced = 0;
  // Data that an evaluation made in memory of its own: nobody knows where it lies but by this node.
  bool own_memory = false;
  const Kind* kind = nullptr;  // null: data
  Params params;
  std::vector<array> inputs;
  std::vector<Result> results;
  Stream stream;
  std::uint64_t mark = 0;              // of the evaluation that last walked over it; under the evaluation's lock
  std::uint32_t slot = 0;              // its place in that walk
  std::shared_ptr<const Error> error;  // failed: why
};

// An operation with one result.
array make(const Kind& kind, Dtype dtype, Shape shape, std::vector<array> inputs, Params params = {},
           const StreamOrDevice& stream = {});
// With several, which share the operation.
std::vector<array> make_many(const Kind& kind, std::vector<std::pair<Dtype, Shape>> results, std::vector<array> inputs,
                             Params params = {}, const StreamOrDevice& stream = {});

// The number of the next node that depends on a transformation's arguments.
std::uint64_t next_traced() noexcept;

// Whether the calling thread is within a transformation (grad, vmap, …), whose operations stay known when they are computed.
bool tracing() noexcept;
// Alive while a transformation calls the user's function.
struct TracingScope {
  TracingScope() noexcept;
  ~TracingScope();
  TracingScope(const TracingScope&) = delete;
  TracingScope& operator=(const TracingScope&) = delete;
};

// The stream that an operation's last argument means.
Stream to_stream(const StreamOrDevice& stream);

}  // namespace sdx::array::detail
