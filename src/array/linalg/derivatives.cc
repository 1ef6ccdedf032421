// Gradients of decompositions. Sources: Giles, "Collected matrix derivative results" (2008); Murray, "Differentiation of the
// Cholesky decomposition" (2016); Roberts and Roberts, "QR and LQ decomposition matrix backpropagation" (2020); Townsend,
// "Differentiating the singular value decomposition" (2016). With ^H for the conjugate transpose, the gradient G of a result Y is
// that of the real number sum(Re(conj(G) dY)).

#include <sdx/array.hpp>

#include "array/linalg/decompose.h"
#include "array/ops/common.h"

namespace sdx::array::detail {
namespace {

using Arrays = std::vector<array>;
using linalg::inv;

// Scale each column, or each row, of `a` by its number in v; eye_like() is the identity of a's size.
array columns_times(const array& a, const array& v) { return multiply(a, expand_dims(v, -2)); }
array rows_times(const array& v, const array& a) { return multiply(expand_dims(v, -1), a); }
array eye_like(const array& a) { return eye(static_cast<int>(a.shape(-1)), std::nullopt, 0, a.dtype()); }

array symmetric_part(const array& a) { return multiply(array(0.5, a.dtype()), add(a, adjoint(a))); }

// Return a^{-1} b and b a^{-1} for a triangular a.
array solved(const array& a, const array& b, bool upper) { return decompose(Decomposition::solve_triangle, upper, {a, b})[0]; }
array solved_from_right(const array& b, const array& a, bool upper) { return adjoint(solved(adjoint(a), adjoint(b), !upper)); }

// Returns the matrix of 1 / (v_j - v_i), with 0 where both are equal.
array inverse_differences(const array& v) {
  const array d = subtract(expand_dims(v, -2), expand_dims(v, -1));
  const array zero(0, d.dtype());
  const array same = equal(d, zero);
  return where(same, zero, reciprocal(where(same, array(1, d.dtype()), d)));
}

// Returns the lower triangle with half of the diagonal.
array lower_half(const array& a) {
  const array m = tril(a);
  return subtract(m, multiply(multiply(array(0.5, a.dtype()), m), eye_like(a)));
}

Arrays cholesky_vjp(const VjpCall& c) {
  const array& l = c.outputs[0];
  const array halved = lower_half(matmul(adjoint(l), c.of_outputs[0]));
  return {symmetric_part(solved_from_right(solved(adjoint(l), halved, true), l, false))};
}

Arrays inverse_vjp(const VjpCall& c) {
  const array y = adjoint(c.outputs[0]);
  return {negative(matmul(matmul(y, c.of_outputs[0]), y))};
}

Arrays triangle_inverse_vjp(const VjpCall& c) {
  const array full = inverse_vjp(c)[0];
  return {c.params.ints[1] != 0 ? triu(full) : tril(full)};
}

Arrays solve_vjp(const VjpCall& c) {
  const array of_b = decompose(Decomposition::solve, false, {adjoint(c.inputs[0]), c.of_outputs[0]})[0];
  Arrays made;
  for (const std::size_t i : c.wanted) {
    made.push_back(i == 1 ? of_b : negative(matmul(of_b, adjoint(c.outputs[0]))));
  }
  return made;
}

Arrays solve_triangle_vjp(const VjpCall& c) {
  const bool upper = c.params.ints[1] != 0;
  const array of_b = solved(adjoint(c.inputs[0]), c.of_outputs[0], !upper);
  Arrays made;
  for (const std::size_t i : c.wanted) {
    const array of_a = i == 1 ? of_b : negative(matmul(of_b, adjoint(c.outputs[0])));
    made.push_back(i == 1 ? of_b : upper ? triu(of_a) : tril(of_a));
  }
  return made;
}

array as_matrix(const array& a) { return expand_dims(a, std::vector<int>{-1, -2}); }

// d log det = tr(a^{-1} da). The imaginary part of this trace is the turn of a complex determinant's phase.
Arrays determinant_vjp(const VjpCall& c) {
  const array& a = c.inputs[0];
  array factor = add(multiply(c.of_outputs[2], is_complex(a.dtype()) ? conjugate(c.outputs[2]) : c.outputs[2]),
                     as_type(c.of_outputs[1], a.dtype()));
  if (is_complex(a.dtype())) {
    const array turn = imag(multiply(c.of_outputs[0], conjugate(c.outputs[0])));
    Tensor i(a.dtype(), {});
    std::fill_n(static_cast<std::byte*>(i.mutable_data()), i.bytes(), std::byte{0});
    if (a.dtype() == Dtype::complex64) {
      static_cast<float*>(i.mutable_data())[1] = 1;
    } else {
      static_cast<double*>(i.mutable_data())[1] = 1;
    }
    factor = add(factor, multiply(as_type(turn, a.dtype()), array(std::move(i))));
  }
  return {multiply(as_matrix(factor), adjoint(inv(a)))};
}

Arrays qr_vjp(const VjpCall& c) {
  const array &q = c.outputs[0], &r = c.outputs[1], &of_q = c.of_outputs[0], &of_r = c.of_outputs[1];
  if (c.inputs[0].shape(-2) < c.inputs[0].shape(-1)) {
    refuse("vjp", "qr has no derivative for matrices with more columns than rows: shape {}", to_string(c.inputs[0].shape()));
  }
  const array m = subtract(matmul(r, adjoint(of_r)), matmul(adjoint(of_q), q));
  const array half = lower_half(m), mirrored = add(half, adjoint(half));
  return {solved_from_right(add(of_q, matmul(q, mirrored)), adjoint(r), false)};
}

Arrays lu_vjp(const VjpCall& c) {
  const array& a = c.inputs[0];
  if (a.shape(-2) != a.shape(-1))
    refuse("vjp", "lu has a derivative for square matrices only, received shape {}", to_string(a.shape()));
  const array &l = c.outputs[1], &u = c.outputs[2];
  const array middle = add(tril(matmul(adjoint(l), c.of_outputs[1]), -1), triu(matmul(c.of_outputs[2], adjoint(u))));
  const array of_product = solved_from_right(solved(adjoint(l), middle, true), adjoint(u), false);
  return {take_along_axis(of_product, broadcast_to(expand_dims(c.outputs[0], -1), a.shape()), -2)};
}

Arrays eigh_vjp(const VjpCall& c) {
  const array &w = c.outputs[0], &v = c.outputs[1];
  const array inner = multiply(inverse_differences(w), matmul(adjoint(v), c.of_outputs[1]));
  const array middle = add(inner, multiply(expand_dims(c.of_outputs[0], -2), eye_like(v)));
  return {symmetric_part(matmul(matmul(v, middle), adjoint(v)))};
}

Arrays eigvalsh_vjp(const VjpCall& c) {
  const array v = decompose(Decomposition::eigh, c.params.ints[1] != 0, {c.inputs[0]})[1];
  return {symmetric_part(matmul(columns_times(v, c.of_outputs[0]), adjoint(v)))};
}

Arrays eigvals_vjp(const VjpCall& c) {
  const array& a = c.inputs[0];
  const array v = decompose(Decomposition::eig, false, {a})[1];
  const array full = decompose(Decomposition::solve, false, {adjoint(v), rows_times(c.of_outputs[0], adjoint(v))})[0];
  return {is_complex(a.dtype()) ? full : real(full)};
}

// Return the first k columns, or the first k rows.
array first_columns(const array& a, std::int64_t k) {
  Shape stop = a.shape();
  stop.back() = k;
  return slice(a, Shape(stop.size(), 0), stop);
}

array of_values(const array& u, const array& of_s, const array& vh) {
  return matmul(columns_times(u, as_type(of_s, u.dtype())), vh);
}

Arrays svdvals_vjp(const VjpCall& c) {
  const Arrays all = decompose(Decomposition::svd, false, {c.inputs[0]});
  const std::int64_t k = c.outputs[0].shape(-1);
  return {of_values(first_columns(all[0], k), c.of_outputs[0], swapaxes(first_columns(swapaxes(all[2], -1, -2), k), -1, -2))};
}

// Returns the part of x that is orthogonal to the columns of q.
array outside(const array& q, const array& x) { return subtract(x, matmul(q, matmul(adjoint(q), x))); }

Arrays svd_vjp(const VjpCall& c) {
  if (is_complex(c.inputs[0].dtype()))
    refuse("vjp", "svd of complex matrices has a derivative for its values only: see svdvals()");
  const array& s = c.outputs[1];
  const std::int64_t k = s.shape(-1);
  const array u = first_columns(c.outputs[0], k), of_u = first_columns(c.of_outputs[0], k);
  const array v = first_columns(adjoint(c.outputs[2]), k), of_v = first_columns(adjoint(c.of_outputs[2]), k);
  const array f = inverse_differences(square(s));
  const array j = multiply(f, matmul(adjoint(u), of_u)), l = multiply(f, matmul(adjoint(v), of_v));
  const array inner = add(columns_times(add(j, adjoint(j)), s), rows_times(s, add(l, adjoint(l))));
  array total = matmul(matmul(u, inner), adjoint(v));
  total = add(total, of_values(u, c.of_outputs[1], adjoint(v)));
  const array inverse = reciprocal(s);
  total = add(total, matmul(columns_times(outside(u, of_u), inverse), adjoint(v)));
  return {add(total, matmul(u, adjoint(columns_times(outside(v, of_v), inverse))))};
}

}  // namespace

std::vector<array> (*decomposition_vjp(Decomposition what))(const VjpCall&) {
  switch (what) {
    case Decomposition::cholesky: return cholesky_vjp;
    case Decomposition::inverse: return inverse_vjp;
    case Decomposition::triangle_inverse: return triangle_inverse_vjp;
    case Decomposition::solve: return solve_vjp;
    case Decomposition::solve_triangle: return solve_triangle_vjp;
    case Decomposition::determinant: return determinant_vjp;
    case Decomposition::lu: return lu_vjp;
    case Decomposition::qr: return qr_vjp;
    case Decomposition::eigh: return eigh_vjp;
    case Decomposition::eigvalsh: return eigvalsh_vjp;
    case Decomposition::eigvals: return eigvals_vjp;
    case Decomposition::svd: return svd_vjp;
    case Decomposition::svdvals: return svdvals_vjp;
    case Decomposition::lu_packed:
    case Decomposition::eig: return nullptr;
  }
  return nullptr;
}

}  // namespace sdx::array::detail
