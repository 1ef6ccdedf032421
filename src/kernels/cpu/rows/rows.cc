// Threading of softmax, norms and reductions over the row primitives.

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <iterator>

#include "base/thread_pool.h"
#include "kernels/cpu/elementwise/elementwise_simd.h"
#include "kernels/cpu/rows/norm.h"
#include "kernels/cpu/rows/reduce.h"
#include "kernels/cpu/rows/row_simd.h"
#include "kernels/cpu/rows/softmax.h"

namespace sdx::cpu {
namespace {

// Items of `work` elements each so that a task has about `elements` of them.
std::int64_t grain(std::int64_t work, std::int64_t elements) {
  return std::max<std::int64_t>(1, elements / std::max<std::int64_t>(1, work));
}

// Columns handled together: whole vectors, and enough for runs of 256 bytes and more.
constexpr std::int64_t kColumns = 64;

// fn(outer index, first column, end column) over [outer, inner].
template <class F>
void over_columns(std::int64_t outer, std::int64_t axis, std::int64_t inner, std::int64_t elements, F&& fn) {
  const std::int64_t blocks = (inner + kColumns - 1) / kColumns;
  parallel_for(outer * blocks, grain(axis * std::min(inner, kColumns), elements), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end;) {
      // Neighbouring blocks of one slice go in one call.
      const std::int64_t slice = i / blocks;
      const std::int64_t stop = std::min(end, (slice + 1) * blocks);
      fn(slice, (i - slice * blocks) * kColumns, std::min(inner, (stop - slice * blocks) * kColumns));
      i = stop;
    }
  });
}

void any_softmax(const float* x, float* y, std::int64_t outer, std::int64_t axis, std::int64_t inner, bool log) {
  if (outer <= 0 || axis <= 0 || inner <= 0) return;
  const RowKernels& k = row_kernels();
  if (inner == 1) {
    parallel_for(outer, grain(axis, 8192), [&](std::int64_t b, std::int64_t e) {
      for (std::int64_t i = b; i < e; ++i) k.softmax(x + i * axis, y + i * axis, axis, log);
    });
    return;
  }
  over_columns(outer, axis, inner, 8192, [&](std::int64_t i, std::int64_t b, std::int64_t e) {
    k.softmax_columns(x + i * axis * inner, y + i * axis * inner, axis, inner, b, e, log);
  });
}

}  // namespace

void softmax_f32(const float* x, float* y, std::int64_t outer, std::int64_t axis, std::int64_t inner) {
  any_softmax(x, y, outer, axis, inner, false);
}

void log_softmax_f32(const float* x, float* y, std::int64_t outer, std::int64_t axis, std::int64_t inner) {
  any_softmax(x, y, outer, axis, inner, true);
}

void layer_norm_f32(const LayerNormArgs& args, std::int64_t rows, std::int64_t n) {
  if (n <= 0) return;
  const RowKernels& k = row_kernels();
  parallel_for(rows, grain(n, 16384), [&](std::int64_t b, std::int64_t e) {
    for (std::int64_t i = b; i < e; ++i) k.layer_norm(args, i, n);
  });
}

void channel_affine_f32(const float* x, const float* scale, const float* shift, const UnarySpec& act, float* y,
                        std::int64_t batch, std::int64_t channels, std::int64_t inner) {
  if (inner <= 0) return;
  const RowKernels& k = row_kernels();
  const ElementwiseKernels& elementwise = elementwise_kernels();
  parallel_for(batch * channels, grain(inner, 32768), [&](std::int64_t b, std::int64_t e) {
    for (std::int64_t i = b; i < e; ++i) {
      float* out = y + i * inner;
      k.affine(x + i * inner, scale[i % channels], shift[i % channels], out, inner);
      if (act.op != Unary::none) elementwise.unary(act, out, out, inner);
    }
  });
}

void group_norm_f32(const float* x, const float* scale, const float* bias, float epsilon, float* y, std::int64_t batch,
                    std::int64_t channels, std::int64_t groups, std::int64_t inner) {
  if (inner <= 0 || channels <= 0 || groups <= 0) return;
  const RowKernels& k = row_kernels();
  const std::int64_t per_group = channels / groups;
  const std::int64_t n = per_group * inner;
  parallel_for(batch * groups, grain(n, 16384), [&](std::int64_t b, std::int64_t e) {
    for (std::int64_t i = b; i < e; ++i) {
      float mean = 0.0F;
      float variance = 0.0F;
      k.moments(x + i * n, n, &mean, &variance);
      const float inv = 1.0F / std::sqrt(variance + epsilon);
      for (std::int64_t j = 0; j < per_group; ++j) {
        const std::int64_t c = i % groups * per_group + j;
        const float s = scale != nullptr ? scale[c] * inv : inv;
        const float t = (bias != nullptr ? bias[c] : 0.0F) - mean * s;
        k.affine(x + i * n + j * inner, s, t, y + i * n + j * inner, inner);
      }
    }
  });
}

