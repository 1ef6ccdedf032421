// Norms of vectors and matrices.

#include <sdx/array/linalg.hpp>

#include <cmath>

#include <sdx/array.hpp>

#include "array/ops/common.h"
#include "array/ops/reductions.h"

namespace sdx::array::linalg {
namespace {

using detail::refuse;

// The squares of halves overflow from 256 on: they are computed in float32 and rounded once, at the end.
bool needs_width(const array& a) { return is_half(a.dtype()); }
array widened(const array& a, const StreamOrDevice& s) { return astype(a, Dtype::float32, s); }

array sized(const array& a, const StreamOrDevice& s) { return abs(detail::as_type(a, detail::at_least_float(a.dtype()), s), s); }

array root_of_squares(const array& a, const NormAxes& axes, bool keepdims, const StreamOrDevice& s) {
  if (needs_width(a)) return astype(root_of_squares(widened(a, s), axes, keepdims, s), a.dtype(), s);
  return sqrt(sum(square(sized(a, s), s), axes, keepdims, s), s);
}

array of_vectors(const array& a, double ord, const NormAxes& axes, bool keepdims, const StreamOrDevice& s) {
  if (needs_width(a)) return astype(of_vectors(widened(a, s), ord, axes, keepdims, s), a.dtype(), s);
  if (ord == 2) return root_of_squares(a, axes, keepdims, s);
  const array x = sized(a, s);
  if (std::isinf(ord)) return ord > 0 ? max(x, axes, keepdims, s) : min(x, axes, keepdims, s);
  if (ord == 1) return sum(x, axes, keepdims, s);
  if (ord == 0) return sum(astype(not_equal(x, array(0, x.dtype()), s), x.dtype(), s), axes, keepdims, s);
  return power(sum(power(x, array(ord, x.dtype()), s), axes, keepdims, s), array(1 / ord, x.dtype()), s);
}

// Reduces the singular values of the matrices on two axes; the results take the place of the axes.
template <class Reduce>
array of_singular_values(const array& a, const std::vector<int>& axes, bool keepdims, const Reduce& reduce,
                         const StreamOrDevice& s) {
  const auto rank = a.shape().size();
  const int row = detail::axis_of("norm", axes[0], rank), column = detail::axis_of("norm", axes[1], rank);
  const array last = moveaxis(moveaxis(a, row, -1, s), column > row ? column - 1 : column, -1, s);
  array reduced = reduce(svdvals(last, s));
  if (!keepdims) return reduced;
  return expand_dims(reduced, std::vector<int>{std::min(row, column), std::max(row, column)}, s);
}

array of_matrices(const array& a, double ord, const std::vector<int>& axes, bool keepdims, const StreamOrDevice& s) {
  const double size = std::abs(ord);
  if (size == 2) {
    return of_singular_values(
        a, axes, keepdims, [&](const array& v) { return ord > 0 ? max(v, -1, false, s) : min(v, -1, false, s); }, s);
  }
  if (size != 1 && !std::isinf(size)) refuse("norm", "{} is not an order of a norm of matrices", ord);
  if (needs_width(a)) return astype(of_matrices(widened(a, s), ord, axes, keepdims, s), a.dtype(), s);
  const auto rank = a.shape().size();
  const int row = detail::axis_of("norm", axes[0], rank), column = detail::axis_of("norm", axes[1], rank);
  const int summed = size == 1 ? row : column;
  int left = size == 1 ? column : row;
  if (!keepdims && left > summed) --left;
  const array sums = sum(sized(a, s), std::vector<int>{summed}, keepdims, s);
  return ord > 0 ? max(sums, std::vector<int>{left}, keepdims, s) : min(sums, std::vector<int>{left}, keepdims, s);
}

// Returns the axes of a norm that has an order. Without axes, the array must be a vector or a matrix.
std::vector<int> axes_for(const array& a, const NormAxes& given) {
  if (given && (given->size() == 1 || given->size() == 2)) {
    if (given->size() == 2) detail::axes_of("norm", *given, a.shape().size());  // refuses an axis twice
    return *given;
  }
  if (given) refuse("norm", "expected one axis or two, received {}", given->size());
  if (a.ndim() != 1 && a.ndim() != 2) {
    refuse("norm", "an order without axes needs a vector or a matrix, received an array of shape {}", to_string(a.shape()));
  }
  return a.ndim() == 1 ? std::vector<int>{0} : std::vector<int>{0, 1};
}

}  // namespace

array norm(const array& a, const NormAxes& axis, bool keepdims, StreamOrDevice s) {
  if (axis && axis->size() != 1 && axis->size() != 2) refuse("norm", "expected one axis or two, received {}", axis->size());
  return root_of_squares(a, axis, keepdims, s);
}

array norm(const array& a, double ord, const NormAxes& axis, bool keepdims, StreamOrDevice s) {
  const std::vector<int> axes = axes_for(a, axis);
  return axes.size() == 1 ? of_vectors(a, ord, axes, keepdims, s) : of_matrices(a, ord, axes, keepdims, s);
}

array norm(const array& a, const std::string& ord, const NormAxes& axis, bool keepdims, StreamOrDevice s) {
  const std::vector<int> axes = axes_for(a, axis);
  if (ord != "fro" && ord != "f" && ord != "nuc") refuse("norm", "\"{}\" is not an order of a norm", ord);
  if (axes.size() != 2) refuse("norm", "order \"{}\" is for matrices, but one axis is given", ord);
  if (ord != "nuc") return root_of_squares(a, axes, keepdims, s);
  return of_singular_values(
      a, axes, keepdims, [&](const array& v) { return sum(v, -1, false, s); }, s);
}

array vector_norm(const array& a, const NormAxes& axis, bool keepdims, double ord, StreamOrDevice s) {
  return of_vectors(a, ord, axis, keepdims, s);
}

array matrix_norm(const array& a, bool keepdims, const std::string& ord, StreamOrDevice s) {
  return norm(a, ord, std::vector<int>{-2, -1}, keepdims, s);
}

array matrix_norm(const array& a, bool keepdims, double ord, StreamOrDevice s) {
  return norm(a, ord, std::vector<int>{-2, -1}, keepdims, s);
}

}  // namespace sdx::array::linalg
