// Scores are computed transposed: S' [keys, queries], with keys as the rows of register tiles and a vector panel of queries as
// their columns. So softmax runs down the columns, without sums across lanes, and its result is the right operand of V' P' as is:
// nothing between the two products is packed or moved.

#include "kernels/cpu/attention/attention_panels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/cpu/attention/attention_simd.h"
#include "kernels/cpu/elementwise/elementwise_simd.h"
#include "kernels/cpu/gemm/gemm_simd.h"
#include "kernels/cpu/gemm/gemm_split.h"
#include "kernels/cpu/simd/cuts.h"
#include "kernels/cpu/simd/scratch.h"
#include "kernels/cpu/simd/tiles.h"

namespace sdx::cpu {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
constexpr std::int64_t kMaxPanel = 64;   // columns of the widest panel
constexpr std::int64_t kSpareRows = 32;  // at least as many as a register tile has
constexpr std::int64_t kKeyBlock = 384;  // scores of 16 queries take 24 KB
// The state of all queries of a block stays in a second-level cache of 1 MB; if the cache is smaller, it is still read and
// written only once per 384 keys. With blocks of 384 queries, packing took 9 % of the time for 1500 queries and keys of size 64;
// with all queries in one block, 3 %.
constexpr std::int64_t kStateBytes = 800 * 1024;
constexpr std::int64_t kFewestPanelQueries = 384;

struct Block {
  const AttentionArgs& a;
  const GemmKernels& gemm;
  const AttentionKernels& rows;
  std::int64_t valid;
  std::int64_t j0 = 0;  // first key
  std::int64_t nk = 0;
  const float* keys = nullptr;    // tiles [size][keys]; null: not packed yet
  const float* values = nullptr;  // tiles [keys][value_step]
  // Without packed tiles: the distances of rows, which are read in place.
  std::int64_t key_row = 0;
  std::int64_t value_row = 0;
  bool only = false;  // no other block adds to the sums, which are not set before
};

// The distance between two keys in a tile of values: whole vectors, which are written faster than rows of 13 that cross cache
// lines.
std::int64_t value_step(const GemmKernels& gemm) { return round_up(gemm.mr, gemm.nr / 2); }

// Running state of one panel of queries.
struct Panel {
  const float* q;      // [size][nr], scaled
  float* sums;         // [v][nr]
  float* max;          // [nr]
  float* total;        // [nr]
  std::int64_t width;  // columns to compute: half the panel if it has few queries (the last one)
};

// Rows [first, first + most) of keys or values, or only the first of these.
KeyRun run_of(const AttentionArgs& a, bool values, std::int64_t batch, std::int64_t kv, std::int64_t first, std::int64_t most,
              float* spare) {
  if (a.source.run != nullptr) return a.source.run(a.source.self, values, kv, first, most, spare);
  if (values) return {a.v + batch * a.v_batch + kv * a.v_head + first * a.v_row, a.v_row, most};
  return {a.k + batch * a.k_batch + kv * a.k_head + first * a.k_row, a.k_row, most};
}

// Keys of a register tile; keys from several runs are gathered in `spare`.
KeyRun tile_keys(const Block& b, std::int64_t batch, std::int64_t kv, std::int64_t first, std::int64_t count, float* spare) {
  const std::int64_t size = b.a.head_size;
  KeyRun run = run_of(b.a, false, batch, kv, first, count, spare);
  if (run.count == count) return run;
  for (std::int64_t done = 0;;) {
    float* to = spare + done * size;
    if (run.data != to) std::copy_n(run.data, run.count * size, to);  // sources have dense rows
    done += run.count;
    if (done == count) return {spare, size, count};
    run = run_of(b.a, false, batch, kv, first + done, count - done, spare + done * size);
  }
}

// The arguments of packing.
struct Packing {
  std::int64_t batch, kv;
  float* to;
  float* spare;
};

void pack_block(Block& b, const Packing& packing) {
  const auto [batch, kv, keys, spare] = packing;
  if (b.key_row != 0) {
    b.keys = run_of(b.a, false, batch, kv, b.j0, b.nk, spare).data;
    b.values = run_of(b.a, true, batch, kv, b.j0, b.nk, spare).data;
    return;
  }
  float* const values = keys + round_up(b.nk * b.a.head_size, 16);
  b.keys = keys;
  b.values = values;
  const std::int64_t size = b.a.head_size;
  const Cuts tiles(b.nk, b.gemm.mr);
  for (std::int64_t t = 0; t < tiles.parts; ++t) {
    const std::int64_t first = tiles.begin(t), count = tiles.size(t);
    const KeyRun k = tile_keys(b, batch, kv, b.j0 + first, count, spare);
    // Each row of a head is on a page of its own, and the hardware does not prefetch across pages.
    const std::int64_t ahead = std::min<std::int64_t>(b.nk - first, 3 * b.gemm.mr);
    for (std::int64_t j = 2 * b.gemm.mr; b.a.source.run == nullptr && j < ahead; ++j) {
      for (std::int64_t i = 0; i < size; i += 16) __builtin_prefetch(k.data + j * k.stride + i);
    }
    b.gemm.pack_a_tile(reinterpret_cast<const char*>(k.data), k.stride, 1, count, size, 1.0F, keys + first * size);
  }
  for (std::int64_t i = 0; i < b.nk;) {
    const std::int64_t most = b.a.source.run != nullptr ? std::min(kSpareRows, b.nk - i) : b.nk;
    const KeyRun v = run_of(b.a, true, batch, kv, b.j0 + i, most, spare);
    b.rows.column_tiles(v.data, v.stride, b.nk, i, v.count, b.a.v_head_size, b.gemm.mr, values);
    i += v.count;
  }
}

// scores[nk, nr] = K q
void score(const Block& b, const Panel& p, std::int64_t nk, float* scores) {
  GemmTile t;
  t.b = p.q;
  t.ldb = t.ldc = b.gemm.nr;
  t.n = p.width;
  t.k = b.a.head_size;
  t.lda = b.key_row;
  const Cuts tiles(b.nk, b.gemm.mr);
  for (std::int64_t i = 0; i < tiles.parts && tiles.begin(i) < nk; ++i) {
    t.a = b.keys + tiles.begin(i) * (b.key_row != 0 ? b.key_row : b.a.head_size);
    t.c = scores + tiles.begin(i) * b.gemm.nr;
    t.m = tiles.size(i);
    b.gemm.tile(t);
  }
}

// sums[v, nr] += V' p
void add_values(const Block& b, const Panel& p, std::int64_t nk, const float* scores) {
  GemmTile t;
  t.b = scores;
  t.ldb = t.ldc = b.gemm.nr;
  t.n = p.width;
  t.k = nk;
  t.accumulate = !b.only;
  t.a_step = b.value_row != 0 ? b.value_row : value_step(b.gemm);
  const Cuts columns(b.a.v_head_size, b.gemm.mr);
  for (std::int64_t i = 0; i < columns.parts; ++i) {
    t.a = b.values + (b.value_row != 0 ? columns.begin(i) : i * b.nk * t.a_step);
    t.c = p.sums + columns.begin(i) * b.gemm.nr;
    t.m = columns.size(i);
    b.gemm.tile(t);
  }
}

// Masks the scores of `count` queries from q0 on.
void mask_scores(const Block& b, std::int64_t batch, std::int64_t head, std::int64_t q0, std::int64_t count, std::int64_t nk,
                 float* scores) {
  const AttentionArgs& a = b.a;
  const std::int64_t nr = b.gemm.nr;
  if (a.softcap > 0.0F) {
    b.rows.scale(scores, 1.0F / a.softcap, scores, nk * nr);
    elementwise_kernels().unary({Unary::tanh}, scores, scores, nk * nr);
    b.rows.scale(scores, a.softcap, scores, nk * nr);
  }
  if (a.mask != nullptr) {
    const float* mask = a.mask + batch * a.mask_batch + head * a.mask_head + q0 * a.mask_row + b.j0;
    if (a.mask_row == 0) {
      b.rows.add_rows(scores, mask, nk, nr);
    } else {
      b.rows.add_columns(scores, nr, mask, a.mask_row, nk, count);
    }
  }
  if (!a.limits_keys()) return;
  for (std::int64_t i = 0; i < count; ++i) {
    const VisibleKeys v = visible_keys(a, q0 + i, b.valid);
    const std::int64_t from = std::clamp<std::int64_t>(v.first - b.j0, 0, nk);
    const std::int64_t to = std::clamp<std::int64_t>(v.last - b.j0, from, nk);
    for (std::int64_t j = 0; j < from; ++j) scores[j * nr + i] = kNever;
    for (std::int64_t j = to; j < nk; ++j) scores[j * nr + i] = kNever;
  }
}

void store(const Block& b, const Panel& p, std::int64_t batch, std::int64_t head, std::int64_t q0, std::int64_t count) {
  const AttentionArgs& a = b.a;
  float factors[kMaxPanel];
  for (std::int64_t i = 0; i < count; ++i) factors[i] = p.total[i] == 0.0F ? 0.0F : 1.0F / p.total[i];
  float* out = a.out + batch * a.out_batch + head * a.out_head + q0 * a.out_row;
  b.rows.store_columns(p.sums, b.gemm.nr, factors, out, a.out_row, a.v_head_size, count);
  if (a.odd == nullptr ||
      b.rows.ordinary_columns(p.sums, b.gemm.nr, p.max, p.total, a.least_score, kMostOrdinaryScore, a.v_head_size, count)) {
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) mark_if_odd(a, batch, head, q0 + i, p.max[i], p.total[i], out + i * a.out_row);
}

// The largest squared norm of a row; not finite if an element is not, or if a square exceeds float's range.
float largest_square(const float* rows, std::int64_t stride, std::int64_t n, std::int64_t size) {
  float largest = 0.0F, all = 0.0F;
  for (std::int64_t i = 0; i < n; ++i) {
    const float* const row = rows + i * stride;
    float square = 0.0F;
    gemm_kernels().gemv_dots(row, row, size, size, 1, &square, 1);
    largest = std::max(largest, square);
    all += square * 0.0F;
  }
  return largest + all;
}

// All that queries of the heads that share a key head need.
struct KeyHeadAttention {
  Block block;
  std::int64_t batch, kv, q0, rows, group;
  std::int64_t most = 0;  // keys of a block
  float* states = nullptr;
  float* scores = nullptr;  // [2][most, rounded up to 32][nr]: of two panels
  Packing packing = {};

