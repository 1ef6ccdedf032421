// Transpose: ai.onnx 1, 13, 21, 23, 24, 25.

#include "ops/context.h"
#include "ops/op.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/movement.h"
#include "ops/tensor/shape_values.h"
#include "ops/tensor/signatures.h"

namespace sdx::ops {
namespace {

// The axis of the input that becomes axis i; reversed when `perm` is left out.
std::vector<std::size_t> permutation(const TransposeAttrs& attr, std::size_t rank) {
  std::vector<std::size_t> out(rank);
  if (!attr.perm) {
    for (std::size_t i = 0; i < rank; ++i) out[i] = rank - 1 - i;
    return out;
  }
  const IntList perm = *attr.perm;
  if (perm.size() != rank) {
    fail(ErrorCode::invalid_model, "perm {} must list each of the input's {} axes once", to_string(perm), rank);
  }
  const Ints axes = normalize_axes(perm, rank);
  for (std::size_t i = 0; i < rank; ++i) out[i] = static_cast<std::size_t>(axes[i]);
  return out;
}

void infer_transpose(InferContext& c) {
  const auto attr = parse<TransposeAttrs>(c);
  const SymShape* in = c.shape(0);
  if (in == nullptr) {
    if (!attr.perm) return c.output(0, c.dtype(0));
    return c.output(0, c.dtype(0), SymShape(attr.perm->size()));
  }
  SymShape out;
  for (const std::size_t axis : permutation(attr, in->size())) out.push_back((*in)[axis]);
  c.output(0, c.dtype(0), std::move(out));
  pass_elements(c);
}

void run_transpose(OpContext& c) {
  const Tensor in = widened(c.input(0));
  const std::vector<std::size_t> perm = permutation(parse<TransposeAttrs>(c), in.rank());
  Shape shape;
  for (const std::size_t axis : perm) shape.push_back(in.dim(axis));
  const Ints from = strides_of(in.shape());
  const Ints to = strides_of(shape);
  std::vector<CopyAxis> axes;
  for (std::size_t i = 0; i < shape.size(); ++i) axes.push_back({shape[i], from[perm[i]], to[i]});
  produce(c, 0, c.input(0).dtype(), shape, [&](Tensor& out) { copy_strided(in, 0, out, 0, std::move(axes)); });
}

}  // namespace

void register_transpose(OpTable& t) {
  t.add(OpDef("Transpose", 1)
            .in("data", "T", types::any_tensor)
            .out("transposed", "T", types::any_tensor)
            .attrs<TransposeAttrs>()
            .infer_with(infer_transpose)
            .run_with(run_transpose));
}

}  // namespace sdx::ops
