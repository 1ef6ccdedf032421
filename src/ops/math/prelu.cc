// PRelu: ai.onnx 1, 6 (one slope, or one per channel of axis 1), 7 (unidirectional broadcasting), 9 (integers), 16.

#include "ops/math/broadcast.h"
#include "ops/math/elementwise.h"
#include "ops/op.h"

namespace sdx::ops {
namespace {

// Files of opset 6 and below also hold slopes that are shaped for broadcasting already, so only a plain list of slopes that
// does not fit the last axis alone is moved to the channels.
Shape slope_shape(const OpContext& c, const Tensor& x, const Tensor& slope) {
  Shape shape = slope.shape();
  if (c.version() < 7 && shape.size() == 1 && shape[0] != 1 && x.rank() >= 2 && shape[0] == x.shape()[1]) {
    shape.resize(x.rank() - 1, 1);
  }
  if (shape.size() > x.rank() || broadcast_shapes(x.shape(), shape) != x.shape()) {
    c.fail("the slope {} cannot be broadcast to X {}", to_string(slope.shape()), to_string(x.shape()));
  }
  return shape;
}

// Kernels read the slope as X broadcasts it.
void infer_prelu(InferContext& c) {
  const SymShape *x = c.shape(0), *slope = c.shape(1);
  if (c.version() >= 7 && x != nullptr && slope != nullptr) {
    const SymShape both = broadcast_shapes(*x, *slope);
    bool fits = both.size() == x->size();
    for (std::size_t i = 0; fits && i < both.size(); ++i) {
      fits = !both[i].is_const() || !(*x)[i].is_const() || both[i] == (*x)[i];
    }
    if (!fits) c.fail("the slope {} cannot be broadcast to X {}", to_string(*slope), to_string(*x));
  }
  infer_same(c);
}

void run_prelu(OpContext& c) {
  const Tensor& x = c.input(0);
  const Tensor slope = c.input(1).reshaped(slope_shape(c, x, c.input(1)));
  if (slope.dtype() != x.dtype()) c.fail("X is {} but the slope is {}", name(x.dtype()), name(slope.dtype()));
  Tensor& out = c.output(0, x.dtype(), x.shape());
  dispatch(x.dtype(), NumericTypes{}, "PRelu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    broadcast_binary<T, T, T>(x, slope, out, [](T v, T s) {
      if constexpr (std::is_integral_v<T>) {
        using U = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;  // wraps
        return v < 0 ? static_cast<T>(static_cast<U>(v) * static_cast<U>(s)) : v;
      } else {
        using C = ComputeType<T>;
        return static_cast<C>(v) < 0 ? static_cast<T>(static_cast<C>(v) * static_cast<C>(s)) : v;
      }
    });
  });
}

}  // namespace

void register_prelu(OpTable& t) {
  t.add(OpDef("PRelu", 1)
            .in("X slope", "T", types::numeric)
            .out("Y", "T", types::numeric)
            .attr("consumed_inputs", AttrKind::ints)
            .infer_with(infer_prelu)
            .run_with(run_prelu));
}

}  // namespace sdx::ops