  std::int64_t panels() const { return up_div(rows, block.gemm.nr); }
  float* scores_of(std::int64_t turn) const { return scores + turn * round_up(most, kSplitRows) * block.gemm.nr; }
  Panel panel(std::int64_t g, std::int64_t i) const {
    const std::int64_t size = block.a.head_size, v = block.a.v_head_size, nr = block.gemm.nr;
    float* at = states + (g * panels() + i) * (size + v + 2) * nr;
    float* sums = at + size * nr;
    const std::int64_t width = rows - i * nr <= nr / 2 ? nr / 2 : nr;
    return Panel{at, sums, sums + v * nr, sums + (v + 1) * nr, width};
  }
};

// A panel of queries of one head, and how many of the block's keys it sees.
struct Item {
  Panel panel;
  std::int64_t head, first, count, nk;
};

std::vector<Item> items_of(const KeyHeadAttention& j) {
  const Block& b = j.block;
  std::vector<Item> items;
  for (std::int64_t i = 0; i < j.panels(); ++i) {
    const std::int64_t count = std::min<std::int64_t>(b.gemm.nr, j.rows - i * b.gemm.nr), first = j.q0 + i * b.gemm.nr;
    const std::int64_t nk = std::min(b.nk, visible_keys(b.a, first + count - 1, b.valid).last - b.j0);
    if (nk <= 0 || visible_keys(b.a, first, b.valid).first >= b.j0 + b.nk) continue;
    for (std::int64_t g = 0; g < j.group; ++g) items.push_back({j.panel(g, i), j.kv * j.group + g, first, count, nk});
  }
  return items;
}

void soften(const KeyHeadAttention& j, const Item& item, float* scores) {
  const Block& b = j.block;
  const Panel& p = item.panel;
  mask_scores(b, j.batch, item.head, item.first, item.count, item.nk, scores);
  b.rows.panel_softmax(scores, item.nk, b.gemm.nr, p.width, p.max, p.total, p.sums, b.a.v_head_size);
}

void attend_block(KeyHeadAttention& j) {
  pack_block(j.block, j.packing);
  for (const Item& item : items_of(j)) {
    score(j.block, item.panel, item.nk, j.scores);
    soften(j, item, j.scores);
    add_values(j.block, item.panel, item.nk, j.scores);
  }
}

// The same by tiles of bfloat16 (gemm_split.h). While the scores of one panel are computed, the weights of the one before are
// split, and while these are multiplied, the queries of the next one.
class SplitBlock {
 public:
  SplitBlock(const SplitKernels& split, KeyHeadAttention& j) : split_(split), j_(j) {
    const AttentionArgs& a = j.block.a;
    const std::int64_t keys = up_div(j.most, kSplitRows) * split_steps(a.head_size);
    const std::int64_t values = up_div(a.v_head_size, kSplitRows) * split_steps(j.most);
    const std::int64_t blocks = keys + values + 2 * split_steps(a.head_size) + split_steps(j.most);
    auto* at =
        reinterpret_cast<std::uint16_t*>(thread_scratch(5, to_size(blocks * kSplitBlock / 2 + 2 * kSplitRows * kSplitColumns)));
    const auto take = [&](std::int64_t count) { return std::exchange(at, at + count * kSplitBlock); };
    keys_ = take(keys);
    values_ = take(values);
    q_[0] = take(split_steps(a.head_size));
    q_[1] = take(split_steps(a.head_size));
    weights_ = take(split_steps(j.most));
    sums_[0] = reinterpret_cast<float*>(at);
    sums_[1] = sums_[0] + kSplitRows * kSplitColumns;
  }

