// com.microsoft GatherGrad, GatherElementsGrad, GatherNDGrad: the gradient's elements are added up where they were taken from.
// SliceGrad: they are put back among zeros.

#include "ops/context.h"
#include "ops/delegate.h"
#include "ops/math/elementwise.h"
#include "ops/math/float_view.h"
#include "ops/op.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/gather_index.h"
#include "ops/tensor/movement.h"
#include "ops/tensor/signatures.h"
#include "ops/training/ort/signatures.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

void infer_from_shape(InferContext& c, std::size_t shape, std::size_t gradient) {
  if (const auto* extents = c.sym(shape)) return c.output(0, c.dtype(gradient), *extents);
  c.output(0, c.dtype(gradient));
}

Shape shape_at(OpContext& c, std::size_t i) {
  const Tensor& t = c.input(i);
  if (t.rank() != 1) c.fail("the shape must have rank 1, received {}", t.type_string());
  Shape shape = to_ints(t);
  for (const std::int64_t e : shape) {
    if (e < 0) c.fail("the shape {} has a negative extent", to_string(shape));
  }
  return shape;
}

void expect_shape(OpContext& c, const Shape& expected, const Tensor& gradient) {
  if (gradient.shape() == expected) return;
  c.fail("the gradient must have shape {}, received {}", to_string(expected), gradient.type_string());
}

// Calls fn(TypeTag, dy, dx) with dx all zeros.
template <class F>
void scatter_into(OpContext& c, const Tensor& gradient, const Shape& shape, F&& fn) {
  Tensor& out = c.output(0, gradient.dtype(), shape);
  dispatch_compute(gradient.dtype(), c.node().op_type, [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> dy(gradient);
    FloatOutput<C> dx(out);
    std::fill_n(dx.data(), out.size(), C(0));
    if (gradient.size() != 0) fn(dy.data(), dx.data());
    dx.store();
  });
}

void infer_gather_grad(InferContext& c) { infer_from_shape(c, GatherGradIn::kShape, GatherGradIn::kDy); }

void run_gather_grad(OpContext& c) {
  using enum GatherGradIn::Slot;
  const Shape shape = shape_at(c, kShape);
  const Tensor &indices = c.input(kIndices), &gradient = c.input(kDy);
  const auto axis = static_cast<std::size_t>(normalize_axis(parse<GatherAttrs>(c).axis, shape.size()));
  Shape expected(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(axis));
  expected.insert(expected.end(), indices.shape().begin(), indices.shape().end());
  expected.insert(expected.end(), shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, shape.end());
  expect_shape(c, expected, gradient);
  const Ints rows = checked_indices(indices, shape[axis]);
  const std::int64_t outer = product(shape, 0, axis), run = product(shape, axis + 1, shape.size());
  const auto count = static_cast<std::int64_t>(rows.size());
  scatter_into(c, gradient, shape, [&](const auto* dy, auto* dx) {
    for (std::int64_t o = 0; o < outer; ++o) {
      for (std::int64_t i = 0; i < count; ++i) {
        const auto* from = dy + (o * count + i) * run;
        auto* to = dx + (o * shape[axis] + rows[static_cast<std::size_t>(i)]) * run;
        for (std::int64_t k = 0; k < run; ++k) to[k] += from[k];
      }
    }
  });
}

void infer_elements_grad(InferContext& c) { infer_from_shape(c, 1, 0); }

void run_elements_grad(OpContext& c) {
  const Shape shape = shape_at(c, 1);
  const Tensor &gradient = c.input(0), &indices = c.input(2);
  const auto axis = static_cast<std::size_t>(normalize_axis(parse<GatherAttrs>(c).axis, shape.size()));
  check_element_indices(shape, indices.shape(), axis);
  expect_shape(c, indices.shape(), gradient);
  scatter_into(c, gradient, shape, [&](const auto* dy, auto* dx) {
    const ElementRows rows(shape, indices.shape(), axis);
    dispatch_index(indices, [&](const auto* at) {
      for_each_element_index(rows, at, 0, rows.rows(), [&](std::int64_t i, std::int64_t offset) { dx[offset] += dy[i]; });
    });
  });
}

