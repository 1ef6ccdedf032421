// Softmax, LogSoftmax, Hardmax. ai.onnx 1, 11: the input is flattened to two axes at `axis` (default 1), rows are normalised;
// 13: along the one axis `axis` (default -1).

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/math/elementwise.h"
#include "ops/op.h"
#include "ops/reduce/signatures.h"
#include "ops/tensor/axes.h"

namespace sdx::ops {
namespace {

// The extents before, along and after the normalised axes.
struct Lanes {
  std::int64_t outer, length, inner;
};

// Before opset 13 an axis equal to the rank is possible: each element is a row of its own.
std::int64_t checked_axis(const SoftmaxAttrs& attr, std::size_t rank) {
  const std::int64_t axis = attr.axis;
  if (attr.flattened && axis == static_cast<std::int64_t>(rank)) return axis;
  // A scalar counts as one row of one element.
  if (rank == 0) {
    if (axis < -1 || axis > 0) fail(ErrorCode::invalid_model, "axis {} is out of range for a scalar", axis);
    return 0;
  }
  return normalize_axis(axis, rank);
}

Lanes lanes_of(const OpContext& c, const Shape& shape) {
  const auto attr = parse<SoftmaxAttrs>(c);
  const auto axis = static_cast<std::size_t>(checked_axis(attr, shape.size()));
  if (shape.empty()) return {1, 1, 1};
  if (attr.flattened) return {product(shape, 0, axis), product(shape, axis, shape.size()), 1};
  return {product(shape, 0, axis), shape[axis], product(shape, axis + 1, shape.size())};
}

void infer_softmax(InferContext& c) {
  infer_same(c);
  if (const SymShape* s = c.shape(0)) checked_axis(parse<SoftmaxAttrs>(c), s->size());
}

// One block of length x inner numbers, in place. top and sum hold inner numbers each.
template <class C>
void softmax_block(C* x, std::int64_t length, std::int64_t inner, bool log, C* top, C* sum) {
  std::copy(x, x + inner, top);
  for (std::int64_t k = 1; k < length; ++k) {
    for (std::int64_t i = 0; i < inner; ++i) top[i] = std::max(top[i], x[k * inner + i]);
  }
  std::fill(sum, sum + inner, C(0));
  for (std::int64_t k = 0; k < length; ++k) {
    C* row = x + k * inner;
    for (std::int64_t i = 0; i < inner; ++i) {
      row[i] -= top[i];
      const C e = std::exp(row[i]);
      sum[i] += e;
      if (!log) row[i] = e;
    }
  }
  for (std::int64_t i = 0; i < inner; ++i) sum[i] = log ? std::log(sum[i]) : C(1) / sum[i];
  for (std::int64_t k = 0; k < length; ++k) {
    C* row = x + k * inner;
    for (std::int64_t i = 0; i < inner; ++i) row[i] = log ? row[i] - sum[i] : row[i] * sum[i];
  }
}

// Ones at the first largest element.
template <class C>
void hardmax_block(C* x, std::int64_t length, std::int64_t inner, std::vector<std::int64_t>& best) {
  std::fill(best.begin(), best.end(), 0);
  for (std::int64_t k = 1; k < length; ++k) {
    for (std::int64_t i = 0; i < inner; ++i) {
      std::int64_t& b = best[static_cast<std::size_t>(i)];
      if (x[k * inner + i] > x[b * inner + i]) b = k;
    }
  }
  std::fill(x, x + length * inner, C(0));
  for (std::int64_t i = 0; i < inner; ++i) x[best[static_cast<std::size_t>(i)] * inner + i] = C(1);
}

enum class Kind { softmax, log_softmax, hardmax };

template <Kind K>
void run_softmax(OpContext& c) {
  const Tensor& in = c.input(0);
  const Lanes lanes = lanes_of(c, in.shape());
  Tensor& out = c.output(0, in.dtype(), in.shape());
  if (in.size() == 0) return;
  dispatch(in.dtype(), FloatTypes{}, c.node().op_type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ComputeType<T>;
    const auto* x = static_cast<const T*>(in.data());
    auto* y = static_cast<T*>(out.mutable_data());
    const std::int64_t block = lanes.length * lanes.inner;
    parallel_for(lanes.outer, std::max<std::int64_t>(1, 4096 / block), [&](std::int64_t begin, std::int64_t end) {
      const auto inner = static_cast<std::size_t>(lanes.inner);
      std::vector<C> buffer(static_cast<std::size_t>(block));
      std::vector<C> top(inner);
      std::vector<C> sum(inner);
      std::vector<std::int64_t> best(K == Kind::hardmax ? inner : 0);
      for (std::int64_t o = begin; o < end; ++o) {
        for (std::int64_t i = 0; i < block; ++i) buffer[static_cast<std::size_t>(i)] = static_cast<C>(x[o * block + i]);
        if constexpr (K == Kind::hardmax) {
          hardmax_block(buffer.data(), lanes.length, lanes.inner, best);
        } else {
          softmax_block(buffer.data(), lanes.length, lanes.inner, K == Kind::log_softmax, top.data(), sum.data());
        }
        for (std::int64_t i = 0; i < block; ++i) y[o * block + i] = static_cast<T>(buffer[static_cast<std::size_t>(i)]);
      }
    });
  });
}

void add(OpTable& t, const char* name, RunFn run) {
  t.add(OpDef(name, 1)
            .in("input", "T", types::floats)
            .out("output", "T", types::floats)
            .attrs<SoftmaxAttrs>()
            .infer_with(infer_softmax)
            .run_with(run));
}

}  // namespace

void register_softmax(OpTable& t) {
  add(t, "Softmax", run_softmax<Kind::softmax>);
  add(t, "LogSoftmax", run_softmax<Kind::log_softmax>);
  add(t, "Hardmax", run_softmax<Kind::hardmax>);
}

}  // namespace sdx::ops
