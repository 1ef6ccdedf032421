// com.microsoft ComplexMul, ComplexMulConj 1: pairs on the last axis are complex numbers.

#include "ops/context.h"
#include "ops/math/broadcast.h"
#include "ops/math/float_view.h"
#include "ops/op.h"

namespace sdx::ops {
namespace {

template <class S>
S without_pair(const S& s) {
  if (s.empty()) fail(ErrorCode::invalid_model, "complex numbers need a last axis of 2, received a scalar");
  return S(s.begin(), s.end() - 1);
}

void infer_complex(InferContext& c) {
  if (c.shape(0) == nullptr || c.shape(1) == nullptr) return c.output(0, c.dtype(0));
  SymShape out = broadcast_shapes(without_pair(*c.shape(0)), without_pair(*c.shape(1)));
  out.push_back(Dim(2));
  c.output(0, c.dtype(0), std::move(out));
}

void run_complex(OpContext& c) {
  const Tensor &a = c.input(0), &b = c.input(1);
  const Shape sa = without_pair(a.shape()), sb = without_pair(b.shape()), numbers = broadcast_shapes(sa, sb);
  if (a.shape().back() != 2 || b.shape().back() != 2)
    c.fail("complex numbers need a last axis of 2, received {} and {}", a.type_string(), b.type_string());
  Shape shape = numbers;
  shape.push_back(2);
  Tensor& y = c.output(0, a.dtype(), shape);
  dispatch_compute(a.dtype(), c.node().op_type, [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> fa(a), fb(b);
    FloatOutput<C> fy(y);
    const C sign = c.node().op_type == "ComplexMulConj" ? C(-1) : C(1);
    for_each_broadcast<2>({sa, sb}, numbers, [&](const auto& at, const auto& step, std::int64_t o, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t p = 2 * (at[0] + i * step[0]), q = 2 * (at[1] + i * step[1]);
        const C im = sign * fb[q + 1];
        fy[2 * (o + i)] = fa[p] * fb[q] - fa[p + 1] * im;
        fy[2 * (o + i) + 1] = fa[p] * im + fa[p + 1] * fb[q];
      }
    });
    fy.store();
  });
}

}  // namespace

void register_complex_mul(OpTable& t) {
  constexpr TypeSet kThree = set_of(DataType::float16, DataType::float32, DataType::float64);
  for (const char* name : {"ComplexMul", "ComplexMulConj"}) {
    t.add(OpDef("com.microsoft", name, 1)
              .in("A B", "T", kThree)
              .out("C", "T", kThree)
              .infer_with(infer_complex)
              .run_with(run_complex));
  }
}

}  // namespace sdx::ops
