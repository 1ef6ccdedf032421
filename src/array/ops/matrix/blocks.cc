// Products of blocks, of selected matrices and of segments.

#include <sdx/array.hpp>

#include "array/ops/batch.h"
#include "array/ops/common.h"
#include "array/ops/index/gather.h"

namespace sdx::array {
namespace detail {
namespace {

// Expands a mask of blocks to one of elements, and applies it to the last two axes.
array masked(const array& a, const std::optional<array>& mask, int block, const char* which, const StreamOrDevice& s) {
  if (!mask) return a;
  const std::size_t rank = a.shape().size();
  const std::int64_t rows = a.shape()[rank - 2], columns = a.shape()[rank - 1];
  const auto blocks = [&](std::int64_t extent) { return (extent + block - 1) / block; };
  const std::size_t own = mask->shape().size();
  if (own < 2 || mask->shape()[own - 2] != blocks(rows) || mask->shape()[own - 1] != blocks(columns)) {
    refuse("block_masked_mm", "{} of shape {} for matrices of shape {} in blocks of {}", which, to_string(mask->shape()),
           to_string(a.shape()), block);
  }
  const array wide = repeat(repeat(*mask, block, -1, s), block, -2, s);
  Shape stop = wide.shape();
  stop[own - 2] = rows;
  stop[own - 1] = columns;
  const array fitting = slice(wide, Shape(own, 0), stop, {}, s);
  if (mask->dtype() == Dtype::boolean) return where(fitting, a, array(0, a.dtype()), s);
  return multiply(a, as_type(fitting, a.dtype(), s), s);
}

array picked(const char* operation, const array& a, const std::optional<array>& indices, const StreamOrDevice& s) {
  if (!indices) return a;
  const array flat = reshape(a, {-1, a.shape()[a.shape().size() - 2], a.shape().back()}, s);
  return take(flat, positions_of(operation, *indices, s), 0, s);
}

}  // namespace
}  // namespace detail

array block_masked_mm(const array& a, const array& b, int block_size, const std::optional<array>& mask_out,
                      const std::optional<array>& mask_lhs, const std::optional<array>& mask_rhs, StreamOrDevice s) {
  if (block_size != 32 && block_size != 64) detail::refuse("block_masked_mm", "block_size {}; expected 32 or 64", block_size);
  if (a.ndim() < 2 || b.ndim() < 2) {
    detail::refuse("block_masked_mm", "shapes {} and {}; expected at least two dimensions", to_string(a.shape()),
                   to_string(b.shape()));
  }
  const array x = detail::masked(a, mask_lhs, block_size, "mask_lhs", s),
              y = detail::masked(b, mask_rhs, block_size, "mask_rhs", s);
  return detail::masked(matmul(x, y, s), mask_out, block_size, "mask_out", s);
}

array gather_mm(const array& a, const array& b, const std::optional<array>& lhs_indices, const std::optional<array>& rhs_indices,
                bool, StreamOrDevice s) {
  if (a.ndim() < 2 || b.ndim() < 2) {
    detail::refuse("gather_mm", "shapes {} and {}; expected at least two dimensions", to_string(a.shape()), to_string(b.shape()));
  }
  return matmul(detail::picked("gather_mm", a, lhs_indices, s), detail::picked("gather_mm", b, rhs_indices, s), s);
}

array segmented_mm(const array& a, const array& b, const array& segments, StreamOrDevice s) {
  if (a.ndim() != 2 || b.ndim() != 2 || a.shape()[1] != b.shape()[0] || segments.ndim() < 1 || segments.shape().back() != 2) {
    detail::refuse("segmented_mm", "shapes {}, {} and segments of shape {}; expected [M, K], [K, N] and [..., 2]",
                   to_string(a.shape()), to_string(b.shape()), to_string(segments.shape()));
  }
  const array bounds = detail::positions_of("segmented_mm", segments, s);
  const array k = detail::iota(a.shape()[1]);
  // [..., 1, K]: tells which elements are in each segment. Elements outside do not count, even if they are infinite.
  const auto bound = [&](std::int64_t which) { return expand_dims(expand_dims(take(bounds, which, -1, s), -1, s), -1, s); };
  const array inside = logical_and(greater_equal(k, bound(0), s), less(k, bound(1), s), s);
  const array parts = where(inside, a, array(0, a.dtype()), s);
  const array rest = where(swapaxes(inside, -1, -2, s), b, array(0, b.dtype()), s);
  return matmul(parts, rest, s);
}

}  // namespace sdx::array
