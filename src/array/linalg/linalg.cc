// Linear algebra: checks the arguments of decompositions, and builds other functions from these.

#include <sdx/array/linalg.hpp>

#include <algorithm>
#include <limits>

#include <sdx/array.hpp>

#include "array/linalg/decompose.h"
#include "array/ops/common.h"

namespace sdx::array::linalg {
namespace {

using detail::adjoint;
using detail::decompose;
using detail::Decomposition;
using detail::refuse;

// Returns `a` in a type in which Eigen computes.
array computed(const char* operation, const array& a, const StreamOrDevice& s) {
  const Dtype t = detail::at_least_float(a.dtype());
  if (t == Dtype::float16 || t == Dtype::bfloat16) {
    refuse(operation, "expected float32, float64, complex64 or complex128, received {}", name(t));
  }
  return detail::as_type(a, t, s);
}

array matrix(const char* operation, const array& a, const StreamOrDevice& s) {
  if (a.ndim() < 2) refuse(operation, "expected matrices, received an array of shape {}", to_string(a.shape()));
  return computed(operation, a, s);
}

array square_matrix(const char* operation, const array& a, const StreamOrDevice& s) {
  array made = matrix(operation, a, s);
  if (a.shape(-1) != a.shape(-2))
    refuse(operation, "expected square matrices, received an array of shape {}", to_string(a.shape()));
  return made;
}

array one(Decomposition what, bool flag, const array& a, const StreamOrDevice& s) { return decompose(what, flag, {a}, s)[0]; }

bool upper_half(const char* operation, const std::string& uplo) {
  if (uplo == "U" || uplo == "u") return true;
  if (uplo != "L" && uplo != "l") refuse(operation, "the half must be \"L\" or \"U\", received \"{}\"", uplo);
  return false;
}

array with_batch(const array& a, const Shape& batch, const StreamOrDevice& s) {
  Shape shape = batch;
  shape.insert(shape.end(), a.shape().end() - 2, a.shape().end());
  return broadcast_to(a, shape, s);
}

array solved(Decomposition what, bool flag, const array& a, const array& b, const StreamOrDevice& s) {
  const char* operation = detail::name_of(what);
  const Dtype t = detail::promote(detail::at_least_float(a.dtype()), b.dtype());
  const array left = square_matrix(operation, astype(a, t, s), s);
  const bool vector = b.ndim() == 1;
  const array right = computed(operation, astype(vector ? expand_dims(b, -1, s) : b, t, s), s);
  if (right.ndim() < 2 || right.shape(-2) != left.shape(-1)) {
    refuse(operation, "matrices of shape {} and right sides of shape {} do not fit", to_string(a.shape()), to_string(b.shape()));
  }
  const Shape batch = detail::broadcast(operation, Shape(left.shape().begin(), left.shape().end() - 2),
                                        Shape(right.shape().begin(), right.shape().end() - 2));
  const array x = decompose(what, flag, {with_batch(left, batch, s), with_batch(right, batch, s)}, s)[0];
  return vector ? squeeze(x, -1, s) : x;
}

double precision(Dtype t) {
  const bool wide = t == Dtype::float64 || t == Dtype::complex128;
  return wide ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
}

// Tells which singular values are above the tolerance.
array counted(const array& values, const array& of, std::optional<double> rtol, const StreamOrDevice& s) {
  const double share = rtol ? *rtol : static_cast<double>(std::max(of.shape(-1), of.shape(-2))) * precision(of.dtype());
  return greater(values, multiply(array(share, values.dtype()), max(values, -1, true, s), s), s);
}

array first_columns(const array& a, std::int64_t k, const StreamOrDevice& s) {
  Shape stop = a.shape();
  stop.back() = k;
  return slice(a, Shape(stop.size(), 0), stop, {}, s);
}

}  // namespace

array cholesky(const array& a, bool upper, StreamOrDevice s) {
  const array l = one(Decomposition::cholesky, false, square_matrix("cholesky", a, s), s);
  return upper ? adjoint(l) : l;
}

array cholesky_inv(const array& a, bool upper, StreamOrDevice s) {
  const array inverse = one(Decomposition::triangle_inverse, upper, square_matrix("cholesky_inv", a, s), s);
  return upper ? matmul(inverse, adjoint(inverse), s) : matmul(adjoint(inverse), inverse, s);
}

array inv(const array& a, StreamOrDevice s) { return one(Decomposition::inverse, false, square_matrix("inv", a, s), s); }

array tri_inv(const array& a, bool upper, StreamOrDevice s) {
  return one(Decomposition::triangle_inverse, upper, square_matrix("tri_inv", a, s), s);
}

array solve(const array& a, const array& b, StreamOrDevice s) { return solved(Decomposition::solve, false, a, b, s); }

array solve_triangular(const array& a, const array& b, bool upper, StreamOrDevice s) {
  return solved(Decomposition::solve_triangle, upper, a, b, s);
}

array det(const array& a, StreamOrDevice s) {
  return decompose(Decomposition::determinant, false, {square_matrix("det", a, s)}, s)[2];
}

std::pair<array, array> slogdet(const array& a, StreamOrDevice s) {
  const auto made = decompose(Decomposition::determinant, false, {square_matrix("slogdet", a, s)}, s);
  return {made[0], made[1]};
}

std::pair<array, array> qr(const array& a, StreamOrDevice s) {
  const auto made = decompose(Decomposition::qr, false, {matrix("qr", a, s)}, s);
  return {made[0], made[1]};
}

std::tuple<array, array, array> lu(const array& a, StreamOrDevice s) {
  const auto made = decompose(Decomposition::lu, false, {matrix("lu", a, s)}, s);
  return {made[0], made[1], made[2]};
}

std::pair<array, array> lu_factor(const array& a, StreamOrDevice s) {
  const auto made = decompose(Decomposition::lu_packed, false, {matrix("lu_factor", a, s)}, s);
  return {made[0], made[1]};
}

std::tuple<array, array, array> svd(const array& a, StreamOrDevice s) {
  const auto made = decompose(Decomposition::svd, false, {matrix("svd", a, s)}, s);
  return {made[0], made[1], made[2]};
}

array svdvals(const array& a, StreamOrDevice s) { return one(Decomposition::svdvals, false, matrix("svdvals", a, s), s); }

std::pair<array, array> eigh(const array& a, const std::string& uplo, StreamOrDevice s) {
  const auto made = decompose(Decomposition::eigh, upper_half("eigh", uplo), {square_matrix("eigh", a, s)}, s);
  return {made[0], made[1]};
}

array eigvalsh(const array& a, const std::string& uplo, StreamOrDevice s) {
  return one(Decomposition::eigvalsh, upper_half("eigvalsh", uplo), square_matrix("eigvalsh", a, s), s);
}

std::pair<array, array> eig(const array& a, StreamOrDevice s) {
  const auto made = decompose(Decomposition::eig, false, {square_matrix("eig", a, s)}, s);
  return {made[0], made[1]};
}

array eigvals(const array& a, StreamOrDevice s) { return one(Decomposition::eigvals, false, square_matrix("eigvals", a, s), s); }

array pinv(const array& a, std::optional<double> rtol, StreamOrDevice s) {
  const array m = matrix("pinv", a, s);
  if (std::min(m.shape(-1), m.shape(-2)) == 0) return swapaxes(m, -1, -2, s);
  const auto [u, values, vh] = svd(m, s);
  const std::int64_t k = values.shape(-1);
  const array keep = counted(values, m, rtol, s);
  const array inverse = where(keep, reciprocal(where(keep, values, array(1, values.dtype()), s), s), array(0, values.dtype()), s);
  const array v = multiply(first_columns(adjoint(vh), k, s), expand_dims(inverse, -2, s), s);
  return matmul(v, adjoint(first_columns(u, k, s)), s);
}

array matrix_rank(const array& a, std::optional<double> rtol, StreamOrDevice s) {
  const array m = matrix("matrix_rank", a, s);
  if (std::min(m.shape(-1), m.shape(-2)) == 0) return zeros(Shape(m.shape().begin(), m.shape().end() - 2), Dtype::int32, s);
  return sum(astype(counted(svdvals(m, s), m, rtol, s), Dtype::int32, s), -1, false, s);
}

array matrix_power(const array& a, int n, StreamOrDevice s) {
  if (a.ndim() < 2 || a.shape(-1) != a.shape(-2)) {
    refuse("matrix_power", "expected square matrices, received an array of shape {}", to_string(a.shape()));
  }
  if (n == 0) return broadcast_to(eye(static_cast<int>(a.shape(-1)), std::nullopt, 0, a.dtype(), s), a.shape(), s);
  array base = n < 0 ? inv(a, s) : a;
  std::optional<array> power;
  for (auto left = n < 0 ? -static_cast<std::int64_t>(n) : n; left != 0; left /= 2) {
    if (left % 2 != 0) power = power ? matmul(*power, base, s) : base;
    if (left > 1) base = matmul(base, base, s);
  }
  return *power;
}

array cross(const array& a, const array& b, int axis, StreamOrDevice s) {
  const int rank = std::max(a.ndim(), b.ndim());
  const int at = detail::axis_of("cross", axis, static_cast<std::size_t>(rank)) - rank;  // from the end
  if (-at > a.ndim() || -at > b.ndim())
    refuse("cross", "axis {} is not in both {} and {}", axis, to_string(a.shape()), to_string(b.shape()));
  const std::int64_t x = a.shape(at), y = b.shape(at);
  if (x < 2 || x > 3 || y < 2 || y > 3) {
    refuse("cross", "expected 2 or 3 elements along the axis, received shapes {} and {}", to_string(a.shape()),
           to_string(b.shape()));
  }
  const auto part = [&](const array& v, int i) { return take(v, i, at, s); };
  const auto turn = [&](int i, int j) {
    return subtract(multiply(part(a, i), part(b, j), s), multiply(part(a, j), part(b, i), s), s);
  };
  array third = turn(0, 1);
  if (x == 2 && y == 2) return third;
  const int last = at + 1;  // of results: one axis fewer before stack() adds it again
  const int place = third.ndim() + last;
  if (x == 3 && y == 3) return stack({turn(1, 2), turn(2, 0), third}, place, s);
  // The third element of the vector of two is 0, so one product of each difference vanishes.
  if (x == 2)
    return stack({multiply(part(a, 1), part(b, 2), s), negative(multiply(part(a, 0), part(b, 2), s), s), third}, place, s);
  return stack({negative(multiply(part(a, 2), part(b, 1), s), s), multiply(part(a, 2), part(b, 0), s), third}, place, s);
}

array diagonal(const array& a, int offset, StreamOrDevice s) { return sdx::array::diagonal(a, offset, -2, -1, s); }

array trace(const array& a, int offset, Dtype dtype, StreamOrDevice s) { return sdx::array::trace(a, offset, -2, -1, dtype, s); }

}  // namespace sdx::array::linalg
