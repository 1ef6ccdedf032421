// Functions for which the Python array API standard differs from MLX: positions are int64.

#include "tables.h"

namespace sdx::python::arrays {
namespace {

using Axis = std::optional<int>;

template <auto F>
mx::array position(const mx::array& a, Axis axis, bool keepdims, StreamOrDevice s) {
  return mx::astype(F(a, axis, keepdims, s), Dtype::int64, s);
}

// Equal elements keep their order also from the largest to the smallest: the reversed array is sorted and reversed.
mx::array argsort(const mx::array& a, Axis axis, bool descending, bool, StreamOrDevice s) {
  const auto wide = [&](const mx::array& v) { return mx::astype(v, Dtype::int64, s); };
  if (!axis) return argsort(mx::flatten(a, 0, -1, s), -1, descending, true, s);
  if (!descending) return wide(mx::argsort(a, axis, s));
  const std::vector<int> along{*axis};
  const mx::array last(a.shape(*axis) - 1, Dtype::int64);
  return mx::flip(mx::subtract(last, wide(mx::argsort(mx::flip(a, along, s), axis, s)), s), along, s);
}

mx::array sort(const mx::array& a, Axis axis, bool descending, bool, StreamOrDevice s) {
  const mx::array sorted = mx::sort(a, axis, s);
  return descending ? mx::flip(sorted, std::vector<int>{axis.value_or(-1)}, s) : sorted;
}

mx::array searchsorted(const mx::array& sequence, Any values, std::string side, std::optional<mx::array> sorter,
                       StreamOrDevice s) {
  const mx::array sorted = sorter ? mx::take(sequence, *sorter, std::nullopt, s) : sequence;
  const mx::array wanted =
      is_number(values.object) ? to_weak(values.object, sequence.dtype()) : From<mx::array>::get(values.object);
  return mx::astype(mx::searchsorted(sorted, wanted, side, s), Dtype::int64, s);
}

}  // namespace

std::vector<Definition> standard_functions() {
  return {
      def<&position<&mx::argmax>>("argmax(a, /, axis=None, keepdims=False, *, stream=None)"),
      def<&position<&mx::argmin>>("argmin(a, /, axis=None, keepdims=False, *, stream=None)"),
      def<&argsort>("argsort(a, /, axis=-1, *, descending=False, stable=True, stream=None)"),
      def<&sort>("sort(a, /, axis=-1, *, descending=False, stable=True, stream=None)"),
      def<&searchsorted>("searchsorted(x1, x2, /, side='left', sorter=None, *, stream=None)"),
  };
}

}  // namespace sdx::python::arrays
