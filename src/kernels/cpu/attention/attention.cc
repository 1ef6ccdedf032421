#include "kernels/cpu/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/thread_pool.h"
#include "kernels/cpu/attention/attention_panels.h"
#include "kernels/cpu/attention/attention_simd.h"
#include "kernels/cpu/attention/attention_tiles_simd.h"
#include "kernels/cpu/elementwise/elementwise_simd.h"
#include "kernels/cpu/gemm/gemm_simd.h"
#include "kernels/cpu/simd/cuts.h"
#include "kernels/cpu/simd/scratch.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kKeyBlock = 128;

struct Kernels {
  const AttentionTileKernels& tiles;
  const AttentionKernels& rows;
  const ElementwiseKernels& elementwise;
};

std::int64_t valid_keys(const AttentionArgs& a, std::int64_t b) {
  return a.key_lengths != nullptr ? std::clamp<std::int64_t>(a.key_lengths[b], 0, a.keys) : a.keys;
}

void query_block(const Kernels& k, const AttentionArgs& a, std::int64_t b, std::int64_t h, std::int64_t q0, std::int64_t rows) {
  const std::int64_t kv = h / (a.heads / a.kv_heads);
  const float* q = a.q + b * a.q_batch + h * a.q_head + q0 * a.q_row;
  const float* keys = a.k + b * a.k_batch + kv * a.k_head;
  const float* values = a.v + b * a.v_batch + kv * a.v_head;
  const float* mask = a.mask != nullptr ? a.mask + b * a.mask_batch + h * a.mask_head + q0 * a.mask_row : nullptr;
  float* out = a.out + b * a.out_batch + h * a.out_head + q0 * a.out_row;
  const std::int64_t valid = valid_keys(a, b);
  float* scores = thread_scratch(2, static_cast<std::size_t>(rows * (kKeyBlock + a.v_head_size)));
  float* sums = scores + rows * kKeyBlock;
  float max[kMostFewQueries];
  float total[kMostFewQueries];
  std::fill_n(max, rows, -std::numeric_limits<float>::infinity());
  std::fill_n(total, rows, a.sink != nullptr ? 1.0F : 0.0F);
  for (std::int64_t i = 0; a.sink != nullptr && i < rows; ++i) max[i] = a.sink[h * a.sink_head + (q0 + i) * a.sink_row];
  std::fill_n(sums, rows * a.v_head_size, 0.0F);
  const std::int64_t begin = visible_keys(a, q0, valid).first;
  const std::int64_t end = visible_keys(a, q0 + rows - 1, valid).last;
  for (std::int64_t j0 = begin; j0 < end; j0 += kKeyBlock) {
    const std::int64_t nk = std::min(kKeyBlock, end - j0);
    const float *block_keys = keys + j0 * a.k_row, *block_values = values + j0 * a.v_row;
    // If rows are not dense, nothing is prefetched: a row is followed by another head's.
    const bool dense = a.k_row == a.head_size && a.v_row == a.v_head_size;
    k.tiles.floats.dots(q, a.q_row, rows, block_keys, a.k_row, nk, a.head_size, scores, kKeyBlock,
                        dense ? block_values : nullptr);
    for (std::int64_t i = 0; i < rows; ++i) {
      float* s = scores + i * kKeyBlock;
      k.rows.scale(s, a.scale, s, nk);
      if (a.softcap > 0.0F) {
        k.rows.scale(s, 1.0F / a.softcap, s, nk);
        k.elementwise.unary({Unary::tanh}, s, s, nk);
        k.rows.scale(s, a.softcap, s, nk);
      }
      if (mask != nullptr) k.elementwise.binary(Binary::add, s, mask + i * a.mask_row + j0, s, nk);
      const VisibleKeys v = visible_keys(a, q0 + i, valid);
      const std::int64_t from = std::clamp<std::int64_t>(v.first - j0, 0, nk);
      const std::int64_t to = std::clamp<std::int64_t>(v.last - j0, from, nk);
      std::fill(s, s + from, -std::numeric_limits<float>::infinity());
      std::fill(s + to, s + nk, -std::numeric_limits<float>::infinity());
      const float factor = k.rows.online_softmax(s, nk, &max[i], &total[i]);
      if (factor != 1.0F) k.rows.scale(sums + i * a.v_head_size, factor, sums + i * a.v_head_size, a.v_head_size);
    }
    k.tiles.floats.mix(scores, kKeyBlock, rows, block_values, a.v_row, nk, a.v_head_size, sums, a.v_head_size,
                       dense && j0 + nk < end ? block_keys + nk * a.k_row : nullptr);
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    k.rows.scale(sums + i * a.v_head_size, total[i] == 0.0F ? 0.0F : 1.0F / total[i], out + i * a.out_row, a.v_head_size);
    mark_if_odd(a, b, h, q0 + i, max[i], total[i], out + i * a.out_row);
  }
}

}  // namespace

