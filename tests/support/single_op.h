#pragma once
// One operator on its own, for unit tests: run_op() runs a node's reference kernel on any values; a subgraph is a C++ function.
// SingleOp makes the node, and works on tensors; SingleOp::checked() also compares what inference says.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ops/context.h"
#include "ops/op.h"

namespace sdx::ops::testing {

class FakeServices : public RunServices {
 public:
  std::function<std::vector<Value>(std::size_t index, std::vector<Value> inputs)> body;
  StopCondition condition;

  std::vector<Value> run_subgraph(const Node&, std::size_t index, std::vector<Value> inputs) override {
    if (!body) fail(ErrorCode::internal, "no body is given");
    return body(index, std::move(inputs));
  }
  const StopCondition& stop() const override { return condition; }
  std::uint64_t next_seed() override { return ++seed_; }

 private:
  std::uint64_t seed_ = 0;
};

inline Node make_node(std::string domain, std::string op, int version, std::size_t inputs, std::size_t outputs) {
  Node n;
  n.domain = std::move(domain);
  n.op_type = std::move(op);
  n.version = version;
  for (std::size_t i = 0; i < inputs; ++i) n.inputs.push_back(static_cast<ValueId>(i));
  for (std::size_t i = 0; i < outputs; ++i) n.outputs.push_back(static_cast<ValueId>(inputs + i));
  return n;
}

// Adds a subgraph that only has a signature: so many inputs and outputs of these types.
inline void add_signature(Node& node, std::string attribute, const std::vector<Type>& inputs, const std::vector<Type>& outputs) {
  Subgraph s;
  s.attribute = std::move(attribute);
  s.graph = std::make_unique<Graph>();
  for (const Type& t : inputs) {
    const ValueId v = s.graph->add_input("in", t);
    s.graph->value(v).declared = t;
  }
  for (const Type& t : outputs) s.graph->add_output(s.graph->add_value("out", t));
  node.subgraphs.push_back(std::move(s));
}

inline const OpDef& definition_of(const Node& node) {
  const OpDef* def = find(node);
  if (def == nullptr) fail(ErrorCode::internal, "no operator {}", node.op_type);
  return *def;
}

// Empty values, and undefined tensors, are inputs that are left out.
inline std::vector<Value> run_op(const Node& node, const std::vector<Value>& inputs, FakeServices& services) {
  std::vector<const Value*> in;
  for (const Value& v : inputs) in.push_back(v.empty() || (v.is_tensor() && !v.tensor().defined()) ? nullptr : &v);
  std::vector<Value> outputs(node.outputs.size());
  std::vector<Value*> out;
  for (Value& v : outputs) out.push_back(&v);
  OpContext context(node, in, out, services);
  definition_of(node).run(context);
  return outputs;
}

inline std::vector<Value> run_op(const Node& node, const std::vector<Value>& inputs) {
  FakeServices services;
  return run_op(node, inputs, services);
}

template <class T>
std::vector<T> elements(const Value& value) {
  const auto span = value.tensor().values<T>();
  return {span.begin(), span.end()};
}

}  // namespace sdx::ops::testing

namespace sdx::ops {

class SingleOp {
 public:
  SingleOp(std::string op, int version, std::string domain = "")
      : node_(testing::make_node(std::move(domain), std::move(op), version, 0, 0)) {}
  SingleOp& with(std::string attribute, AttributeValue value) {
    node_.attributes.set(std::move(attribute), std::move(value));
    return *this;
  }

  // Undefined tensors are inputs left out.
  std::vector<Tensor> run_all(const std::vector<Tensor>& inputs, std::size_t outputs) {
    shape_node(inputs.size(), outputs);
    std::vector<Tensor> result;
    for (const Value& v : testing::run_op(node_, {inputs.begin(), inputs.end()})) result.push_back(v.tensor());
    return result;
  }
  Tensor run(const std::vector<Tensor>& inputs) { return run_all(inputs, 1)[0]; }

  // run_all() after inference on the inputs' shapes and values, which must say the same of every output.
  std::vector<Tensor> checked(const std::vector<Tensor>& inputs, std::size_t outputs = 1) {
    shape_node(inputs.size(), outputs);
    const std::vector<Type> inferred = infer_concrete(inputs);
    std::vector<Tensor> tensors = run_all(inputs, outputs);
    for (std::size_t i = 0; i < outputs; ++i) {
      const std::string what = node_.op_type + " output " + std::to_string(i);
      EXPECT_EQ(inferred[i].elem, tensors[i].dtype()) << what;
      const bool known = inferred[i].has_static_shape();
      EXPECT_TRUE(known) << what << " is " << inferred[i].str();
      if (!known) continue;
      EXPECT_EQ(to_shape(*inferred[i].shape), tensors[i].shape()) << what;
    }
    return tensors;
  }

  // What inference says of output 0; `sym` (optional) receives its elements.
  Type infer(const std::vector<Type>& types, const std::vector<const std::vector<Dim>*>& syms = {},
             std::vector<Dim>* sym = nullptr) {
    shape_node(types.size(), 1);
    InferContext context(node_, nullptr);
    for (std::size_t i = 0; i < types.size(); ++i) {
      context.inputs.push_back({&types[i], nullptr, i < syms.size() ? syms[i] : nullptr});
    }
    infer_in(context);
    if (sym != nullptr && context.output_syms[0]) *sym = *context.output_syms[0];
    return context.outputs[0];
  }

 private:
  std::vector<Type> infer_concrete(const std::vector<Tensor>& inputs) const {
    InferContext context(node_, nullptr);
    std::vector<Type> types;
    for (const Tensor& t : inputs) types.push_back(Type::tensor(t.dtype(), to_sym(t.shape())));
    std::vector<std::vector<Dim>> syms(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      InferContext::Input input;
      if (inputs[i].defined()) {
        input.type = &types[i];
        input.value = &inputs[i];
        if (inputs[i].dtype() == DataType::int64 && inputs[i].rank() <= 1) {
          for (const std::int64_t v : inputs[i].values<std::int64_t>()) syms[i].emplace_back(v);
          input.sym = &syms[i];
        }
      }
      context.inputs.push_back(input);
    }
    infer_in(context);
    return context.outputs;
  }
  void infer_in(InferContext& context) const {
    context.outputs.resize(node_.outputs.size());
    context.output_syms.resize(node_.outputs.size());
    testing::definition_of(node_).infer(context);
  }
  void shape_node(std::size_t inputs, std::size_t outputs) {
    node_.inputs.assign(inputs, 0);
    node_.outputs.assign(outputs, 0);
  }

  Node node_;
};

// 0, 1, 2, … scaled.
inline Tensor ramp(Shape shape, float step = 1.0F, float first = 0.0F) {
  Tensor t(DataType::float32, std::move(shape));
  float v = first;
  for (float& x : t.mutable_values<float>()) {
    x = v;
    v += step;
  }
  return t;
}

inline void expect_floats(const Tensor& t, const std::vector<float>& expected, float tolerance = 1e-5F) {
  ASSERT_EQ(t.size(), static_cast<std::int64_t>(expected.size()));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(t.values<float>()[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << "element " << i;
  }
}

}  // namespace sdx::ops
