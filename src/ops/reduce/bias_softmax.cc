// com.microsoft BiasSoftmax 1: softmax(data + bias) over the axes from `axis` on, taken together.

#include <algorithm>
#include <cmath>

#include "ops/context.h"
#include "ops/math/broadcast.h"
#include "ops/math/float_view.h"
#include "ops/op.h"
#include "ops/reduce/signatures.h"
#include "ops/tensor/axes.h"

namespace sdx::ops {
namespace {

void run_bias_softmax(OpContext& c) {
  const Tensor &x = c.input(0), &bias = c.input(1);
  if (x.rank() == 0) c.fail("data must have an axis, received {}", x.type_string());
  const auto axis = static_cast<std::size_t>(normalize_axis(parse<BiasSoftmaxAttrs>(c).axis, x.rank()));
  if (broadcast_shapes(x.shape(), bias.shape()) != x.shape())
    c.fail("bias {} does not broadcast to data {}", bias.type_string(), x.type_string());
  const std::int64_t n = product(x.shape(), axis, x.rank());
  Tensor& y = c.output(0, x.dtype(), x.shape());
  dispatch_compute(x.dtype(), "BiasSoftmax", [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> fx(x), fb(bias);
    FloatOutput<C> fy(y);
    for_each_broadcast<2>({x.shape(), bias.shape()}, x.shape(),
                          [&](const auto& at, const auto& step, std::int64_t o, std::int64_t count) {
                            for (std::int64_t i = 0; i < count; ++i)
                              fy[o + i] = fx[at[0] + i * step[0]] + fb[at[1] + i * step[1]];
                          });
    for (std::int64_t i = 0; n > 0 && i < y.size(); i += n) {
      C* row = fy.data() + i;
      const C top = *std::max_element(row, row + n);
      C sum = 0;
      for (std::int64_t k = 0; k < n; ++k) sum += row[k] = std::exp(row[k] - top);
      for (std::int64_t k = 0; k < n; ++k) row[k] /= sum;
    }
    fy.store();
  });
}

}  // namespace

void register_bias_softmax(OpTable& t) {
  constexpr TypeSet kThree = set_of(DataType::float16, DataType::float32, DataType::float64);
  t.add(OpDef("com.microsoft", "BiasSoftmax", 1)
            .in("data bias", "T", kThree)
            .out("output", "T", kThree)
            .attrs<BiasSoftmaxAttrs>()
            .infer_with([](InferContext& c) { c.output(0, c.type(0)); })
            .run_with(run_bias_softmax));
}

}  // namespace sdx::ops
