// QLinearSoftmax: com.microsoft 1. `opset` says which Softmax: before 13 all axes from `axis` on together, else `axis` alone.

#include <algorithm>
#include <cmath>

#include "ops/op.h"
#include "ops/quant/quant_codec.h"
#include "ops/quant/quant_scalar.h"
#include "ops/signature.h"
#include "ops/tensor/axes.h"

namespace sdx::ops {
namespace {

struct QLinearSoftmaxAttrs {
  std::int64_t opset = 13;  // of the Softmax that it stands for: before 13 the axes from `axis` on count as one
  std::int64_t axis = -1;

  void fields(auto& f) {
    f("opset", opset);
    if (opset < 13) axis = 1;
    f("axis", axis);
  }
};

void infer_softmax(InferContext& c) { infer_like(c, 0); }

void run_softmax(OpContext& c) {
  const auto attr = parse<QLinearSoftmaxAttrs>(c);
  const Tensor& x = c.input(0);
  const QuantScalar from = quant_scalar(c, 1, 2, x.dtype());
  const QuantScalar to = quant_scalar(c, 3, 4, x.dtype());
  Tensor& y = c.output(0, x.dtype(), x.shape());
  if (x.size() == 0) return;
  const std::int64_t opset = attr.opset;
  std::int64_t count = 1;
  std::int64_t inner = 1;
  if (x.rank() > 0) {
    const auto axis = static_cast<std::size_t>(normalize_axis(attr.axis, x.rank()));
    count = opset < 13 ? product(x.shape(), axis, x.rank()) : x.shape()[axis];
    inner = opset < 13 ? 1 : product(x.shape(), axis + 1, x.rank());
  }
  const QuantRange range = quant_range(x.dtype());
  const std::vector<std::int32_t> in = decode_ints(x);
  std::vector<std::int32_t> out(in.size());
  std::vector<float> e(static_cast<std::size_t>(count));
  for (std::int64_t line = 0; line < x.size() / count; ++line) {
    const auto base = static_cast<std::size_t>(line / inner * count * inner + line % inner);
    const auto step = static_cast<std::size_t>(inner);
    std::int32_t top = range.low;
    for (std::size_t i = 0; i < e.size(); ++i) top = std::max(top, in[base + i * step]);
    float sum = 0.0f;
    for (std::size_t i = 0; i < e.size(); ++i) {
      e[i] = std::exp(static_cast<float>(in[base + i * step] - top) * from.scale);
      sum += e[i];
    }
    for (std::size_t i = 0; i < e.size(); ++i) out[base + i * step] = requantize(e[i] / sum / to.scale, to.zero, range);
  }
  encode_ints(x.dtype(), out.data(), 0, x.size(), y.mutable_data());
}

}  // namespace

void register_qlinear_softmax(OpTable& t) {
  constexpr TypeSet kBytes = set_of(DataType::int8, DataType::uint8);
  t.add(OpDef("com.microsoft", "QLinearSoftmax", 1)
            .in("X", "T", kBytes)
            .in("X_scale", "", bit(DataType::float32))
            .in("x_zero_point", "T", kBytes, Arity::optional)
            .in("y_scale", "", bit(DataType::float32))
            .in("y_zero_point", "T", kBytes)
            .out("Y", "T", kBytes)
            .attrs<QLinearSoftmaxAttrs>()
            .infer_with(infer_softmax)
            .run_with(run_softmax));
}

}  // namespace sdx::ops
