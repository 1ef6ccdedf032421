// Singular values.

#include <Eigen/SVD>

#include "array/linalg/module/parts.h"

namespace sdx::array::detail {
namespace {

template <class T>
LinalgOutcome run(const LinalgRequest& r) {
  const ColMajor<Wide<T>> a = read_wide<T>(r.in[0], r.m, r.n);
  if (!a.allFinite()) return LinalgOutcome::no_convergence;
  const bool vectors = r.what == Decomposition::svd;
  const Eigen::BDCSVD<ColMajor<Wide<T>>> svd(a, vectors ? Eigen::ComputeFullU | Eigen::ComputeFullV : 0);
  if (svd.info() != Eigen::Success) return LinalgOutcome::no_convergence;
  const std::int64_t k = std::min(r.m, r.n);
  written<RealOf<T>>(r.out[vectors ? 1 : 0], k, 1) = svd.singularValues().template cast<RealOf<T>>();
  if (!vectors) return LinalgOutcome::ok;
  written<T>(r.out[0], r.m, r.m) = svd.matrixU().template cast<T>();
  written<T>(r.out[2], r.n, r.n) = svd.matrixV().adjoint().template cast<T>();
  return LinalgOutcome::ok;
}

}  // namespace

LinalgOutcome run_svd(const LinalgRequest& r) {
  return by_scalar(r, [&](auto zero) { return run<decltype(zero)>(r); });
}

}  // namespace sdx::array::detail
