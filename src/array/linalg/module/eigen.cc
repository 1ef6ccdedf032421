// Eigenvalues and eigenvectors.

#include <Eigen/Eigenvalues>

#include "array/linalg/module/parts.h"

namespace sdx::array::detail {
namespace {

template <class T>
LinalgOutcome symmetric(const LinalgRequest& r, bool vectors) {
  const ColMajor<Wide<T>> a = read_wide<T>(r.in[0], r.n, r.n);
  // Eigen reads the lower half only.
  const ColMajor<Wide<T>> half = r.flag ? ColMajor<Wide<T>>(a.adjoint()) : a;
  const Eigen::SelfAdjointEigenSolver<ColMajor<Wide<T>>> solver(half,
                                                                vectors ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
  if (solver.info() != Eigen::Success) return LinalgOutcome::no_convergence;
  written<RealOf<T>>(r.out[0], r.n, 1) = solver.eigenvalues().template cast<RealOf<T>>();
  if (vectors) written<T>(r.out[1], r.n, r.n) = solver.eigenvectors().template cast<T>();
  return LinalgOutcome::ok;
}

template <class T>
LinalgOutcome general(const LinalgRequest& r, bool vectors) {
  using Matrix = ColMajor<Wide<T>>;
  using Solver =
      std::conditional_t<Eigen::NumTraits<T>::IsComplex, Eigen::ComplexEigenSolver<Matrix>, Eigen::EigenSolver<Matrix>>;
  const Matrix a = read_wide<T>(r.in[0], r.n, r.n);
  if (!a.allFinite()) return LinalgOutcome::no_convergence;
  const Solver solver(a, vectors);
  if (solver.info() != Eigen::Success) return LinalgOutcome::no_convergence;
  using C = std::complex<RealOf<T>>;
  written<C>(r.out[0], r.n, 1) = solver.eigenvalues().template cast<C>();
  if (vectors) written<C>(r.out[1], r.n, r.n) = solver.eigenvectors().template cast<C>();
  return LinalgOutcome::ok;
}

template <class T>
LinalgOutcome run(const LinalgRequest& r) {
  switch (r.what) {
    case Decomposition::eigh: return symmetric<T>(r, true);
    case Decomposition::eigvalsh: return symmetric<T>(r, false);
    case Decomposition::eig: return general<T>(r, true);
    case Decomposition::eigvals: return general<T>(r, false);
    default: return LinalgOutcome::failed;
  }
}

}  // namespace

LinalgOutcome run_eigen(const LinalgRequest& r) {
  return by_scalar(r, [&](auto zero) { return run<decltype(zero)>(r); });
}

}  // namespace sdx::array::detail
