// Min, Max, Sum, Mean of any number of tensors: ai.onnx 1, 6 (equal shapes), 8 (broadcasting), 12, 13.

#include "ops/math/broadcast.h"
#include "ops/math/elementwise.h"
#include "ops/op.h"

namespace sdx::ops {
namespace {

DataType element_type(const InferContext& c) {
  for (std::size_t i = 0; i < c.num_inputs(); ++i) {
    if (c.dtype(i) != DataType::undefined) return c.dtype(i);
  }
  return DataType::undefined;
}

void infer_variadic(InferContext& c) { infer_broadcast(c, 0, c.num_inputs(), element_type(c)); }

template <class Fold>
void fold_syms(InferContext& c, Fold fold) {
  std::vector<Dim> out;
  for (std::size_t k = 0; k < c.num_inputs(); ++k) {
    const auto* s = c.sym(k);
    if (s == nullptr || s->empty()) return;
    if (k == 0) {
      out = *s;
      continue;
    }
    if (out.size() == 1) out.resize(s->size(), out[0]);
    if (s->size() != out.size() && s->size() != 1) return;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = fold(out[i], (*s)[s->size() == 1 ? 0 : i]);
  }
  c.output_sym(0, std::move(out));
}

void infer_min(InferContext& c) {
  infer_variadic(c);
  fold_syms(c, [](const Dim& a, const Dim& b) { return min(a, b); });
}
void infer_max(InferContext& c) {
  infer_variadic(c);
  fold_syms(c, [](const Dim& a, const Dim& b) { return max(a, b); });
}
void infer_sum(InferContext& c) {
  infer_variadic(c);
  fold_syms(c, [](const Dim& a, const Dim& b) { return a + b; });
}

// NaN wins, as in numpy's minimum and maximum.
struct MinOp {
  template <class C>
  C operator()(C a, C b) const {
    return a < b || a != a ? a : b;
  }
};
struct MaxOp {
  template <class C>
  C operator()(C a, C b) const {
    return a > b || a != a ? a : b;
  }
};
struct SumOp {
  template <class C>
  C operator()(C a, C b) const {
    if constexpr (std::is_integral_v<C>) {
      using U = std::conditional_t<sizeof(C) == 8, std::uint64_t, std::uint32_t>;  // wraps
      return static_cast<C>(static_cast<U>(a) + static_cast<U>(b));
    } else {
      return a + b;
    }
  }
};

Shape common_shape(const OpContext& c) {
  Shape shape = c.input(0).shape();
  for (std::size_t k = 1; k < c.num_inputs(); ++k) {
    if (c.input(k).dtype() != c.input(0).dtype()) {
      c.fail("all inputs must have one type, received {} and {}", c.input(0).type_string(), c.input(k).type_string());
    }
    shape = broadcast_shapes(shape, c.input(k).shape());
  }
  return shape;
}

// Computes `out` op= `in`, with broadcasting.
template <class T, class C, class Op>
void fold_into(C* out, const Shape& shape, const Tensor& in) {
  const auto* x = static_cast<const T*>(in.data());
  for_each_broadcast<1>({in.shape()}, shape, [&](const auto& at, const auto& step, std::int64_t o, std::int64_t n) {
    const T* from = x + at[0];
    C* to = out + o;
    if (step[0] == 1) {
      for (std::int64_t i = 0; i < n; ++i) to[i] = Op{}(to[i], static_cast<C>(from[i]));
    } else {
      const C v = static_cast<C>(from[0]);
      for (std::int64_t i = 0; i < n; ++i) to[i] = Op{}(to[i], v);
    }
  });
}

struct First {
  template <class C>
  C operator()(C, C b) const {
    return b;
  }
};

// 16-bit floats accumulate in float and round once.
template <class Op>
void run_variadic(OpContext& c, bool mean) {
  const Shape shape = common_shape(c);
  const DataType dtype = c.input(0).dtype();
  Tensor& out = c.output(0, dtype, shape);
  dispatch(dtype, NumericTypes{}, c.node().op_type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ComputeType<T>;
    Tensor wide;
    if constexpr (!std::is_same_v<T, C>) wide = Tensor(DataType::float32, shape);
    auto* acc = static_cast<C*>(std::is_same_v<T, C> ? out.mutable_data() : wide.mutable_data());
    fold_into<T, C, First>(acc, shape, c.input(0));
    for (std::size_t k = 1; k < c.num_inputs(); ++k) fold_into<T, C, Op>(acc, shape, c.input(k));
    if (mean) {
      const C n = static_cast<C>(c.num_inputs());
      for (std::int64_t i = 0; i < out.size(); ++i) acc[i] = static_cast<C>(acc[i] / n);
    }
    if constexpr (!std::is_same_v<T, C>) {
      auto* to = static_cast<T*>(out.mutable_data());
      for (std::int64_t i = 0; i < out.size(); ++i) to[i] = static_cast<T>(acc[i]);
    }
  });
}

void run_min(OpContext& c) { run_variadic<MinOp>(c, false); }
void run_max(OpContext& c) { run_variadic<MaxOp>(c, false); }
void run_sum(OpContext& c) { run_variadic<SumOp>(c, false); }
void run_mean(OpContext& c) { run_variadic<SumOp>(c, true); }

void add(OpTable& t, const char* name, TypeSet set, InferFn infer, RunFn run) {
  t.add(OpDef(name, 1)
            .in("data_0", "T", set, Arity::variadic)
            .out("result", "T", set)
            .attr("consumed_inputs", AttrKind::ints)
            .infer_with(infer)
            .run_with(run));
}

}  // namespace

void register_variadic(OpTable& t) {
  add(t, "Min", types::numeric, infer_min, run_min);
  add(t, "Max", types::numeric, infer_max, run_max);
  add(t, "Sum", types::floats, infer_sum, run_sum);
  add(t, "Mean", types::floats, infer_variadic, run_mean);
}

}  // namespace sdx::ops
