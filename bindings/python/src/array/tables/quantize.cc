// Matrices in few bits.

#include "tables.h"

namespace sdx::python::arrays {
namespace {

// Weights, scales, and biases where the mode has them.
Object quantize(const mx::array& w, std::optional<int> group_size, std::optional<int> bits, const std::string& mode,
                const std::optional<mx::array>& global_scale, StreamOrDevice s) {
  return wrap_tuple(mx::quantize(w, group_size, bits, mode, global_scale, s));
}

}  // namespace

std::vector<Definition> quantize_functions() {
  return {
      def<&quantize>("quantize(w, /, group_size=None, bits=None, mode='affine', *, global_scale=None, stream=None)"),
      def<&mx::dequantize>(
          "dequantize(w, /, scales, biases=None, group_size=None, bits=None, mode='affine', global_scale=None, dtype=None, *, "
          "stream=None)"),
      def<&mx::quantized_matmul>(
          "quantized_matmul(x, w, /, scales, biases=None, transpose=True, group_size=None, bits=None, mode='affine', *, "
          "stream=None)"),
      def<&mx::gather_qmm>(
          "gather_qmm(x, w, /, scales, biases=None, lhs_indices=None, rhs_indices=None, transpose=True, group_size=None, "
          "bits=None, mode='affine', global_scale=None, *, sorted_indices=False, stream=None)"),
      def<&mx::qqmm>(
          "qqmm(x, w, scales=None, group_size=None, bits=None, mode='nvfp4', global_scale_x=None, global_scale_w=None, *, "
          "stream=None)"),
      def<&mx::gather_qqmm>(
          "gather_qqmm(x, w, /, scales=None, lhs_indices=None, rhs_indices=None, group_size=None, bits=None, mode='nvfp4', "
          "global_scale_x=None, global_scale_w=None, *, sorted_indices=False, stream=None)"),
  };
}

}  // namespace sdx::python::arrays
