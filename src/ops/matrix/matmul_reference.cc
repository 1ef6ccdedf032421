#include "ops/matrix/matmul_reference.h"

#include "base/error.h"
#include "base/thread_pool.h"
#include "ops/math/broadcast.h"
#include "ops/math/float_view.h"
#include "ops/matrix/gemm_reference.h"
#include "ops/tensor/axes.h"

namespace sdx::ops {
namespace {

// Offsets, in matrices, of each operand for every batch index.
struct BatchOffsets {
  std::vector<std::int64_t> a, b;
};

BatchOffsets batch_offsets(const MatMulPlan& p) {
  BatchOffsets o;
  for_each_broadcast<2>({p.batch_a, p.batch_b}, p.batch, [&](const auto& at, const auto& step, std::int64_t, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) {
      o.a.push_back(at[0] + i * step[0]);
      o.b.push_back(at[1] + i * step[1]);
    }
  });
  return o;
}

template <class T>
void multiply(const MatMulPlan& p, const T* a, const T* b, T* out, const StopCondition& stop, bool trans_a) {
  const std::int64_t a_row = trans_a ? 1 : p.k;
  const std::int64_t a_col = trans_a ? p.m : 1;
  const std::int64_t count_b = product(p.batch_b, 0, p.batch_b.size());
  if (count_b == 1 && !trans_a) {  // one matrix b: all rows of a form one product
    const std::int64_t rows = product(p.batch, 0, p.batch.size()) * p.m;
    gemm_parallel(GemmArgs<T>{rows, p.n, p.k, a, a_row, a_col, b, p.n, out, p.n});
    return;
  }
  const BatchOffsets offsets = batch_offsets(p);
  const auto batches = static_cast<std::int64_t>(offsets.a.size());
  const auto args = [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    return GemmArgs<T>{
        p.m, p.n, p.k, a + offsets.a[at] * p.m * p.k, a_row, a_col, b + offsets.b[at] * p.k * p.n, p.n, out + i * p.m * p.n, p.n};
  };
  if (batches < 4) {
    for (std::int64_t i = 0; i < batches; ++i) gemm_parallel(args(i));
    return;
  }
  parallel_for(batches, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      stop.check();
      gemm_serial(args(i));
    }
  });
}

// b with its last two axes swapped back.
template <class T>
std::vector<T> untransposed(const MatMulPlan& p, const T* b) {
  const std::int64_t count = product(p.batch_b, 0, p.batch_b.size());
  std::vector<T> out;
  out.reserve(static_cast<std::size_t>(count * p.k * p.n));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::vector<T> one = transposed(b + i * p.k * p.n, p.n, p.k);
    out.insert(out.end(), one.begin(), one.end());
  }
  return out;
}

template <class T>
void multiply_any(const MatMulPlan& p, const T* a, const T* b, T* out, const StopCondition& stop, bool trans_a, bool trans_b) {
  if (!trans_b) return multiply(p, a, b, out, stop, trans_a);
  const std::vector<T> straight = untransposed(p, b);
  multiply(p, a, straight.data(), out, stop, trans_a);
}

Shape leading(const Shape& s) { return s.size() <= 2 ? Shape{} : Shape(s.begin(), s.end() - 2); }
SymShape leading(const SymShape& s) { return s.size() <= 2 ? SymShape{} : SymShape(s.begin(), s.end() - 2); }

}  // namespace

MatMulPlan matmul_plan(const Shape& a, const Shape& b, bool trans_a, bool trans_b) {
  if (a.empty() || b.empty()) {
    fail(ErrorCode::runtime_failure, "matrix multiplication needs operands of rank 1 or more, received {} and {}", to_string(a),
         to_string(b));
  }
  const auto at = [](const Shape& s, std::size_t from_end) { return s[s.size() - from_end]; };
  MatMulPlan p;
  p.k = a.size() == 1 ? a[0] : at(a, trans_a ? 2 : 1);
  p.m = a.size() == 1 ? 1 : at(a, trans_a ? 1 : 2);
  const std::int64_t kb = b.size() == 1 ? b[0] : at(b, trans_b ? 1 : 2);
  p.n = b.size() == 1 ? 1 : at(b, trans_b ? 2 : 1);
  if (kb != p.k) {
    fail(ErrorCode::runtime_failure, "matrix shapes {} and {} do not fit: the inner extents are {} and {}", to_string(a),
         to_string(b), p.k, kb);
  }
  p.batch_a = leading(a);
  p.batch_b = leading(b);
  p.batch = broadcast_shapes(p.batch_a, p.batch_b);
  p.output = p.batch;
  if (a.size() > 1) p.output.push_back(p.m);
  if (b.size() > 1) p.output.push_back(p.n);
  return p;
}

SymShape matmul_shape(const SymShape& a, const SymShape& b, bool trans_a, bool trans_b) {
  if (a.empty() || b.empty()) {
    fail(ErrorCode::invalid_model, "matrix multiplication needs operands of rank 1 or more, received {} and {}", to_string(a),
         to_string(b));
  }
  const auto at = [](const SymShape& s, std::size_t from_end) { return s[s.size() - from_end]; };
  const Dim ka = a.size() == 1 ? a[0] : at(a, trans_a ? 2 : 1);
  const Dim kb = b.size() == 1 ? b[0] : at(b, trans_b ? 1 : 2);
  if (ka.is_const() && kb.is_const() && ka.value() != kb.value()) {
    fail(ErrorCode::invalid_model, "matrix shapes {} and {} do not fit: the inner extents are {} and {}", to_string(a),
         to_string(b), ka.value(), kb.value());
  }
  SymShape out = broadcast_shapes(leading(a), leading(b));
  if (a.size() > 1) out.push_back(at(a, trans_a ? 1 : 2));
  if (b.size() > 1) out.push_back(at(b, trans_b ? 2 : 1));
  return out;
}

void matmul_reference(const MatMulPlan& p, const Tensor& a, const Tensor& b, Tensor& out, const StopCondition& stop, bool trans_a,
                      bool trans_b, float alpha) {
  if (out.size() == 0) return;
  trans_a = trans_a && a.rank() > 1;
  trans_b = trans_b && b.rank() > 1;
  const auto integers = [&](auto tag) {
    using T = typename decltype(tag)::type;
    multiply_any(p, static_cast<const T*>(a.data()), static_cast<const T*>(b.data()), static_cast<T*>(out.mutable_data()), stop,
                 trans_a, trans_b);
  };
  switch (a.dtype()) {
    case DataType::int32:
    case DataType::uint32: return integers(TypeTag<std::uint32_t>{});
    case DataType::int64:
    case DataType::uint64: return integers(TypeTag<std::uint64_t>{});
    default: break;
  }
  dispatch_compute(a.dtype(), "matrix multiplication", [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> fa(a), fb(b);
    FloatOutput<C> fo(out);
    multiply_any(p, fa.data(), fb.data(), fo.data(), stop, trans_a, trans_b);
    if (alpha != 1.0F) {
      for (std::int64_t i = 0; i < out.size(); ++i) fo[i] *= static_cast<C>(alpha);
    }
    fo.store();
  });
}

}  // namespace sdx::ops