VisibleKeys visible_keys(const AttentionArgs& a, std::int64_t i, std::int64_t valid) {
  VisibleKeys v{0, valid};
  if (a.causal) v.last = std::clamp<std::int64_t>(i + a.causal_offset + 1, 0, valid);
  if (a.right >= 0) v.last = std::min(v.last, std::clamp<std::int64_t>(i + a.causal_offset + a.right + 1, 0, valid));
  if (a.window > 0) v.first = std::clamp<std::int64_t>(i + a.causal_offset - a.window + 1, 0, v.last);
  return v;
}

// Without a branch, so that compilers use vectors. Magnitudes order like integers, NaN above all.
bool all_within(const float* x, std::int64_t n, float most) {
  std::int32_t bound, above = 0;
  std::memcpy(&bound, &most, sizeof(bound));
  for (std::int64_t i = 0; i < n; ++i) {
    std::int32_t bits;
    std::memcpy(&bits, x + i, sizeof(bits));
    above |= (bits & 0x7FFFFFFF) > bound ? 1 : 0;
  }
  return above == 0;
}

void mark_if_odd(const AttentionArgs& a, std::int64_t b, std::int64_t h, std::int64_t query, float most, float total,
                 const float* out) {
  if (a.odd == nullptr) return;
  const bool ordinary = most > a.least_score && most < kMostOrdinaryScore && std::isfinite(total) &&
                        attention_kernels().all_finite(out, a.v_head_size);
  if (!ordinary) a.odd[b * a.odd_batch + h * a.odd_head + query * a.odd_row] = 1;
}

void rotate_f32(const float* x, std::int64_t size, std::int64_t dim, const float* cos, const float* sin, bool interleaved,
                float* y) {
  const std::int64_t half = dim / 2;
  if (!interleaved) {
    attention_kernels().rotate(x, cos, sin, y, half);
  } else {
    for (std::int64_t i = 0; i < half; ++i) {
      const float a = x[2 * i], b = x[2 * i + 1];
      y[2 * i] = a * cos[i] - b * sin[i];
      y[2 * i + 1] = a * sin[i] + b * cos[i];
    }
  }
  if (x != y && size > dim) std::memcpy(y + dim, x + dim, static_cast<std::size_t>(size - dim) * sizeof(float));
}

