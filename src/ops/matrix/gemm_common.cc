#include "ops/matrix/gemm_common.h"

#include "ops/math/broadcast.h"
#include "ops/math/float_view.h"
#include "ops/matrix/gemm_reference.h"
#include "ops/matrix/signatures.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

using enum GemmIn::Slot;

struct GemmSizes {
  std::int64_t m, n, k;
};

// Before opset 7 A and B may have more axes: those after the first count as one.
Shape as_matrix(OpContext& c, const Shape& s, const char* which) {
  if (s.size() == 2) return s;
  if (c.version() < 7 && s.size() > 2) {
    std::int64_t rest = 1;
    for (std::size_t i = 1; i < s.size(); ++i) rest *= s[i];
    return {s[0], rest};
  }
  fail(ErrorCode::runtime_failure, "{} must be a matrix (rank 2), received shape {}", which, to_string(s));
}

GemmSizes sizes_of(OpContext& c, const GemmAttrs& g) {
  const Shape a = as_matrix(c, c.input(kA).shape(), "A");
  const Shape b = as_matrix(c, c.input(kB).shape(), "B");
  const std::int64_t ka = a[g.trans_a ? 0 : 1];
  const std::int64_t kb = b[g.trans_b ? 1 : 0];
  if (ka != kb) {
    c.fail("A {} and B {} (transA {}, transB {}) do not fit: the inner extents are {} and {}", to_string(a), to_string(b),
           g.trans_a, g.trans_b, ka, kb);
  }
  return {a[g.trans_a ? 1 : 0], b[g.trans_b ? 0 : 1], ka};
}

template <class T>
void product_of(const GemmSizes& s, const GemmAttrs& g, const T* a, const T* b, T* y) {
  if (g.trans_b && !g.trans_a && s.m == 1) {  // one row: a product with a vector, which spares the transposition
    return gemm_parallel(GemmArgs<T>{s.n, 1, s.k, b, s.k, 1, a, 1, y, 1});
  }
  std::vector<T> straight;
  if (g.trans_b) {
    straight = transposed(b, s.n, s.k);
    b = straight.data();
  }
  gemm_parallel(GemmArgs<T>{s.m, s.n, s.k, a, g.trans_a ? 1 : s.k, g.trans_a ? s.m : 1, b, s.n, y, s.n});
}

// Calls fn(y index, c index) for every element.
template <class F>
void for_each_c(const Shape& c_shape, const Shape& out, F&& fn) {
  if (broadcast_shapes(out, c_shape) != out) {
    fail(ErrorCode::runtime_failure, "C {} cannot be broadcast to {}", to_string(c_shape), to_string(out));
  }
  for_each_broadcast<1>({c_shape}, out, [&](const auto& at, const auto& step, std::int64_t o, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) fn(o + i, at[0] + i * step[0]);
  });
}

void run_integers(const GemmSizes& s, const GemmAttrs& g, const Tensor& a, const Tensor& b, const Tensor* bias, Tensor& y) {
  const auto run = [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto* out = static_cast<T*>(y.mutable_data());
    product_of(s, g, static_cast<const T*>(a.data()), static_cast<const T*>(b.data()), out);
    if (g.alpha == 1.0F && (bias == nullptr || g.beta == 1.0F)) {
      if (bias == nullptr) return;
      const auto* p = static_cast<const T*>(bias->data());
      for_each_c(bias->shape(), y.shape(), [&](std::int64_t i, std::int64_t at) { out[i] += p[at]; });
      return;
    }
    for (std::int64_t i = 0; i < y.size(); ++i) set_element(y, i, g.alpha * element_as_double(y, i));
    if (bias == nullptr) return;
    for_each_c(bias->shape(), y.shape(), [&](std::int64_t i, std::int64_t at) {
      set_element(y, i, element_as_double(y, i) + g.beta * element_as_double(*bias, at));
    });
  };
  if (bit_width(y.dtype()) == 32) {
    run(TypeTag<std::uint32_t>{});
  } else {
    run(TypeTag<std::uint64_t>{});
  }
}

void run_floats(const GemmSizes& s, const GemmAttrs& g, const Tensor& a, const Tensor& b, const Tensor* bias, Tensor& y) {
  dispatch_compute(a.dtype(), "Gemm", [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> fa(a), fb(b), fc(bias);
    FloatOutput<C> fy(y);
    product_of(s, g, fa.data(), fb.data(), fy.data());
    if (g.alpha != 1.0F) {
      for (std::int64_t i = 0; i < y.size(); ++i) fy[i] *= static_cast<C>(g.alpha);
    }
    // beta 0 means that C is not read: its NaNs do not matter.
    if (bias != nullptr && g.beta != 0.0F) {
      const C beta = static_cast<C>(g.beta);
      for_each_c(bias->shape(), y.shape(), [&](std::int64_t i, std::int64_t at) { fy[i] += beta * fc[at]; });
    }
    fy.store();
  });
}

}  // namespace

void infer_gemm(InferContext& c) {
  const auto g = parse<GemmAttrs>(c);
  const DataType elem = c.dtype(kA) != DataType::undefined ? c.dtype(kA) : c.dtype(kB);
  const SymShape* a = c.shape(kA);
  const SymShape* b = c.shape(kB);
  const std::size_t most = c.version() < 7 && c.node().domain.empty() ? SIZE_MAX : 2;
  for (const SymShape* s : {a, b}) {
    if (s != nullptr && (s->size() < 2 || s->size() > most)) {
      c.fail("Gemm multiplies matrices (rank 2), received shape {}", to_string(*s));
    }
  }
  const auto extent = [](const SymShape* s, bool first) {
    if (s == nullptr) return Dim();
    if (first) return (*s)[0];
    Dim rest(1);
    for (std::size_t i = 1; i < s->size(); ++i) rest = rest * (*s)[i];
    return rest;
  };
  const Dim ka = extent(a, g.trans_a);
  const Dim kb = extent(b, !g.trans_b);
  if (ka.is_const() && kb.is_const() && ka.value() != kb.value()) {
    c.fail("A {} and B {} (transA {}, transB {}) do not fit: the inner extents are {} and {}", to_string(*a), to_string(*b),
           g.trans_a, g.trans_b, ka.value(), kb.value());
  }
  c.output(0, elem, {extent(a, !g.trans_a), extent(b, g.trans_b)});
}

Tensor& run_gemm(OpContext& c) {
  const auto g = parse<GemmAttrs>(c);
  const GemmSizes s = sizes_of(c, g);
  const Tensor& a = c.input(kA);
  Tensor& y = c.output(0, a.dtype(), {s.m, s.n});
  if (is_floating(a.dtype())) {
    run_floats(s, g, a, c.input(kB), c.optional_input(kC), y);
  } else {
    run_integers(s, g, a, c.input(kB), c.optional_input(kC), y);
  }
  return y;
}

}  // namespace sdx::ops
