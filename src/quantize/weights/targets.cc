#include "quantize/weights/targets.h"

#include "graph/edit.h"

#include <algorithm>

namespace sdx::quantize {
namespace {

bool is_float(DataType t) { return t == DataType::float32 || t == DataType::float16 || t == DataType::bfloat16; }

// The outer value that a graph input stands for.
const ValueId* captured(const Scope& scope, ValueId value) {
  if (scope.link == nullptr) return nullptr;
  const std::vector<ValueId>& inputs = scope.graph->inputs();
  const std::size_t formals = inputs.size() - scope.link->captures.size();
  const auto at = std::find(inputs.begin() + static_cast<std::ptrdiff_t>(formals), inputs.end(), value);
  return at == inputs.end() ? nullptr : &scope.link->captures[static_cast<std::size_t>(at - inputs.begin()) - formals];
}

// The matrix within [1, .., 1, rows, columns], as {rows, columns}.
bool matrix_shape(const Tensor& t, std::int64_t& rows, std::int64_t& columns) {
  if (t.rank() < 2) return false;
  for (std::size_t i = 0; i + 2 < t.rank(); ++i) {
    if (t.dim(i) != 1) return false;
  }
  rows = t.dim(t.rank() - 2);
  columns = t.dim(t.rank() - 1);
  return rows > 0 && columns > 0;
}

// MatMulNBits gives as many axes as its first operand has, MatMul as many as the operand with more.
bool keeps_rank(const Graph& graph, const Node& node, const Tensor& weight) {
  if (weight.rank() == 2) return true;
  const Type& a = graph.value(node.inputs[0]).type;
  return a.is_tensor() && a.shape && a.shape->size() >= weight.rank();
}

std::string matmul_target(Scope& scope, const Node& node, Target& t) {
  ValueId operand = node.inputs[1];
  t.weight = constant_in(scope, operand);
  const NodeId maker = scope.graph->value(operand).producer;
  if (t.weight.tensor == nullptr && maker != kNoNode && scope.graph->node(maker).op_type == "Transpose") {
    const Node& transpose = scope.graph->node(maker);
    const std::vector<std::int64_t> perm = transpose.attributes.get_ints("perm");
    t.weight = constant_in(scope, transpose.inputs[0]);
    t.transposed = true;
    if (t.weight.tensor == nullptr) return "its weights are not a constant";
    if (t.weight.tensor->rank() != 2 || !(perm.empty() || perm == std::vector<std::int64_t>{1, 0}))
      return "its weights are not a matrix";
  }
  if (t.weight.tensor == nullptr) return "its weights are not a constant";
  std::int64_t rows = 0, columns = 0;
  if (!matrix_shape(*t.weight.tensor, rows, columns)) return "its weights are not a matrix";
  if (!keeps_rank(*scope.graph, node, *t.weight.tensor)) return "its weights have more axes than its input";
  t.k = t.transposed ? columns : rows;
  t.n = t.transposed ? rows : columns;
  return {};
}

std::string gemm_target(Scope& scope, const Node& node, Target& t) {
  const Attributes& a = node.attributes;
  const bool has_bias = node.inputs.size() > 2 && node.inputs[2] != kNoValue;
  if (a.get_int("transA", 0) != 0 || a.get_float("alpha", 1) != 1 || (has_bias && a.get_float("beta", 1) != 1)) {
    return "transA, alpha or beta is not the default";
  }
  t.weight = constant_in(scope, node.inputs[1]);
  if (t.weight.tensor == nullptr || t.weight.tensor->rank() != 2) return "its weights are not a constant matrix";
  t.transposed = a.get_int("transB", 0) != 0;
  t.k = t.weight.tensor->dim(t.transposed ? 1 : 0);
  t.n = t.weight.tensor->dim(t.transposed ? 0 : 1);
  if (t.k == 0 || t.n == 0) return "its weights are empty";
  if (has_bias) {
    const Tensor* bias = constant_in(scope, node.inputs[2]).tensor;
    if (bias == nullptr || bias->size() != t.n || bias->shape().back() != t.n)
      return "its bias is not a constant with one number a column";
  }
  return {};
}

std::string gather_target(Scope& scope, const Node& node, Target& t) {
  t.weight = constant_in(scope, node.inputs[0]);
  if (t.weight.tensor == nullptr || t.weight.tensor->rank() < 2) return "its data input is not a constant table";
  const auto rank = static_cast<std::int64_t>(t.weight.tensor->rank());
  std::int64_t axis = node.attributes.get_int("axis", 0);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank - 1) return "it gathers along the axis that would be quantised";
  t.transposed = true;
  t.k = t.weight.tensor->shape().back();
  t.n = t.k == 0 ? 0 : t.weight.tensor->size() / t.k;
  return t.n == 0 ? "its table is empty" : "";
}

}  // namespace

OwnedConstant constant_in(Scope& scope, ValueId value) {
  Scope* at = &scope;
  while (at != nullptr && value != kNoValue) {
    const ValueInfo& info = at->graph->value(value);
    if (const Tensor* held = fixed_value(*at->graph, value)) return {at, value, held};
    if (info.producer != kNoNode) {
      const Node& maker = at->graph->node(info.producer);
      if (!maker.domain.empty()) return {};
      if (maker.op_type != "Identity") return {};
      value = maker.inputs[0];
      continue;
    }
    const ValueId* outer = captured(*at, value);
    if (outer == nullptr) return {};
    value = *outer;
    at = at->parent;
  }
  return {};
}

ValueId value_in(Scope& scope, Scope& owner, ValueId value) {
  if (&scope == &owner) return value;
  const ValueId outer = value_in(*scope.parent, owner, value);
  std::vector<ValueId>& captures = scope.link->captures;
  const std::vector<ValueId>& inputs = scope.graph->inputs();
  const auto at = std::find(captures.begin(), captures.end(), outer);
  if (at != captures.end()) return inputs[inputs.size() - captures.size() + static_cast<std::size_t>(at - captures.begin())];
  const ValueInfo& info = scope.parent->graph->value(outer);
  const ValueId inner = scope.graph->add_input(info.name, info.type);
  captures.push_back(outer);
  return inner;
}

std::string target_of(Scope& scope, NodeId id, Target& target) {
  const Node& node = scope.graph->node(id);
  target = {};
  target.scope = &scope;
  target.node = id;
  std::string why;
  if (node.op_type == "MatMul") {
    why = matmul_target(scope, node, target);
  } else if (node.op_type == "Gemm") {
    why = gemm_target(scope, node, target);
  } else {
    why = gather_target(scope, node, target);
  }
  if (!why.empty()) return why;
  const Tensor* weights = target.weight.tensor;
  return weights != nullptr && is_float(weights->dtype()) ? "" : "its weights are not float32, float16 or bfloat16";
}

}  // namespace sdx::quantize
