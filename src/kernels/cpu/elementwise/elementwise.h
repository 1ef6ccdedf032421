#pragma once
// Elementwise float kernels.
//
// Common contract: pointers need no alignment beyond that of float; the output may be the same array as an input (in
// place) but must not overlap it otherwise; calls are thread-safe and split their work over current_pool(). NaN inputs give
// NaN outputs unless said otherwise. No allocation.

#include <cstdint>

namespace sdx::cpu {

// Functions of one variable. `a` and `b` are the operator's attributes.
// Accuracy against the exact result: exp, log, tanh, sigmoid, erf, silu (a = 1), softplus within 4 ulp; gelu within 4 ulp
// or 3e-7, gelu_tanh 4 ulp or 1e-6. sigmoid and silu return 0 if the result would be below 1e-38.
enum class Unary : std::uint8_t {
  none,
  relu,
  clip,          // min(max(x, a), b)
  leaky_relu,    // x < 0 ? a x : x
  hard_sigmoid,  // clip(a x + b, 0, 1)
  hard_swish,    // x clip(x / 6 + 1/2, 0, 1)
  sigmoid,
  tanh,
  silu,              // x sigmoid(a x): ONNX Swish with alpha, a = 1 for SiLU, 1.702 for QuickGelu
  gelu,              // x (1 + erf(x / sqrt 2)) / 2
  gelu_tanh,         // the tanh approximation of gelu
  elu,               // x < 0 ? a (exp(x) - 1) : x
  selu,              // b (x < 0 ? a (exp(x) - 1) : x)
  celu,              // max(0, x) + min(0, a (exp(x / a) - 1)); a != 0
  softplus,          // log(1 + exp(x))
  softsign,          // x / (1 + |x|)
  mish,              // x tanh(softplus(x))
  thresholded_relu,  // x > a ? x : 0
  shrink,            // x > a ? x - b : (x < -a ? x + b : 0); 0 for NaN
  abs,
  neg,
  exp,
  log,
  sqrt,
  reciprocal,
  rsqrt,  // 1 / sqrt(x)
  erf,
  floor,
  ceil,
  round,  // half to even
  sign,
  square,
  affine,  // a x + b
};

struct UnarySpec {
  Unary op = Unary::none;
  float a = 0.0F;
  float b = 0.0F;
};

// y[i] = f(x[i]) for i < n.
void unary_f32(const UnarySpec& spec, const float* x, float* y, std::int64_t n);

// Functions of two variables. min and max return NaN if either operand is NaN (as NumPy's minimum and maximum do).
enum class Binary : std::uint8_t { add, sub, mul, div, min, max, pow, prelu, relu_grad };
// prelu: a < 0 ? a b : a; relu_grad: b > 0 ? a : 0

// y[i] = f(a[i], b[i]) for i < n.
void binary_f32(Binary op, const float* a, const float* b, float* y, std::int64_t n);
// y[i] = f(a[i], b) and y[i] = f(a, b[i]).
void binary_scalar_right_f32(Binary op, const float* a, float b, float* y, std::int64_t n);
void binary_scalar_left_f32(Binary op, float a, const float* b, float* y, std::int64_t n);

// NumPy-style broadcasting over `rank` <= 8 dimensions: y is dense with extents `dims`; `a_strides` and `b_strides` count
// elements and are 0 along broadcast dimensions. Covers rows ([n, c] with [c]), channels ([n, c, h, w] with [c, 1, 1]) and
// everything else; the innermost merged dimension is vectorised. In-place only where that operand is not broadcast.
void binary_broadcast_f32(Binary op, const float* a, const float* b, float* y, int rank, const std::int64_t* dims,
                          const std::int64_t* a_strides, const std::int64_t* b_strides);

}  // namespace sdx::cpu
