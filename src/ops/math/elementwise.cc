#include "ops/math/elementwise.h"

namespace sdx::ops {

void infer_same(InferContext& c) {
  if (const SymShape* s = c.shape(0)) return c.output(0, c.dtype(0), *s);
  c.output(0, c.dtype(0));
}

}  // namespace sdx::ops
