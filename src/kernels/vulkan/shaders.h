#pragma once
// The shaders by name, and the numbers that both sides give to what they compute. The parameters of each, in order, are the
// members of `Push` in its source.

#include <cstdint>

namespace sdx::vulkan {

#define SDX_VULKAN_SHADERS(SHADER) \
  SHADER(attention)                \
  SHADER(cast)                     \
  SHADER(compare)                  \
  SHADER(conv)                     \
  SHADER(deconv)                   \
  SHADER(depthwise)                \
  SHADER(fill)                     \
  SHADER(gather)                   \
  SHADER(map)                      \
  SHADER(move)                     \
  SHADER(norm)                     \
  SHADER(pair)                     \
  SHADER(pool)                     \
  SHADER(product)                  \
  SHADER(reduce)                   \
  SHADER(resize)                   \
  SHADER(softmax)                  \
  SHADER(where)

#define SDX_VULKAN_ENUMERATOR(name) name,
enum class Shader : std::uint32_t { SDX_VULKAN_SHADERS(SDX_VULKAN_ENUMERATOR) count };
#undef SDX_VULKAN_ENUMERATOR

inline constexpr std::uint32_t kGroup = 256;   // invocations of a workgroup
inline constexpr std::uint32_t kMostAxes = 6;  // of `pair` and `move`
inline constexpr std::uint32_t kMostConstants = 8;
inline constexpr std::uint32_t kMostPush = 128;  // bytes: what every driver has

// functions.glsl. The first ones are ops::FusedActivation, in its order.
enum class Function : std::uint32_t {
  identity,
  relu,
  tanh,
  sigmoid,
  leaky_relu,
  thresholded_relu,
  hard_sigmoid,
  hard_swish,
  clip,
  elu,
  silu,
  gelu,
  gelu_tanh,
  quick_gelu,
  softsign,
  softplus,
  selu,
  celu,
  sqrt,
  exp,
  log,
  neg,
  abs,
  erf,
  sin,
  cos,
  reciprocal,
  floor,
  ceil,
  round,
  sign,
  mish,
  count
};

inline constexpr std::uint32_t kMostHeadSize = 1024;  // attention.comp

// pair.comp
enum class Pair : std::uint32_t { add, sub, mul, div, min, max, pow, prelu };

// compare.comp. `negation` reads its first operand only.
enum class Comparison : std::uint32_t { equal, less, greater, less_or_equal, greater_or_equal, both, either, differ, negation };

// reduce.comp
enum class Reduction : std::uint32_t { sum, mean, max, min, l1, sum_square, l2, log_sum, log_sum_exp };

}  // namespace sdx::vulkan
