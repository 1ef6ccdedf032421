#include "array/ops/common.h"

#include <algorithm>

#include <sdx/array.hpp>

namespace sdx::array::detail {
namespace {

// Orders the categories: bool < unsigned < signed < floating < complex.
int category(Dtype t) {
  if (is_complex(t)) return 4;
  if (is_floating(t)) return 3;
  if (t == Dtype::boolean) return 0;
  return t == Dtype::uint8 || t == Dtype::uint16 || t == Dtype::uint32 || t == Dtype::uint64 ? 1 : 2;
}

Dtype signed_of(int bits) {
  switch (bits) {
    case 8: return Dtype::int8;
    case 16: return Dtype::int16;
    case 32: return Dtype::int32;
    default: return Dtype::int64;
  }
}

}  // namespace

bool is_complex(Dtype dtype) { return dtype == Dtype::complex64 || dtype == Dtype::complex128; }
bool is_inexact(Dtype dtype) { return is_floating(dtype) || is_complex(dtype); }
Dtype at_least_float(Dtype dtype) { return is_inexact(dtype) ? dtype : Dtype::float32; }

Dtype promote(Dtype a, Dtype b) {
  if (a == b) return a;
  const int ca = category(a), cb = category(b);
  if (ca > cb) return promote(b, a);
  // From here on, b's category is the same as a's or higher.
  if (cb == 4) {
    const bool wide = a == Dtype::complex128 || b == Dtype::complex128 || a == Dtype::float64;
    return wide ? Dtype::complex128 : Dtype::complex64;
  }
  if (cb == 3 && ca < 3) return b;
  if (cb == 3) return bit_width(a) == bit_width(b) ? Dtype::float32 : bit_width(a) > bit_width(b) ? a : b;
  if (ca == cb) return bit_width(a) > bit_width(b) ? a : b;
  if (ca == 0) return b;
  // An unsigned and a signed type promote to a signed one that holds both; uint64 has none.
  if (bit_width(b) > bit_width(a)) return b;
  return bit_width(a) == 64 ? Dtype::float32 : signed_of(2 * bit_width(a));
}

Shape broadcast(std::string_view operation, const Shape& a, const Shape& b) {
  const std::size_t rank = std::max(a.size(), b.size());
  Shape out(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t x = i < rank - a.size() ? 1 : a[i - (rank - a.size())];
    const std::int64_t y = i < rank - b.size() ? 1 : b[i - (rank - b.size())];
    if (x != y && x != 1 && y != 1) refuse(operation, "shapes {} and {} do not broadcast", to_string(a), to_string(b));
    out[i] = x == 1 ? y : x;
  }
  return out;
}

int axis_of(std::string_view operation, std::int64_t axis, std::size_t rank) {
  const auto r = static_cast<std::int64_t>(rank);
  if (axis < -r || axis >= r) refuse(operation, "axis {} of an array with {} dimension{}", axis, r, r == 1 ? "" : "s");
  return static_cast<int>(axis < 0 ? axis + r : axis);
}

std::vector<std::int64_t> axes_of(std::string_view operation, const std::optional<std::vector<int>>& axes, std::size_t rank) {
  std::vector<std::int64_t> out;
  if (!axes) {
    for (std::size_t i = 0; i < rank; ++i) out.push_back(static_cast<std::int64_t>(i));
    return out;
  }
  for (const int axis : *axes) out.push_back(axis_of(operation, axis, rank));
  std::sort(out.begin(), out.end());
  if (std::adjacent_find(out.begin(), out.end()) != out.end()) refuse(operation, "an axis is given twice");
  return out;
}

std::int64_t extent_sum(std::string_view operation, std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) refuse(operation, "an extent of {} + {}, more than any memory can hold", a, b);
  return sum;
}

std::int64_t extent_product(std::string_view operation, std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) refuse(operation, "an extent of {} * {}, more than any memory can hold", a, b);
  return product;
}

array as_type(const array& a, Dtype dtype, const StreamOrDevice& s) { return a.dtype() == dtype ? a : astype(a, dtype, s); }

array sum_to(const array& gradient, const Shape& shape) {
  if (gradient.shape() == shape) return gradient;
  const std::size_t extra = gradient.shape().size() - shape.size();
  std::vector<int> axes;
  for (std::size_t i = 0; i < gradient.shape().size(); ++i) {
    if (i < extra || (shape[i - extra] == 1 && gradient.shape()[i] != 1)) axes.push_back(static_cast<int>(i));
  }
  return reshape(sum(gradient, axes, true), shape);
}

}  // namespace sdx::array::detail
