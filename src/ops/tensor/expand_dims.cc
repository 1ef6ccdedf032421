// com.microsoft ExpandDims 1.

#include "ops/context.h"
#include "ops/control/subgraphs.h"
#include "ops/op.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/movement.h"

namespace sdx::ops {
namespace {

void infer_expand_dims(InferContext& c) {
  const SymShape* s = c.shape(0);
  if (s == nullptr) return c.output(0, c.dtype(0));
  SymShape out = *s;
  if (const std::vector<Dim>* axis = c.sym(1); axis != nullptr && axis->size() == 1 && (*axis)[0].is_const()) {
    out.insert(out.begin() + normalize_axis((*axis)[0].value(), s->size() + 1), Dim(1));
  } else {
    out.assign(s->size() + 1, Dim::unknown());
  }
  c.output(0, c.dtype(0), std::move(out));
}

void run_expand_dims(OpContext& c) {
  const Tensor& x = c.input(0);
  Shape shape = x.shape();
  shape.insert(shape.begin() + normalize_axis(single_int(c.input(1), "axis"), x.rank() + 1), 1);
  copy_all(x, c.output(0, x.dtype(), shape));
}

}  // namespace

void register_expand_dims(OpTable& t) {
  constexpr TypeSet kAny = types::numeric | types::boolean | types::string | types::complex;
  t.add(OpDef("com.microsoft", "ExpandDims", 1)
            .in("X", "T", kAny)
            .in("axis", "", bit(DataType::int32))
            .out("Y", "T", kAny)
            .infer_with(infer_expand_dims)
            .run_with(run_expand_dims));
}

}  // namespace sdx::ops
