// sardonyx.array.fast

#include "tables.h"

namespace sdx::python::arrays {
namespace {

namespace fast = mx::fast;
using Optional = std::optional<mx::array>;

mx::array rope(const mx::array& a, int dims, bool traditional, std::optional<float> base, float scale, Any offset,
               const Optional& freqs, StreamOrDevice s) {
  if (is_array(offset.object)) return fast::rope(a, dims, traditional, base, scale, array_of(offset.object), freqs, s);
  return fast::rope(a, dims, traditional, base, scale, exact_int(offset.object), freqs, s);
}

mx::array attention(const mx::array& q, const mx::array& k, const mx::array& v, float scale, Any mask, const Optional& sinks,
                    bool, StreamOrDevice s) {
  fast::Mask by;
  if (PyUnicode_Check(mask.object) != 0) {
    by = to_text(mask.object);
  } else if (mask.object != Py_None) {
    by = From<mx::array>::get(mask.object);
  }
  return fast::scaled_dot_product_attention(q, k, v, scale, by, sinks, s);
}

}  // namespace

std::vector<Definition> fast_functions() {
  return {
      def<&fast::rms_norm>("rms_norm(x, weight, eps, *, stream=None)"),
      def<&fast::layer_norm>("layer_norm(x, weight, bias, eps, *, stream=None)"),
      def<&fast::cross_entropy>("cross_entropy(logits, targets, *, stream=None)"),
      def<&rope>("rope(a, dims, *, traditional, base, scale, offset, freqs=None, stream=None)"),
      def<&attention>("scaled_dot_product_attention(q, k, v, *, scale, mask=None, sinks=None, force_fused=False, stream=None)"),
  };
}

}  // namespace sdx::python::arrays
