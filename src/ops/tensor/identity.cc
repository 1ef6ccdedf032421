// Identity: ai.onnx 1, 13, 14 (sequences), 16 (optionals), 19, 21, 23, 24, 25. com.microsoft SampleOp 1, for numbers alone.

#include "ops/context.h"
#include "ops/op.h"
#include "ops/tensor/movement.h"

namespace sdx::ops {
namespace {

void infer_identity(InferContext& c) {
  c.output(0, c.type(0));
  if (const auto* elements = c.sym(0)) c.output_sym(0, *elements);
}

void run_identity(OpContext& c) {
  const Value& v = c.input_value(0);
  if (!v.is_tensor()) return c.set_output(0, v);  // sequences and maps are immutable
  copy_all(v.tensor(), c.output(0, v.tensor().dtype(), v.tensor().shape()));
}

}  // namespace

void register_identity(OpTable& t) {
  t.add(OpDef("Identity", 1)
            .in("input", "V", types::anything)
            .out("output", "V", types::anything)
            .infer_with(infer_identity)
            .run_with(run_identity));
  t.add(OpDef("com.microsoft", "SampleOp", 1)
            .in("X", "T", types::numeric)
            .out("Y", "T", types::numeric)
            .infer_with(infer_identity)
            .run_with(run_identity));
}

}  // namespace sdx::ops
