// TopK: ai.onnx 1 (k is an attribute), 10 (k is an input), 11 (largest, sorted), 24.

#include <algorithm>
#include <vector>

#include "ops/math/elementwise.h"
#include "ops/op.h"
#include "ops/reduce/signatures.h"
#include "ops/tensor/axes.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

void check_k(std::int64_t k, std::int64_t extent) {
  if (k < 0 || k > extent) fail(ErrorCode::invalid_model, "k is {}; permitted: 0 to the axis' extent {}", k, extent);
}

std::int64_t k_of(const Tensor& t) {
  if (t.size() != 1) fail(ErrorCode::invalid_model, "k must be one integer, received {}", t.type_string());
  return to_ints(t)[0];
}

void infer_top_k(InferContext& c) {
  const auto attr = parse<TopKAttrs>(c);
  const SymShape* s = c.shape(0);
  if (s == nullptr) {
    c.output(0, c.dtype(0));
    return c.output(1, DataType::int64);
  }
  const auto axis = static_cast<std::size_t>(normalize_axis(attr.axis, s->size()));
  Dim k;
  if (!attr.k_is_input) {
    k = attr.k;
  } else if (const auto* sym = c.sym(1); sym != nullptr && sym->size() == 1) {
    k = (*sym)[0];
  }
  if (k.is_const() && (k.value() < 0 || (*s)[axis].is_const())) {
    check_k(k.value(), (*s)[axis].is_const() ? (*s)[axis].value() : INT64_MAX);
  }
  SymShape out = *s;
  out[axis] = k;
  c.output(0, c.dtype(0), out);
  c.output(1, DataType::int64, std::move(out));
}

template <class C>
struct Candidate {
  C value;
  std::int64_t index;
};

// A strict order, also with NaN, which counts as larger than everything (as numpy sorts it). Ties: the lower index first.
template <class C>
bool ahead(const Candidate<C>& a, const Candidate<C>& b, bool largest) {
  const bool a_nan = a.value != a.value;
  const bool b_nan = b.value != b.value;
  if (a_nan || b_nan) {
    if (a_nan != b_nan) return a_nan == largest;
    return a.index < b.index;
  }
  if (a.value != b.value) return largest ? a.value > b.value : a.value < b.value;
  return a.index < b.index;
}

template <class C>
void select(std::vector<Candidate<C>>& lane, std::int64_t k, bool largest) {
  const auto compare = [largest](const Candidate<C>& a, const Candidate<C>& b) { return ahead(a, b, largest); };
  const auto middle = lane.begin() + k;
  // A heap of k pays off while k is small; beyond that, partition first.
  if (k <= 64) return std::partial_sort(lane.begin(), middle, lane.end(), compare);
  if (middle != lane.end()) std::nth_element(lane.begin(), middle, lane.end(), compare);
  std::sort(lane.begin(), middle, compare);
}

void run_top_k(OpContext& c) {
  const auto attr = parse<TopKAttrs>(c);
  const Tensor& in = c.input(0);
  const Shape& shape = in.shape();
  const auto axis = static_cast<std::size_t>(normalize_axis(attr.axis, shape.size()));
  const std::int64_t k = attr.k_is_input ? k_of(c.input(TopKIn::kK)) : attr.k;
  const bool largest = attr.largest;
  const std::int64_t length = shape[axis];
  check_k(k, length);
  Shape out_shape = shape;
  out_shape[axis] = k;
  Tensor& values = c.output(0, in.dtype(), out_shape);
  Tensor& indices = c.output(1, DataType::int64, out_shape);
  if (values.size() == 0) return;
  const std::int64_t inner = product(shape, axis + 1, shape.size());
  auto* at = static_cast<std::int64_t*>(indices.mutable_data());
  dispatch(in.dtype(), NumericTypes{}, "TopK", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ComputeType<T>;
    const auto* x = static_cast<const T*>(in.data());
    auto* y = static_cast<T*>(values.mutable_data());
    const std::int64_t grain = std::max<std::int64_t>(1, 4096 / length);
    parallel_for(in.size() / length, grain, [&](std::int64_t begin, std::int64_t end) {
      std::vector<Candidate<C>> lane(static_cast<std::size_t>(length));
      for (std::int64_t l = begin; l < end; ++l) {
        c.stop().check();
        const T* from = x + l / inner * inner * length + l % inner;
        for (std::int64_t i = 0; i < length; ++i) lane[static_cast<std::size_t>(i)] = {static_cast<C>(from[i * inner]), i};
        select(lane, k, largest);
        const std::int64_t to = l / inner * inner * k + l % inner;
        for (std::int64_t i = 0; i < k; ++i) {
          const std::int64_t index = lane[static_cast<std::size_t>(i)].index;
          y[to + i * inner] = from[index * inner];
          at[to + i * inner] = index;
        }
      }
    });
  });
}

}  // namespace

void register_top_k(OpTable& t) {
  OpDef top_k("TopK", 1);
  top_k.in("X", "T", types::numeric).out("Values", "T", types::numeric).out("Indices", "I", types::int64).attrs<TopKAttrs>();
  t.add(std::move(top_k).infer_with(infer_top_k).run_with(run_top_k));
  OpDef top_k_10("TopK", 10);
  top_k_10.in("X", "T", types::numeric).in("K", "", types::int64).out("Values", "T", types::numeric);
  top_k_10.out("Indices", "I", types::int64).attrs<TopKAttrs>();
  t.add(std::move(top_k_10).infer_with(infer_top_k).run_with(run_top_k));
}

}  // namespace sdx::ops
