// If: ai.onnx 1, 11, 13, 16, 19, 21, 23, 24, 25.

#include <optional>

#include "ops/control/subgraphs.h"
#include "ops/op.h"

namespace sdx::ops {
namespace {

// The outputs of one branch; nothing if the known facts show that the branch cannot be valid. Exporters guard operators with
// conditions on the very shapes that make them valid ("if rank == 4 then Squeeze"), so an invalid branch is one that will not be
// taken; the model fails only if both are invalid.
std::optional<std::vector<Type>> branch_types(InferContext& c, std::size_t index, std::optional<Error>& error) {
  try {
    return c.infer_subgraph(index, {});
  } catch (const Error& e) {
    if (e.code() != ErrorCode::invalid_model) throw;
    error = e;
    return std::nullopt;
  }
}

void infer_if(InferContext& c) {
  const std::size_t then_index = subgraph_index(c.node(), "then_branch");
  const std::size_t else_index = subgraph_index(c.node(), "else_branch");
  check_signature(c.node(), then_index, 0, c.num_outputs());
  check_signature(c.node(), else_index, 0, c.num_outputs());
  std::optional<Error> then_error, else_error;
  auto a = branch_types(c, then_index, then_error);
  auto b = branch_types(c, else_index, else_error);
  const Tensor* cond = c.value(0);
  if (cond != nullptr && cond->size() == 1 && cond->dtype() == DataType::boolean) {
    const bool taken = single_bool(*cond, "the condition");
    if (taken && !a) throw *then_error;
    if (!taken && !b) throw *else_error;
    (taken ? b : a).reset();
  }
  if (!a && !b) throw *then_error;
  for (std::size_t i = 0; i < c.num_outputs(); ++i) {
    if (a && b) {
      Type t = common((*a)[i], (*b)[i]);
      c.output(i, std::move(t));
    } else {
      c.output(i, a ? (*a)[i] : (*b)[i]);
    }
  }
}

void run_if(OpContext& c) {
  const bool taken = single_bool(c.input(0), "the condition of If");
  const std::size_t index = subgraph_index(c.node(), taken ? "then_branch" : "else_branch");
  std::vector<Value> results = c.run_subgraph(index, {});
  if (results.size() != c.num_outputs()) c.fail("the branch gives {} outputs; If has {}", results.size(), c.num_outputs());
  for (std::size_t i = 0; i < results.size(); ++i) c.set_output(i, std::move(results[i]));
}

}  // namespace

void register_if_op(OpTable& t) {
  t.add(OpDef("If", 1)
            .in("cond", "B", types::boolean)
            .out("outputs", "", types::anything, Arity::variadic)
            .attr("then_branch", AttrKind::g, true)
            .attr("else_branch", AttrKind::g, true)
            .infer_with(infer_if)
            .run_with(run_if));
}

}  // namespace sdx::ops
