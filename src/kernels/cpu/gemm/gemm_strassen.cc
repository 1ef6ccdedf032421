#include "kernels/cpu/gemm/gemm_strassen.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "base/thread_pool.h"
#include "kernels/cpu/gemm/gemm_block.h"
#include "kernels/cpu/gemm/gemm_simd.h"
#include "kernels/cpu/gemm/gemm_strassen_simd.h"
#include "kernels/cpu/simd/cuts.h"
#include "kernels/cpu/simd/scratch.h"

namespace sdx::cpu {
namespace {

constexpr int kProducts = 7;
// The largest ratio of the squared norms of quarters of two rows or columns that may pair up.
constexpr float kMostUneven = 64.0F;
// With fewer rows, summing weights takes longer than the eighth product would. With smaller K, so do the ends of tiles: under
// AVX2, a product with K = 384 and 1500 rows took 8 % longer. With 512-bit vectors that K is worth it: MiniLM takes 9 % less
// time, Whisper's encoder 2 %.
constexpr std::int64_t kFewestRows = 96;
std::int64_t least_k(const GemmKernels& gemm) { return gemm.nr >= 32 ? 384 : 768; }
// The left operands' tiles, all seven and over all of K, hold as many pairs of rows as fit, but at least kFewestRows / 2 and at
// most kMostPairs: 750 pairs with K = 384 exceed the second-level cache, and Whisper's encoder takes 4 % longer.
constexpr std::int64_t kMostPairs = 192;
constexpr std::int64_t kMostLeft = std::int64_t{1} << 20;  // floats
constexpr std::int64_t kMostTileRows = 14;
constexpr std::int64_t kMostHalf = kGemmKBlock / 2;

// Blocks of K. Their halves are the two parts of K in a product of quarters. The blocks of a group are multiplied before C is
// touched: half of a group's panel fits the first-level cache.
struct Depth {
  Cuts blocks;
  Cuts groups;
  Depth(std::int64_t k, std::int64_t nr) : blocks(k_cuts(k)), groups(blocks.parts, nr <= 16 ? 3 : 2) {}
  std::int64_t half(std::int64_t block) const { return blocks.size(block) / 2; }
  // Steps of K in the halves before a block.
  std::int64_t before(std::int64_t block) const { return blocks.begin(block) / 2; }
  std::int64_t group_half(std::int64_t g) const { return before(groups.begin(g + 1)) - before(groups.begin(g)); }
};

// A block of rows. Its upper half pairs up with the lower one, which may have one row less.
struct Rows {
  std::int64_t first;
  std::int64_t count;
  std::int64_t half;
  Cuts tiles;  // of the upper half
};

// The seven products: the quarters of B whose sum or difference is the right operand, and the quarters of C to which the product
// is added. `first` and `last`: the first or the last addition to that quarter.
enum Quarter : std::uint8_t { k11, k12, k21, k22 };
struct Goes {
  Quarter to;
  float sign;
  bool first, last;
};
struct Product {
  StrassenRight right;
  Quarter b, b2;
  int targets;
  Goes goes[2];
};
constexpr Product kScheme[kProducts] = {
    {StrassenRight::sum, k11, k22, 2, {{k11, 1, true, false}, {k22, 1, true, false}}},          // (A11 + A22) (B11 + B22)
    {StrassenRight::one, k11, k11, 2, {{k21, 1, true, false}, {k22, -1, false, false}}},        // (A21 + A22) B11
    {StrassenRight::difference, k12, k22, 2, {{k12, 1, true, false}, {k22, 1, false, false}}},  // A11 (B12 - B22)
    {StrassenRight::difference, k21, k11, 2, {{k11, 1, false, false}, {k21, 1, false, true}}},  // A22 (B21 - B11)
    {StrassenRight::one, k22, k22, 2, {{k11, -1, false, false}, {k12, 1, false, true}}},        // (A11 + A12) B22
    {StrassenRight::sum, k11, k12, 1, {{k22, 1, false, true}, {k22, 0, false, false}}},         // (A21 - A11) (B11 + B12)
    {StrassenRight::sum, k21, k22, 1, {{k11, 1, false, true}, {k11, 0, false, false}}}};        // (A12 - A22) (B21 + B22)

bool even(const float squares[4]) {
  const auto [least, most] = std::minmax_element(squares, squares + 4);
  return std::isfinite(squares[0] + squares[1] + squares[2] + squares[3]) && *most <= kMostUneven * *least;
}

// Prefetches the weights of the next group, evenly over the tiles of this one: the first tile of a panel would otherwise wait for
// memory.
struct Ahead {
  const float* at[6] = {};
  std::int64_t lines[6] = {};  // of 64 bytes
  int count = 0, now = 0;
  std::int64_t step = 0;

