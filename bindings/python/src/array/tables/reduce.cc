// Reductions, running operations along an axis, and sorting.

#include "tables.h"

namespace sdx::python::arrays {
namespace {

using Axes = std::optional<std::vector<int>>;
using Axis = std::optional<int>;

// Standard and variance: the standard's `correction` is MLX's `ddof`.
template <auto F>
mx::array spread(const mx::array& a, Axes axis, bool keepdims, int ddof, std::optional<int> correction, StreamOrDevice s) {
  return F(a, axis, keepdims, correction.value_or(ddof), s);
}

// Sums and products in a wider type, as the standard has it.
template <auto F>
mx::array in_type(const mx::array& a, Axes axis, bool keepdims, std::optional<Dtype> dtype, StreamOrDevice s) {
  if (!dtype) return F(a, axis, keepdims, s);
  return mx::astype(F(mx::astype(a, *dtype, s), axis, keepdims, s), *dtype, s);
}

}  // namespace

std::vector<Definition> reduce_functions() {
  return {
      def<&mx::all>("all(a, /, axis=None, keepdims=False, *, stream=None)"),
      def<&mx::any>("any(a, /, axis=None, keepdims=False, *, stream=None)"),
      def<&in_type<&mx::sum>>("sum(a, /, axis=None, keepdims=False, *, dtype=None, stream=None)"),
      def<&in_type<&mx::prod>>("prod(a, /, axis=None, keepdims=False, *, dtype=None, stream=None)"),
      def<&mx::min>("min(a, /, axis=None, keepdims=False, *, stream=None)"),
      def<&mx::max>("max(a, /, axis=None, keepdims=False, *, stream=None)"),
      def<&mx::mean>("mean(a, /, axis=None, keepdims=False, *, stream=None)"),
      def<&spread<&mx::var>>("var(a, /, axis=None, keepdims=False, ddof=0, *, correction=None, stream=None)"),
      def<&spread<&mx::std>>("std(a, /, axis=None, keepdims=False, ddof=0, *, correction=None, stream=None)"),
      def<&mx::count_nonzero>("count_nonzero(a, /, *, axis=None, keepdims=False, stream=None)"),
      def<&mx::logsumexp>("logsumexp(a, /, axis=None, keepdims=False, *, stream=None)"),
      def<&mx::softmax>("softmax(a, /, axis=None, *, precise=False, stream=None)"),
      def<&mx::argmin>("argmin(a, /, axis=None, keepdims=False, *, stream=None)"),
      def<&mx::argmax>("argmax(a, /, axis=None, keepdims=False, *, stream=None)"),
      def<&mx::cumsum>("cumsum(a, /, axis=None, *, reverse=False, inclusive=True, dtype=None, stream=None)"),
      def<&mx::cumprod>("cumprod(a, /, axis=None, *, reverse=False, inclusive=True, dtype=None, stream=None)"),
      def<&mx::cummax>("cummax(a, /, axis=None, *, reverse=False, inclusive=True, stream=None)"),
      def<&mx::cummin>("cummin(a, /, axis=None, *, reverse=False, inclusive=True, stream=None)"),
      def<&mx::logcumsumexp>("logcumsumexp(a, /, axis=None, *, reverse=False, inclusive=True, stream=None)"),
  };
}

}  // namespace sdx::python::arrays
