// com.microsoft IsAllFinite 1.

#include <cmath>

#include "ops/context.h"
#include "ops/math/float_view.h"
#include "ops/op.h"
#include "ops/signature.h"

namespace sdx::ops {
namespace {

struct IsAllFiniteAttrs {
  bool isinf_only = false;
  bool isnan_only = false;

  void fields(auto& f) {
    f("isinf_only", isinf_only);
    f("isnan_only", isnan_only);
  }
};

void infer_is_all_finite(InferContext& c) { c.output(0, DataType::boolean, SymShape{}); }

void run_is_all_finite(OpContext& c) {
  const auto attr = parse<IsAllFiniteAttrs>(c);
  const bool nan_only = attr.isnan_only, inf_only = attr.isinf_only;
  if (nan_only && inf_only) c.fail("isnan_only and isinf_only exclude each other");
  bool fine = true;
  for (std::size_t i = 0; i < c.num_inputs(); ++i) {
    dispatch_compute(c.input(i).dtype(), "IsAllFinite", [&](auto tag) {
      using C = typename decltype(tag)::type;
      const FloatInput<C> x(c.input(i));
      for (std::int64_t k = 0; k < c.input(i).size(); ++k) {
        fine = fine && !(std::isnan(x[k]) && !inf_only) && !(std::isinf(x[k]) && !nan_only);
      }
    });
  }
  c.output(0, DataType::boolean, {}).mutable_values<bool>()[0] = fine;
}

}  // namespace

void register_is_all_finite(OpTable& t) {
  t.add(OpDef("com.microsoft", "IsAllFinite", 1)
            .in("input", "V", types::floats, Arity::variadic)
            .out("output", "T", types::boolean)
            .attrs<IsAllFiniteAttrs>()
            .infer_with(infer_is_all_finite)
            .run_with(run_is_all_finite));
}

}  // namespace sdx::ops
