#include "kernels/cpu/elements/activations.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/thread_pool.h"
#include "kernels/cpu/elements/functions.h"
#include "kernels/cpu/elements/halves.h"

namespace sdx::cpu {
namespace {

constexpr DataType kReal = DataType::float64;
// The number of elements of a part: all steps on them stay in the first-level cache.
constexpr std::int64_t kPart = 512;
constexpr std::int64_t kGrain = 4096;

// A part of the numbers, to which functions are applied one after the other.
struct Part {
  double* to;
  std::int64_t n;

  Part& map(UnaryFn fn, const double* x) {
    unary_row(fn, kReal)(x, to, n);
    return *this;
  }
  Part& map(UnaryFn fn) { return map(fn, to); }
  Part& pair(BinaryFn fn, const double* x, double scalar) {
    binary_row(fn, kReal)(x, 1, &scalar, 0, to, n);
    return *this;
  }
  Part& pair(BinaryFn fn, double scalar) { return pair(fn, to, scalar); }
  Part& clip(double low, double high) { return pair(BinaryFn::maximum, low).pair(BinaryFn::minimum, high); }
  // Applies a function to x and what the part holds.
  Part& with(BinaryFn fn, const double* x) {
    binary_row(fn, kReal)(x, 1, to, 1, to, n);
    return *this;
  }
};

// Computes x for numbers from 0 on, and a (exp(x / scale) - 1) below 0.
void exponential(Part& p, const double* x, double a, double scale) {
  double positive[kPart];
  Part{positive, p.n}.map(UnaryFn::relu, x);
  p.pair(BinaryFn::minimum, x, 0);
  if (scale != 1) p.pair(BinaryFn::divide, scale);
  p.map(UnaryFn::expm1).pair(BinaryFn::multiply, a).with(BinaryFn::add, positive);
}

void gated(Part& p, const double* x, double a) {
  p.pair(BinaryFn::multiply, x, a).map(UnaryFn::sigmoid).with(BinaryFn::multiply, x);
}

// Computes 1 + erf(u) as erfc(-u), which has no cancellation.
void exact_gelu(Part& p, const double* x) {
  for (std::int64_t i = 0; i < p.n; ++i) p.to[i] = 0.5 * x[i] * std::erfc(-x[i] * 0.7071067811865476);
}

// Computes (1 + tanh(u)) / 2 as sigmoid(2 u), which keeps its digits for negative u.
void tanh_gelu(Part& p, const double* x) {
  p.map(UnaryFn::square, x).pair(BinaryFn::multiply, 0.044715).with(BinaryFn::multiply, x).with(BinaryFn::add, x);
  p.pair(BinaryFn::multiply, 2 * 0.7978845608028654).map(UnaryFn::sigmoid).with(BinaryFn::multiply, x);  // sqrt(2 / pi)
}

void thresholded(Part& p, const double* x, double a) {
  std::uint8_t above[kPart];
  constexpr double kZero = 0;
  binary_row(BinaryFn::less, kReal)(&a, 0, x, 1, above, p.n);
  select_row(sizeof(double))(above, 1, x, 1, &kZero, 0, p.to, p.n);
}

void shrunk(Part& p, const double* x, double a, double b) {
  for (std::int64_t i = 0; i < p.n; ++i) p.to[i] = x[i] > a ? x[i] - b : (x[i] < -a ? x[i] + b : 0);
}

// Returns the function of functions.h that an activation is, if it is just one.
std::optional<UnaryFn> single(Unary op) {
  switch (op) {
    case Unary::relu: return UnaryFn::relu;
    case Unary::sigmoid: return UnaryFn::sigmoid;
    case Unary::tanh: return UnaryFn::tanh;
    case Unary::abs: return UnaryFn::abs;
    case Unary::neg: return UnaryFn::negative;
    case Unary::exp: return UnaryFn::exp;
    case Unary::log: return UnaryFn::log;
    case Unary::sqrt: return UnaryFn::sqrt;
    case Unary::reciprocal: return UnaryFn::reciprocal;
    case Unary::rsqrt: return UnaryFn::rsqrt;
    case Unary::erf: return UnaryFn::erf;
    case Unary::floor: return UnaryFn::floor;
    case Unary::ceil: return UnaryFn::ceil;
    case Unary::round: return UnaryFn::round;
    case Unary::sign: return UnaryFn::sign;
    case Unary::square: return UnaryFn::square;
    default: return std::nullopt;
  }
}

// Computes at most kPart elements; `to` and x do not overlap.
void compute(const UnarySpec& spec, const double* x, double* to, std::int64_t n) {
  Part p{to, n};
  const double a = spec.a, b = spec.b;
  if (const auto fn = single(spec.op)) {
    p.map(*fn, x);
    return;
  }
  switch (spec.op) {
    case Unary::clip: p.pair(BinaryFn::maximum, x, a).pair(BinaryFn::minimum, b); return;
    case Unary::leaky_relu: p.pair(BinaryFn::prelu, x, a); return;
    case Unary::hard_sigmoid: p.pair(BinaryFn::multiply, x, a).pair(BinaryFn::add, b).clip(0, 1); return;
    case Unary::hard_swish:
      p.pair(BinaryFn::divide, x, 6).pair(BinaryFn::add, 0.5).clip(0, 1).with(BinaryFn::multiply, x);
      return;
    case Unary::silu: return gated(p, x, a);
    case Unary::gelu: return exact_gelu(p, x);
    case Unary::gelu_tanh: return tanh_gelu(p, x);
    case Unary::elu: return exponential(p, x, a, 1);
    case Unary::selu:
      exponential(p, x, a, 1);
      p.pair(BinaryFn::multiply, b);
      return;
    case Unary::celu: return exponential(p, x, a, a);
    case Unary::softplus: p.pair(BinaryFn::logaddexp, x, 0); return;
    case Unary::softsign: p.map(UnaryFn::abs, x).pair(BinaryFn::add, 1).with(BinaryFn::divide, x); return;
    case Unary::mish: p.pair(BinaryFn::logaddexp, x, 0).map(UnaryFn::tanh).with(BinaryFn::multiply, x); return;
    case Unary::thresholded_relu: return thresholded(p, x, a);
    case Unary::shrink: return shrunk(p, x, a, b);
    case Unary::affine: p.pair(BinaryFn::multiply, x, a).pair(BinaryFn::add, b); return;
    default: std::copy_n(x, n, to);
  }
}

void float64_range(const UnarySpec& spec, const double* x, double* y, std::int64_t n) {
  double part[kPart];
  for (std::int64_t i = 0; i < n; i += kPart) {
    const std::int64_t count = std::min(kPart, n - i);
    compute(spec, x + i, part, count);
    std::copy_n(part, count, y + i);
  }
}

void half_range(const UnarySpec& spec, DataType type, const std::uint16_t* x, std::uint16_t* y, std::int64_t n) {
  float part[kPart];
  for (std::int64_t i = 0; i < n; i += kPart) {
    const std::int64_t count = std::min(kPart, n - i);
    widen(type, x + i, part, count);
    unary_f32(spec, part, part, count);
    narrow(type, part, y + i, count);
  }
}

}  // namespace

void activation(const UnarySpec& spec, DataType type, const void* x, void* y, std::int64_t n) {
  parallel_for(n, kGrain, [&](std::int64_t begin, std::int64_t end) {
    if (type == kReal)
      return float64_range(spec, static_cast<const double*>(x) + begin, static_cast<double*>(y) + begin, end - begin);
    half_range(spec, type, static_cast<const std::uint16_t*>(x) + begin, static_cast<std::uint16_t*>(y) + begin, end - begin);
  });
}

}  // namespace sdx::cpu
