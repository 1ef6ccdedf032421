#pragma once
// Linear algebra on the last two axes; all axes before them are a batch, and broadcast where there are two arrays. Computed by
// Eigen in float32, float64, complex64 or complex128; whole numbers become float32. The first use loads libsdx_linalg.so.
// Errors: Error(invalid_argument) for shapes and types when an operation is built, and, when it is computed, for matrices that
// are singular or not positive definite where that is needed; Error(io) where the library is not there. Derivatives: of all but
// `eig`; `qr` and `lu` where the matrix has at least as many rows as columns (`lu`: as many), `svd` of real numbers. They are not
// defined where eigenvalues or singular values are equal; such pairs count as if they did not depend on each other.

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <sdx/array/array.hpp>
#include <sdx/array/matrix.hpp>
#include <sdx/array/shape.hpp>

namespace sdx::array::linalg {

// The lower triangle L with a = L L^H, or the upper one, L^H. Reads the lower half of `a`.
SDX_API array cholesky(const array& a, bool upper = false, StreamOrDevice s = {});
// The inverse of the matrix whose Cholesky decomposition `a` is.
SDX_API array cholesky_inv(const array& a, bool upper = false, StreamOrDevice s = {});
SDX_API array inv(const array& a, StreamOrDevice s = {});
SDX_API array tri_inv(const array& a, bool upper = false, StreamOrDevice s = {});
// b: a vector or matrices.
SDX_API array solve(const array& a, const array& b, StreamOrDevice s = {});
SDX_API array solve_triangular(const array& a, const array& b, bool upper = false, StreamOrDevice s = {});
SDX_API array det(const array& a, StreamOrDevice s = {});
// Sign (complex: phase) and logarithm of the absolute value of the determinant.
SDX_API std::pair<array, array> slogdet(const array& a, StreamOrDevice s = {});
// Returns q[m, k] and r[k, n], with k = min(m, n).
SDX_API std::pair<array, array> qr(const array& a, StreamOrDevice s = {});
// Rows p (uint32), l[m, k], u[k, n] with a = (l u)[p].
SDX_API std::tuple<array, array, array> lu(const array& a, StreamOrDevice s = {});
// Returns l and u packed in one matrix, and the row exchanges in order (uint32).
SDX_API std::pair<array, array> lu_factor(const array& a, StreamOrDevice s = {});
// Returns u[m, m], the singular values in descending order, and v^H[n, n].
SDX_API std::tuple<array, array, array> svd(const array& a, StreamOrDevice s = {});
SDX_API array svdvals(const array& a, StreamOrDevice s = {});
// Eigenvalues of symmetric (Hermitian) matrices, in ascending order, and eigenvectors as columns. Only the half `uplo` ("L", "U")
// of a matrix is read.
SDX_API std::pair<array, array> eigh(const array& a, const std::string& uplo = "L", StreamOrDevice s = {});
SDX_API array eigvalsh(const array& a, const std::string& uplo = "L", StreamOrDevice s = {});
// Complex eigenvalues of square matrices, and eigenvectors of length 1 as columns.
SDX_API std::pair<array, array> eig(const array& a, StreamOrDevice s = {});
SDX_API array eigvals(const array& a, StreamOrDevice s = {});
// Singular values up to rtol times the largest are treated as 0; default: max(m, n) times the type's precision.
SDX_API array pinv(const array& a, std::optional<double> rtol = std::nullopt, StreamOrDevice s = {});
SDX_API array matrix_rank(const array& a, std::optional<double> rtol = std::nullopt, StreamOrDevice s = {});
SDX_API array matrix_power(const array& a, int n, StreamOrDevice s = {});

using NormAxes = std::optional<std::vector<int>>;
// One axis: of vectors; two: of matrices; none: of all elements, and with an order of the vector or matrix `a`. Orders of
// vectors: any number, infinity too; of matrices: 1, -1, 2, -2, infinity, -infinity, "fro", "nuc".
SDX_API array norm(const array& a, const NormAxes& axis = std::nullopt, bool keepdims = false, StreamOrDevice s = {});
SDX_API array norm(const array& a, double ord, const NormAxes& axis = std::nullopt, bool keepdims = false, StreamOrDevice s = {});
SDX_API array norm(const array& a, const std::string& ord, const NormAxes& axis = std::nullopt, bool keepdims = false,
                   StreamOrDevice s = {});
// These functions follow the Python array API standard: no axis means all elements; matrices lie on the last two axes.
SDX_API array vector_norm(const array& a, const NormAxes& axis = std::nullopt, bool keepdims = false, double ord = 2,
                          StreamOrDevice s = {});
SDX_API array matrix_norm(const array& a, bool keepdims = false, const std::string& ord = "fro", StreamOrDevice s = {});
SDX_API array matrix_norm(const array& a, bool keepdims, double ord, StreamOrDevice s = {});
// Along an axis with 3 elements; 2 count as 3 with a 0 (for two such arrays, only the third element is returned).
SDX_API array cross(const array& a, const array& b, int axis = -1, StreamOrDevice s = {});
SDX_API array diagonal(const array& a, int offset = 0, StreamOrDevice s = {});
SDX_API array trace(const array& a, int offset = 0, Dtype dtype = Dtype::undefined, StreamOrDevice s = {});

using sdx::array::matmul;
using sdx::array::matrix_transpose;
using sdx::array::outer;
using sdx::array::tensordot;
using sdx::array::vecdot;

}  // namespace sdx::array::linalg
