// MatMul: ai.onnx 1, 9 (integers), 13 (bfloat16).

#include "ops/context.h"
#include "ops/matrix/matmul_reference.h"
#include "ops/op.h"

namespace sdx::ops {
namespace {

constexpr TypeSet kTypes = types::floats | set_of(DataType::int32, DataType::int64, DataType::uint32, DataType::uint64);

void infer_matmul(InferContext& c) {
  const DataType elem = c.dtype(0) != DataType::undefined ? c.dtype(0) : c.dtype(1);
  const SymShape* a = c.shape(0);
  const SymShape* b = c.shape(1);
  if (a == nullptr || b == nullptr) return c.output(0, elem);
  c.output(0, elem, matmul_shape(*a, *b));
}

void run_matmul(OpContext& c) {
  const Tensor& a = c.input(0);
  const Tensor& b = c.input(1);
  const MatMulPlan plan = matmul_plan(a.shape(), b.shape());
  matmul_reference(plan, a, b, c.output(0, a.dtype(), plan.output), c.stop());
}

}  // namespace

void register_matmul(OpTable& t) {
  t.add(OpDef("MatMul", 1).in("A B", "T", kTypes).out("Y", "T", kTypes).infer_with(infer_matmul).run_with(run_matmul));
}

}  // namespace sdx::ops
