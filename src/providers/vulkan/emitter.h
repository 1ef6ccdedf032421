#pragma once
// What lowering one node to shaders works with: shapes that are known, operands, and the list of dispatches that it adds to.

#include <bit>
#include <cstring>
#include <optional>
#include <vector>

#include "graph/graph.h"
#include "kernels/vulkan/table.h"
#include "ops/infer.h"

namespace sdx::vulkan {

// Number of an operand of a plan: a ValueId of the graph, or a further number for memory of the plan's own.
using Operand = std::uint32_t;

// Where a command has the address of an operand.
struct Patch {
  std::uint32_t at;  // byte of the push constants
  Operand operand;
  std::uint64_t offset;  // bytes
  bool writes;
};

// One dispatch: parameters are added in the order of the shader's `Push`.
class Dispatch {
 public:
  Dispatch(Shader shader, std::initializer_list<std::uint32_t> constants);

  Dispatch& read(Operand operand, std::uint64_t offset = 0) { return address(operand, offset, false); }
  Dispatch& write(Operand operand, std::uint64_t offset = 0) { return address(operand, offset, true); }
  // An address that the shader does not use, because its constants say so.
  Dispatch& no_address();
  Dispatch& word(std::int64_t value);  // throws Error(not_implemented) where it does not fit 32 bits
  Dispatch& number(float value);

  Command command{};
  std::vector<Patch> patches;

 private:
  Dispatch& address(Operand operand, std::uint64_t offset, bool writes);
  void add(const void* bytes, std::size_t count);
};

class Emitter {
 public:
  Emitter(const Graph& graph, const ops::InferResult& inferred, const DeviceFacts& device);

  const Graph& graph() const { return graph_; }
  bool has(const Node& node, std::size_t input) const { return input < node.inputs.size() && node.inputs[input] != kNoValue; }
  DataType type(ValueId v) const { return inferred_.types[v].elem; }
  // Throws Error(runtime_failure) where it is not known, which only data could decide.
  Shape shape(ValueId v) const;
  std::int64_t size(ValueId v) const { return element_count(shape(v)); }
  std::uint64_t bytes(ValueId v) const;
  // The elements, where the host knows them: constants, and what follows from shapes.
  const Tensor* known(ValueId v) const;
  std::vector<std::int64_t> ints(ValueId v) const;

  // Shaders have no bounds: throws Error(runtime_failure) unless an input that the node has has so many elements.
  void check_size(const Node& node, std::size_t input, std::int64_t wanted) const;

  // `out` has the memory of `in` from byte `offset` on.
  void alias(ValueId out, ValueId in, std::uint64_t offset = 0);
  // Memory that only the node's dispatches use.
  Operand temporary(std::uint64_t bytes);
  // Words that the plan computes and uploads once.
  Operand table(std::vector<std::uint32_t> words);
  // A word that is 0 when the run begins; not 0 at its end makes the run fail with this message.
  Operand status(std::string message);
  // In one dimension, `count` invocations.
  void dispatch(Dispatch d, std::int64_t invocations, std::uint64_t cost_each = 1);
  // In workgroups. Throws Error(not_implemented) for more than the device allows.
  void dispatch_groups(Dispatch d, std::int64_t x, std::int64_t y, std::int64_t z, std::uint64_t cost);
  // Workgroups for rows of which each has `lanes` invocations.
  void dispatch_rows(Dispatch d, std::int64_t rows, std::uint32_t lanes, std::int64_t extent);

  struct Alias {
    Operand of;
    std::uint64_t offset;
  };
  // Memory beside the graph's values.
  struct Extra {
    std::uint64_t bytes;
    std::vector<std::uint32_t> words;  // what it contains; empty: dispatches write it
  };
  struct Status {
    Operand operand;
    std::string message;
  };
  // The results.
  const std::vector<Dispatch>& dispatches() const { return dispatches_; }
  const std::vector<std::optional<Alias>>& aliases() const { return aliases_; }  // by ValueId
  const std::vector<Extra>& extras() const { return extras_; }                   // the first is operand graph.values().size()
  const std::vector<Status>& statuses() const { return statuses_; }

 private:
  const Graph& graph_;
  const ops::InferResult& inferred_;
  const DeviceFacts& device_;
  std::vector<Dispatch> dispatches_;
  std::vector<std::optional<Alias>> aliases_;
  std::vector<Extra> extras_;
  std::vector<Status> statuses_;
};

// Invocations for each row of `extent` elements.
std::uint32_t lanes_for(std::int64_t rows, std::int64_t extent, std::int64_t inner);

}  // namespace sdx::vulkan