  void add(const float* from, std::int64_t floats) {
    at[count] = from;
    lines[count++] = floats / 16;
  }
  void begin(std::int64_t tiles) {
    std::int64_t all = 0;
    for (int i = 0; i < count; ++i) all += lines[i];
    step = up_div(all, tiles);
  }
  // Assigns the next part to a tile of k steps, which prefetches it.
  void give(StrassenTile& t, std::int64_t k) {
    t.ahead = reinterpret_cast<const char*>(t.a);
    t.ahead_step = 0;
    if (now == count) return;
    const std::int64_t some = std::min(step, lines[now]);
    t.ahead = reinterpret_cast<const char*>(at[now]);
    t.ahead_step = up_div(some * 64, k / 2);
    at[now] += 16 * some;
    lines[now] -= some;
    if (lines[now] == 0) ++now;
  }
};

// Two panels of weights, all of K. Both begin at `data`; blocks of K are `width` columns apart.
struct PairOfPanels {
  const float* data;
  std::int64_t width;
  std::int64_t panel[2];  // their numbers

  const float* block(const Depth& depth, std::int64_t nr, int which, std::int64_t b) const {
    return data + depth.blocks.begin(b) * width + panel[which] * nr * depth.blocks.size(b);
  }
  PairOfPanels next(std::int64_t i) const { return {data, width, {panel[0] + i, panel[1] + i}}; }
};

struct Scheme {
  const GemmKernels& gemm = gemm_kernels();
  const StrassenKernels& strassen = strassen_kernels();
  const GemmArgs& args;
  Depth depth;
  std::int64_t nr;
  std::int64_t pairs;  // of panels
  std::int64_t padded;

  explicit Scheme(const GemmArgs& a)
      : args(a), depth(a.k, gemm.nr), nr(gemm.nr), pairs(a.n / nr / 2), padded(round_up(a.n, nr)) {}

  std::int64_t left_floats(std::int64_t half) const { return kProducts * half * (args.k / 2); }
  float* left_tile(float* left, const Rows& r, std::int64_t group, int product, std::int64_t row) const {
    const std::int64_t k = depth.group_half(group);
    return left + kProducts * r.half * depth.before(depth.groups.begin(group)) + (product * r.half + row) * k;
  }

