// AffineGrid: ai.onnx 20.

#include <algorithm>
#include <vector>

#include "base/thread_pool.h"
#include "ops/context.h"
#include "ops/image/signatures.h"
#include "ops/op.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/movement.h"
#include "ops/tensor/shape_values.h"
#include "tensor/dispatch.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

// size: N, C, [D,] H, W
void check_size(const Ints& size) {
  if (size.size() != 4 && size.size() != 5) {
    fail(ErrorCode::invalid_model, "'size' must hold 4 or 5 numbers, received {}", to_string(size));
  }
  element_count(size);
}

void infer_affine_grid(InferContext& c) {
  const auto* size = c.sym(1);
  if (size == nullptr) {
    const auto rank = known_length(c, 1);
    if (!rank || *rank < 4 || *rank > 5) return c.output(0, c.dtype(0));
    SymShape out(static_cast<std::size_t>(*rank));
    out.back() = Dim(*rank - 2);
    return c.output(0, c.dtype(0), std::move(out));
  }
  if (size->size() != 4 && size->size() != 5) c.fail("'size' must hold 4 or 5 numbers, received {}", size->size());
  SymShape out{(*size)[0]};
  out.insert(out.end(), size->begin() + 2, size->end());
  out.emplace_back(static_cast<std::int64_t>(size->size()) - 2);
  c.output(0, c.dtype(0), std::move(out));
}

double grid_position(std::int64_t i, std::int64_t extent, bool align) {
  if (align) return extent > 1 ? -1 + 2 * static_cast<double>(i) / static_cast<double>(extent - 1) : 0;
  return (2 * static_cast<double>(i) + 1) / static_cast<double>(extent) - 1;
}

// The common part of row number `row` of one item's grid: one output coordinate without the part of the innermost axis.
template <class T>
double row_base(const T* coefficients, std::int64_t row, const Ints& size, bool align) {
  const std::size_t spatial = size.size() - 2;
  double sum = static_cast<double>(static_cast<ComputeType<T>>(coefficients[spatial]));
  for (std::size_t d = spatial - 1; d-- > 0;) {  // the last spatial axis comes first among the coordinates
    const std::int64_t extent = size[d + 2];
    sum += static_cast<double>(static_cast<ComputeType<T>>(coefficients[spatial - 1 - d])) *
           grid_position(row % extent, extent, align);
    row /= extent;
  }
  return sum;
}

void run_affine_grid(OpContext& c) {
  const Tensor& theta = c.input(0);
  const Ints size = to_ints(c.input(1));
  check_size(size);
  const std::size_t spatial = size.size() - 2;
  const auto r = static_cast<std::int64_t>(spatial);
  if (theta.shape() != Shape{size[0], r, r + 1}) {
    c.fail("'theta' must be of shape {}, received {}", to_string(Shape{size[0], r, r + 1}), theta.type_string());
  }
  const bool align = parse<AffineGridAttrs>(c).align_corners;
  Shape shape{size[0]};
  shape.insert(shape.end(), size.begin() + 2, size.end());
  shape.push_back(r);
  Tensor& out = c.output(0, theta.dtype(), shape);
  const std::int64_t per_item = product(shape, 1, spatial + 1);
  dispatch(theta.dtype(), FloatTypes{}, "AffineGrid", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto* m = static_cast<const T*>(theta.data());
    auto* to = static_cast<T*>(out.mutable_data());
    // Coordinates that do not change along a row of the grid are weighed once for it.
    const std::int64_t columns = size.back();
    std::vector<double> across(static_cast<std::size_t>(columns));
    for (std::int64_t x = 0; x < columns; ++x) across[static_cast<std::size_t>(x)] = grid_position(x, columns, align);
    const std::int64_t rows = columns == 0 ? 0 : per_item / columns;
    parallel_for(size[0] * rows, std::max<std::int64_t>(1, 1024 / std::max<std::int64_t>(1, columns)),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t row = begin; row < end; ++row) {
                     const T* coefficients = m + row / rows * r * (r + 1);
                     T* out_row = to + row * columns * r;
                     for (std::int64_t k = 0; k < r; ++k, coefficients += r + 1) {
                       const double base = row_base(coefficients, row % rows, size, align);
                       const auto slope = static_cast<double>(static_cast<ComputeType<T>>(coefficients[0]));
                       for (std::int64_t x = 0; x < columns; ++x) {
                         const double v = slope * across[static_cast<std::size_t>(x)] + base;
                         out_row[x * r + k] = T(static_cast<ComputeType<T>>(v));
                       }
                     }
                   }
                 });
  });
}

}  // namespace

void register_affine_grid(OpTable& t) {
  OpDef affine_grid("AffineGrid", 20);
  affine_grid.in("theta", "T1", types::floats).in("size", "T2", types::int64).out("grid", "T1", types::floats);
  affine_grid.attrs<AffineGridAttrs>();
  t.add(std::move(affine_grid).infer_with(infer_affine_grid).run_with(run_affine_grid));
}

}  // namespace sdx::ops