  void attend() {
    const std::vector<Item> items = items_of(j_);
    const std::int64_t count = static_cast<std::int64_t>(items.size());
    split_keys_and_values();
    SplitPanel q, weights;
    SplitPanel next = queries(items, 0);
    split_.split_panel(next, next.left());
    for (std::int64_t t = 0; t < count; ++t) {
      const Item& item = items[to_size(t)];
      q = next;
      next = queries(items, t + 1);
      weights = t > 0 ? weights_of(items[to_size(t - 1)], t - 1) : SplitPanel{};
      score_item(item, q, j_.scores_of(t % 2), weights);
      soften(j_, item, j_.scores_of(t % 2));
      if (t > 0) add_item(items[to_size(t - 1)], weights, j_.scores_of((t - 1) % 2), next);
      split_.split_panel(next, next.left());
    }
    if (count == 0) return;
    weights = weights_of(items.back(), count - 1);
    split_.split_panel(weights, weights.left());
    SplitPanel none;
    add_item(items.back(), weights, j_.scores_of((count - 1) % 2), none);
  }

 private:
  void split_keys_and_values() {
    const Block& b = j_.block;
    const AttentionArgs& a = b.a;
    const KeyRun k = run_of(a, false, j_.batch, j_.kv, b.j0, b.nk, nullptr),
                 v = run_of(a, true, j_.batch, j_.kv, b.j0, b.nk, nullptr);
    left_keys_ = {keys_, a.head_size};
    split_.split_rows(left_keys_, k.data, k.stride, 0, b.nk);
    split_.clear_rest(left_keys_, b.nk);
    left_values_ = {values_, b.nk};
    for (std::int64_t i = 0; i < a.v_head_size; i += 16) {
      split_.split_tile(left_values_, v.data + i, v.stride, i, std::min<std::int64_t>(16, a.v_head_size - i));
    }
    split_.clear_rest(left_values_, a.v_head_size);
    j_.block.keys = nullptr;
  }