namespace {

// One query of each head: the heads that share keys become the queries of one head, so keys are read once for all of them.
AttentionArgs heads_as_queries(const AttentionArgs& a) {
  const std::int64_t group = a.heads / a.kv_heads;
  AttentionArgs g = a;
  g.heads = a.kv_heads, g.queries = group;
  g.q_row = a.q_head, g.q_head = group * a.q_head;
  g.out_row = a.out_head, g.out_head = group * a.out_head;
  g.mask_row = a.mask_head, g.mask_head = group * a.mask_head;
  g.sink_row = a.sink_head, g.sink_head = group * a.sink_head;
  g.odd_row = a.odd_head, g.odd_head = group * a.odd_head;
  if (!a.limits_keys()) return g;
  // All of them see the keys that the single query saw.
  const VisibleKeys seen = visible_keys(a, 0, a.keys);
  g.causal = false, g.window = 0, g.right = -1;
  g.keys = seen.last - seen.first;
  g.k += seen.first * a.k_row;
  g.v += seen.first * a.v_row;
  if (g.mask != nullptr) g.mask += seen.first;
  return g;
}

// This few queries after the last half of a panel are computed row by row, because they would fill at most an eighth of another
// half: one of 49 queries in a window, or of the 50 or 257 of a vision transformer.
std::int64_t queries_apart(const AttentionArgs& a) {
  const std::int64_t half = gemm_kernels().nr / 2, rest = a.queries % half;
  return a.source.run == nullptr && 8 * rest <= half ? rest : 0;
}

}  // namespace

std::int64_t panels_per_task(std::int64_t groups, std::int64_t panels, std::int64_t most) {
  constexpr double kPack = 0.25;
  const std::int64_t threads = current_pool().threads();
  std::int64_t parts = up_div(panels, most);
  if (threads == 1) return up_div(panels, parts);
  const std::int64_t most_parts = std::min(panels / 2, 4 * threads / groups);
  double least = 0.0;
  for (std::int64_t p = parts, first = parts; p <= std::max(first, most_parts); ++p) {
    const auto turns = static_cast<double>(up_div(groups * p, threads));
    const double time = turns * (static_cast<double>(panels) / static_cast<double>(p) + kPack);
    if (p == first || time < least) {
      parts = p;
      least = time;
    }
  }
  return up_div(panels, parts);
}

void attention_f32(const AttentionArgs& a) {
  if (a.batch <= 0 || a.heads <= 0 || a.queries <= 0 || a.v_head_size <= 0) return;
  const Kernels k{attention_tile_kernels(), attention_kernels(), elementwise_kernels()};
  const std::int64_t work = std::max<std::int64_t>(1, a.queries * a.keys * (a.head_size + a.v_head_size));
  const std::int64_t group = a.heads / a.kv_heads;
  if (a.queries == 1 && group > 1 && group <= few_queries() && (a.key_lengths == nullptr || !a.limits_keys()) &&
      (a.share_keys || a.batch * a.kv_heads >= current_pool().threads())) {
    return attention_f32(heads_as_queries(a));
  }
  if (a.queries <= few_queries()) {
    parallel_for(a.batch * a.heads, std::max<std::int64_t>(1, 100000 / work), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t t = begin; t < end; ++t) query_block(k, a, t / a.heads, t % a.heads, 0, a.queries);
    });
    return;
  }
  const std::int64_t nr = gemm_kernels().nr;
  const std::int64_t groups = a.batch * a.kv_heads;
  const std::int64_t apart = queries_apart(a), together = a.queries - apart;
  const std::int64_t panels = up_div(together, nr);
  const Cuts blocks(panels, panels_per_task(groups, panels, up_div(panel_queries(group, a.head_size, a.v_head_size), nr)));
  parallel_for(groups * blocks.parts, std::max<std::int64_t>(1, 100000 * blocks.parts / work),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t t = begin; t < end; ++t) {
                   const std::int64_t i = t % blocks.parts, b = t / blocks.parts / a.kv_heads;
                   const std::int64_t q0 = blocks.begin(i) * nr;
                   const std::int64_t rows = std::min(together - q0, blocks.size(i) * nr);
                   const std::int64_t kv = t / blocks.parts % a.kv_heads;
                   attend_panels(a, b, kv, q0, rows, keys_with_weight(a, b, kv, q0, rows, valid_keys(a, b)));
                   for (std::int64_t h = kv * group; apart > 0 && i + 1 == blocks.parts && h < (kv + 1) * group; ++h) {
                     query_block(k, a, b, h, together, apart);
                   }
                 }
               });
}

}  // namespace sdx::cpu
