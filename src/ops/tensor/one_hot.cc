// OneHot: ai.onnx 9, 11, 28. EyeLike: ai.onnx 9, 22.

#include <algorithm>

#include "ops/context.h"
#include "ops/op.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/movement.h"
#include "ops/tensor/signatures.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

std::size_t new_axis(const OneHotAttrs& attr, std::size_t indices_rank) {
  return static_cast<std::size_t>(normalize_axis(attr.axis, indices_rank + 1));
}

std::int64_t depth_value(const Tensor& depth) {
  if (depth.size() != 1) fail(ErrorCode::invalid_model, "'depth' must be one number, received {}", depth.type_string());
  const std::int64_t d = element_as_int(depth, 0);
  if (d < 0) fail(ErrorCode::invalid_model, "'depth' is {}; it cannot be negative", d);
  return d;
}

void infer_one_hot(InferContext& c) {
  const SymShape* indices = c.shape(0);
  if (indices == nullptr) return c.output(0, c.dtype(2));
  SymShape out = *indices;
  Dim depth;
  if (const Tensor* value = c.value(1)) {
    depth = Dim(depth_value(*value));
  } else if (const auto* elements = c.sym(1); elements != nullptr && elements->size() == 1) {
    depth = (*elements)[0];
  }
  out.insert(out.begin() + static_cast<std::ptrdiff_t>(new_axis(parse<OneHotAttrs>(c), indices->size())), depth);
  c.output(0, c.dtype(2), std::move(out));
}

void run_one_hot(OpContext& c) {
  const Tensor& indices = c.input(0);
  const std::int64_t depth = depth_value(c.input(1));
  const Tensor values = widened(c.input(2));
  if (values.size() != 2) c.fail("'values' must hold two elements (off, on), received {}", values.type_string());
  const std::size_t axis = new_axis(parse<OneHotAttrs>(c), indices.rank());
  Shape shape = indices.shape();
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), depth);
  const std::int64_t inner = product(shape, axis + 1, shape.size());
  produce(c, 0, c.input(2).dtype(), shape, [&](Tensor& out) {
    fill_with(out, values);
    if (out.size() == 0) return;
    dispatch_unit(out.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T on = static_cast<const T*>(values.data())[1];
      auto* to = static_cast<T*>(out.mutable_data());
      for (std::int64_t i = 0; i < indices.size(); ++i) {
        std::int64_t at = element_as_int(indices, i);
        if (at < -depth || at >= depth) continue;  // all off. Source: ONNX OneHot-11
        if (at < 0) at += depth;
        to[((i / inner) * depth + at) * inner + i % inner] = on;
      }
    });
  });
}

struct EyeLikeAttrs {
  std::optional<std::int64_t> dtype;
  std::int64_t k = 0;

  void fields(auto& f) {
    f("dtype", dtype);
    f("k", k);
  }
};

DataType eye_type(const EyeLikeAttrs& attr, DataType input) {
  if (!attr.dtype) return input;
  const std::int64_t code = *attr.dtype;
  if (code <= 0 || code >= kDataTypeCount) fail(ErrorCode::invalid_model, "'dtype' {} is not an element type", code);
  const auto dtype = static_cast<DataType>(code);
  if ((bit(dtype) & (types::numeric | types::boolean)) == 0) {
    fail(ErrorCode::invalid_model, "'dtype' {} is not a type that EyeLike can produce", name(dtype));
  }
  return dtype;
}

void infer_eye_like(InferContext& c) {
  const DataType dtype = eye_type(parse<EyeLikeAttrs>(c), c.dtype(0));
  const SymShape* in = c.shape(0);
  if (in != nullptr && in->size() != 2) c.fail("the input must be a matrix, received {}", to_string(*in));
  c.output(0, dtype, in != nullptr ? *in : SymShape(2));
}

void run_eye_like(OpContext& c) {
  const Shape& shape = c.input(0).shape();
  if (shape.size() != 2) c.fail("the input must be a matrix, received {}", to_string(shape));
  Tensor& out = c.output(0, eye_type(parse<EyeLikeAttrs>(c), c.input(0).dtype()), shape);
  fill_zero(out);
  const std::int64_t k = parse<EyeLikeAttrs>(c).k;
  if (k >= shape[1] || k <= -shape[0]) return;
  const std::int64_t row = std::max<std::int64_t>(0, -k);
  const std::int64_t column = std::max<std::int64_t>(0, k);
  for (std::int64_t i = 0; row + i < shape[0] && column + i < shape[1]; ++i) {
    set_element_int(out, (row + i) * shape[1] + column + i, 1);
  }
}

}  // namespace

void register_one_hot(OpTable& t) {
  OpDef one_hot("OneHot", 9);
  one_hot.in("indices", "T1", types::numeric).in("depth", "T2", types::numeric).in("values", "T3", types::any_tensor);
  one_hot.out("output", "T3", types::any_tensor).attrs<OneHotAttrs>();
  t.add(std::move(one_hot).infer_with(infer_one_hot).run_with(run_one_hot));
  OpDef eye_like("EyeLike", 9);
  eye_like.in("input", "T1", types::numeric | types::boolean).out("output", "T2", types::numeric | types::boolean);
  eye_like.attrs<EyeLikeAttrs>();
  t.add(std::move(eye_like).infer_with(infer_eye_like).run_with(run_eye_like));
}

}  // namespace sdx::ops
