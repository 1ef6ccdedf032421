// sardonyx.array.linalg

#include "tables.h"

namespace sdx::python::arrays {
namespace {

namespace linalg = mx::linalg;
using Axes = std::optional<std::vector<int>>;

// `ord`: None, a number or a name.
mx::array norm(const mx::array& a, Any ord, const Axes& axis, bool keepdims, StreamOrDevice s) {
  if (ord.object == Py_None) return linalg::norm(a, axis, keepdims, s);
  if (PyUnicode_Check(ord.object) != 0) return linalg::norm(a, to_text(ord.object), axis, keepdims, s);
  return linalg::norm(a, to_double(ord.object), axis, keepdims, s);
}

mx::array matrix_norm(const mx::array& a, bool keepdims, Any ord, StreamOrDevice s) {
  if (ord.object == Py_None) return linalg::matrix_norm(a, keepdims, "fro", s);
  if (PyUnicode_Check(ord.object) != 0) return linalg::matrix_norm(a, keepdims, to_text(ord.object), s);
  return linalg::matrix_norm(a, keepdims, to_double(ord.object), s);
}

mx::array vector_norm(const mx::array& a, const Axes& axis, bool keepdims, double ord, StreamOrDevice s) {
  return linalg::vector_norm(a, axis, keepdims, ord, s);
}

Object svd(const mx::array& a, bool compute_uv, StreamOrDevice s) {
  return compute_uv ? to_python(linalg::svd(a, s)) : wrap(linalg::svdvals(a, s));
}

mx::array trace(const mx::array& a, int offset, std::optional<Dtype> dtype, StreamOrDevice s) {
  return linalg::trace(a, offset, dtype.value_or(Dtype::undefined), s);
}

}  // namespace

std::vector<Definition> linalg_functions() {
  return {
      def<&norm>("norm(a, /, ord=None, axis=None, keepdims=False, *, stream=None)"),
      def<&linalg::qr>("qr(a, *, stream=None)"),
      def<&svd>("svd(a, compute_uv=True, *, stream=None)"),
      def<&linalg::svdvals>("svdvals(x, /, *, stream=None)"),
      def<&linalg::inv>("inv(a, *, stream=None)"),
      def<&linalg::tri_inv>("tri_inv(a, upper=False, *, stream=None)"),
      def<&linalg::cholesky>("cholesky(a, upper=False, *, stream=None)"),
      def<&linalg::cholesky_inv>("cholesky_inv(a, upper=False, *, stream=None)"),
      def<&linalg::pinv>("pinv(a, *, rtol=None, stream=None)"),
      def<&linalg::cross>("cross(a, b, axis=-1, *, stream=None)"),
      def<&linalg::eigvals>("eigvals(a, *, stream=None)"),
      def<&linalg::eig>("eig(a, *, stream=None)"),
      def<&linalg::eigvalsh>("eigvalsh(a, UPLO='L', *, stream=None)"),
      def<&linalg::eigh>("eigh(a, UPLO='L', *, stream=None)"),
      def<&linalg::lu>("lu(a, *, stream=None)"),
      def<&linalg::lu_factor>("lu_factor(a, *, stream=None)"),
      def<&linalg::solve>("solve(a, b, *, stream=None)"),
      def<&linalg::solve_triangular>("solve_triangular(a, b, *, upper=False, stream=None)"),
      def<&linalg::det>("det(a, *, stream=None)"),
      def<&linalg::slogdet>("slogdet(a, *, stream=None)"),
      def<&linalg::matrix_rank>("matrix_rank(x, /, *, rtol=None, stream=None)"),
      def<&linalg::matrix_power>("matrix_power(x, n, /, *, stream=None)"),
      def<&vector_norm>("vector_norm(x, /, *, axis=None, keepdims=False, ord=2, stream=None)"),
      def<&matrix_norm>("matrix_norm(x, /, *, keepdims=False, ord='fro', stream=None)"),
      def<&linalg::diagonal>("diagonal(x, /, *, offset=0, stream=None)"),
      def<&trace>("trace(x, /, *, offset=0, dtype=None, stream=None)"),
  };
}

}  // namespace sdx::python::arrays
