// Size: ai.onnx 1, 13, 19, 21, 23, 24, 25.

#include "ops/context.h"
#include "ops/op.h"
#include "ops/tensor/axes.h"

namespace sdx::ops {
namespace {

void infer_size(InferContext& c) {
  c.output(0, DataType::int64, SymShape{});
  if (const SymShape* s = c.shape(0)) c.output_sym(0, {product(*s, 0, s->size())});
}

void run_size(OpContext& c) {
  const std::int64_t size = c.input(0).size();
  c.output(0, DataType::int64, {}).mutable_values<std::int64_t>()[0] = size;
}

}  // namespace

void register_size(OpTable& t) {
  t.add(OpDef("Size", 1)
            .in("data", "T", types::any_tensor)
            .out("size", "T1", types::int64)
            .infer_with(infer_size)
            .run_with(run_size));
}

}  // namespace sdx::ops
