// Conv, ConvTranspose: ai.onnx 1, 11, 22 (bfloat16).

#include "ops/context.h"
#include "ops/conv/conv_common.h"
#include "ops/conv/signatures.h"
#include "ops/op.h"

namespace sdx::ops {
namespace {

OpDef conv_def(const char* name) {
  return OpDef(name, 1)
      .in("X W", "T", types::floats)
      .in("B", "T", types::floats, Arity::optional)
      .out("Y", "T", types::floats)
      .attrs<ConvAttrs>();
}

}  // namespace

void register_conv(OpTable& t) {
  t.add(conv_def("Conv").infer_with(infer_conv).run_with([](OpContext& c) { run_conv(c); }));
  t.add(conv_def("ConvTranspose").infer_with(infer_conv_transpose).run_with([](OpContext& c) { run_conv_transpose(c); }));
}

}  // namespace sdx::ops
