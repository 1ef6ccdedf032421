// Sorting and searching.

#include "tables.h"

namespace sdx::python::arrays {
namespace {

mx::array searchsorted(const mx::array& sequence, const mx::array& values, const std::string& side, StreamOrDevice s) {
  return mx::searchsorted(sequence, values, side, s);
}

}  // namespace

std::vector<Definition> sort_functions() {
  return {
      def<&mx::sort>("sort(a, /, axis=-1, *, stream=None)"),
      def<&mx::argsort>("argsort(a, /, axis=-1, *, stream=None)"),
      def<&mx::partition>("partition(a, /, kth, axis=-1, *, stream=None)"),
      def<&mx::argpartition>("argpartition(a, /, kth, axis=-1, *, stream=None)"),
      def<&mx::topk>("topk(a, /, k, axis=-1, *, stream=None)"),
      def<&searchsorted>("searchsorted(sorted_sequence, values, /, side='left', *, stream=None)"),
      def<&mx::median>("median(a, /, axis=None, keepdims=False, *, stream=None)"),
  };
}

}  // namespace sdx::python::arrays
