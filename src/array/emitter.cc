#include "array/emitter.h"

#include <algorithm>

#include "array/array_op.h"
#include "base/error.h"

namespace sdx::array::detail {

std::vector<ValueId> Emitter::add(::sdx::Node node, std::size_t outputs, EmittedAttributes attributes) {
  for (auto& a : attributes) node.attributes.set(a.first, std::move(a.second));
  for (std::size_t i = 0; i < outputs; ++i) node.outputs.push_back(graph_.add_value({}));
  std::vector<ValueId> made = node.outputs;
  graph_.add_node(std::move(node));
  return made;
}

std::vector<ValueId> Emitter::foreign(const char* domain, const char* type, std::vector<ValueId> inputs, std::size_t outputs,
                                      EmittedAttributes attributes) {
  ::sdx::Node node;
  node.domain = domain;
  node.op_type = type;
  node.version = *domain == '\0' ? kOpset : 1;
  node.inputs = std::move(inputs);
  return add(std::move(node), outputs, std::move(attributes));
}

std::vector<ValueId> Emitter::op_many(const char* type, std::vector<ValueId> inputs, std::size_t outputs,
                                      EmittedAttributes attributes) {
  return foreign("", type, std::move(inputs), outputs, std::move(attributes));
}

ValueId Emitter::op(const char* type, std::vector<ValueId> inputs, EmittedAttributes attributes) {
  return op_many(type, std::move(inputs), 1, std::move(attributes))[0];
}

ValueId Emitter::op(const char* type, std::initializer_list<ValueId> inputs, EmittedAttributes attributes) {
  return op(type, std::vector<ValueId>(inputs), std::move(attributes));
}

void Emitter::results_of(const ArrayOp& op, std::vector<ValueId> inputs, EmittedAttributes attributes) {
  ::sdx::Node node;
  node.domain = op->def.domain;
  node.op_type = op->def.name;
  node.version = 1;
  node.custom = op;
  node.inputs = std::move(inputs);
  std::vector<Type> types;
  for (std::size_t i = 0; i < num_results(); ++i) types.push_back(Type::tensor(out_dtype(i), to_sym(out_shape(i))));
  attributes.emplace_back(kResultTypes, std::move(types));
  results_ = add(std::move(node), num_results(), std::move(attributes));
}

ValueId Emitter::constant(Tensor tensor) { return graph_.add_constant({}, std::move(tensor)); }

// The same constants come again and again: found here, they need not be found equal by a pass, which looks at the whole graph for
// each.
ValueId Emitter::ints(const std::vector<std::int64_t>& values) {
  const auto [it, fresh] = ints_.try_emplace(values, kNoValue);
  if (fresh) it->second = constant(Tensor::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, values));
  return it->second;
}

ValueId Emitter::cast(ValueId value, Dtype to) { return op("Cast", {value}, {{"to", static_cast<std::int64_t>(to)}}); }

ValueId Emitter::reshape(ValueId value, const Shape& shape) {
  // allowzero: an extent of 0 means none, not "as before".
  return op("Reshape", {value, ints(shape)}, {{"allowzero", std::int64_t{1}}});
}

bool Emitter::swaps_last_two(ValueId value) const {
  const NodeId producer = graph_.value(value).producer;
  if (producer == kNoNode || graph_.node(producer).op_type != "Transpose" || !graph_.node(producer).domain.empty()) return false;
  std::vector<std::int64_t> perm = graph_.node(producer).attributes.get_ints("perm");
  if (perm.size() < 2) return false;
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return std::is_sorted(perm.begin(), perm.end());
}

ValueId Emitter::untransposed(ValueId value) const { return graph_.node(graph_.value(value).producer).inputs[0]; }

const std::vector<ValueId>& Emitter::run(const Node& node, std::vector<ValueId> inputs) {
  node_ = &node;
  inputs_ = std::move(inputs);
  results_.assign(node.results.size(), kNoValue);
  node.kind->emit(*this);
  for (const ValueId v : results_) {
    if (v == kNoValue) fail(ErrorCode::internal, "[{}] did not produce all its results", node.kind->name);
  }
  return results_;
}

}  // namespace sdx::array::detail
