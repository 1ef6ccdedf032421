// Mod: ai.onnx 10, 13, 28.

#include <cmath>

#include "ops/math/broadcast.h"
#include "ops/math/signatures.h"
#include "ops/op.h"
#include "tensor/dispatch.h"

namespace sdx::ops {
namespace {

void infer_mod(InferContext& c) {
  infer_broadcast(c, 0, 2, c.dtype(0) != DataType::undefined ? c.dtype(0) : c.dtype(1));
  const auto* a = c.sym(0);
  const auto* b = c.sym(1);
  if (a == nullptr || b == nullptr || b->size() != 1 || parse<ModAttrs>(c).fmod) return;
  std::vector<Dim> out;
  for (const Dim& x : *a) out.push_back(x - (*b)[0] * floor_div(x, (*b)[0]));
  c.output_sym(0, std::move(out));
}

// The sign of the divisor, or with `fmod` that of the dividend.
template <class T>
T modulo_int(T a, T b, bool fmod) {
  if (b == 0) fail(ErrorCode::runtime_failure, "integer modulo by zero");
  if constexpr (std::is_signed_v<T>) {
    if (b == T(-1)) return 0;  // min() % -1 overflows
    const auto r = static_cast<T>(a % b);
    return !fmod && r != 0 && ((r < 0) != (b < 0)) ? static_cast<T>(r + b) : r;
  } else {
    return static_cast<T>(a % b);
  }
}

// Source of the special cases: ONNX Mod-28.
template <class C>
C modulo_float(C a, C b, bool fmod) {
  const C r = std::fmod(a, b);
  if (fmod) return r;
  if (r == 0) return std::copysign(C(0), b);
  return (r < 0) != (b < 0) ? r + b : r;
}

void run_mod(OpContext& c) {
  const Tensor& a = c.input(0);
  const Tensor& b = c.input(1);
  const bool fmod = parse<ModAttrs>(c).fmod;
  Tensor& out = c.output(0, a.dtype(), broadcast_shapes(a.shape(), b.shape()));
  dispatch(a.dtype(), NumericTypes{}, "Mod", [&](auto tag) {
    using T = typename decltype(tag)::type;
    broadcast_binary<T, T, T>(a, b, out, [fmod](T x, T y) {
      if constexpr (std::is_integral_v<T>) {
        return modulo_int(x, y, fmod);
      } else {
        using C = ComputeType<T>;
        return static_cast<T>(modulo_float(static_cast<C>(x), static_cast<C>(y), fmod));
      }
    });
  });
}

}  // namespace

void register_modulo(OpTable& t) {
  OpDef mod("Mod", 10);
  mod.in("A B", "T", types::numeric).out("C", "T", types::numeric).attrs<ModAttrs>();
  t.add(std::move(mod).infer_with(infer_mod).run_with(run_mod));
}

}  // namespace sdx::ops