void run_nd_grad(OpContext& c) {
  using enum GatherGradIn::Slot;
  const Shape shape = shape_at(c, kShape);
  const Tensor &indices = c.input(kIndices), &gradient = c.input(kDy);
  const std::int64_t batch = parse<GatherNdAttrs>(c).batch_dims;
  check_nd_ranks(shape.size(), indices.rank(), batch);
  const std::int64_t depth = indices.shape().back();
  check_nd_depth(depth, shape.size(), batch);
  for (std::size_t i = 0; i < static_cast<std::size_t>(batch); ++i) {
    if (shape[i] != indices.dim(i)) {
      c.fail("the first {} extents of the shape {} and of indices {} must agree", batch, to_string(shape), indices.type_string());
    }
  }
  Shape expected(indices.shape().begin(), indices.shape().end() - 1);
  expected.insert(expected.end(), shape.begin() + static_cast<std::ptrdiff_t>(batch + depth), shape.end());
  expect_shape(c, expected, gradient);
  scatter_into(c, gradient, shape, [&](const auto* dy, auto* dx) {
    const NdOffsets offsets(shape, indices, batch);
    for (std::int64_t i = 0; i < offsets.count(); ++i) {
      for (std::int64_t k = 0; k < offsets.run(); ++k) dx[offsets.at(i) + k] += dy[i * offsets.run() + k];
    }
  });
}

void infer_slice_grad(InferContext& c) { infer_from_shape(c, 1, 0); }

// The source of each element: the same slice of the elements' numbers.
void run_slice_grad(OpContext& c) {
  const Shape shape = shape_at(c, 1);
  const Tensor& gradient = c.input(0);
  Tensor numbers(DataType::int64, shape);
  auto n = numbers.mutable_values<std::int64_t>();
  for (std::size_t i = 0; i < n.size(); ++i) n[i] = static_cast<std::int64_t>(i);
  std::vector<Tensor> inputs{std::move(numbers)};
  for (std::size_t i = 2; i < c.num_inputs(); ++i) inputs.push_back(c.has_input(i) ? c.input(i) : Tensor());
  const Tensor from = Delegate("", "Slice", 13, {}).run(c, inputs);
  expect_shape(c, from.shape(), gradient);
  Tensor& out = c.output(0, gradient.dtype(), shape);
  fill_zero(out);
  const auto at = from.values<std::int64_t>();
  dispatch_unit(gradient.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto* dy = static_cast<const T*>(gradient.data());
    auto* dx = static_cast<T*>(out.mutable_data());
    for (std::size_t i = 0; i < at.size(); ++i) dx[at[i]] = dy[i];
  });
}

}  // namespace

void register_gather_grads(OpTable& t) {
  const TypeSet f = types::floats;
  const auto gather = [&](const char* name) {
    OpDef d("com.microsoft", name, 1);
    d.in("shape", "I", types::indices).in("indices", "Tind", types::indices).in("dY", "T", f).out("dX", "T", f);
    return d;
  };
  t.add(gather("GatherGrad").attrs<GatherAttrs>().infer_with(infer_gather_grad).run_with(run_gather_grad));
  t.add(gather("GatherNDGrad").attrs<GatherNdAttrs>().infer_with(infer_gather_grad).run_with(run_nd_grad));
  t.add(OpDef("com.microsoft", "GatherElementsGrad", 1)
            .in("dY", "T", f)
            .in("shape", "I", types::int64)
            .in("indices", "Tind", types::indices)
            .out("dX", "T", f)
            .attrs<GatherAttrs>()
            .infer_with(infer_elements_grad)
            .run_with(run_elements_grad));
  const TypeSet moved = types::any_tensor & ~types::packed;
  t.add(OpDef("com.microsoft", "SliceGrad", 1)
            .in("dY", "T", moved)
            .in("shape", "I", types::int64)
            .in("starts ends", "Tind", types::indices)
            .in("axes steps", "Tind", types::indices, Arity::optional)
            .out("dX", "T", moved)
            .infer_with(infer_slice_grad)
            .run_with(run_slice_grad));
}

}  // namespace sdx::ops
