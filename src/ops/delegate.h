#pragma once
// Operators that are others with something around them hand the work on.

#include <string>
#include <utility>
#include <vector>

#include "ops/context.h"
#include "ops/op.h"

namespace sdx::ops {

class Delegate {
 public:
  // Throws Error(internal) when there is no such operator.
  Delegate(std::string domain, std::string name, int version, Attributes attributes) {
    node_.domain = std::move(domain);
    node_.op_type = std::move(name);
    node_.version = version;
    node_.attributes = std::move(attributes);
    def_ = find(node_);
    if (def_ == nullptr) fail(ErrorCode::internal, "no operator {}", node_.op_type);
  }

  // Result 0 for these inputs; undefined tensors are left out. Throws what the operator throws.
  Tensor run(OpContext& c, const std::vector<Tensor>& inputs) {
    std::vector<Value> values(inputs.begin(), inputs.end());
    std::vector<const Value*> in;
    for (const Value& v : values) in.push_back(v.tensor().defined() ? &v : nullptr);
    Value result;
    Value* const out[] = {&result};
    shape_node(inputs.size());
    OpContext inner(node_, in, out, c.services());
    def_->run(inner);
    return result.tensor();
  }

  // The inferred type of output 0. Unknown input types (such as those of inputs left out) stay unknown.
  Type infer(const std::vector<Type>& inputs) {
    shape_node(inputs.size());
    InferContext inner(node_, nullptr);
    for (const Type& t : inputs) inner.inputs.push_back({t.known() ? &t : nullptr, nullptr, nullptr});
    inner.outputs.resize(1);
    inner.output_syms.resize(1);
    def_->infer(inner);
    return inner.outputs[0];
  }

 private:
  void shape_node(std::size_t inputs) {
    node_.inputs.assign(inputs, 0);
    node_.outputs.assign(1, 0);
  }

  Node node_;
  const OpDef* def_ = nullptr;
};

}  // namespace sdx::ops
