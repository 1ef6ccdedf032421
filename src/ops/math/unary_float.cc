// Functions of one floating-point number: Exp, Log, Sqrt, Reciprocal, Erf, Sigmoid, Softplus, Softsign, Floor, Ceil, Round and
// the trigonometric and hyperbolic ones. ai.onnx 1 (with consumed_inputs), 6, 7, 9, 11, 13, 22.

#include <cmath>

#include "ops/math/elementwise.h"

namespace sdx::ops {
namespace {

template <auto Fn>
void run_float(OpContext& c) {
  map_floats(c, Fn);
}

// Erf-9 permits integers, whose results are cut: 1 or -1 where the nearest double is that, else 0.
void run_erf(OpContext& c) {
  map_input(c, NumericTypes{}, [](auto x) {
    using T = decltype(x);
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(std::erf(static_cast<double>(x)));
    } else {
      return std::erf(x);
    }
  });
}

void add(OpTable& t, const char* name, int since, RunFn run, TypeSet permitted = types::floats) {
  t.add(OpDef(name, since)
            .in("X", "T", permitted)
            .out("Y", "T", permitted)
            .attr("consumed_inputs", AttrKind::ints)
            .infer_with(infer_same)
            .run_with(run));
}

}  // namespace

void register_unary_float(OpTable& t) {
  add(t, "Exp", 1, run_float<[](auto x) { return std::exp(x); }>);
  add(t, "Log", 1, run_float<[](auto x) { return std::log(x); }>);
  add(t, "Sqrt", 1, run_float<[](auto x) { return std::sqrt(x); }>);
  add(t, "Reciprocal", 1, run_float<[](auto x) { return 1 / x; }>);
  add(t, "Erf", 9, run_erf, types::numeric);
  add(t, "Floor", 1, run_float<[](auto x) { return std::floor(x); }>);
  add(t, "Ceil", 1, run_float<[](auto x) { return std::ceil(x); }>);
  // Halves go to the even neighbour (ONNX Round-11): the default rounding mode.
  add(t, "Round", 11, run_float<[](auto x) { return std::nearbyint(x); }>);
  add(t, "Sin", 7, run_float<[](auto x) { return std::sin(x); }>);
  add(t, "Cos", 7, run_float<[](auto x) { return std::cos(x); }>);
  add(t, "Tan", 7, run_float<[](auto x) { return std::tan(x); }>);
  add(t, "Asin", 7, run_float<[](auto x) { return std::asin(x); }>);
  add(t, "Acos", 7, run_float<[](auto x) { return std::acos(x); }>);
  add(t, "Atan", 7, run_float<[](auto x) { return std::atan(x); }>);
  add(t, "Sinh", 9, run_float<[](auto x) { return std::sinh(x); }>);
  add(t, "Cosh", 9, run_float<[](auto x) { return std::cosh(x); }>);
  add(t, "Tanh", 1, run_float<[](auto x) { return std::tanh(x); }>);
  add(t, "Asinh", 9, run_float<[](auto x) { return std::asinh(x); }>);
  add(t, "Acosh", 9, run_float<[](auto x) { return std::acosh(x); }>);
  add(t, "Atanh", 9, run_float<[](auto x) { return std::atanh(x); }>);
  add(t, "Sigmoid", 1, run_float<[](auto x) { return logistic(x); }>);
  add(t, "Softplus", 1, run_float<[](auto x) { return softplus(x); }>);
  add(t, "Softsign", 1, run_float<[](auto x) { return x / (1 + std::fabs(x)); }>);
}

}  // namespace sdx::ops
