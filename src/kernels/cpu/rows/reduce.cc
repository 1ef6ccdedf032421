#include "kernels/cpu/rows/reduce.h"

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/rows/reduce_simd.h"
#include "kernels/cpu/rows/row_tasks.h"
#include "kernels/cpu/simd/scratch.h"

namespace sdx::cpu {
namespace {

// row(x, y) of [axis] to one, columns(x, y, begin, end) of [axis, inner] to [inner].
template <class X, class Y, class Row, class Columns>
void over_slices(const X* x, Y* y, std::int64_t outer, std::int64_t axis, std::int64_t inner, Row&& row, Columns&& columns) {
  if (outer <= 0 || axis <= 0 || inner <= 0) return;
  if (inner == 1) {
    parallel_for(outer, grain(axis, 32768), [&](std::int64_t b, std::int64_t e) {
      for (std::int64_t i = b; i < e; ++i) row(x + i * axis, y + i);
    });
    return;
  }
  over_columns(outer, axis, inner, 32768,
               [&](std::int64_t i, std::int64_t b, std::int64_t e) { columns(x + i * axis * inner, y + i * inner, b, e); });
}

// Fewer rows than threads would leave most threads idle.
constexpr std::int64_t kFewRows = 8, kLongRow = 16 * kReducePart;

void reduce_long_rows(Reduce op, const float* x, float* y, std::int64_t outer, std::int64_t axis) {
  const std::int64_t parts = (axis + kReducePart - 1) / kReducePart;
  float* const each = thread_scratch(4, static_cast<std::size_t>(outer * parts));
  parallel_for(outer * parts, 8, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = i / parts, at = i % parts * kReducePart;
      each[i] = reduce_part_f32(op, x + row * axis + at, std::min(kReducePart, axis - at));
    }
  });
  for (std::int64_t row = 0; row < outer; ++row) y[row] = join_parts_f32(op, each + row * parts, parts, axis);
}

// The first position of the best element of each row; a NaN is better than everything.
void arg_long_rows(const float* x, std::int64_t* y, std::int64_t outer, std::int64_t axis, bool max) {
  const std::int64_t parts = (axis + kReducePart - 1) / kReducePart;
  auto* const each = reinterpret_cast<std::int32_t*>(thread_scratch(4, static_cast<std::size_t>(outer * parts)));
  const auto find = reduce_kernels().arg_extreme;
  parallel_for(outer * parts, 8, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = i / parts, at = i % parts * kReducePart;
      each[i] = static_cast<std::int32_t>(at + find(x + row * axis + at, std::min(kReducePart, axis - at), max, false));
    }
  });
  for (std::int64_t row = 0; row < outer; ++row) {
    const float* from = x + row * axis;
    std::int64_t best = each[row * parts];
    for (std::int64_t i = 1; i < parts; ++i) {
      const float v = from[each[row * parts + i]], b = from[best];
      if (b == b && (v != v || (max ? v > b : v < b))) best = each[row * parts + i];
    }
    y[row] = best;
  }
}

}  // namespace

bool reduces_in_parts(Reduce op) { return op <= Reduce::sum_abs; }

float reduce_part_f32(Reduce op, const float* x, std::int64_t n) {
  return reduce_kernels().row(op == Reduce::mean ? Reduce::sum : op, x, n);
}

float join_parts_f32(Reduce op, const float* parts, std::int64_t count, std::int64_t n) {
  if (op == Reduce::max || op == Reduce::min) {
    float best = parts[0];
    for (std::int64_t i = 1; i < count && best == best; ++i) {
      const bool better = (op == Reduce::max ? parts[i] > best : parts[i] < best) || parts[i] != parts[i];
      best = better ? parts[i] : best;
    }
    return best;
  }
  float total = 0.0F;
  for (std::int64_t i = 0; i < count; ++i) total += parts[i];
  return op == Reduce::mean ? total / static_cast<float>(n) : total;
}

void reduce_f32(Reduce op, const float* x, float* y, std::int64_t outer, std::int64_t axis, std::int64_t inner) {
  const ReduceKernels& k = reduce_kernels();
  if (inner == 1 && outer > 0 && outer <= kFewRows && axis >= kLongRow && reduces_in_parts(op)) {
    return reduce_long_rows(op, x, y, outer, axis);
  }
  if (inner == 1 && axis > 0 && k.side_by_side(op, axis)) {
    parallel_for(outer, grain(axis, 32768),
                 [&](std::int64_t b, std::int64_t e) { k.short_rows(op, x + b * axis, y + b, e - b, axis); });
    return;
  }
  over_slices(
      x, y, outer, axis, inner, [&](const float* from, float* to) { *to = k.row(op, from, axis); },
      [&](const float* from, float* to, std::int64_t b, std::int64_t e) { k.columns(op, from, to, axis, inner, b, e); });
}

void arg_extreme_f32(const float* x, std::int64_t* y, std::int64_t outer, std::int64_t axis, std::int64_t inner, bool max,
                     bool last) {
  const ReduceKernels& k = reduce_kernels();
  if (inner == 1 && outer > 0 && outer <= kFewRows && axis >= kLongRow && axis <= INT32_MAX && !last)
    return arg_long_rows(x, y, outer, axis, max);
  over_slices(
      x, y, outer, axis, inner, [&](const float* from, std::int64_t* to) { *to = k.arg_extreme(from, axis, max, last); },
      [&](const float* from, std::int64_t* to, std::int64_t b, std::int64_t e) {
        k.arg_extreme_columns(from, to, axis, inner, b, e, max, last);
      });
}

}  // namespace sdx::cpu
