// Expand: ai.onnx 8, 13. Tile: ai.onnx 1 (tiles along one axis), 6, 13.

#include <algorithm>

#include "base/checked.h"
#include "ops/context.h"
#include "ops/math/broadcast.h"
#include "ops/op.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/movement.h"
#include "ops/tensor/shape_values.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

constexpr std::int64_t kMaxSymElements = 1024;

// A rank-1 result of `count` elements that repeats the known elements of input 0.
void repeat_elements(InferContext& c) {
  const std::vector<Dim>* elements = c.sym(0);
  const auto& shape = c.outputs[0].shape;
  if (elements == nullptr || elements->empty() || !shape || shape->size() != 1 || !(*shape)[0].is_const()) return;
  const std::int64_t count = (*shape)[0].value();
  if (count > kMaxSymElements) return;
  std::vector<Dim> out;
  for (std::int64_t i = 0; i < count; ++i) out.push_back((*elements)[static_cast<std::size_t>(i) % elements->size()]);
  c.output_sym(0, std::move(out));
}

void infer_expand(InferContext& c) {
  const SymShape* in = c.shape(0);
  const std::vector<Dim>* wanted = c.sym(1);
  if (in == nullptr) return c.output(0, c.dtype(0));
  if (wanted == nullptr) {
    const auto rank = known_length(c, 1);
    if (!rank || *rank > kMaxSymElements) return c.output(0, c.dtype(0));
    SymShape out = broadcast_shapes(*in, SymShape(static_cast<std::size_t>(*rank)));
    return c.output(0, c.dtype(0), std::move(out));
  }
  for (const Dim& d : *wanted) {
    if (d.is_const() && d.value() < 0) c.fail("'shape' {} has a negative extent", to_string(*wanted));
  }
  c.output(0, c.dtype(0), broadcast_shapes(*in, *wanted));
  repeat_elements(c);
}

void run_expand(OpContext& c) {
  const Tensor in = widened(c.input(0));
  const Ints wanted = to_ints(c.input(1));
  element_count(wanted);  // refuses negative extents
  const Shape shape = broadcast_shapes(in.shape(), wanted);
  const Ints from = strides_of(in.shape());
  const std::size_t pad = shape.size() - in.rank();
  produce(c, 0, c.input(0).dtype(), shape, [&](Tensor& out) {
    const Ints to = strides_of(shape);
    std::vector<CopyAxis> axes;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const bool repeats = i < pad || in.dim(i - pad) == 1;
      axes.push_back({shape[i], repeats ? 0 : from[i - pad], to[i]});
    }
    copy_strided(in, 0, out, 0, std::move(axes));
  });
}

void infer_tile(InferContext& c) {
  const SymShape* in = c.shape(0);
  const std::vector<Dim>* repeats = c.sym(1);
  if (in == nullptr) {
    if (repeats != nullptr) return c.output(0, c.dtype(0), SymShape(repeats->size()));
    return c.output(0, c.dtype(0));
  }
  SymShape out(in->size());
  if (repeats != nullptr) {
    if (repeats->size() != in->size()) c.fail("'repeats' lists {} numbers for the input {}", repeats->size(), to_string(*in));
    for (std::size_t i = 0; i < out.size(); ++i) {
      const Dim& r = (*repeats)[i];
      if (r.is_const() && r.value() < 0) c.fail("'repeats' {} has a negative number", to_string(*repeats));
      out[i] = (*in)[i] * r;
    }
  }
  c.output(0, c.dtype(0), std::move(out));
  repeat_elements(c);
}

void tile(OpContext& c, const Ints& repeats) {
  const Tensor in = widened(c.input(0));
  if (repeats.size() != in.rank()) c.fail("'repeats' lists {} numbers for the input {}", repeats.size(), in.type_string());
  Shape shape;
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    const auto extent = checked_mul(in.dim(i), repeats[i]);
    if (repeats[i] < 0 || !extent) c.fail("'repeats' {} does not suit the input {}", to_string(repeats), in.type_string());
    shape.push_back(*extent);
  }
  produce(c, 0, c.input(0).dtype(), shape, [&](Tensor& out) {
    if (out.size() == 0) return;
    const Ints from = strides_of(in.shape());
    const Ints to = strides_of(shape);
    std::vector<CopyAxis> axes;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      axes.push_back({repeats[i], 0, in.dim(i) * to[i]});
      axes.push_back({in.dim(i), from[i], to[i]});
    }
    copy_strided(in, 0, out, 0, std::move(axes));
  });
}

void run_tile(OpContext& c) { tile(c, to_ints(c.input(1))); }

// Source: ONNX Tile-1: `tiles` copies along one `axis`; both are scalars of the data's type.
void infer_tile1(InferContext& c) {
  if (const SymShape* in = c.shape(0)) return c.output(0, c.dtype(0), SymShape(in->size()));
  c.output(0, c.dtype(0));
}

void run_tile1(OpContext& c) {
  if (c.input(1).size() != 1 || c.input(2).size() != 1) c.fail("'tiles' and 'axis' must hold one number each");
  Ints repeats(c.input(0).rank(), 1);
  const std::int64_t axis = normalize_axis(element_as_int(c.input(2), 0), repeats.size());
  repeats[static_cast<std::size_t>(axis)] = element_as_int(c.input(1), 0);
  tile(c, repeats);
}

}  // namespace

void register_expand(OpTable& t) {
  OpDef expand("Expand", 8);
  expand.in("input", "T", types::any_tensor).in("shape", "", types::int64).out("output", "T", types::any_tensor);
  t.add(std::move(expand).infer_with(infer_expand).run_with(run_expand));
  OpDef tile("Tile", 1);
  tile.in("input tiles axis", "T", types::any_tensor);
  tile.out("output", "T", types::any_tensor);
  t.add(std::move(tile).infer_with(infer_tile1).run_with(run_tile1));
  OpDef tile_6("Tile", 6);
  tile_6.in("input", "T", types::any_tensor).in("repeats", "", types::int64).out("output", "T", types::any_tensor);
  t.add(std::move(tile_6).infer_with(infer_tile).run_with(run_tile));
}

}  // namespace sdx::ops
