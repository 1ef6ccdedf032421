#include "providers/cpu/denormals.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

namespace sdx::cpu {
namespace {

// 1 for a denormal number: no exponent, but a fraction. Without a branch, so that a loop of it becomes vectors.
std::uint32_t is_denormal(float x) {
  const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(x) & 0x7FFFFFFFU;
  const std::uint32_t no_exponent = ((magnitude >> 23) - 1) >> 31, not_zero = (0U - magnitude) >> 31;
  return no_exponent & not_zero;
}

bool any_denormal(std::span<const float> x) {
  std::uint32_t found = 0;
  for (const float v : x) found |= is_denormal(v);
  return found != 0;
}

}  // namespace

Tensor without_denormals(const Tensor& weights) {
  if (weights.dtype() != DataType::float32 || weights.size() == 0) return weights;
  Tensor aligned = weights.is_aligned() ? weights : weights.aligned();
  const auto x = aligned.values<float>();
  if (!any_denormal(x)) return aligned;
  Tensor out(DataType::float32, weights.shape());
  std::transform(x.begin(), x.end(), out.mutable_values<float>().begin(), [](float v) { return is_denormal(v) != 0 ? 0.0F : v; });
  return out;
}

}  // namespace sdx::cpu
