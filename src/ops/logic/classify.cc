// IsNaN (9, 13, 20) and IsInf (10, 20).

#include <cmath>

#include "ops/math/elementwise.h"
#include "ops/math/signatures.h"
#include "ops/op.h"

namespace sdx::ops {
namespace {

using ClassifiedTypes = TypeList<float, double, Float16, BFloat16, Float8E4M3FN, Float8E4M3FNUZ, Float8E5M2, Float8E5M2FNUZ>;

void infer_flags(InferContext& c) {
  if (const SymShape* s = c.shape(0)) return c.output(0, DataType::boolean, *s);
  c.output(0, DataType::boolean);
}

template <class F>
void classify(OpContext& c, F fn) {
  const Tensor& in = c.input(0);
  Tensor& out = c.output(0, DataType::boolean, in.shape());
  auto* y = static_cast<bool*>(out.mutable_data());
  dispatch(in.dtype(), ClassifiedTypes{}, c.node().op_type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto* x = static_cast<const T*>(in.data());
    for (std::int64_t i = 0; i < in.size(); ++i) y[i] = fn(static_cast<ComputeType<T>>(x[i]));
  });
}

void run_is_nan(OpContext& c) {
  classify(c, [](auto x) { return std::isnan(x); });
}

void run_is_inf(OpContext& c) {
  const auto attr = parse<IsInfAttrs>(c);
  const bool negative = attr.detect_negative;
  const bool positive = attr.detect_positive;
  classify(c, [=](auto x) { return std::isinf(x) && (x < 0 ? negative : positive); });
}

constexpr TypeSet kClassified =
    types::floats | set_of(DataType::float8e4m3fn, DataType::float8e4m3fnuz, DataType::float8e5m2, DataType::float8e5m2fnuz);

}  // namespace

void register_classify(OpTable& t) {
  t.add(OpDef("IsNaN", 9).in("X", "T1", kClassified).out("Y", "T2", types::boolean).infer_with(infer_flags).run_with(run_is_nan));
  t.add(OpDef("IsInf", 10)
            .in("X", "T1", kClassified)
            .out("Y", "T2", types::boolean)
            .attrs<IsInfAttrs>()
            .infer_with(infer_flags)
            .run_with(run_is_inf));
}

}  // namespace sdx::ops