  bool rows_even(const Rows& r, std::int64_t row, std::int64_t rows) const;
  void pack_block(const Rows& r, std::int64_t tile, std::int64_t group, std::int64_t block, float* left) const;
  std::int64_t pairs_together(std::int64_t threads) const;
  PairOfPanels panels(std::int64_t pair, std::int64_t count) const;
  bool columns_even(const PairOfPanels& b) const;
  void set_right(StrassenTile& t, const Product& p, const PairOfPanels& b, std::int64_t group) const;
  void set_target(StrassenTarget& o, const Goes& goes, const Rows& r, std::int64_t row, std::int64_t rows, std::int64_t pair,
                  std::int64_t group, float* sums, std::int64_t step) const;
  Ahead fetch_after(std::int64_t pair, std::int64_t group) const;
  void multiply(const Rows& r, std::int64_t tile0, std::int64_t tile1, std::int64_t pair, const PairOfPanels& b,
                float* left) const;
};

// Weights that are not packed are read in runs of up to 512 bytes, as far as the panels fit the second-level cache.
std::int64_t Scheme::pairs_together(std::int64_t threads) const {
  constexpr std::int64_t kRoom = std::int64_t{1} << 18;  // floats
  if (args.packed_b != nullptr) return 1;
  return std::clamp<std::int64_t>(std::min(pairs / (3 * threads), kRoom / (2 * nr * args.k)), 1, 4);
}

// The first of `count` pairs. Packs them into this thread's scratch memory if the weights are not packed.
PairOfPanels Scheme::panels(std::int64_t pair, std::int64_t count) const {
  if (args.packed_b != nullptr) return {args.packed_b, padded, {pair, pair + pairs}};
  const std::int64_t columns = count * nr;
  float* const to = thread_scratch(2, to_size(2 * columns * args.k));
  const Strides s = strides_of(args.ldb, args.trans_b);
  for (std::int64_t b = 0; b < depth.blocks.parts; ++b) {
    const std::int64_t k0 = depth.blocks.begin(b), k = depth.blocks.size(b);
    for (const int which : {0, 1}) {
      const std::int64_t n0 = (pair + which * pairs) * nr;
      gemm.pack_b_panels(reinterpret_cast<const char*>(args.b) + (k0 * s.row + n0 * s.column) * 4, s.row, s.column, k, columns,
                         1.0F, to + k0 * 2 * columns + which * columns * k);
    }
  }
  return {to, 2 * columns, {0, count}};
}

// Whether all columns of the first panel can pair up with those of the second one.
bool Scheme::columns_even(const PairOfPanels& b) const {
  float squares[4][64] = {};
  for (std::int64_t block = 0; block < depth.blocks.parts; ++block) {
    const std::int64_t half = depth.half(block);
    for (int q = 0; q < 4; ++q) {
      const float* const p = b.block(depth, nr, q == k12 || q == k22 ? 1 : 0, block);
      strassen.column_squares(q == k21 || q == k22 ? p + half * nr : p, half, squares[q]);
    }
  }
  for (std::int64_t j = 0; j < nr; ++j) {
    const float column[4] = {squares[0][j], squares[1][j], squares[2][j], squares[3][j]};
    if (!even(column)) return false;
  }
  return true;
}

// Whether rows [row, row + rows) of the upper half can pair up with those of the lower one. A row without a partner pairs up with
// zeros.
bool Scheme::rows_even(const Rows& r, std::int64_t row, std::int64_t rows) const {
  for (std::int64_t i = row; i < row + rows; ++i) {
    float squares[4] = {};
    const bool alone = r.half + i >= r.count;
    for (std::int64_t b = 0; b < depth.blocks.parts; ++b) {
      const float* a = args.a + (r.first + i) * args.lda + depth.blocks.begin(b);
      const std::int64_t half = depth.half(b);
      const float* low = alone ? a : a + r.half * args.lda;
      squares[k11] += strassen.squares(a, half);
      squares[k12] += strassen.squares(a + half, half);
      squares[k21] += strassen.squares(low, half);
      squares[k22] += strassen.squares(low + half, half);
    }
    if (!even(squares)) return false;
  }
  return true;
}

// Packs one block of K of one tile for all seven products.
void Scheme::pack_block(const Rows& r, std::int64_t tile, std::int64_t group, std::int64_t block, float* left) const {
  const std::int64_t row = r.tiles.begin(tile), rows = r.tiles.size(tile), half = depth.half(block);
  const std::int64_t at = (depth.before(block) - depth.before(depth.groups.begin(group))) * rows;
  float* slots[kProducts];
  for (int p = 0; p < kProducts; ++p) slots[p] = left_tile(left, r, group, p, row) + at;
  alignas(64) float others[2][kMostTileRows * kMostHalf];
  const float* up = args.a + (r.first + row) * args.lda + depth.blocks.begin(block);
  const float* low = up + r.half * args.lda;
  std::int64_t low_step = args.lda;
  float filled[kMostTileRows * 2 * kMostHalf];
  const std::int64_t low_rows = std::min(rows, r.count - r.half - row);
  if (low_rows < rows) {
    for (std::int64_t i = 0; i < rows; ++i) {
      if (i < low_rows) {
        std::memcpy(filled + i * 2 * half, low + i * low_step, to_size(2 * half) * sizeof(float));
      } else {
        std::fill_n(filled + i * 2 * half, 2 * half, 0.0F);
      }
    }
    low = filled;
    low_step = 2 * half;
  }
  const auto pack = [&](const float* from, std::int64_t step, float* to) {
    gemm.pack_a_tile(reinterpret_cast<const char*>(from), step, 1, rows, half, 1.0F, to);
  };
  pack(up, args.lda, slots[2]);
  pack(up + half, args.lda, others[0]);
  pack(low, low_step, others[1]);
  pack(low + half, low_step, slots[3]);
  const float* const quarters[4] = {slots[2], others[0], others[1], slots[3]};
  float* const sums[5] = {slots[0], slots[4], slots[1], slots[5], slots[6]};
  strassen.sums(quarters, rows * half, sums);
}

void Scheme::set_right(StrassenTile& t, const Product& p, const PairOfPanels& b, std::int64_t group) const {
  t.pieces = 0;
  const auto quarter = [&](Quarter q, std::int64_t block) {
    const float* const from = b.block(depth, nr, q == k12 || q == k22 ? 1 : 0, block);
    return q == k21 || q == k22 ? from + depth.half(block) * nr : from;
  };
  for (std::int64_t block = depth.groups.begin(group); block < depth.groups.begin(group + 1); ++block) {
    const Cuts sums(depth.half(block), kStrassenSum);
    for (std::int64_t i = 0; i < sums.parts; ++i, ++t.pieces) {
      t.k[t.pieces] = sums.size(i);
      t.b[t.pieces] = quarter(p.b, block) + sums.begin(i) * nr;
      t.b2[t.pieces] = quarter(p.b2, block) + sums.begin(i) * nr;
    }
  }
  t.right = p.right;
}

// `sums`: this tile's sums of the four quarters, `step` apart.
void Scheme::set_target(StrassenTarget& o, const Goes& goes, const Rows& r, std::int64_t row, std::int64_t rows,
                        std::int64_t pair, std::int64_t group, float* sums, std::int64_t step) const {
  o.sums = sums + goes.to * step;
  o.sign = goes.sign;
  o.accumulate = group > 0 || !goes.first;
  o.c = nullptr;
  if (!goes.last || group + 1 < depth.groups.parts) return;
  const bool low = goes.to == k21 || goes.to == k22, right = goes.to == k12 || goes.to == k22;
  const std::int64_t m = r.first + row + (low ? r.half : 0), n = (pair + (right ? pairs : 0)) * nr;
  o.c = args.c + m * args.ldc + n;
  o.rows = low ? std::min(rows, r.count - r.half - row) : rows;
  const Epilogue& e = args.epilogue;
  o.residual = e.residual != nullptr ? e.residual + m * e.ld_residual + n : nullptr;
  o.bias = e.bias != nullptr ? e.bias + n : nullptr;
}

Ahead Scheme::fetch_after(std::int64_t pair, std::int64_t group) const {
  Ahead ahead;
  if (args.packed_b == nullptr) return ahead;
  if (++group == depth.groups.parts) {
    group = 0;
    if (++pair == pairs) return ahead;
  }
  const PairOfPanels next = panels(pair, 1);
  for (std::int64_t block = depth.groups.begin(group); block < depth.groups.begin(group + 1); ++block) {
    for (const int which : {0, 1}) ahead.add(next.block(depth, nr, which, block), nr * depth.blocks.size(block));
  }
  return ahead;
}

// Multiplies tiles [tile0, tile1) of the upper half and their partners by one pair of panels.
void Scheme::multiply(const Rows& r, std::int64_t tile0, std::int64_t tile1, std::int64_t pair, const PairOfPanels& b,
                      float* left) const {
  const std::int64_t row0 = r.tiles.begin(tile0), step = (r.tiles.begin(tile1) - row0) * nr;
  float* made = thread_scratch(1, to_size(2 * kGemmKBlock * nr + 4 * step));
  float* sums = made + 2 * kGemmKBlock * nr;
  StrassenTile t;
  t.ldc = args.ldc;
  t.ld_residual = args.epilogue.ld_residual;
  t.act = args.epilogue.act;
  for (std::int64_t g = 0; g < depth.groups.parts; ++g) {
    Ahead ahead = fetch_after(pair, g);
    ahead.begin(kProducts * (tile1 - tile0));
    for (int p = 0; p < kProducts; ++p) {
      const Product& product = kScheme[p];
      set_right(t, product, b, g);
      t.made = made;
      t.targets = product.targets;
      for (std::int64_t i = tile0; i < tile1; ++i) {
        const std::int64_t row = r.tiles.begin(i);
        t.rows = r.tiles.size(i);
        t.a = left_tile(left, r, g, p, row);
        for (int o = 0; o < product.targets; ++o) {
          set_target(t.to[o], product.goes[o], r, row, t.rows, pair, g, sums + (row - row0) * nr, step);
        }
        ahead.give(t, depth.group_half(g));
        strassen.tile(t);
        if (t.right != StrassenRight::one) {
          t.right = StrassenRight::one;
          const float* from = made;
          for (std::int64_t s = 0; s < t.pieces; from += t.k[s] * nr, ++s) t.b[s] = from;
        }
      }
    }
  }
}

bool is_even(const Scheme& s, const PairOfPanels& b, std::atomic<StrassenColumns::State>& state) {
  StrassenColumns::State seen = state.load(std::memory_order_relaxed);
  if (seen == StrassenColumns::State::unknown) {
    seen = s.columns_even(b) ? StrassenColumns::State::even : StrassenColumns::State::uneven;
    state.store(seen, std::memory_order_relaxed);
  }
  return seen == StrassenColumns::State::even;
}

}  // namespace

StrassenColumns::StrassenColumns(std::int64_t n)
    : states_(std::make_unique<std::atomic<State>[]>(to_size(n / gemm_kernels().nr / 2))) {}

bool strassen_fits(std::int64_t k, std::int64_t n) {
  if (k < 64 || n < 2 * gemm_kernels().nr) return false;
  const Cuts blocks = k_cuts(k);
  return k % (2 * blocks.parts) == 0 && kProducts * kFewestRows / 2 * (k / 2) <= 4 * kMostLeft;
}

bool strassen_pays(std::int64_t m, std::int64_t k, std::int64_t n) {
  const std::int64_t least = least_k(gemm_kernels());
  return m >= kFewestRows && k >= least && n >= least;
}

void gemm_strassen_f32(const GemmArgs& args, StrassenColumns& columns) {
  const Scheme s(args);
  const std::int64_t most = std::clamp(kMostLeft / (kProducts * (args.k / 2)), kFewestRows / 2, kMostPairs);
  const Cuts parts(up_div(args.m, 2), most);
  const std::int64_t mr = s.gemm.mr;
  float* left = thread_scratch(4, to_size(s.left_floats(up_div(parts.total, parts.parts))));
  for (std::int64_t b = 0; b < parts.parts; ++b) {
    const std::int64_t first = 2 * parts.begin(b), count = std::min(args.m, 2 * parts.begin(b + 1)) - first;
    const Rows r{first, count, parts.size(b), Cuts(parts.size(b), mr)};
    std::atomic<bool> rows_even{true};
    parallel_for(r.tiles.parts, std::max<std::int64_t>(1, 50000 / (args.k * mr)), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        if (!rows_even.load(std::memory_order_relaxed)) return;
        if (!s.rows_even(r, r.tiles.begin(i), r.tiles.size(i))) {
          rows_even.store(false, std::memory_order_relaxed);
          return;
        }
        for (std::int64_t g = 0; g < s.depth.groups.parts; ++g) {
          for (std::int64_t k = s.depth.groups.begin(g); k < s.depth.groups.begin(g + 1); ++k) s.pack_block(r, i, g, k, left);
        }
      }
    });
    if (!rows_even.load(std::memory_order_relaxed)) {
      GemmArgs plain = args;
      plain.m = count;
      plain.a += first * args.lda;
      plain.c += first * args.ldc;
      if (plain.epilogue.residual != nullptr) plain.epilogue.residual += first * args.epilogue.ld_residual;
      gemm_f32(plain);
      continue;
    }
    const std::int64_t threads = current_pool().threads();
    const Cuts groups(s.pairs, s.pairs_together(threads));
    // Rows are cut only if there are too few groups for the threads.
    const std::int64_t rest = s.pairs * 2 * s.nr < args.n ? 1 : 0;
    const std::int64_t want = threads == 1 ? 1 : up_div(3 * threads, groups.parts);
    const Cuts cuts(r.tiles.parts,
                    up_div(r.tiles.parts, std::clamp<std::int64_t>(want, 1, std::max<std::int64_t>(1, r.tiles.parts / 4))));
    const auto plain = [&](std::int64_t panel, std::int64_t end_column) {
      gemm_block(s.gemm, args, nullptr, first, first + count, panel * s.nr, end_column);
    };
    parallel_for((groups.parts + rest) * cuts.parts, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t task = begin; task < end; ++task) {
        const std::int64_t group = task / cuts.parts, cut = task % cuts.parts;
        if (group == groups.parts) {
          if (cut == 0) plain(2 * s.pairs, args.n);
          continue;
        }
        const PairOfPanels all = s.panels(groups.begin(group), groups.size(group));
        for (std::int64_t i = 0; i < groups.size(group); ++i) {
          const std::int64_t pair = groups.begin(group) + i;
          const PairOfPanels b = all.next(i);
          if (is_even(s, b, columns.of(pair))) {
            s.multiply(r, cuts.begin(cut), cuts.begin(cut + 1), pair, b, left);
          } else if (cut == 0) {
            plain(pair, (pair + 1) * s.nr);
            plain(pair + s.pairs, (pair + s.pairs + 1) * s.nr);
          }
        }
      }
    });
  }
}

}  // namespace sdx::cpu
