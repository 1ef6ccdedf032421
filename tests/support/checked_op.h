#pragma once
// Running one operator in a unit test: inference on the concrete shapes, then the reference kernel; both must agree.

#include <gtest/gtest.h>

#include <vector>

#include "ops/context.h"
#include "ops/op.h"

namespace sdx::ops {

class TestServices : public RunServices {
 public:
  std::vector<Value> run_subgraph(const Node&, std::size_t, std::vector<Value>) override { return {}; }
  const StopCondition& stop() const override { return stop_; }
  std::uint64_t next_seed() override { return 1; }

 private:
  StopCondition stop_;
};

struct TestOp {
  std::string op;
  int version;
  std::string domain;
  Attributes attributes;

  explicit TestOp(std::string name, int opset = 22, std::string op_domain = "")
      : op(std::move(name)), version(opset), domain(std::move(op_domain)) {}

  TestOp& set(std::string name, AttributeValue value) {
    attributes.set(std::move(name), std::move(value));
    return *this;
  }

  // An undefined Tensor is an input that is left out.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs, std::size_t outputs = 1) const {
    Node node;
    node.op_type = op;
    node.domain = domain;
    node.version = version;
    node.attributes = attributes;
    const OpDef* def = table().find(domain, op, version);
    if (def == nullptr) throw Error(ErrorCode::not_implemented, "no operator " + op);
    for (std::size_t i = 0; i < outputs; ++i) node.outputs.push_back(static_cast<ValueId>(i));
    const std::vector<Type> inferred = infer(*def, node, inputs);
    std::vector<Value> values(inputs.begin(), inputs.end());
    std::vector<const Value*> in;
    for (std::size_t i = 0; i < inputs.size(); ++i) in.push_back(inputs[i].defined() ? &values[i] : nullptr);
    std::vector<Value> results(outputs);
    std::vector<Value*> out;
    for (Value& v : results) out.push_back(&v);
    TestServices services;
    OpContext context(node, in, out, services);
    def->run(context);
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < outputs; ++i) {
      tensors.push_back(results[i].tensor());
      EXPECT_EQ(inferred[i].elem, tensors[i].dtype()) << op << " output " << i;
      const bool known = inferred[i].has_static_shape();
      EXPECT_TRUE(known) << op << " output " << i << " is " << inferred[i].str();
      if (!known) continue;
      EXPECT_EQ(to_shape(*inferred[i].shape), tensors[i].shape()) << op << " output " << i;
    }
    return tensors;
  }

 private:
  static std::vector<Type> infer(const OpDef& def, const Node& node, const std::vector<Tensor>& inputs) {
    InferContext c(node, nullptr);
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
      c.inputs.push_back(input);
    }
    c.outputs.resize(node.outputs.size());
    c.output_syms.resize(node.outputs.size());
    def.infer(c);
    return c.outputs;
  }
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
