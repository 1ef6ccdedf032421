#include "kernels/cpu/elementwise.h"

#include <algorithm>

#include "base/thread_pool.h"
#include "kernels/cpu/elementwise_kernels.h"

namespace sdx::cpu {
namespace {

constexpr int kMaxRank = 8;

// Elements a thread should have at least: about 10 microseconds of work, a few times the cost of a fork and join.
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

// Dimensions left after merging neighbours that both operands step through evenly; outermost first.
struct Merged {
  int rank = 0;
  std::int64_t dims[kMaxRank];
  std::int64_t a[kMaxRank];
  std::int64_t b[kMaxRank];
};

Merged merge(int rank, const std::int64_t* dims, const std::int64_t* a, const std::int64_t* b) {
  Merged m;
  for (int i = 0; i < rank; ++i) {
    if (dims[i] == 1) continue;
    const int last = m.rank - 1;
    if (last >= 0 && m.a[last] == a[i] * dims[i] && m.b[last] == b[i] * dims[i]) {
      m.dims[last] *= dims[i];
      m.a[last] = a[i];
      m.b[last] = b[i];
      continue;
    }
    m.dims[m.rank] = dims[i];
    m.a[m.rank] = a[i];
    m.b[m.rank] = b[i];
    ++m.rank;
  }
  if (m.rank == 0) {
    m.rank = 1;
    m.dims[0] = 1;
    m.a[0] = m.b[0] = 1;
  }
  return m;
}

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
  for (int i = 0; i < rank; ++i) {
    if (dims[i] <= 0) return;
  }
  const ElementwiseKernels& k = elementwise_kernels();
  const Merged m = merge(rank, dims, a_strides, b_strides);
  const int inner_dim = m.rank - 1;
  const std::int64_t inner = m.dims[inner_dim];
  std::int64_t rows = 1;
  for (int i = 0; i < inner_dim; ++i) rows *= m.dims[i];
  const std::int64_t sa = m.a[inner_dim];
  const std::int64_t sb = m.b[inner_dim];
  if (rows == 1) {
    parallel_for(inner, grain_of(op),
                 [&](std::int64_t f, std::int64_t e) { row(k, op, a + f * sa, sa, b + f * sb, sb, y + f, e - f); });
    return;
  }
  parallel_for(rows, std::max<std::int64_t>(1, grain_of(op) / inner), [&](std::int64_t begin, std::int64_t end) {
    std::int64_t index[kMaxRank] = {};
    std::int64_t rest = begin;
    const float* pa = a;
    const float* pb = b;
    for (int i = inner_dim - 1; i >= 0; --i) {
      index[i] = rest % m.dims[i];
      rest /= m.dims[i];
      pa += index[i] * m.a[i];
      pb += index[i] * m.b[i];
    }
    for (std::int64_t r = begin; r < end; ++r) {
      row(k, op, pa, sa, pb, sb, y + r * inner, inner);
      for (int i = inner_dim - 1; i >= 0; --i) {
        pa += m.a[i];
        pb += m.b[i];
        if (++index[i] < m.dims[i]) break;
        index[i] = 0;
        pa -= m.a[i] * m.dims[i];
        pb -= m.b[i] * m.dims[i];
      }
    }
  });
}

void bias_act_rows_f32(const float* x, const float* bias, std::int64_t channels, const float* residual, const UnarySpec& act,
                       float* y, std::int64_t rows, std::int64_t inner) {
  if (inner <= 0) return;
  const ElementwiseKernels& k = elementwise_kernels();
  parallel_for(rows, std::max<std::int64_t>(1, grain_of(act.op) / inner), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      k.bias_act(x + r * inner, bias != nullptr ? bias[r % channels] : 0.0F, residual != nullptr ? residual + r * inner : nullptr,
                 act, y + r * inner, inner);
    }
  });
}

}  // namespace sdx::cpu