  SplitPanel queries(const std::vector<Item>& items, std::int64_t t) const {
    if (t >= static_cast<std::int64_t>(items.size())) return {};
    return {items[to_size(t)].panel.q, j_.block.a.head_size, q_[t % 2]};
  }
  // Keys that the panel does not see weigh nothing.
  SplitPanel weights_of(const Item& item, std::int64_t t) const {
    return {j_.scores_of(t % 2), item.nk, weights_, 0, item.panel.width > 16};
  }

  void need_floats() {
    if (j_.block.keys == nullptr) pack_block(j_.block, j_.packing);
  }

  void score_item(const Item& item, const SplitPanel& q, float* scores, SplitPanel& next) {
    if (!q.finite || !left_keys_.finite) {
      need_floats();
      score(j_.block, item.panel, item.nk, scores);
      return split_.split_panel(next, next.left());
    }
    const std::int64_t steps = split_steps(left_keys_.k), rows = up_div(item.nk, kSplitRows);
    const std::int64_t pairs = up_div(next.left(), rows * steps);
    for (std::int64_t i = 0; i < rows; ++i) {
      const bool two_rows = j_.block.nk - i * kSplitRows > 16;
      split_.multiply({keys_ + i * steps * kSplitBlock, q.to, steps, two_rows, item.panel.width > 16,
                       scores + i * kSplitRows * kSplitColumns},
                      next, pairs);
    }
    split_.split_panel(next, next.left());
  }