void lrn_f32(const float* x, float* y, std::int64_t batch, std::int64_t channels, std::int64_t inner, std::int64_t size,
             float alpha, float beta, float bias) {
  if (batch <= 0 || channels <= 0 || inner <= 0) return;
  const RowKernels& k = row_kernels();
  over_columns(batch, channels * 2, inner, 16384, [&](std::int64_t i, std::int64_t b, std::int64_t e) {
    const std::int64_t at = i * channels * inner;
    k.lrn(x + at, y + at, channels, inner, b, e, size, alpha, beta, bias);
  });
}

namespace {

// What the reference does, in double: where float's range or precision does not suffice.
void divide_in_double(const float* x, float* y, std::int64_t n, std::int64_t step, bool squares) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto v = static_cast<double>(x[i * step]);
    sum += squares ? v * v : std::fabs(v);
  }
  const double by = squares ? std::sqrt(sum) : sum;
  for (std::int64_t i = 0; i < n; ++i) y[i * step] = by == 0 ? 0.0F : static_cast<float>(static_cast<double>(x[i * step]) / by);
}

void lp_row(const RowKernels& k, const float* x, float* y, std::int64_t n, bool squares) {
  const float by = k.reduce(squares ? Reduce::norm : Reduce::sum_abs, x, n);
  const float inverse = 1.0F / by;
  if (!std::isnormal(by) || !std::isnormal(inverse)) return divide_in_double(x, y, n, 1, squares);
  k.affine(x, inverse, 0.0F, y, n);
}

void lp_columns(const RowKernels& k, const float* x, float* y, std::int64_t axis, std::int64_t inner, std::int64_t begin,
                std::int64_t end, bool squares) {
  constexpr std::int64_t kSome = 256;
  float by[kSome], inverse[kSome];
  const ElementwiseKernels& elementwise = elementwise_kernels();
  for (std::int64_t c = begin; c < end; c += kSome) {
    const std::int64_t count = std::min(kSome, end - c);
    k.reduce_columns(squares ? Reduce::norm : Reduce::sum_abs, x + c, by, axis, inner, 0, count);
    for (std::int64_t i = 0; i < count; ++i) inverse[i] = 1.0F / by[i];
    for (std::int64_t a = 0; a < axis; ++a) {
      elementwise.binary(Binary::mul, x + a * inner + c, inverse, y + a * inner + c, count);
    }
    for (std::int64_t i = 0; i < count; ++i) {
      if (std::isnormal(by[i]) && std::isnormal(inverse[i])) continue;
      divide_in_double(x + c + i, y + c + i, axis, inner, squares);
    }
  }
}

struct Spread {
  double mean = 0, deviation = 0;
};

Spread spread_in_double(const float* x, std::int64_t slices, std::int64_t step, std::int64_t n) {
  Spread s;
  const auto each = [&](auto&& fn) {
    for (std::int64_t o = 0; o < slices; ++o) {
      for (std::int64_t i = 0; i < n; ++i) fn(static_cast<double>(x[o * step + i]));
    }
  };
  const auto count = static_cast<double>(slices * n);
  each([&](double v) { s.mean += v; });
  s.mean /= count;
  each([&](double v) { s.deviation += (v - s.mean) * (v - s.mean); });
  s.deviation = std::sqrt(s.deviation / count);
  return s;
}

// Of `slices` runs of n elements, `step` apart. All have equally many, so means are averaged; variances gain the means' own.
Spread spread_of(const RowKernels& k, const float* x, std::int64_t slices, std::int64_t step, std::int64_t n) {
  double mean = 0, square = 0, variance = 0;
  for (std::int64_t o = 0; o < slices; ++o) {
    float m = 0.0F, v = 0.0F;
    k.moments(x + o * step, n, &m, &v);
    // As running values, since a mean of squares less a square of means cancels.
    const double by = static_cast<double>(m) - mean;
    mean += by / static_cast<double>(o + 1);
    square += by * (static_cast<double>(m) - mean);
    variance += static_cast<double>(v);
  }
  return {mean, std::sqrt((variance + square) / static_cast<double>(slices))};
}

}  // namespace

void lp_norm_f32(const float* x, float* y, std::int64_t outer, std::int64_t axis, std::int64_t inner, bool squares) {
  if (outer <= 0 || axis <= 0 || inner <= 0) return;
  const RowKernels& k = row_kernels();
  if (inner == 1) {
    parallel_for(outer, grain(axis, 16384), [&](std::int64_t b, std::int64_t e) {
      for (std::int64_t i = b; i < e; ++i) lp_row(k, x + i * axis, y + i * axis, axis, squares);
    });
    return;
  }
  over_columns(outer, axis, inner, 16384, [&](std::int64_t i, std::int64_t b, std::int64_t e) {
    lp_columns(k, x + i * axis * inner, y + i * axis * inner, axis, inner, b, e, squares);
  });
}

