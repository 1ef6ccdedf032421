// Neg, Abs, Sign, Relu: functions of one number of any numeric type. ai.onnx 1, 6, 9, 13, 14.

#include <cmath>

#include "ops/math/elementwise.h"

namespace sdx::ops {
namespace {

using SignedTypes = TypeList<float, double, Float16, BFloat16, std::int8_t, std::int16_t, std::int32_t, std::int64_t>;

// -min() of a signed type wraps to itself instead of being undefined.
template <class T>
T negate(T x) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(U(0) - static_cast<U>(x)));
  } else {
    return -x;
  }
}

void infer_neg(InferContext& c) {
  infer_same(c);
  const auto* in = c.sym(0);
  if (in == nullptr) return;
  std::vector<Dim> out;
  for (const Dim& d : *in) out.push_back(Dim(0) - d);
  c.output_sym(0, std::move(out));
}

void run_neg(OpContext& c) {
  map_input(c, SignedTypes{}, [](auto x) { return negate(x); });
}

void run_abs(OpContext& c) {
  map_input(c, NumericTypes{}, [](auto x) {
    using T = decltype(x);
    if constexpr (std::is_floating_point_v<T>) {
      return std::fabs(x);
    } else if constexpr (std::is_signed_v<T>) {
      return x < 0 ? negate(x) : x;
    } else {
      return x;
    }
  });
}

void run_sign(OpContext& c) {
  map_input(c, NumericTypes{}, [](auto x) {
    using T = decltype(x);
    if constexpr (std::is_floating_point_v<T>) {
      if (x != x) return x;
    }
    return static_cast<T>(static_cast<int>(x > 0) - static_cast<int>(x < 0));
  });
}

void run_relu(OpContext& c) {
  map_input(c, SignedTypes{}, [](auto x) { return x < 0 ? decltype(x)(0) : x; });
}

OpDef unary(const char* name, int since, TypeSet set) {
  OpDef def(name, since);
  def.in("X", "T", set).out("Y", "T", set).attr("consumed_inputs", AttrKind::ints);
  return def;
}

}  // namespace

void register_unary_numeric(OpTable& t) {
  const TypeSet with_sign = types::floats | types::signed_ints;
  t.add(unary("Neg", 1, with_sign).infer_with(infer_neg).run_with(run_neg));
  t.add(unary("Abs", 1, types::numeric).infer_with(infer_same).run_with(run_abs));
  t.add(unary("Sign", 9, types::numeric).infer_with(infer_same).run_with(run_sign));
  t.add(unary("Relu", 1, with_sign).infer_with(infer_same).run_with(run_relu));
}

}  // namespace sdx::ops