  void add_item(const Item& item, const SplitPanel& weights, const float* scores, SplitPanel& next) {
    if (!weights.finite || !left_values_.finite) {
      need_floats();
      return add_values(j_.block, item.panel, item.nk, scores);
    }
    const std::int64_t all = split_steps(left_values_.k), steps = split_steps(item.nk), v = j_.block.a.v_head_size;
    const std::int64_t rows = up_div(v, kSplitRows), pairs = up_div(next.left(), rows * steps);
    const auto add = [&](std::int64_t i) {
      GemmTile t;
      t.c = item.panel.sums + i * kSplitRows * kSplitColumns;
      t.ldc = kSplitColumns;
      t.m = std::min(kSplitRows, v - i * kSplitRows);
      t.n = item.panel.width;
      t.accumulate = true;
      j_.block.gemm.finish(t, sums_[i % 2], kSplitColumns);
    };
    for (std::int64_t i = 0; i < rows; ++i) {
      const bool two_rows = v - i * kSplitRows > 16;
      const std::uint16_t* const a = values_ + i * all * kSplitBlock;
      split_.multiply({a, weights.to, steps, two_rows, item.panel.width > 16, sums_[i % 2]}, next, pairs);
      if (i > 0) add(i - 1);
    }
    add(rows - 1);
  }

  const SplitKernels& split_;
  KeyHeadAttention& j_;
  std::uint16_t *keys_, *values_, *q_[2], *weights_;
  float* sums_[2];
  SplitRows left_keys_, left_values_;
};

// Few keys stay in the first-level cache for a few panels of queries as they are. Packing them took a tenth of the time (77 keys
// of 64 elements, 49 of 32).
bool lies_in_place(const AttentionArgs& a, std::int64_t panels, std::int64_t keys) {
  constexpr std::int64_t kMostPanels = 3, kMostFloats = 5000, kMostSpan = 16 * 1024;
  return a.source.run == nullptr && std::min(a.k_row, a.v_row) > 0 && panels <= kMostPanels &&
         keys * std::max(a.head_size, a.v_head_size) <= kMostFloats && keys * std::max(a.k_row, a.v_row) <= kMostSpan;
}

// Windows of 49 keys fill too little of the tiles.
bool splits(const AttentionArgs& a, std::int64_t rows, std::int64_t keys) {
  constexpr std::int64_t kLeastRows = 64, kLeastKeys = 96, kLeastSize = 32;
  return rows >= kLeastRows && keys >= kLeastKeys && std::min(a.head_size, a.v_head_size) >= kLeastSize &&
         a.source.run == nullptr && split_kernels() != nullptr;
}

}  // namespace

std::int64_t keys_with_weight(const AttentionArgs& a, std::int64_t b, std::int64_t kv, std::int64_t q0, std::int64_t rows,
                              std::int64_t valid) {
  if (a.mask == nullptr || a.mask_row != 0 || a.mask_head != 0 || valid < 2) return valid;
  if (a.limits_keys() || a.softcap > 0.0F || a.source.run != nullptr) return valid;
  // Weights below e^-88 of the largest are 0.
  constexpr float kNone = 100.0F;
  const float* const mask = a.mask + b * a.mask_batch;
  const float most = *std::max_element(mask, mask + valid);
  if (!std::isfinite(most) || !(mask[valid - 1] < most - kNone)) return valid;
  const float* const k = a.k + b * a.k_batch + kv * a.k_head;
  const std::int64_t group = a.heads / a.kv_heads;
  float queries = 0.0F;
  for (std::int64_t g = 0; g < group; ++g) {
    const float* const q = a.q + b * a.q_batch + (kv * group + g) * a.q_head + q0 * a.q_row;
    const float square = largest_square(q, a.q_row, rows, a.head_size);
    if (!std::isfinite(square)) return valid;
    queries = std::max(queries, square);
  }
  // No score is larger than this (Cauchy and Schwarz), roundings included.
  const float keys = largest_square(k, a.k_row, valid, a.head_size);
  const float score = 1.001F * std::fabs(a.scale) * std::sqrt(queries) * std::sqrt(keys);
  if (!std::isfinite(score)) return valid;
  const float least = most - 2.0F * score - kNone;
  std::int64_t n = valid;
  while (n > 1 && mask[n - 1] < least) --n;
  const float* const v = a.v + b * a.v_batch + kv * a.v_head;
  return std::isfinite(largest_square(v + n * a.v_row, a.v_row, valid - n, a.v_head_size)) ? n : valid;
}

