// Diagonals: every (columns + 1)-th element of a matrix in row-major order.

#include <algorithm>

#include <sdx/array.hpp>

#include "array/ops/common.h"

namespace sdx::array {

array diagonal(const array& a, int offset, int axis1, int axis2, StreamOrDevice s) {
  const std::size_t rank = a.shape().size();
  if (rank < 2) detail::refuse("diagonal", "shape {} has fewer than two axes", to_string(a.shape()));
  const int x = detail::axis_of("diagonal", axis1, rank), y = detail::axis_of("diagonal", axis2, rank);
  if (x == y) detail::refuse("diagonal", "axis {} is given twice", axis1);
  std::vector<int> perm;
  for (int i = 0; i < static_cast<int>(rank); ++i) {
    if (i != x && i != y) perm.push_back(i);
  }
  perm.insert(perm.end(), {x, y});
  const array moved = transpose(a, perm, s);
  const std::int64_t rows = moved.shape()[rank - 2], columns = moved.shape()[rank - 1];
  const std::int64_t row = offset < 0 ? -std::int64_t{offset} : 0, column = offset > 0 ? offset : 0;
  const std::int64_t length = std::max<std::int64_t>(0, std::min(rows - row, columns - column));
  Shape lead(moved.shape().begin(), moved.shape().end() - 2);
  Shape flat = lead;
  flat.push_back(rows * columns);
  Shape start(lead.size(), 0), stop = lead, step(lead.size(), 1);
  const std::int64_t first = length == 0 ? 0 : row * columns + column;
  start.push_back(first);
  stop.push_back(length == 0 ? 0 : first + (length - 1) * (columns + 1) + 1);
  step.push_back(columns + 1);
  return slice(reshape(moved, std::move(flat), s), start, stop, step, s);
}

array diag(const array& a, int k, StreamOrDevice s) {
  if (a.ndim() == 2) return diagonal(a, k, 0, 1, s);
  if (a.ndim() != 1) detail::refuse("diag", "an array with {} dimensions; expected 1 or 2", a.ndim());
  const std::int64_t n = a.shape()[0], side = n + std::abs(k);
  const std::int64_t first = k >= 0 ? k : -std::int64_t{k} * side;
  if (n == 0) return reshape(pad(a, {{0, static_cast<int>(side * side)}}, "constant", array(0), s), {side, side}, s);
  // Puts zeros behind each element up to the next one's place; those behind the last one are cut off.
  const array rows = pad(expand_dims(a, 1, s), {{0, 0}, {0, static_cast<int>(side)}}, "constant", array(0), s);
  const std::int64_t fits = std::min(n * (side + 1), side * side - first);
  const array used = slice(reshape(rows, {-1}, s), Shape{0}, Shape{fits}, {}, s);
  const auto before = static_cast<int>(first), after = static_cast<int>(side * side - first - fits);
  return reshape(pad(used, {{before, after}}, "constant", array(0), s), {side, side}, s);
}

array trace(const array& a, int offset, int axis1, int axis2, Dtype dtype, StreamOrDevice s) {
  array d = diagonal(a, offset, axis1, axis2, s);
  if (dtype != Dtype::undefined) d = detail::as_type(d, dtype, s);
  return sum(d, std::vector<int>{-1}, false, s);
}

}  // namespace sdx::array
