// Add, Sub, Mul, Div: ai.onnx 1, 6, 7, 13, 14.
// Integers wrap around as in C; integer division truncates towards zero and a zero divisor is an error.

#include <type_traits>

#include "ops/math/broadcast.h"
#include "ops/math/legacy_broadcast.h"
#include "ops/math/signatures.h"
#include "ops/op.h"
#include "tensor/dispatch.h"

namespace sdx::ops {
namespace {

void infer_arithmetic(InferContext& c) {
  const DataType elem = c.dtype(0) != DataType::undefined ? c.dtype(0) : c.dtype(1);
  if (c.version() < 7) {
    if (const SymShape* a = c.shape(0)) return c.output(0, elem, *a);
    return c.output(0, elem);
  }
  infer_broadcast(c, 0, 2, elem);
  const auto* a = c.sym(0);
  const auto* b = c.sym(1);
  if (a == nullptr || b == nullptr || (c.value(0) != nullptr && c.value(1) != nullptr)) return;
  const std::size_t n = std::max(a->size(), b->size());
  if ((a->size() != n && a->size() != 1) || (b->size() != n && b->size() != 1)) return;
  std::vector<Dim> out;
  for (std::size_t i = 0; i < n; ++i) {
    const Dim& x = (*a)[a->size() == 1 ? 0 : i];
    const Dim& y = (*b)[b->size() == 1 ? 0 : i];
    switch (c.node().op_type[0]) {
      case 'A': out.push_back(x + y); break;
      case 'S': out.push_back(x - y); break;
      case 'M': out.push_back(x * y); break;
      default: out.push_back(floor_div(x, y)); break;  // extents are not negative: floor is truncation
    }
  }
  c.output_sym(0, std::move(out));
}

struct AddOp {
  template <class T>
  T operator()(T a, T b) const {
    return a + b;
  }
};
struct SubOp {
  template <class T>
  T operator()(T a, T b) const {
    return a - b;
  }
};
struct MulOp {
  template <class T>
  T operator()(T a, T b) const {
    return a * b;
  }
};
struct DivOp {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      if (b == 0) fail(ErrorCode::runtime_failure, "integer division by zero");
      if constexpr (std::is_signed_v<T>) {
        if (b == T(-1)) return static_cast<T>(std::make_unsigned_t<T>(0) - static_cast<std::make_unsigned_t<T>>(a));
      }
    }
    return a / b;
  }
};

// Signed integers compute in unsigned arithmetic of at least 32 bits: overflow wraps instead of being undefined.
template <class Op, class T>
T apply(T a, T b) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<Op, DivOp>) {
    using U = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
    return static_cast<T>(Op{}(static_cast<U>(a), static_cast<U>(b)));
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(Op{}(a, b));
  } else {
    using C = ComputeType<T>;
    return T(Op{}(static_cast<C>(a), static_cast<C>(b)));
  }
}

template <class Op>
void run_arithmetic(OpContext& c) {
  const Tensor& a = c.input(0);
  const Tensor b = legacy_operand(c);
  Tensor& out = c.output(0, a.dtype(), broadcast_shapes(a.shape(), b.shape()));
  dispatch(a.dtype(), NumericTypes{}, c.node().op_type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    broadcast_binary<T, T, T>(a, b, out, apply<Op, T>);
  });
}

void add_versions(OpTable& t, const char* name, RunFn run) {
  for (const int since : {1, 7}) {
    OpDef def(name, since);
    def.in("A B", "T", types::numeric).out("C", "T", types::numeric);
    if (since == 1) def.attrs<LegacyBroadcastAttrs>();
    t.add(std::move(def).infer_with(infer_arithmetic).run_with(run));
  }
}

}  // namespace

void register_arithmetic(OpTable& t) {
  add_versions(t, "Add", run_arithmetic<AddOp>);
  add_versions(t, "Sub", run_arithmetic<SubOp>);
  add_versions(t, "Mul", run_arithmetic<MulOp>);
  add_versions(t, "Div", run_arithmetic<DivOp>);
}

}  // namespace sdx::ops