std::int64_t few_queries() { return std::clamp<std::int64_t>(gemm_kernels().nr / 2, 8, kMostFewQueries); }

std::int64_t panel_queries(std::int64_t group, std::int64_t head_size, std::int64_t v_head_size) {
  const std::int64_t bytes = group * (head_size + v_head_size + 2) * static_cast<std::int64_t>(sizeof(float));
  return std::max(kFewestPanelQueries, kStateBytes / bytes);
}

void attend_panels(const AttentionArgs& a, std::int64_t b, std::int64_t kv, std::int64_t q0, std::int64_t rows,
                   std::int64_t valid) {
  KeyHeadAttention j{{a, gemm_kernels(), attention_kernels(), valid}, b, kv, q0, rows, a.heads / a.kv_heads};
  Block& block = j.block;
  const std::int64_t nr = block.gemm.nr;
  const std::int64_t begin = visible_keys(a, q0, valid).first;
  const std::int64_t end = std::max(begin, visible_keys(a, q0 + rows - 1, valid).last);
  const Cuts cuts(std::max<std::int64_t>(1, end - begin), kKeyBlock);
  j.most = cuts.size(0);
  const std::int64_t state = (a.head_size + a.v_head_size + 2) * nr;
  const std::int64_t value_floats = up_div(a.v_head_size, block.gemm.mr) * value_step(block.gemm);
  const std::int64_t packed = round_up(j.most * a.head_size, 16) + round_up(j.most * value_floats, 16);
  const std::int64_t spare_floats = a.source.run != nullptr ? kSpareRows * std::max(a.head_size, a.v_head_size) : 0;
  const std::int64_t scores = 2 * round_up(j.most, kSplitRows) * nr;
  float* const to = thread_scratch(2, to_size(packed + scores + spare_floats));
  j.packing = {b, kv, to, to + packed + scores};
  j.scores = to + packed;
  const bool split = splits(a, rows, end - begin);
  block.only = !split && cuts.parts == 1 && end > begin && !a.limits_keys() && a.sink == nullptr;
  if (!split && lies_in_place(a, j.group * j.panels(), end - begin)) block.key_row = a.k_row, block.value_row = a.v_row;
  j.states = thread_scratch(3, to_size(j.group * j.panels() * state));
  for (std::int64_t g = 0; g < j.group; ++g) {
    const float* q = a.q + b * a.q_batch + (kv * j.group + g) * a.q_head + q0 * a.q_row;
    for (std::int64_t i = 0; i < j.panels(); ++i) {
      const Panel p = j.panel(g, i);
      block.gemm.pack_b_panels(reinterpret_cast<const char*>(q + i * nr * a.q_row), 1, a.q_row, a.head_size,
                               std::min(nr, rows - i * nr), a.scale, const_cast<float*>(p.q));
      if (!block.only) std::fill_n(p.sums, a.v_head_size * nr, 0.0F);
      std::fill_n(p.max, nr, a.sink != nullptr ? a.sink[(kv * j.group + g) * a.sink_head] : kNever);
      std::fill_n(p.total, nr, a.sink != nullptr ? 1.0F : 0.0F);
    }
  }
  const auto for_each_block = [&](const auto& attend) {
    for (std::int64_t c = 0; c < cuts.parts && end > begin; ++c) {
      block.j0 = begin + cuts.begin(c);
      block.nk = cuts.size(c);
      attend();
    }
  };
  if (split) {
    const TileScope tiles(TileConfig::whole());
    SplitBlock split(*split_kernels(), j);
    for_each_block([&] { split.attend(); });
  } else {
    for_each_block([&] { attend_block(j); });
  }
  for (std::int64_t g = 0; g < j.group; ++g) {
    for (std::int64_t i = 0; i < j.panels(); ++i) {
      store(block, j.panel(g, i), b, kv * j.group + g, q0 + i * nr, std::min(nr, rows - i * nr));
    }
  }
}

}  // namespace sdx::cpu
