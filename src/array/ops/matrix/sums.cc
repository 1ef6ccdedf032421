// Products that use matmul: inner, outer, vecdot, tensordot; and convolution of vectors.

#include <algorithm>

#include <sdx/array.hpp>

#include "array/ops/common.h"

namespace sdx::array {

array inner(const array& a, const array& b, StreamOrDevice s) {
  if (a.ndim() == 0 || b.ndim() == 0) return multiply(a, b, s);
  return tensordot(a, b, {-1}, {-1}, s);
}

array outer(const array& a, const array& b, StreamOrDevice s) {
  return multiply(reshape(a, {a.size(), 1}, s), reshape(b, {b.size()}, s), s);
}

array vecdot(const array& a, const array& b, int axis, StreamOrDevice s) {
  const std::size_t least = std::min(a.shape().size(), b.shape().size());
  if (least == 0) detail::refuse("vecdot", "shapes {} and {}: a scalar has no axis", to_string(a.shape()), to_string(b.shape()));
  // Axes are counted from the end, where both operands' axes stand in line.
  const int at = axis < 0 ? axis : axis - static_cast<int>(std::max(a.shape().size(), b.shape().size()));
  if (at >= 0 || at < -static_cast<int>(least)) {
    detail::refuse("vecdot", "axis {} of shapes {} and {}", axis, to_string(a.shape()), to_string(b.shape()));
  }
  const array x = moveaxis(detail::is_complex(a.dtype()) ? conjugate(a, s) : a, at, -1, s), y = moveaxis(b, at, -1, s);
  if (x.shape().back() != y.shape().back()) {
    detail::refuse("vecdot", "shapes {} and {} differ along axis {}", to_string(a.shape()), to_string(b.shape()), axis);
  }
  if (detail::promote(a.dtype(), b.dtype()) == Dtype::boolean)
    detail::refuse("vecdot", "operands of type bool; expected numbers");
  return squeeze(matmul(expand_dims(x, -2, s), expand_dims(y, -1, s), s), std::vector<int>{-1, -2}, s);
}

array tensordot(const array& a, const array& b, int axes, StreamOrDevice s) {
  if (axes < 0 || axes > std::min(a.ndim(), b.ndim())) {
    detail::refuse("tensordot", "{} axes of arrays of shapes {} and {}", axes, to_string(a.shape()), to_string(b.shape()));
  }
  std::vector<int> of_a, of_b;
  for (int i = 0; i < axes; ++i) {
    of_a.push_back(a.ndim() - axes + i);
    of_b.push_back(i);
  }
  return tensordot(a, b, of_a, of_b, s);
}

array tensordot(const array& a, const array& b, const std::vector<int>& axes_a, const std::vector<int>& axes_b,
                StreamOrDevice s) {
  if (axes_a.size() != axes_b.size()) detail::refuse("tensordot", "{} axes and {} axes", axes_a.size(), axes_b.size());
  std::vector<int> sum_a, sum_b, rest_a, rest_b;
  std::int64_t sums = 1;
  for (std::size_t i = 0; i < axes_a.size(); ++i) {
    sum_a.push_back(detail::axis_of("tensordot", axes_a[i], a.shape().size()));
    sum_b.push_back(detail::axis_of("tensordot", axes_b[i], b.shape().size()));
    const std::int64_t x = a.shape()[static_cast<std::size_t>(sum_a[i])], y = b.shape()[static_cast<std::size_t>(sum_b[i])];
    if (x != y) detail::refuse("tensordot", "axis {} of {} elements and axis {} of {} elements", axes_a[i], x, axes_b[i], y);
    if (std::count(sum_a.begin(), sum_a.end(), sum_a[i]) > 1 || std::count(sum_b.begin(), sum_b.end(), sum_b[i]) > 1) {
      detail::refuse("tensordot", "an axis is given twice");
    }
    sums *= x;
  }
  Shape shape;
  const auto rest = [&](const array& of, const std::vector<int>& summed, std::vector<int>& out) {
    std::int64_t count = 1;
    for (int i = 0; i < of.ndim(); ++i) {
      if (std::find(summed.begin(), summed.end(), i) != summed.end()) continue;
      out.push_back(i);
      shape.push_back(of.shape()[static_cast<std::size_t>(i)]);
      count *= shape.back();
    }
    return count;
  };
  const std::int64_t rows = rest(a, sum_a, rest_a), columns = rest(b, sum_b, rest_b);
  rest_a.insert(rest_a.end(), sum_a.begin(), sum_a.end());
  sum_b.insert(sum_b.end(), rest_b.begin(), rest_b.end());
  const array x = reshape(transpose(a, rest_a, s), {rows, sums}, s), y = reshape(transpose(b, sum_b, s), {sums, columns}, s);
  return reshape(matmul(x, y, s), std::move(shape), s);
}

array convolve(const array& a, const array& v, const std::string& mode, StreamOrDevice s) {
  if (a.ndim() != 1 || v.ndim() != 1 || a.size() == 0 || v.size() == 0) {
    detail::refuse("convolve", "shapes {} and {}; expected vectors with elements", to_string(a.shape()), to_string(v.shape()));
  }
  if (v.size() > a.size()) return convolve(v, a, mode, s);
  const auto taps = static_cast<int>(v.size());
  std::pair<int, int> pads{taps - 1, taps - 1};
  if (mode == "same") {
    // As in NumPy, the result is the middle of the full one; of two middles, the earlier.
    pads = {taps / 2, (taps - 1) / 2};
  } else if (mode == "valid") {
    pads = {0, 0};
  } else if (mode != "full") {
    detail::refuse("convolve", "mode '{}'; expected full, valid or same", mode);
  }
  const Dtype type = detail::promote(a.dtype(), v.dtype());
  if (is_floating(type)) {
    return reshape(conv_general(reshape(a, {1, -1, 1}, s), reshape(v, {1, -1, 1}, s), {1}, {pads.first}, Extents{pads.second},
                                {1}, {1}, 1, true, s),
                   {-1}, s);
  }
  // For integers and complex numbers, each window is multiplied by the reversed vector.
  const array padded = pad(a, {pads}, "constant", array(0), s);
  const array windows = as_strided(padded, Shape{padded.size() - taps + 1, taps}, Shape{1, 1}, 0, s);
  return matmul(windows, flip(v, std::nullopt, s), s);
}

}  // namespace sdx::array
