// And, Or, Xor (1, 7) and Not (1).

#include "ops/math/broadcast.h"
#include "ops/math/elementwise.h"
#include "ops/math/legacy_broadcast.h"
#include "ops/math/signatures.h"
#include "ops/op.h"

namespace sdx::ops {
namespace {

void infer_boolean(InferContext& c) { infer_binary(c, DataType::boolean); }

template <auto Fn>
void run_boolean(OpContext& c) {
  const Tensor& a = c.input(0);
  const Tensor b = legacy_operand(c);
  if (a.dtype() != DataType::boolean || b.dtype() != DataType::boolean) {
    c.fail("both inputs must be bool, received {} and {}", a.type_string(), b.type_string());
  }
  Tensor& out = c.output(0, DataType::boolean, broadcast_shapes(a.shape(), b.shape()));
  broadcast_binary<bool, bool, bool>(a, b, out, Fn);
}

void run_not(OpContext& c) {
  map_input(c, TypeList<bool>{}, [](bool x) { return !x; });
}

void add(OpTable& t, const char* name, RunFn run) {
  t.add(OpDef(name, 1)
            .in("A B", "T", types::boolean)
            .out("C", "T1", types::boolean)
            .attrs<LegacyBroadcastAttrs>()
            .infer_with(infer_boolean)
            .run_with(run));
}

}  // namespace

void register_boolean(OpTable& t) {
  add(t, "And", run_boolean<[](bool a, bool b) { return a && b; }>);
  add(t, "Or", run_boolean<[](bool a, bool b) { return a || b; }>);
  add(t, "Xor", run_boolean<[](bool a, bool b) { return a != b; }>);
  t.add(OpDef("Not", 1).in("X", "T", types::boolean).out("Y", "T", types::boolean).infer_with(infer_same).run_with(run_not));
}

}  // namespace sdx::ops
