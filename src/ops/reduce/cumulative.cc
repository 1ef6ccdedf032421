// CumSum (11, 14) and CumProd (26).

#include <algorithm>

#include "ops/math/elementwise.h"
#include "ops/op.h"
#include "ops/reduce/signatures.h"
#include "ops/tensor/axes.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

struct Plus {
  static constexpr int kIdentity = 0;
  template <class C>
  C operator()(C a, C b) const {
    return a + b;
  }
};
struct Times {
  static constexpr int kIdentity = 1;
  template <class C>
  C operator()(C a, C b) const {
    return a * b;
  }
};

// Integers wrap around: computed without sign. Floats accumulate in double.
template <class T>
using Accumulator = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;

template <class T>
Accumulator<T> widen(T v) {
  return static_cast<Accumulator<T>>(static_cast<ComputeType<T>>(v));
}
template <class T>
T narrow(Accumulator<T> v) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(v);
  } else {
    return static_cast<T>(static_cast<ComputeType<T>>(v));
  }
}

template <class T, class Op>
void accumulate(const T* x, T* y, std::int64_t length, std::int64_t step, bool exclusive, bool reverse) {
  Accumulator<T> total = Op::kIdentity;
  for (std::int64_t k = 0; k < length; ++k) {
    const std::int64_t at = (reverse ? length - 1 - k : k) * step;
    const Accumulator<T> next = Op{}(total, widen(x[at]));
    y[at] = narrow<T>(exclusive ? total : next);
    total = next;
  }
}

// Computes `columns` neighbours at a time, so that contiguous memory is read.
template <class T, class Op>
void accumulate_columns(const T* x, T* y, std::int64_t columns, std::int64_t length, std::int64_t step, bool exclusive,
                        bool reverse) {
  constexpr std::int64_t kMost = 64;
  for (; columns > 0; columns -= kMost, x += kMost, y += kMost) {
    const std::int64_t some = std::min(columns, kMost);
    Accumulator<T> totals[kMost];
    std::fill_n(totals, some, static_cast<Accumulator<T>>(Op::kIdentity));
    for (std::int64_t k = 0; k < length; ++k) {
      const std::int64_t at = (reverse ? length - 1 - k : k) * step;
      for (std::int64_t i = 0; i < some; ++i) {
        const Accumulator<T> next = Op{}(totals[i], widen(x[at + i]));
        y[at + i] = narrow<T>(exclusive ? totals[i] : next);
        totals[i] = next;
      }
    }
  }
}

std::int64_t axis_of(const Tensor& t) {
  if (t.size() != 1) fail(ErrorCode::invalid_model, "the axis must be one integer, received {}", t.type_string());
  return to_ints(t)[0];
}

void infer_cumulative(InferContext& c) {
  infer_same(c);
  const SymShape* s = c.shape(0);
  const Tensor* axis = c.value(1);
  if (s != nullptr && axis != nullptr) normalize_axis(axis_of(*axis), s->size());
}

template <class Op>
void run_cumulative(OpContext& c) {
  const auto attr = parse<CumulativeAttrs>(c);
  const Tensor& in = c.input(0);
  const Shape& shape = in.shape();
  const auto axis = static_cast<std::size_t>(normalize_axis(axis_of(c.input(1)), shape.size()));
  const bool exclusive = attr.exclusive;
  const bool reverse = attr.reverse;
  Tensor& out = c.output(0, in.dtype(), shape);
  if (in.size() == 0) return;
  const std::int64_t length = shape[axis];
  const std::int64_t inner = product(shape, axis + 1, shape.size());
  dispatch(in.dtype(), NumericTypes{}, c.node().op_type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto* x = static_cast<const T*>(in.data());
    auto* y = static_cast<T*>(out.mutable_data());
    const std::int64_t grain = std::max<std::int64_t>(1, kElementGrain / length);
    parallel_for(in.size() / length, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t lane = begin; lane < end;) {
        const std::int64_t at = lane / inner * inner * length + lane % inner;
        const std::int64_t columns = std::min(end - lane, inner - lane % inner);
        if (columns == 1) {
          accumulate<T, Op>(x + at, y + at, length, inner, exclusive, reverse);
        } else {
          accumulate_columns<T, Op>(x + at, y + at, columns, length, inner, exclusive, reverse);
        }
        lane += columns;
      }
    });
  });
}

void add(OpTable& t, const char* name, int since, RunFn run) {
  t.add(OpDef(name, since)
            .in("x", "T", types::numeric)
            .in("axis", "T2", types::indices)
            .out("y", "T", types::numeric)
            .attrs<CumulativeAttrs>()
            .infer_with(infer_cumulative)
            .run_with(run));
}

}  // namespace

void register_cumulative(OpTable& t) {
  add(t, "CumSum", 11, run_cumulative<Plus>);
  add(t, "CumProd", 26, run_cumulative<Times>);
}

}  // namespace sdx::ops
