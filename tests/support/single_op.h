#pragma once
// One operator on its own, for unit tests.

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ops/context.h"
#include "ops/op.h"

namespace sdx::ops {

class SingleOp {
 public:
  SingleOp(std::string op, int version, std::string domain = "") {
    node_.op_type = std::move(op);
    node_.version = version;
    node_.domain = std::move(domain);
  }
  SingleOp& with(std::string attribute, AttributeValue value) {
    node_.attributes.set(std::move(attribute), std::move(value));
    return *this;
  }
  // Undefined tensors are inputs left out.
  std::vector<Tensor> run_all(const std::vector<Tensor>& inputs, std::size_t outputs) {
    std::vector<Value> in(inputs.begin(), inputs.end());
    std::vector<const Value*> in_ptr;
    for (const Value& v : in) in_ptr.push_back(v.tensor().defined() ? &v : nullptr);
    std::vector<Value> out(outputs);
    std::vector<Value*> out_ptr;
    for (Value& v : out) out_ptr.push_back(&v);
    shape_node(inputs.size(), outputs);
    Services services;
    OpContext context(node_, in_ptr, out_ptr, services);
    def().run(context);
    std::vector<Tensor> result;
    for (const Value& v : out) result.push_back(v.tensor());
    return result;
  }
  Tensor run(const std::vector<Tensor>& inputs) { return run_all(inputs, 1)[0]; }
  // What inference says of output 0; `sym` (optional) receives its elements.
  Type infer(const std::vector<Type>& types, const std::vector<const std::vector<Dim>*>& syms = {},
             std::vector<Dim>* sym = nullptr) {
    shape_node(types.size(), 1);
    InferContext context(node_, nullptr);
    for (std::size_t i = 0; i < types.size(); ++i) {
      context.inputs.push_back({&types[i], nullptr, i < syms.size() ? syms[i] : nullptr});
    }
    context.outputs.resize(1);
    context.output_syms.resize(1);
    def().infer(context);
    if (sym != nullptr && context.output_syms[0]) *sym = *context.output_syms[0];
    return context.outputs[0];
  }

 private:
  struct Services : RunServices {
    std::vector<Value> run_subgraph(const Node&, std::size_t, std::vector<Value>) override {
      fail(ErrorCode::internal, "a single operator has no subgraphs");
    }
    const StopCondition& stop() const override { return condition; }
    std::uint64_t next_seed() override { return ++seed; }
    StopCondition condition;
    std::uint64_t seed = 0;
  };

  const OpDef& def() const {
    const OpDef* d = find(node_);
    if (d == nullptr) fail(ErrorCode::internal, "no operator {}", node_.op_type);
    return *d;
  }
  void shape_node(std::size_t inputs, std::size_t outputs) {
    node_.inputs.assign(inputs, 0);
    node_.outputs.assign(outputs, 0);
  }

  Node node_;
};

}  // namespace sdx::ops
