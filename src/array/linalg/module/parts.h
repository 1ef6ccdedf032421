#pragma once
// What the module's files share.

#include <Eigen/Core>
#include <complex>
#include <type_traits>

#include "array/linalg/module_api.h"

namespace sdx::array::detail {

template <class T>
using RowMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using ColMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
template <class T>
using RealOf = typename Eigen::NumTraits<T>::Real;

// What iterations compute in: twice the width, rounded once. Eigen's decompositions take the compiler a minute for each type.
template <class T>
using Wide = std::conditional_t<Eigen::NumTraits<T>::IsComplex, std::complex<double>, double>;

template <class T>
ColMajor<T> read(const void* data, std::int64_t rows, std::int64_t columns) {
  return Eigen::Map<const RowMajor<T>>(static_cast<const T*>(data), rows, columns);
}
template <class T>
ColMajor<Wide<T>> read_wide(const void* data, std::int64_t rows, std::int64_t columns) {
  return Eigen::Map<const RowMajor<T>>(static_cast<const T*>(data), rows, columns).template cast<Wide<T>>();
}
template <class T>
Eigen::Map<RowMajor<T>> written(void* data, std::int64_t rows, std::int64_t columns) {
  return {static_cast<T*>(data), rows, columns};
}

LinalgOutcome run_factors(const LinalgRequest& r);
LinalgOutcome run_eigen(const LinalgRequest& r);
LinalgOutcome run_svd(const LinalgRequest& r);

// f<T>() for the request's type.
template <class F>
LinalgOutcome by_scalar(const LinalgRequest& r, const F& f) {
  switch (r.scalar) {
    case LinalgScalar::f32: return f(float{});
    case LinalgScalar::f64: return f(double{});
    case LinalgScalar::c64: return f(std::complex<float>{});
    case LinalgScalar::c128: return f(std::complex<double>{});
  }
  return LinalgOutcome::failed;
}

}  // namespace sdx::array::detail
