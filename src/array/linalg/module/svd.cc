// Singular values.

#include <Eigen/SVD>

#include "array/linalg/module/parts.h"

namespace sdx::array::detail {
namespace {

// Eigen 5 takes the options as a parameter of the class, where Eigen 3.4 takes them as an argument, and makes one class of all.
template <int Options, class M>
auto svd_of(const M& a) {
#if EIGEN_VERSION_AT_LEAST(3, 4, 90)
  return Eigen::BDCSVD<M, Options>(a);
#else
  return Eigen::BDCSVD<M>(a, Options);
#endif
}

template <class T>
LinalgOutcome run(const LinalgRequest& r) {
  const ColMajor<Wide<T>> a = read_wide<T>(r.in[0], r.m, r.n);
  if (!a.allFinite()) return LinalgOutcome::no_convergence;
  const bool vectors = r.what == Decomposition::svd;
  const auto write = [&](const auto& svd) {
    if (svd.info() != Eigen::Success) return LinalgOutcome::no_convergence;
    const std::int64_t k = std::min(r.m, r.n);
    written<RealOf<T>>(r.out[vectors ? 1 : 0], k, 1) = svd.singularValues().template cast<RealOf<T>>();
    if (!vectors) return LinalgOutcome::ok;
    written<T>(r.out[0], r.m, r.m) = svd.matrixU().template cast<T>();
    written<T>(r.out[2], r.n, r.n) = svd.matrixV().adjoint().template cast<T>();
    return LinalgOutcome::ok;
  };
  return vectors ? write(svd_of<Eigen::ComputeFullU | Eigen::ComputeFullV>(a)) : write(svd_of<0>(a));
}

}  // namespace

LinalgOutcome run_svd(const LinalgRequest& r) {
  return by_scalar(r, [&](auto zero) { return run<decltype(zero)>(r); });
}

}  // namespace sdx::array::detail
