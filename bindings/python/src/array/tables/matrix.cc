// Products of matrices.

#include "tables.h"

namespace sdx::python::arrays {
namespace {

mx::array tensordot(const mx::array& a, const mx::array& b, Any axes, StreamOrDevice s) {
  if (PyIndex_Check(axes.object)) return mx::tensordot(a, b, exact_int(axes.object), s);
  const auto [first, second] = to_pair(axes.object, to_ints, to_ints);
  return mx::tensordot(a, b, first, second, s);
}

std::vector<mx::array> operands_of(const Rest& rest) {
  std::vector<mx::array> operands;
  for (std::size_t i = 0; i < rest.count; ++i) operands.push_back(From<mx::array>::get(rest.items[i]));
  return operands;
}

mx::array einsum(const std::string& subscripts, Rest operands, StreamOrDevice s) {
  return mx::einsum(subscripts, operands_of(operands), s);
}

Object einsum_path(const std::string& subscripts, Rest operands) {
  const auto [path, description] = mx::einsum_path(subscripts, operands_of(operands));
  const Object steps = list_of(path, [](const std::vector<int>& step) {
    return Object::taken(PyList_AsTuple(list_of(step, [](int i) { return whole(i); }).get()));
  });
  return tuple(steps, text(description));
}

// A scalar is a vector of one element.
mx::array hadamard_transform(const mx::array& a, std::optional<float> scale, StreamOrDevice s) {
  if (a.ndim() != 0) return mx::hadamard_transform(a, scale, s);
  return mx::reshape(mx::hadamard_transform(mx::reshape(a, {1}, s), scale, s), {}, s);
}

}  // namespace

std::vector<Definition> matrix_functions() {
  return {
      def<&mx::matmul>("matmul(a, b, /, *, stream=None)"),
      def<&mx::addmm>("addmm(c, a, b, /, alpha=1.0, beta=1.0, *, stream=None)"),
      def<&mx::inner>("inner(a, b, /, *, stream=None)"),
      def<&mx::outer>("outer(a, b, /, *, stream=None)"),
      def<&mx::vecdot>("vecdot(a, b, /, *, axis=-1, stream=None)"),
      def<&tensordot>("tensordot(a, b, /, axes=2, *, stream=None)"),
      def<&einsum>("einsum(subscripts, *operands, stream=None)"),
      def<&einsum_path>("einsum_path(subscripts, *operands)"),
      def<&mx::block_masked_mm>(
          "block_masked_mm(a, b, /, block_size=64, mask_out=None, mask_lhs=None, mask_rhs=None, *, stream=None)"),
      def<&mx::gather_mm>("gather_mm(a, b, /, lhs_indices=None, rhs_indices=None, *, sorted_indices=False, stream=None)"),
      def<&mx::segmented_mm>("segmented_mm(a, b, /, segments, *, stream=None)"),
      def<&hadamard_transform>("hadamard_transform(a, scale=None, stream=None)"),
      def<&mx::convolve>("convolve(a, v, /, mode='full', *, stream=None)"),
  };
}

}  // namespace sdx::python::arrays
