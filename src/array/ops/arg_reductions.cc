// Positions of the largest and smallest elements.

#include <sdx/array.hpp>

#include <algorithm>
#include <limits>

#include "array/array_op.h"
#include "array/ops/elements.h"
#include "array/ops/reductions.h"
#include "kernels/cpu/order/reduce.h"
#include "kernels/cpu/rows/reduce.h"

namespace sdx::array {
namespace detail {

using cpu::ReduceFn;
using cpu::result_type_of;
namespace {

void run_arg(ops::OpContext& c) {
  const Tensor& x = c.input(0);
  Tensor& y = result_tensor(c);
  const std::int64_t axis = c.attrs().get_int("axis");
  const cpu::Lanes e = lanes_of(x.shape(), axis, axis);
  if (x.dtype() == DataType::float32 && e.count <= std::numeric_limits<std::int32_t>::max() && y.size() > 0) {
    const bool max = static_cast<ReduceFn>(c.attrs().get_int("function")) == ReduceFn::argmax;
    std::vector<std::int64_t> at(static_cast<std::size_t>(y.size()));
    cpu::arg_extreme_f32(x.values<float>().data(), at.data(), e.outer, e.count, e.inner, max, false);
    std::copy(at.begin(), at.end(), y.mutable_values<std::uint32_t>().begin());
    return;
  }
  reduce(static_cast<ReduceFn>(c.attrs().get_int("function")), x.dtype(), x.data(), y.mutable_data(), e);
}

// params.ints holds the axis.
template <ReduceFn kFn>
void emit_arg(Emitter& e) {
  e.results<run_arg>("ArgReduce", {e.in(0)}, {{"function", static_cast<std::int64_t>(kFn)}, {"axis", e.params().ints[0]}});
}

template <bool kMax>
VmapResult vmap_arg(const VmapCall& c) {
  const int batch = c.in_axes[0];
  const int axis = static_cast<int>(c.params.ints[0]);
  const int along = axis >= batch ? axis + 1 : axis;
  const array result = kMax ? argmax(c.inputs[0], along, true) : argmin(c.inputs[0], along, true);
  return {{result}, {batch}};
}

const Kind kArgmax{.name = "argmax", .emit = emit_arg<ReduceFn::argmax>, .vjp = flat_vjp, .vmap = vmap_arg<true>};
const Kind kArgmin{.name = "argmin", .emit = emit_arg<ReduceFn::argmin>, .vjp = flat_vjp, .vmap = vmap_arg<false>};

// The operation keeps the axis; without keepdims a reshape drops it.
array arg_of(const Kind& kind, const array& a, std::optional<int> axis, bool keepdims, const StreamOrDevice& s) {
  const array x = axis ? a : reshape(a, {a.size()}, s);
  const auto along = static_cast<std::size_t>(axis_of(kind.name, axis.value_or(0), x.shape().size()));
  if (x.shape()[along] == 0) refuse(kind.name, "axis {} of {} has no elements", along, to_string(x.shape()));
  if (x.shape()[along] > std::numeric_limits<std::uint32_t>::max()) refuse(kind.name, "more elements than uint32 can count");
  Shape shape = x.shape();
  shape[along] = 1;
  array result = make(kind, Dtype::uint32, shape, {x}, params_of({static_cast<std::int64_t>(along)}), s);
  if (!axis) return reshape(result, keepdims ? Shape(a.shape().size(), 1) : Shape{}, s);
  if (keepdims) return result;
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(along));
  return reshape(result, shape, s);
}

}  // namespace
}  // namespace detail

array argmax(const array& a, std::optional<int> axis, bool keepdims, StreamOrDevice s) {
  return detail::arg_of(detail::kArgmax, a, axis, keepdims, s);
}
array argmin(const array& a, std::optional<int> axis, bool keepdims, StreamOrDevice s) {
  return detail::arg_of(detail::kArgmin, a, axis, keepdims, s);
}

}  // namespace sdx::array