void mean_variance_norm_f32(const float* x, float* y, std::int64_t outer, std::int64_t groups, std::int64_t inner) {
  if (outer <= 0 || groups <= 0 || inner <= 0) return;
  const RowKernels& k = row_kernels();
  const std::int64_t step = groups * inner;
  parallel_for(groups, grain(outer * inner, 16384), [&](std::int64_t b, std::int64_t e) {
    for (std::int64_t g = b; g < e; ++g) {
      const float* from = x + g * inner;
      Spread s = spread_of(k, from, outer, step, inner);
      // A group that hardly varies is mostly rounding errors in float; the deviation gets 1e-9 (ONNX
      // MeanVarianceNormalization-9).
      const bool clear = s.deviation >= 0.1 * std::fabs(s.mean) && s.deviation > 1e-15;
      if (!clear) s = spread_in_double(from, outer, step, inner);
      const double inverse = 1.0 / (s.deviation + 1e-9);
      for (std::int64_t o = 0; o < outer; ++o) {
        const float* row = from + o * step;
        float* to = y + g * inner + o * step;
        if (clear) {
          k.affine(row, static_cast<float>(inverse), static_cast<float>(-s.mean * inverse), to, inner);
        } else {
          for (std::int64_t i = 0; i < inner; ++i) to[i] = static_cast<float>((static_cast<double>(row[i]) - s.mean) * inverse);
        }
      }
    }
  });
}

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

template <class T, class F>
void reduce_ints(F fn, Reduce op, const T* x, T* y, std::int64_t outer, std::int64_t axis, std::int64_t inner) {
  over_slices(
      x, y, outer, axis, inner, [&](const T* from, T* to) { fn(op, from, to, axis, 1, 0, 1); },
      [&](const T* from, T* to, std::int64_t b, std::int64_t e) { fn(op, from, to, axis, inner, b, e); });
}

}  // namespace

void reduce_f32(Reduce op, const float* x, float* y, std::int64_t outer, std::int64_t axis, std::int64_t inner) {
  const RowKernels& k = row_kernels();
  over_slices(
      x, y, outer, axis, inner, [&](const float* from, float* to) { *to = k.reduce(op, from, axis); },
      [&](const float* from, float* to, std::int64_t b, std::int64_t e) { k.reduce_columns(op, from, to, axis, inner, b, e); });
}

void reduce_i32(Reduce op, const std::int32_t* x, std::int32_t* y, std::int64_t outer, std::int64_t axis, std::int64_t inner) {
  reduce_ints(row_kernels().reduce_i32, op, x, y, outer, axis, inner);
}
void reduce_i64(Reduce op, const std::int64_t* x, std::int64_t* y, std::int64_t outer, std::int64_t axis, std::int64_t inner) {
  reduce_ints(row_kernels().reduce_i64, op, x, y, outer, axis, inner);
}

void arg_extreme_f32(const float* x, std::int64_t* y, std::int64_t outer, std::int64_t axis, std::int64_t inner, bool max,
                     bool last) {
  const RowKernels& k = row_kernels();
  over_slices(
      x, y, outer, axis, inner, [&](const float* from, std::int64_t* to) { *to = k.arg_extreme(from, axis, max, last); },
      [&](const float* from, std::int64_t* to, std::int64_t b, std::int64_t e) {
        k.arg_extreme_columns(from, to, axis, inner, b, e, max, last);
      });
}

namespace {

// Larger for what comes before: the element's order in the upper half, the position's in the lower. NaN is above everything, or
// below where the smallest come first; -0 equals 0.
std::uint64_t rank_of(float v, std::int64_t at, bool largest) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(v + 0.0F);
  bits = (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
  if (v != v) bits = 0xFFFFFFFFU;
  if (!largest) bits = ~bits;
  return std::uint64_t{bits} << 32 | (0xFFFFFFFFU - static_cast<std::uint32_t>(at));
}
std::int64_t position_of(std::uint64_t rank) { return 0xFFFFFFFFU - static_cast<std::uint32_t>(rank); }

// The k largest ranks in order, in scratch: kept sorted while the row is searched for what is beyond the last of them, which few
// elements are.
void top_few(const float* x, std::int64_t n, std::int64_t k, bool largest, std::uint64_t* kept) {
  for (std::int64_t i = 0; i < k; ++i) kept[i] = rank_of(x[i], i, largest);
  std::sort(kept, kept + k, std::greater<>());
  const auto next = row_kernels().next_beyond;
  for (std::int64_t i = next(x, k, n, x[position_of(kept[k - 1])], largest); i < n;
       i = next(x, i + 1, n, x[position_of(kept[k - 1])], largest)) {
    const std::uint64_t rank = rank_of(x[i], i, largest);
    if (rank < kept[k - 1]) continue;
    std::int64_t at = k - 1;
    for (; at > 0 && kept[at - 1] < rank; --at) kept[at] = kept[at - 1];
    kept[at] = rank;
  }
}

// By the ranks' upper 11 bits: all above some value of them are among the k, and of those with it the rest.
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
  (k <= 32 ? top_few : top_many)(x, n, k, largest, scratch);
  for (std::int64_t i = 0; i < k; ++i) {
    const std::int64_t at = position_of(scratch[i]);
    if (indices != nullptr) indices[i] = at;
    if (values != nullptr) values[i] = x[at];
  }
}

}  // namespace sdx::cpu
