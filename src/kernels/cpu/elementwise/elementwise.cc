#include "kernels/cpu/elementwise/elementwise.h"

#include <algorithm>

#include "base/thread_pool.h"
#include "kernels/cpu/elementwise/broadcast_rows.h"
#include "kernels/cpu/elementwise/elementwise_simd.h"

namespace sdx::cpu {
namespace {

// Minimum elements per thread: about 10 microseconds of work, a few times the cost of a fork and join.
std::int64_t grain_of(Unary op) {
  switch (op) {
    case Unary::sigmoid:
    case Unary::tanh:
    case Unary::silu:
    case Unary::gelu:
    case Unary::gelu_tanh:
    case Unary::elu:
    case Unary::selu:
    case Unary::celu:
    case Unary::softplus:
    case Unary::mish:
    case Unary::exp:
    case Unary::log:
    case Unary::erf: return 8192;
    default: return 32768;
  }
}

std::int64_t grain_of(Binary op) { return op == Binary::pow ? 1024 : 32768; }

// A row along the innermost dimension, in segments [from, to).
void row(const ElementwiseKernels& k, Binary op, const float* a, std::int64_t sa, const float* b, std::int64_t sb, float* y,
         std::int64_t n) {
  if (sa == 1 && sb == 1) return k.binary(op, a, b, y, n);
  if (sa == 1 && sb == 0) return k.scalar_right(op, a, *b, y, n);
  if (sa == 0 && sb == 1) return k.scalar_left(op, *a, b, y, n);
  // Strided operands (sliced or transposed views): gathered in pieces that stay in the first-level cache.
  float ta[256];
  float tb[256];
  for (std::int64_t i = 0; i < n; i += 256) {
    const std::int64_t len = std::min<std::int64_t>(256, n - i);
    for (std::int64_t j = 0; j < len; ++j) {
      ta[j] = a[(i + j) * sa];
      tb[j] = b[(i + j) * sb];
    }
    k.binary(op, ta, tb, y + i, len);
  }
}

// Rows so short that a call and the walk to the next one take longer than their elements: two axes at a time.
constexpr std::int64_t kShortRow = 64;

bool short_rows(Binary op, const RowPlan<2>& p) {
  const std::int64_t sa = p.inner_step[0], sb = p.inner_step[1];
  return op != Binary::pow && p.outer > 0 && p.inner <= kShortRow && sa + sb >= 1 && sa <= 1 && sb <= 1;
}

void by_planes(const ElementwiseKernels& k, Binary op, const RowPlan<2>& p, const float* a, const float* b, float* y) {
  const int axis = p.outer - 1;
  const std::int64_t rows = p.dims[axis], a_row = p.step[0][axis], b_row = p.step[1][axis], inner = p.inner;
  const OneForRow one = p.inner_step[0] == 0 ? OneForRow::left : (p.inner_step[1] == 0 ? OneForRow::right : OneForRow::none);
  if (axis == 0) {
    parallel_for(rows, std::max<std::int64_t>(1, grain_of(op) / inner), [&](std::int64_t begin, std::int64_t end) {
      k.binary_rows(op, one, a + begin * a_row, a_row, b + begin * b_row, b_row, y + begin * inner, end - begin, inner);
    });
    return;
  }
  RowPlan<2> planes = p;
  planes.outer = axis;
  planes.rows = p.rows / rows;
  planes.inner = rows * inner;
  if (planes.rows == 1) return k.binary_rows(op, one, a, a_row, b, b_row, y, rows, inner);
  parallel_rows(planes, grain_of(op), [&](const std::int64_t(&at)[2], std::int64_t out, std::int64_t) {
    k.binary_rows(op, one, a + at[0], a_row, b + at[1], b_row, y + out, rows, inner);
  });
}

}  // namespace

void unary_f32(const UnarySpec& spec, const float* x, float* y, std::int64_t n) {
  const ElementwiseKernels& k = elementwise_kernels();
  parallel_for(n, grain_of(spec.op), [&](std::int64_t b, std::int64_t e) { k.unary(spec, x + b, y + b, e - b); });
}

void binary_f32(Binary op, const float* a, const float* b, float* y, std::int64_t n) {
  const ElementwiseKernels& k = elementwise_kernels();
  parallel_for(n, grain_of(op), [&](std::int64_t f, std::int64_t e) { k.binary(op, a + f, b + f, y + f, e - f); });
}

void binary_scalar_right_f32(Binary op, const float* a, float b, float* y, std::int64_t n) {
  const ElementwiseKernels& k = elementwise_kernels();
  parallel_for(n, grain_of(op), [&](std::int64_t f, std::int64_t e) { k.scalar_right(op, a + f, b, y + f, e - f); });
}

void binary_scalar_left_f32(Binary op, float a, const float* b, float* y, std::int64_t n) {
  const ElementwiseKernels& k = elementwise_kernels();
  parallel_for(n, grain_of(op), [&](std::int64_t f, std::int64_t e) { k.scalar_left(op, a, b + f, y + f, e - f); });
}

void binary_broadcast_f32(Binary op, const float* a, const float* b, float* y, int rank, const std::int64_t* dims,
                          const std::int64_t* a_strides, const std::int64_t* b_strides) {
  const ElementwiseKernels& k = elementwise_kernels();
  const RowPlan<2> p = plan_rows<2>(rank, dims, {a_strides, b_strides});
  if (p.inner > 0 && short_rows(op, p)) return by_planes(k, op, p, a, b, y);
  parallel_rows(p, grain_of(op), [&](const std::int64_t(&at)[2], std::int64_t out, std::int64_t n) {
    row(k, op, a + at[0], p.inner_step[0], b + at[1], p.inner_step[1], y + out, n);
  });
}

}  // namespace sdx::cpu
