#include "kernels/cpu/rows/reduce.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <iterator>

#include "kernels/cpu/rows/reduce_simd.h"
#include "kernels/cpu/rows/row_tasks.h"
#include "kernels/cpu/rows/top_columns_simd.h"
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

// Works on elements of which only the size matters.
template <class T>
void over_typed(TypedReduce fn, Reduce op, const void* x, void* y, std::int64_t outer, std::int64_t axis, std::int64_t inner) {
  over_slices(
      static_cast<const T*>(x), static_cast<T*>(y), outer, axis, inner,
      [&](const T* from, T* to) { fn(op, from, to, axis, 1, 0, 1); },
      [&](const T* from, T* to, std::int64_t b, std::int64_t e) { fn(op, from, to, axis, inner, b, e); });
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

bool reduces_typed(Reduce op, DataType type) {
  const bool known = op == Reduce::sum || op == Reduce::max || op == Reduce::min;
  return known && reduce_kernels().typed(type) != nullptr;
}

void reduce_typed(Reduce op, DataType type, const void* x, void* y, std::int64_t outer, std::int64_t axis, std::int64_t inner) {
  const TypedReduce fn = reduce_kernels().typed(type);
  switch (bit_width(type)) {
    case 8: return over_typed<std::uint8_t>(fn, op, x, y, outer, axis, inner);
    case 16: return over_typed<std::uint16_t>(fn, op, x, y, outer, axis, inner);
    case 32: return over_typed<std::uint32_t>(fn, op, x, y, outer, axis, inner);
    default: return over_typed<std::uint64_t>(fn, op, x, y, outer, axis, inner);
  }
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

namespace {

// A number that is larger for elements that come first: its upper half ranks the value, its lower half the position. NaN ranks
// above everything, or below everything if the smallest elements come first; -0 equals 0.
std::uint64_t rank_of(float v, std::int64_t at, bool largest) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(v + 0.0F);
  bits = (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
  if (v != v) bits = 0xFFFFFFFFU;
  if (!largest) bits = ~bits;
  return std::uint64_t{bits} << 32 | (0xFFFFFFFFU - static_cast<std::uint32_t>(at));
}
std::int64_t position_of(std::uint64_t rank) { return 0xFFFFFFFFU - static_cast<std::uint32_t>(rank); }

// Keeps the k largest ranks sorted while it searches the row for elements beyond the last of them, which are rare.
void top_few(const float* x, std::int64_t n, std::int64_t k, bool largest, std::uint64_t* kept) {
  for (std::int64_t i = 0; i < k; ++i) kept[i] = rank_of(x[i], i, largest);
  std::sort(kept, kept + k, std::greater<>());
  const auto next = reduce_kernels().next_beyond;
  for (std::int64_t i = next(x, k, n, x[position_of(kept[k - 1])], largest); i < n;
       i = next(x, i + 1, n, x[position_of(kept[k - 1])], largest)) {
    const std::uint64_t rank = rank_of(x[i], i, largest);
    if (rank < kept[k - 1]) continue;
    std::int64_t at = k - 1;
    for (; at > 0 && kept[at - 1] < rank; --at) kept[at] = kept[at - 1];
    kept[at] = rank;
  }
}

// Moves the k largest of the first `count` ranks to the front, in any order.
void keep_largest(std::uint64_t* ranks, std::int64_t k, std::int64_t count) {
  if (count > k) std::nth_element(ranks, ranks + k - 1, ranks + count, std::greater<>());
}

// The same for a k too large to keep the ranks sorted cheaply: collects up to k more ranks after the best k, then chooses the
// best again.
void top_some(const float* x, std::int64_t n, std::int64_t k, bool largest, std::uint64_t* kept) {
  const std::int64_t room = std::min(n, 2 * k);
  for (std::int64_t i = 0; i < room; ++i) kept[i] = rank_of(x[i], i, largest);
  keep_largest(kept, k, room);
  const auto next = reduce_kernels().next_beyond;
  std::int64_t count = k, i = room;
  float least = x[position_of(kept[k - 1])];
  while ((i = next(x, i, n, least, largest)) < n) {
    kept[count++] = rank_of(x[i], i, largest);
    ++i;
    if (count < room) continue;
    keep_largest(kept, k, count);
    count = k;
    least = x[position_of(kept[k - 1])];
  }
  keep_largest(kept, k, count);
  std::sort(kept, kept + k, std::greater<>());
}

// Counts the values of the ranks' upper 11 bits. All ranks above one of these values are among the k largest; ranks with that
// value supply the rest.
void top_many(const float* x, std::int64_t n, std::int64_t k, bool largest, std::uint64_t* ranks) {
  constexpr int kShift = 53;
  std::uint32_t counts[std::size_t{1} << (64 - kShift)] = {};
  for (std::int64_t i = 0; i < n; ++i) {
    ranks[i] = rank_of(x[i], i, largest);
    ++counts[ranks[i] >> kShift];
  }
  std::uint64_t bin = std::size(counts);
  for (std::int64_t above = 0; above < k;) above += counts[--bin];
  std::uint64_t* end = ranks;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint64_t rank = ranks[i];
    *end = rank;
    end += rank >> kShift >= bin ? 1 : 0;
  }
  if (end - ranks > k) std::nth_element(ranks, ranks + k, end, std::greater<>());
  std::sort(ranks, ranks + k, std::greater<>());
}

}  // namespace

void top_k_f32(const float* x, std::int64_t n, std::int64_t k, bool largest, float* values, std::int64_t* indices,
               std::uint64_t* scratch) {
  constexpr std::int64_t kFew = 32, kSparse = 16;
  (k <= kFew ? top_few : (k <= n / kSparse ? top_some : top_many))(x, n, k, largest, scratch);
  for (std::int64_t i = 0; i < k; ++i) {
    const std::int64_t at = position_of(scratch[i]);
    if (indices != nullptr) indices[i] = at;
    if (values != nullptr) values[i] = x[at];
  }
}

void top_k_columns_f32(const float* x, std::int64_t n, std::int64_t step, std::int64_t columns, std::int64_t k, bool largest,
                       float* values, std::int64_t* indices) {
  constexpr std::int64_t kMostLanes = 16;
  const TopColumnsKernels& kernels = top_columns_kernels();
  std::int32_t positions[kMostTopColumns * kMostLanes];
  for (std::int64_t c = 0; c < columns; c += kernels.lanes) {
    const std::int64_t count = std::min<std::int64_t>(kernels.lanes, columns - c);
    kernels.top(x + c, n, step, count, k, largest, positions);
    for (std::int64_t j = 0; j < k; ++j) {
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t at = positions[j * kernels.lanes + i];
        if (values != nullptr) values[j * step + c + i] = x[at * step + c + i];
        if (indices != nullptr) indices[j * step + c + i] = at;
      }
    }
  }
}

}  // namespace sdx::cpu
