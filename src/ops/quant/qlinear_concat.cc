// QLinearConcat: com.microsoft 1. Inputs: scale and zero point of the result, then (tensor, scale, zero point) for each part.

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "ops/op.h"
#include "ops/quant/quant_codec.h"
#include "ops/quant/quant_scalar.h"
#include "ops/quant/signatures.h"
#include "ops/tensor/axes.h"

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
  SymShape out;
  for (std::size_t i = 0; i < n; ++i) {
    const SymShape* s = c.shape(kFirst + 3 * i);
    if (s == nullptr) return c.output(0, elem);
    if (i == 0) {
      out = *s;
      continue;
    }
    if (s->size() != out.size()) c.fail("parts have different ranks: {} and {}", to_string(out), to_string(*s));
    const auto axis = static_cast<std::size_t>(normalize_axis(parse<QLinearConcatAttrs>(c).axis, out.size()));
    for (std::size_t a = 0; a < out.size(); ++a) {
      const Dim& d = (*s)[a];
      if (a == axis) {
        out[a] = out[a] + d;
      } else if (out[a].is_const() && d.is_const() && out[a].value() != d.value()) {
        c.fail("parts differ in axis {}: {} and {}", a, out[a].value(), d.value());
      } else if (!out[a].is_const()) {
        out[a] = d.is_unknown() ? out[a] : d;
      }
    }
  }
  c.output(0, elem, std::move(out));
}

void run_concat(OpContext& c) {
  const std::size_t n = parts(c.num_inputs());
  const DataType elem = c.input(1).dtype();
  const QuantScalar to = quant_scalar(c, 0, 1, elem);
  Shape shape = c.input(kFirst).shape();
  const auto axis = static_cast<std::size_t>(normalize_axis(parse<QLinearConcatAttrs>(c).axis, shape.size()));
  for (std::size_t i = 1; i < n; ++i) {
    const Shape& s = c.input(kFirst + 3 * i).shape();
    bool fits = s.size() == shape.size();
    for (std::size_t a = 0; fits && a < s.size(); ++a) fits = a == axis || s[a] == shape[a];
    if (!fits) c.fail("parts of shapes {} and {} cannot be joined along axis {}", to_string(shape), to_string(s), axis);
    const auto sum = checked_add(shape[axis], s[axis]);
    if (!sum) c.fail("the parts' extents along axis {} add up to more than 2^63", axis);
    shape[axis] = *sum;
  }
  Tensor& y = c.output(0, elem, shape);
  auto* out = static_cast<std::uint8_t*>(y.mutable_data());
  const std::int64_t outer = product(shape, 0, axis);
  const std::int64_t row = product(shape, axis, shape.size());
  std::int64_t at = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const Tensor& x = c.input(kFirst + 3 * i);
    if (x.dtype() != elem) c.fail("part {} is {}, the result {}; they must be the same", i, name(x.dtype()), name(elem));
    const QuantScalar from = quant_scalar(c, kFirst + 3 * i + 1, kFirst + 3 * i + 2, elem);
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
