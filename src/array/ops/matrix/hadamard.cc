// Products by Hadamard matrices.

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>

#include <sdx/array.hpp>

#include "array/ops/common.h"

namespace sdx::array {
namespace detail {
namespace {

// In row i, a set bit j means that element [i, j] is -1. There are many Hadamard matrices of each size; these are MLX's.
constexpr std::uint32_t k12[] = {0x2, 0xAAB, 0x3C8, 0x96E, 0xF20, 0x5BA, 0xC8C, 0x6E6, 0x23C, 0xB96, 0x8F0, 0xE5A};
constexpr std::uint32_t k20[] = {0x933DE, 0x2E3BD, 0x5477B, 0xA0EF7, 0x499EF, 0x637C1, 0xC6BA2, 0x8D764, 0x1AEE8, 0x359F0,
                                 0xFA53,  0x174A7, 0x26D4E, 0x45E9C, 0x83D39, 0xF7A6D, 0xEF4FA, 0xDEDD5, 0xBDF8B, 0x7BF36};
constexpr std::uint32_t k28[] = {0xCD69E7E, 0x9AD7C7D, 0x37AB8FB, 0x6D571F7, 0xD8AE3EF, 0xB3587DF, 0x66B4F3F,
                                 0xB467F43, 0x6ACBE87, 0xD593D8E, 0xAB27B9C, 0x564F7B8, 0xAC9AFF0, 0x5B31FE1,
                                 0x87FB325, 0xFF66CA,  0x1DECD95, 0x39DDB2A, 0x71BF654, 0xE17ECA9, 0xC2FD9D2,
                                 0xFCF1299, 0xFBE2532, 0xF7C4AE4, 0xEF8D549, 0xDF1EA13, 0xBE3D4A6, 0x7E7A94C};

array matrix_of(std::span<const std::uint32_t> rows, Dtype type) {
  const auto n = static_cast<std::int64_t>(rows.size());
  Tensor t(Dtype::float32, {n, n});
  float* to = t.mutable_values<float>().data();
  for (const std::uint32_t row : rows) {
    for (std::int64_t j = 0; j < n; ++j) *to++ = (row >> j & 1) != 0 ? -1.0F : 1.0F;
  }
  return as_type(array(std::move(t)), type);
}

// Returns Sylvester's matrix of size 2^bits: an element's sign is the parity of the bits that its row and column share.
array sylvester(int bits, Dtype type) {
  const std::int64_t n = std::int64_t{1} << bits;
  Tensor t(Dtype::float32, {n, n});
  float* to = t.mutable_values<float>().data();
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) *to++ = std::popcount(static_cast<std::uint64_t>(i & j)) % 2 != 0 ? -1.0F : 1.0F;
  }
  return as_type(array(std::move(t)), type);
}

}  // namespace
}  // namespace detail

array hadamard_transform(const array& a, std::optional<float> scale, StreamOrDevice s) {
  if (a.ndim() == 0 || a.size() == 0) detail::refuse("hadamard_transform", "an array of shape {}", to_string(a.shape()));
  const std::int64_t n = a.shape().back();
  std::int64_t odd = n;
  int bits = 0;
  for (; odd % 2 == 0; odd /= 2) ++bits;
  const bool known = odd == 1 || ((odd == 3 || odd == 5 || odd == 7) && bits >= 2);
  if (!known) detail::refuse("hadamard_transform", "{} elements; expected m * 2^k with m = 1, 12, 20 or 28", n);
  const Dtype type = detail::at_least_float(a.dtype());
  if (detail::is_complex(type)) detail::refuse("hadamard_transform", "an array of type {}", name(a.dtype()));
  const bool half = type == Dtype::float16 || type == Dtype::bfloat16;
  const Dtype inner = half ? Dtype::float32 : type;
  array x = reshape(detail::as_type(a, inner, s), {-1, n}, s);
  if (odd != 1) bits -= 2;
  // The matrix is a Kronecker product. Its factors of up to 64 rows are applied one after the other, each along its own axis.
  std::int64_t behind = 1;
  for (int left = bits; left > 0;) {
    const int now = std::min(left, 6);
    const std::int64_t side = std::int64_t{1} << now;
    x = matmul(detail::sylvester(now, inner), reshape(x, {-1, side, behind}, s), s);
    behind *= side;
    left -= now;
  }
  if (odd != 1) {
    const array matrix = odd == 3   ? detail::matrix_of(detail::k12, inner)
                         : odd == 5 ? detail::matrix_of(detail::k20, inner)
                                    : detail::matrix_of(detail::k28, inner);
    x = matmul(matrix, reshape(x, {-1, 4 * odd, behind}, s), s);
  }
  const double by = scale ? static_cast<double>(*scale) : 1 / std::sqrt(static_cast<double>(n));
  return detail::as_type(reshape(multiply(x, array(by, inner), s), a.shape(), s), type, s);
}

}  // namespace sdx::array
