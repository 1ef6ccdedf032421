#pragma once
// Runs one operator's reference kernel without a session; a subgraph is any C++ function.

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ops/context.h"
#include "ops/op.h"

namespace sdx::ops::testing {

class FakeServices : public RunServices {
 public:
  std::function<std::vector<Value>(std::size_t index, std::vector<Value> inputs)> body;
  StopCondition condition;

  std::vector<Value> run_subgraph(const Node&, std::size_t index, std::vector<Value> inputs) override {
    return body(index, std::move(inputs));
  }
  const StopCondition& stop() const override { return condition; }
  std::uint64_t next_seed() override { return 1; }
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

// Empty values are inputs that are left out.
inline std::vector<Value> run_op(const Node& node, const std::vector<Value>& inputs, FakeServices& services) {
  const OpDef* def = find(node);
  if (def == nullptr) fail(ErrorCode::internal, "no operator {}", node.op_type);
  std::vector<const Value*> in;
  for (const Value& v : inputs) in.push_back(v.empty() ? nullptr : &v);
  std::vector<Value> outputs(node.outputs.size());
  std::vector<Value*> out;
  for (Value& v : outputs) out.push_back(&v);
  OpContext context(node, in, out, services);
  def->run(context);
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
