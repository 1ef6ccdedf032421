// ArgMax and ArgMin: ai.onnx 1, 11, 12 (select_last_index), 13.

#include <algorithm>
#include <vector>

#include "ops/math/elementwise.h"
#include "ops/op.h"
#include "ops/reduce/signatures.h"
#include "ops/tensor/axes.h"

namespace sdx::ops {
namespace {

template <class S>
S without_axis(const S& shape, std::size_t axis, bool keepdims) {
  S out = shape;
  if (keepdims) {
    out[axis] = 1;
  } else {
    out.erase(out.begin() + static_cast<std::ptrdiff_t>(axis));
  }
  return out;
}

void infer_arg(InferContext& c) {
  const auto attr = parse<ArgExtremeAttrs>(c);
  const SymShape* s = c.shape(0);
  if (s == nullptr) return c.output(0, DataType::int64);
  if (s->empty()) return c.output(0, DataType::int64, SymShape{});
  const auto axis = static_cast<std::size_t>(normalize_axis(attr.axis, s->size()));
  c.output(0, DataType::int64, without_axis(*s, axis, attr.keepdims));
}

// The first NaN beats everything, as in numpy.
template <bool kMax, class C>
bool better(C x, C best, bool last) {
  if (best != best) return last && x != x;
  if (x != x) return true;
  if (last && x == best) return true;
  return kMax ? x > best : x < best;
}

template <bool kMax, class T>
void search(const T* x, std::int64_t* y, std::int64_t length, std::int64_t inner, bool last, std::vector<ComputeType<T>>& best) {
  using C = ComputeType<T>;
  for (std::int64_t i = 0; i < inner; ++i) {
    best[static_cast<std::size_t>(i)] = static_cast<C>(x[i]);
    y[i] = 0;
  }
  for (std::int64_t k = 1; k < length; ++k) {
    for (std::int64_t i = 0; i < inner; ++i) {
      const C v = static_cast<C>(x[k * inner + i]);
      if (better<kMax>(v, best[static_cast<std::size_t>(i)], last)) {
        best[static_cast<std::size_t>(i)] = v;
        y[i] = k;
      }
    }
  }
}

template <bool kMax>
void run_arg(OpContext& c) {
  const auto attr = parse<ArgExtremeAttrs>(c);
  const Tensor& in = c.input(0);
  if (in.rank() == 0) {
    c.output(0, DataType::int64, {}).template mutable_values<std::int64_t>()[0] = 0;
    return;
  }
  const Shape& shape = in.shape();
  const auto axis = static_cast<std::size_t>(normalize_axis(attr.axis, shape.size()));
  const bool last = attr.select_last_index;
  Tensor& out = c.output(0, DataType::int64, without_axis(shape, axis, attr.keepdims));
  if (out.size() == 0) return;
  const std::int64_t length = shape[axis];
  if (length == 0) c.fail("axis {} of {} is empty: there is no extreme element", axis, to_string(shape));
  const std::int64_t outer = product(shape, 0, axis);
  const std::int64_t inner = product(shape, axis + 1, shape.size());
  auto* y = static_cast<std::int64_t*>(out.mutable_data());
  dispatch(in.dtype(), NumericTypes{}, c.node().op_type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto* x = static_cast<const T*>(in.data());
    const std::int64_t grain = std::max<std::int64_t>(1, kElementGrain / (length * inner));
    parallel_for(outer, grain, [&](std::int64_t begin, std::int64_t end) {
      std::vector<ComputeType<T>> best(static_cast<std::size_t>(inner));
      for (std::int64_t o = begin; o < end; ++o) search<kMax>(x + o * length * inner, y + o * inner, length, inner, last, best);
    });
  });
}

void add(OpTable& t, const char* name, RunFn run) {
  t.add(OpDef(name, 1)
            .in("data", "T", types::numeric)
            .out("reduced", "", types::int64)
            .attrs<ArgExtremeAttrs>()
            .infer_with(infer_arg)
            .run_with(run));
}

}  // namespace

void register_arg_extreme(OpTable& t) {
  add(t, "ArgMax", run_arg<true>);
  add(t, "ArgMin", run_arg<false>);
}

}  // namespace sdx::ops
