// QLinearConcat: com.microsoft 1. Inputs: scale and zero point of the result, then (tensor, scale, zero point) for each part.

#include <algorithm>
#include <cstring>

#include "ops/op.h"
#include "ops/quant/quant_codec.h"
#include "ops/quant/quant_scalar.h"
#include "ops/quant/signatures.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/join.h"

namespace sdx::ops {
namespace {

constexpr std::size_t kFirst = 2;

std::size_t parts(std::size_t inputs) {
  if (inputs < kFirst + 3 || (inputs - kFirst) % 3 != 0) {
    fail(ErrorCode::invalid_model,
         "QLinearConcat takes y's scale and zero point and then three inputs for each part, received {} inputs", inputs);
  }
  return (inputs - kFirst) / 3;
}

void infer_concat(InferContext& c) {
  const std::size_t n = parts(c.num_inputs());
  const DataType elem = c.dtype(1);
  std::vector<const SymShape*> shapes;
  for (std::size_t i = 0; i < n; ++i) {
    shapes.push_back(c.shape(kFirst + 3 * i));
    if (shapes.back() == nullptr) return c.output(0, elem);
  }
  c.output(0, elem, joined(shapes, parse<QLinearConcatAttrs>(c).axis).shape);
}

void run_concat(OpContext& c) {
  const std::size_t n = parts(c.num_inputs());
  const DataType elem = c.input(1).dtype();
  const QuantScalar to = quant_scalar(c, 0, 1, elem);
  std::vector<const Shape*> shapes;
  for (std::size_t i = 0; i < n; ++i) shapes.push_back(&c.input(kFirst + 3 * i).shape());
  const auto [shape, axis] = joined(shapes, parse<QLinearConcatAttrs>(c).axis);
  Tensor& y = c.output(0, elem, shape);
  auto* out = static_cast<std::uint8_t*>(y.mutable_data());
  const std::int64_t outer = product(shape, 0, axis);
  const std::int64_t row = product(shape, axis, shape.size());
  std::int64_t at = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const Tensor& x = c.input(kFirst + 3 * i);
    if (x.dtype() != elem) c.fail("part {} is {}, the result {}; they must be the same", i, name(x.dtype()), name(elem));
    const QuantScalar from = quant_scalar(c, kFirst + 3 * i + 1, kFirst + 3 * i + 2, elem);
    if (x.size() == 0) continue;
    const std::int64_t own = product(x.shape(), axis, x.rank());
    const std::vector<std::uint8_t> table =
        quant_table(elem, from.scale, from.zero, to.scale, to.zero, [](float v) { return v; });
    const bool copies = from.scale == to.scale && from.zero == to.zero;
    const auto* in = static_cast<const std::uint8_t*>(x.data());
    for (std::int64_t o = 0; o < outer && own > 0; ++o) {
      std::uint8_t* dst = out + o * row + at;
      if (copies) {
        std::memcpy(dst, in + o * own, static_cast<std::size_t>(own));
      } else {
        std::transform(in + o * own, in + (o + 1) * own, dst, [&](std::uint8_t v) { return table[v]; });
      }
    }
    at += own;
  }
}

}  // namespace

void register_qlinear_concat(OpTable& t) {
  constexpr TypeSet kBytes = set_of(DataType::int8, DataType::uint8);
  t.add(OpDef("com.microsoft", "QLinearConcat", 1)
            .in("Y_scale", "", bit(DataType::float32))
            .in("Y_zero_point", "T8", kBytes)
            .in("inputs", "", kBytes | bit(DataType::float32), Arity::variadic)
            .out("Y", "T8", kBytes)
            .attrs<QLinearConcatAttrs>()
            .infer_with(infer_concat)
            .run_with(run_concat));
}

}  // namespace sdx::ops
