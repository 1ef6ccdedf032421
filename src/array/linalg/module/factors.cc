// Triangular decompositions, and the equations that they solve.

#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <Eigen/QR>
#include <cmath>

#include "array/linalg/module/parts.h"

namespace sdx::array::detail {
namespace {

template <class T>
LinalgOutcome cholesky(const LinalgRequest& r) {
  const Eigen::LLT<ColMajor<T>, Eigen::Lower> llt(read<T>(r.in[0], r.n, r.n));
  if (llt.info() != Eigen::Success) return LinalgOutcome::not_positive_definite;
  auto out = written<T>(r.out[0], r.n, r.n);
  out.setZero();
  out.template triangularView<Eigen::Lower>() = llt.matrixL();
  return LinalgOutcome::ok;
}

template <class T>
bool has_zero(const ColMajor<T>& lu) {
  for (Eigen::Index i = 0; i < std::min(lu.rows(), lu.cols()); ++i) {
    if (lu(i, i) == T(0)) return true;
  }
  return false;
}

template <class T>
LinalgOutcome inverse(const LinalgRequest& r) {
  const Eigen::PartialPivLU<ColMajor<T>> lu(read<T>(r.in[0], r.n, r.n));
  if (has_zero<T>(lu.matrixLU())) return LinalgOutcome::singular;
  written<T>(r.out[0], r.n, r.n) = lu.inverse();
  return LinalgOutcome::ok;
}

template <class T>
LinalgOutcome solve(const LinalgRequest& r) {
  const Eigen::PartialPivLU<ColMajor<T>> lu(read<T>(r.in[0], r.n, r.n));
  if (has_zero<T>(lu.matrixLU())) return LinalgOutcome::singular;
  written<T>(r.out[0], r.n, r.k) = lu.solve(read<T>(r.in[1], r.n, r.k));
  return LinalgOutcome::ok;
}

template <class T>
LinalgOutcome solve_triangle(const LinalgRequest& r, ColMajor<T> b) {
  const ColMajor<T> a = read<T>(r.in[0], r.n, r.n);
  if (has_zero<T>(a)) return LinalgOutcome::singular;
  if (r.flag) {
    a.template triangularView<Eigen::Upper>().solveInPlace(b);
  } else {
    a.template triangularView<Eigen::Lower>().solveInPlace(b);
  }
  written<T>(r.out[0], r.n, b.cols()) = b;
  return LinalgOutcome::ok;
}

// Computes the determinant's logarithm too, which neither overflows nor underflows.
template <class T>
LinalgOutcome determinant(const LinalgRequest& r) {
  T sign(1), product(1);
  RealOf<T> logarithm = 0;
  if (r.n > 0) {
    const Eigen::PartialPivLU<ColMajor<T>> lu(read<T>(r.in[0], r.n, r.n));
    const T swaps(static_cast<RealOf<T>>(lu.permutationP().determinant()));
    sign = product = swaps;
    for (std::int64_t i = 0; i < r.n; ++i) {
      const T d = lu.matrixLU()(i, i);
      const RealOf<T> size = std::abs(d);
      product *= d;
      sign = size == 0 ? T(0) : T(sign * (d / size));
      logarithm += std::log(size);
    }
  }
  *static_cast<T*>(r.out[0]) = sign;
  *static_cast<RealOf<T>*>(r.out[1]) = logarithm;
  *static_cast<T*>(r.out[2]) = product;
  return LinalgOutcome::ok;
}

// Exchanges rows in place, as LAPACK does: Eigen's own decomposition takes square matrices only.
template <class T>
LinalgOutcome lu(const LinalgRequest& r, bool packed) {
  ColMajor<T> a = read<T>(r.in[0], r.m, r.n);
  const Eigen::Index k = std::min(a.rows(), a.cols());
  Eigen::Matrix<std::int32_t, Eigen::Dynamic, 1> swaps(k);
  if (a.rows() == a.cols() && k > 0) {
    Eigen::Matrix<Eigen::Index, Eigen::Dynamic, 1> exchanged(k);
    Eigen::Index count = 0;
    Eigen::internal::partial_lu_inplace(a, exchanged, count);
    swaps = exchanged.template cast<std::int32_t>();
  } else {
    for (Eigen::Index i = 0; i < k; ++i) {
      Eigen::Index best = 0;
      a.col(i).tail(a.rows() - i).cwiseAbs().maxCoeff(&best);
      swaps(i) = static_cast<std::int32_t>(best + i);
      if (best != 0) a.row(i).swap(a.row(best + i));
      if (a(i, i) == T(0)) continue;
      const Eigen::Index rows = a.rows() - i - 1, columns = a.cols() - i - 1;
      a.col(i).tail(rows) /= a(i, i);
      a.bottomRightCorner(rows, columns).noalias() -= a.col(i).tail(rows) * a.row(i).tail(columns);
    }
  }
  if (packed) {
    written<T>(r.out[0], r.m, r.n) = a;
    std::copy(swaps.data(), swaps.data() + k, static_cast<std::int32_t*>(r.out[1]));
    return LinalgOutcome::ok;
  }
  auto* rows = static_cast<std::int32_t*>(r.out[0]);
  std::vector<std::int32_t> order(static_cast<std::size_t>(r.m));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int32_t>(i);
  for (Eigen::Index i = 0; i < k; ++i) std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(swaps(i))]);
  for (std::size_t i = 0; i < order.size(); ++i) rows[order[i]] = static_cast<std::int32_t>(i);
  ColMajor<T> lower = a.leftCols(k);
  lower.template triangularView<Eigen::Upper>().setZero();
  lower.diagonal().setOnes();
  ColMajor<T> upper = a.topRows(k);
  upper.template triangularView<Eigen::StrictlyLower>().setZero();
  written<T>(r.out[1], r.m, k) = lower;
  written<T>(r.out[2], k, r.n) = upper;
  return LinalgOutcome::ok;
}

template <class T>
LinalgOutcome qr(const LinalgRequest& r) {
  const Eigen::HouseholderQR<ColMajor<T>> qr(read<T>(r.in[0], r.m, r.n));
  const std::int64_t k = std::min(r.m, r.n);
  written<T>(r.out[0], r.m, k) = qr.householderQ() * ColMajor<T>::Identity(r.m, k);
  auto upper = written<T>(r.out[1], k, r.n);
  upper.setZero();
  upper.template triangularView<Eigen::Upper>() = qr.matrixQR().topRows(k);
  return LinalgOutcome::ok;
}

template <class T>
LinalgOutcome run(const LinalgRequest& r) {
  switch (r.what) {
    case Decomposition::cholesky: return cholesky<T>(r);
    case Decomposition::inverse: return inverse<T>(r);
    case Decomposition::triangle_inverse: return solve_triangle<T>(r, ColMajor<T>::Identity(r.n, r.n));
    case Decomposition::solve: return solve<T>(r);
    case Decomposition::solve_triangle: return solve_triangle<T>(r, read<T>(r.in[1], r.n, r.k));
    case Decomposition::determinant: return determinant<T>(r);
    case Decomposition::lu: return lu<T>(r, false);
    case Decomposition::lu_packed: return lu<T>(r, true);
    case Decomposition::qr: return qr<T>(r);
    default: return LinalgOutcome::failed;
  }
}

}  // namespace

LinalgOutcome run_factors(const LinalgRequest& r) {
  return by_scalar(r, [&](auto zero) { return run<decltype(zero)>(r); });
}

}  // namespace sdx::array::detail
