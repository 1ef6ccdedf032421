// Convolutions.

#include "tables.h"

namespace sdx::python::arrays {
namespace {

// A number or numbers for all axes, or a pair of these: before and after.
mx::array conv_general(const mx::array& input, const mx::array& weight, const std::vector<int>& stride, Any padding,
                       const std::vector<int>& kernel_dilation, const std::vector<int>& input_dilation, int groups, bool flip,
                       StreamOrDevice s) {
  std::vector<int> low;
  std::optional<std::vector<int>> high;
  const bool pair = !PyIndex_Check(padding.object) && PySequence_Size(padding.object) == 2 &&
                    !PyIndex_Check(Object::taken(PySequence_GetItem(padding.object, 0)).get());
  if (pair) {
    std::tie(low, high) = to_pair(padding.object, to_ints, to_ints);
  } else {
    low = to_ints(padding.object);
  }
  return mx::conv_general(input, weight, stride, low, high, kernel_dilation, input_dilation, groups, flip, s);
}

}  // namespace

std::vector<Definition> convolve_functions() {
  return {
      def<&mx::conv1d>("conv1d(input, weight, /, stride=1, padding=0, dilation=1, groups=1, *, stream=None)"),
      def<&mx::conv2d>("conv2d(input, weight, /, stride=1, padding=0, dilation=1, groups=1, *, stream=None)"),
      def<&mx::conv3d>("conv3d(input, weight, /, stride=1, padding=0, dilation=1, groups=1, *, stream=None)"),
      def<&mx::conv_transpose1d>(
          "conv_transpose1d(input, weight, /, stride=1, padding=0, dilation=1, output_padding=0, groups=1, *, stream=None)"),
      def<&mx::conv_transpose2d>(
          "conv_transpose2d(input, weight, /, stride=1, padding=0, dilation=1, output_padding=0, groups=1, *, stream=None)"),
      def<&mx::conv_transpose3d>(
          "conv_transpose3d(input, weight, /, stride=1, padding=0, dilation=1, output_padding=0, groups=1, *, stream=None)"),
      def<&conv_general>(
          "conv_general(input, weight, /, stride=1, padding=0, kernel_dilation=1, input_dilation=1, groups=1, flip=False, *, "
          "stream=None)"),
  };
}

}  // namespace sdx::python::arrays
