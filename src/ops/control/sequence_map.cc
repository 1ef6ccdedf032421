// SequenceMap: ai.onnx 17.

#include "ops/control/subgraphs.h"
#include "ops/op.h"

namespace sdx::ops {
namespace {

void infer_sequence_map(InferContext& c) {
  const std::size_t body = subgraph_index(c.node(), "body");
  check_signature(c.node(), body, c.num_inputs(), c.num_outputs());
  std::vector<Type> formals;
  for (std::size_t i = 0; i < c.num_inputs(); ++i) {
    const Type& t = c.type(i);
    if (i == 0 && t.known() && t.kind != Type::Kind::sequence) c.fail("input_sequence must be a sequence, received {}", t.str());
    formals.push_back(t.kind == Type::Kind::sequence ? (t.inner ? *t.inner : Type{}) : t);
  }
  const std::vector<Type> results = c.infer_subgraph(body, formals);
  for (std::size_t i = 0; i < results.size(); ++i) c.output(i, Type::sequence(results[i]));
}

void run_sequence_map(OpContext& c) {
  const std::size_t body = subgraph_index(c.node(), "body");
  check_signature(c.node(), body, c.num_inputs(), c.num_outputs());
  if (!c.input_value(0).is_sequence()) c.fail("input_sequence must be a sequence, received {}", c.input_value(0).type_string());
  const std::size_t length = c.input_value(0).sequence().items.size();
  std::vector<Sequence> outputs(c.num_outputs());
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const Type& t = subgraph_output_type(c.node(), body, k);
    if (t.is_tensor()) outputs[k].element_type = t.elem;
  }
  for (std::size_t i = 0; i < length; ++i) {
    c.stop().check();
    std::vector<Value> formals;
    for (std::size_t k = 0; k < c.num_inputs(); ++k) {
      const Value& v = c.input_value(k);
      if (!v.is_sequence()) {
        formals.push_back(v);
        continue;
      }
      const std::vector<Value>& items = v.sequence().items;
      if (items.size() != length) c.fail("input {} has {} elements; input_sequence has {}", k, items.size(), length);
      formals.push_back(items[i]);
    }
    std::vector<Value> results = c.run_subgraph(body, std::move(formals));
    if (results.size() != outputs.size()) c.fail("the body of SequenceMap gave {} outputs", results.size());
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      if (results[k].is_tensor()) outputs[k].element_type = results[k].tensor().dtype();
      outputs[k].items.push_back(std::move(results[k]));
    }
  }
  for (std::size_t k = 0; k < outputs.size(); ++k) c.set_output(k, std::move(outputs[k]));
}

}  // namespace

void register_sequence_map(OpTable& t) {
  t.add(OpDef("SequenceMap", 17)
            .in("input_sequence", "", types::sequence)
            .in("additional_inputs", "", types::any_tensor | types::sequence, Arity::variadic)
            .out("out_sequence", "", types::sequence, Arity::variadic)
            .attr("body", AttrKind::g, true)
            .infer_with(infer_sequence_map)
            .run_with(run_sequence_map));
}

}  // namespace sdx::ops
