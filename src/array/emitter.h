#pragma once
// From operations to operators: what a kind's emit() sees of its operation, and where it puts its nodes.

#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "array/kind.h"
#include "array/node.h"
#include "graph/graph.h"
#include "ops/custom.h"

namespace sdx::array::detail {

// The version of ai.onnx in which operations are written: what ONNX Runtime, OpenVINO and Core ML's provider all read.
inline constexpr int kOpset = 21;

using EmittedAttributes = std::vector<std::pair<const char*, AttributeValue>>;

// An operator of domain sdx.array, for what ONNX has none for: see array_op.h. `in_place`: the input that output 0 may overwrite,
// or -1.
using ArrayOp = std::shared_ptr<const ops::CustomOp>;
ArrayOp array_op(const char* name, ops::RunFn run, int in_place);

class Emitter {
 public:
  explicit Emitter(Graph& graph) : graph_(graph) {}

  // The operation at hand.
  const Params& params() const { return node_->params; }
  std::size_t num_inputs() const { return node_->inputs.size(); }
  ValueId in(std::size_t i) const { return inputs_[i]; }
  const std::vector<ValueId>& inputs() const { return inputs_; }
  Dtype dtype(std::size_t i) const { return node_->inputs[i].dtype(); }
  const Shape& shape(std::size_t i) const { return node_->inputs[i].shape(); }
  Dtype out_dtype(std::size_t i = 0) const { return node_->results[i].dtype; }
  const Shape& out_shape(std::size_t i = 0) const { return node_->results[i].shape; }
  std::size_t num_results() const { return node_->results.size(); }

  // A node of ai.onnx; kNoValue is an input that is left out.
  ValueId op(const char* type, std::initializer_list<ValueId> inputs, EmittedAttributes attributes = {});
  ValueId op(const char* type, std::vector<ValueId> inputs, EmittedAttributes attributes = {});
  std::vector<ValueId> op_many(const char* type, std::vector<ValueId> inputs, std::size_t outputs,
                               EmittedAttributes attributes = {});
  // Of another domain ("com.microsoft", "sdx"), version 1.
  std::vector<ValueId> foreign(const char* domain, const char* type, std::vector<ValueId> inputs, std::size_t outputs,
                               EmittedAttributes attributes = {});

  ValueId constant(Tensor tensor);
  ValueId ints(const std::vector<std::int64_t>& values);  // int64[n]
  ValueId cast(ValueId value, Dtype to);                  // always a node: for when the type differs
  ValueId reshape(ValueId value, const Shape& shape);

  // Whether the value is a transpose that swaps the last two axes of something; and of what. (Products take either order.)
  bool swaps_last_two(ValueId value) const;
  ValueId untransposed(ValueId value) const;

  void result(ValueId value, std::size_t i = 0) { results_[i] = value; }
  // All results by one operator of arrays, which `kRun` computes.
  template <ops::RunFn kRun>
  void results(const char* name, std::vector<ValueId> inputs, EmittedAttributes attributes = {}) {
    static const ArrayOp& op = *new ArrayOp(array_op(name, kRun, -1));
    results_of(op, std::move(inputs), std::move(attributes));
  }
  // The same; output 0 may overwrite input 0, which `kRun` has it begin with by start_from_input().
  template <ops::RunFn kRun>
  void updated(const char* name, std::vector<ValueId> inputs, EmittedAttributes attributes = {}) {
    static const ArrayOp& op = *new ArrayOp(array_op(name, kRun, 0));
    results_of(op, std::move(inputs), std::move(attributes));
  }

  // The operators of another operation, whose inputs are these values: its results.
  std::vector<ValueId> inlined(const Node& node, std::vector<ValueId> inputs) {
    return Emitter(graph_).run(node, std::move(inputs));
  }

  // For evaluation: runs the node's emit(), with its inputs at these values; returns its results'.
  const std::vector<ValueId>& run(const Node& node, std::vector<ValueId> inputs);

 private:
  std::vector<ValueId> add(::sdx::Node node, std::size_t outputs, EmittedAttributes attributes);
  void results_of(const ArrayOp& op, std::vector<ValueId> inputs, EmittedAttributes attributes);

  Graph& graph_;
  const Node* node_ = nullptr;
  std::vector<ValueId> inputs_, results_;
  std::map<std::vector<std::int64_t>, ValueId> ints_;
};

}  // namespace sdx::array::detail
