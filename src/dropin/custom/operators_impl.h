#pragma once
// Operators as our engine holds them.

#include "dropin/custom/operators.h"
#include "dropin/custom/signature.h"
#include "ops/op.h"

namespace sdx::dropin {

// All overloads of one name. The engine holds it as an ops::CustomOp.
struct ProgramOperator : ops::CustomOp {
  std::vector<Signature> overloads;  // alike but for types
  std::shared_ptr<const KernelHost> host;
};

inline const ProgramOperator& operator_of(const Node& node) { return static_cast<const ProgramOperator&>(*node.custom); }

// The overload that takes inputs of these types (undefined: not known) at this version of the domain; null: none does.
const Signature* choose(const ProgramOperator& op, const std::vector<DataType>& types, int version);

// The argument that number `i` of a node stands for.
inline const Argument& formal(const std::vector<Argument>& formals, std::size_t i) {
  return formals[i < formals.size() ? i : formals.size() - 1];
}

// Inference and kernels of the engine.
void infer_program_operator(ops::InferContext& context);
std::unique_ptr<ops::CustomRunner> make_program_kernel(const Graph& graph, const Node& node);

}  // namespace sdx::dropin
