#include "kernels/cpu/gemm/gemm_block.h"

#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"
#include "kernels/cpu/gemm/gemm_split_run.h"
#include "kernels/cpu/simd/scratch.h"

namespace sdx::cpu {
namespace {

const char* bytes(const float* p, std::int64_t index) { return reinterpret_cast<const char*>(p + index); }

// A block of rows of A as tiles: packed in advance, read in place, or packed into this thread's scratch memory.
struct ATiles {
  Cuts tiles;
  std::int64_t first;  // index of the block's first tile in `tiles`
  std::int64_t count;
  const float* data;      // first tile of the block, this block of K
  std::int64_t row_step;  // the tile of row r on starts at data + r * row_step
  std::int64_t lda;       // of rows; 0 where tiles are packed
  std::int64_t row0;      // row of the first tile, within `tiles`
  std::int64_t step = 0;  // for transposed A read in place: from one step of K to the next
};

// Multiplying packed tiles takes 2 % less time than rows in place, with AVX2 up to 9 %. Packing takes 3 to 5 % of a product with
// a few hundred columns, and more if threads share the columns.
constexpr std::int64_t kPanelsWorthTiles = 32, kShortPanelsWorthTiles = 12;
// A transposed tile occupies one or two cache lines in each row of A, which every panel reads again.
constexpr std::int64_t kPanelsInPlace = 8;
// Rows a multiple of 4 KB apart map to the same few cache sets. If they are read as rows, they are copied together, with a cache
// line between them.
constexpr std::int64_t kBadStep = 1024;
constexpr std::int64_t kRowGap = 16;

// Rows split at a time: 393 KB, in the second-level cache.
constexpr std::int64_t kSplitMBlock = 256;

void fetch_rows(const float* rows, std::int64_t ld, std::int64_t m, std::int64_t kc) {
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t k = 0; k < kc; k += 16) __builtin_prefetch(rows + i * ld + k);
  }
}

const float* rows_together(const float* rows, std::int64_t ld, std::int64_t m, std::int64_t kc) {
  float* out = thread_scratch(0, to_size(kGemmMBlock * (kGemmKBlock + kRowGap)));
  for (std::int64_t i = 0; i < m; ++i) {
    if (i + 4 < m) fetch_rows(rows + (i + 4) * ld, ld, 1, kc);
    std::memcpy(out + i * (kc + kRowGap), rows + i * ld, to_size(kc) * sizeof(float));
  }
  return out;
}

ATiles a_tiles(const GemmKernels& kernels, const GemmArgs& args, std::int64_t m0, std::int64_t m1, std::int64_t k0,
               std::int64_t kc, std::int64_t columns) {
  if (args.packed_a != nullptr) {
    const Cuts tiles(args.m, kernels.mr);
    std::int64_t first = m0 * tiles.parts / args.m;
    while (tiles.begin(first) > m0) --first;
    while (tiles.begin(first) < m0) ++first;
    std::int64_t end = first;
    while (end < tiles.parts && tiles.begin(end) < m1) ++end;
    return {tiles, first, end - first, args.packed_a + k0 * args.m + m0 * kc, kc, 0, m0};
  }
  const Cuts tiles(m1 - m0, kernels.mr);
  const std::int64_t worth = kernels.nr <= kShortPanel ? kShortPanelsWorthTiles : kPanelsWorthTiles;
  if (!args.trans_a && (m1 - m0 <= kernels.mr || columns <= worth * kernels.nr)) {
    const float* rows = args.a + m0 * args.lda + k0;
    const bool stay = args.lda % kBadStep != 0 || m1 - m0 <= 2 * kernels.mr || columns <= 2 * kernels.nr;
    const std::int64_t ld = stay ? args.lda : kc + kRowGap;
    return {tiles, 0, tiles.parts, stay ? rows : rows_together(rows, args.lda, m1 - m0, kc), ld, ld, 0};
  }
  if (args.trans_a && columns <= kPanelsInPlace * kernels.nr && args.lda % kBadStep != 0) {
    return {tiles, 0, tiles.parts, args.a + k0 * args.lda + m0, 1, 0, 0, args.lda};
  }
  const Strides s = strides_of(args.lda, args.trans_a);
  float* out = thread_scratch(0, to_size(kGemmMBlock * kGemmKBlock));
  for (std::int64_t i = 0; i < tiles.parts; ++i) {
    if (!args.trans_a && i + 1 < tiles.parts)
      fetch_rows(args.a + (m0 + tiles.begin(i + 1)) * args.lda + k0, args.lda, tiles.size(i + 1), kc);
    kernels.pack_a_tile(bytes(args.a, (m0 + tiles.begin(i)) * s.row + k0 * s.column), s.row, s.column, tiles.size(i), kc, 1.0F,
                        out + tiles.begin(i) * kc);
  }
  return {tiles, 0, tiles.parts, out, kc, 0, 0};
}

void fill_epilogue(GemmTile& t, const GemmArgs& args, std::int64_t row, std::int64_t column) {
  const Epilogue& e = args.epilogue;
  if (e.bias != nullptr && t.last) {
    (e.bias_per_row ? t.bias_row : t.bias_col) = e.bias + (e.bias_per_row ? row : column);
  }
  // The residual is added in the first block of K, before anything is written to C, which may be the residual itself.
  t.residual = e.residual != nullptr && !t.accumulate ? e.residual + row * e.ld_residual + column : nullptr;
}

GemmTile tile_template(const GemmArgs& args) {
  GemmTile t;
  t.ldc = args.ldc;
  t.alpha = args.alpha;
  t.bias_scale = args.epilogue.bias_scale;
  t.ld_residual = args.epilogue.ld_residual;
  t.residual_scale = args.epilogue.residual_scale;
  t.act = args.epilogue.act;
  return t;
}

// Weights come from memory, and the first tile of a panel would wait for them. So each tile of a panel prefetches a share of the
// next panel, spread over its steps of K. Times for 9 MB of weights (fastest of three, AVX-512); without it, nothing was
// prefetched up to 56 rows, and bursts before each tile above:
//   rows         16       49      128
//   with    0.56 ms  1.03 ms  2.48 ms
//   without 0.84 ms  1.54 ms  2.50 ms
struct Shares {
  Shares(std::int64_t k, std::int64_t ldb, std::int64_t tiles)
      : bytes(k * ldb * 4 / tiles), step(std::min<std::int64_t>(256, up_div(bytes, std::max<std::int64_t>(k / 2, 1)))) {}
  std::int64_t bytes;  // for each tile
  std::int64_t step;   // for two steps of K
};

void fetch_results(const GemmTile& t) {
  for (std::int64_t i = 0; i < t.m; ++i) __builtin_prefetch(t.c + i * t.ldc, 1);
}

// The number of short panels to multiply at a time: as many as stay in the first-level cache, so that rows of C are written in
// longer runs.
std::int64_t panels_together(const GemmKernels& kernels, std::int64_t kc) {
  constexpr std::int64_t kPanelFloats = 4096, kMost = 8;
  return std::clamp<std::int64_t>(kPanelFloats / (kc * kernels.nr), 1, kMost);
}

// The last border between tiles of a packed A up to row `end`, which is a border itself if it is m1.
std::int64_t tile_border(const GemmKernels& kernels, const GemmArgs& args, std::int64_t m1, std::int64_t end) {
  if (args.packed_a == nullptr || end == m1) return end;
  const Cuts tiles(args.m, kernels.mr);
  std::int64_t i = end * tiles.parts / args.m;
  while (tiles.begin(i) > end) --i;
  return tiles.begin(i);
}

// Multiplies one block of K of columns [n0, n1). The outer loop runs over panels, so that a panel stays in the first-level cache
// while A streams by. `after`: the panels of the next block of K, or null.
void multiply_floats(const GemmKernels& kernels, const GemmArgs& args, std::int64_t m0, std::int64_t m1, std::int64_t n0,
                     std::int64_t n1, std::int64_t k0, std::int64_t kc, const float* panels, std::int64_t ldb,
                     std::int64_t panel_step, const float* after = nullptr) {
  GemmTile t = tile_template(args);
  t.k = kc;
  t.accumulate = k0 > 0;
  t.last = k0 + kc == args.k;
  const std::int64_t together = panels_together(kernels, kc);
  t.ldb = ldb;
  const Cuts blocks((m1 - m0 + kernels.mr - 1) / kernels.mr, kGemmMBlock / kernels.mr);
  std::int64_t block = 0;
  for (std::int64_t mb = m0; mb < m1;) {
    // Packed tiles need not be cut again, but blocks keep the part of A in use within the second-level cache.
    const std::int64_t me = tile_border(kernels, args, m1, std::min(m1, m0 + blocks.begin(++block) * kernels.mr));
    const ATiles a = a_tiles(kernels, args, mb, me, k0, kc, n1 - n0);
    const Shares shares(kc, ldb, a.count);
    for (std::int64_t n = n0; n < n1; n += together * kernels.nr) {
      const std::int64_t end = std::min(n1, n + together * kernels.nr);
      for (std::int64_t i = 0; i < a.count; ++i) {
        const std::int64_t local = a.tiles.begin(a.first + i) - a.row0;
        t.m = a.tiles.size(a.first + i);
        t.a = a.data + local * a.row_step;
        t.lda = a.lda;
        t.a_step = a.step;
        t.b = panels + (n - n0) / kernels.nr * panel_step;
        for (std::int64_t column = n; column < end; column += kernels.nr, t.b += panel_step) {
          t.n = std::min<std::int64_t>(kernels.nr, n1 - column);
          t.c = args.c + (mb + local) * args.ldc + column;
          fill_epilogue(t, args, mb + local, column);
          fetch_results(t);
          t.ahead_step = 0;
          const float* next = nullptr;
          if (column + together * kernels.nr < n1) {
            next = t.b + together * panel_step;
          } else if (after != nullptr && me == m1) {
            next = after + (column - n) / kernels.nr * panel_step;
          }
          if (args.packed_b != nullptr && next != nullptr) {
            t.ahead = reinterpret_cast<const char*>(next) + i * shares.bytes;
            t.ahead_step = shares.step;
          }
          kernels.tile(t);
        }
      }
    }
    mb = me;
  }
}

bool splits(const GemmArgs& args) {
  const bool lies = args.packed_a == nullptr && !args.trans_a;
  return split_pays(args.m, args.n, args.k, lies ? kSplitLying : kSplitTransposed);
}

// Splits rows [m0, m1) of this block of K.
SplitRows split_left(const SplitKernels& split, const GemmKernels& kernels, const GemmArgs& args, std::int64_t m0,
                     std::int64_t m1, std::int64_t k0, std::int64_t kc, std::uint16_t* to) {
  SplitRows rows{to, kc};
  const std::int64_t count = m1 - m0;
  if (args.packed_a != nullptr || args.trans_a) {
    const ATiles a = args.packed_a != nullptr
                         ? a_tiles(kernels, args, m0, m1, k0, kc, kernels.nr)
                         : ATiles{Cuts(count, 16), 0, up_div(count, 16), args.a + k0 * args.lda + m0, 1, 0, 0, args.lda};
    for (std::int64_t i = 0; i < a.count; ++i) {
      const std::int64_t row = a.tiles.begin(a.first + i) - a.row0, m = a.tiles.size(a.first + i);
      split.split_tile(rows, a.data + row * a.row_step, a.step != 0 ? a.step : m, row, m);
    }
  } else {
    split.split_rows(rows, args.a + m0 * args.lda + k0, args.lda, 0, count);
  }
  split.clear_rest(rows, count);
  return rows;
}

// The same as multiply_floats for packed panels of 32 columns, by tiles of bfloat16.
void multiply_split(const SplitKernels& split, const GemmKernels& kernels, const GemmArgs& args, std::int64_t m0, std::int64_t m1,
                    std::int64_t n0, std::int64_t n1, std::int64_t k0, std::int64_t kc, const float* panels) {
  const std::int64_t step = kc * kSplitColumns;
  const SplitScratch scratch(kSplitMBlock, kc);
  for (std::int64_t mb = m0, me = 0; mb < m1; mb = me) {
    me = tile_border(kernels, args, m1, std::min(m1, mb + kSplitMBlock));
    const auto floats = [&](std::int64_t column, std::int64_t columns) {
      const std::int64_t n = n0 + column;
      multiply_floats(kernels, args, mb, me, n, n + columns, k0, kc, panels + column * kc, kSplitColumns, step);
    };
    const auto finish = [&](const SplitPart& p, const float* sums) {
      gemm_finish(kernels, args, {mb + p.row, p.rows, n0 + p.column, p.columns, k0 == 0, k0 + kc == args.k}, sums, kSplitColumns);
    };
    const SplitRows left = split_left(split, kernels, args, mb, me, k0, kc, scratch.left);
    if (!left.finite) {
      floats(0, n1 - n0);
    } else {
      multiply_panels(split, left, me - mb, {panels, step, n1 - n0}, scratch, finish, floats);
    }
  }
}

void multiply(const GemmKernels& kernels, const GemmArgs& args, std::int64_t m0, std::int64_t m1, std::int64_t n0,
              std::int64_t n1, std::int64_t k0, std::int64_t kc, const float* panels, std::int64_t ldb, std::int64_t panel_step,
              const float* after = nullptr) {
  if (splits(args) && ldb == kSplitColumns && panel_step == kc * ldb) {
    return multiply_split(*split_kernels(), kernels, args, m0, m1, n0, n1, k0, kc, panels);
  }
  multiply_floats(kernels, args, m0, m1, n0, n1, k0, kc, panels, ldb, panel_step, after);
}

void pack_raw(const GemmKernels& kernels, const GemmArgs& args, std::int64_t k0, std::int64_t kc, std::int64_t n0,
              std::int64_t nb, float* out) {
  const Strides s = strides_of(args.ldb, args.trans_b);
  kernels.pack_b_panels(bytes(args.b, k0 * s.row + n0 * s.column), s.row, s.column, kc, nb, 1.0F, out);
}

// For k = 0: applies the epilogue to a product of zeros.
void epilogue_only(const GemmKernels& kernels, const GemmArgs& args, std::int64_t m0, std::int64_t m1, std::int64_t n0,
                   std::int64_t n1) {
  const float zeros[64] = {};
  for (std::int64_t i = m0; i < m1; ++i) {
    for (std::int64_t n = n0; n < n1; n += 64) {
      gemm_finish(kernels, args, {i, 1, n, std::min<std::int64_t>(64, n1 - n)}, zeros, 64);
    }
  }
}

}  // namespace

void gemm_block(const GemmKernels& kernels, const GemmArgs& args, const BPacker* packer, std::int64_t m0, std::int64_t m1,
                std::int64_t n0, std::int64_t n1) {
  if (m0 >= m1 || n0 >= n1) return;
  if (args.k == 0) return epilogue_only(kernels, args, m0, m1, n0, n1);
  const Cuts ks = k_cuts(args.k);
  const std::int64_t nr = kernels.nr;
  if (args.packed_b != nullptr) {
    const std::int64_t padded = round_up(args.n, nr);
    const auto columns = [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t kb = 0; kb < ks.parts; ++kb) {
        const std::int64_t k0 = ks.begin(kb);
        const std::int64_t kc = ks.size(kb);
        multiply(kernels, args, m0, m1, from, to, k0, kc, args.packed_b + k0 * padded + from * kc, nr, kc * nr,
                 kb + 1 < ks.parts ? args.packed_b + (k0 + kc) * padded + from * ks.size(kb + 1) : nullptr);
      }
    };
    if (args.sweep == 0) return columns(n0, n1);
    // Computes all of K for some columns before the next ones, so that what remains in the cache belongs together.
    constexpr std::int64_t kSweep = 32768;  // floats
    const std::int64_t some = std::max<std::int64_t>(1, kSweep / (args.k * nr)) * nr;
    const std::int64_t parts = (n1 - n0 + some - 1) / some;
    for (std::int64_t i = 0; i < parts; ++i) {
      const std::int64_t from = n0 + (args.sweep > 0 ? i : parts - 1 - i) * some;
      columns(from, std::min(n1, from + some));
    }
    return;
  }
  // A single tile of rows uses each panel once, so reading B in place saves a copy. The last, partial panel is packed.
  const bool in_place = packer == nullptr && !args.like_packed && !args.trans_b && m1 - m0 <= kernels.mr;
  const std::int64_t whole = in_place ? n0 + (n1 - n0) / nr * nr : n0;
  for (std::int64_t kb = 0; kb < ks.parts && whole > n0; ++kb) {
    const std::int64_t k0 = ks.begin(kb);
    multiply(kernels, args, m0, m1, n0, whole, k0, ks.size(kb), args.b + k0 * args.ldb + n0, args.ldb, nr);
  }
  // Tiles of bfloat16 split the rows anew for each block of columns.
  const std::int64_t block = splits(args) ? 2 * kGemmNBlock : kGemmNBlock;
  for (std::int64_t nb = whole; nb < n1; nb += block) {
    const std::int64_t ne = std::min(n1, nb + block);
    float* panels = thread_scratch(1, to_size(kGemmKBlock * (block + nr)));
    for (std::int64_t kb = 0; kb < ks.parts; ++kb) {
      const std::int64_t k0 = ks.begin(kb);
      const std::int64_t kc = ks.size(kb);
      for (std::int64_t n = nb; n < ne; n += kGemmNBlock) {
        const std::int64_t count = std::min(kGemmNBlock, ne - n);
        float* const to = panels + (n - nb) * kc;
        packer != nullptr ? packer->pack(packer->context, k0, kc, n, count, to) : pack_raw(kernels, args, k0, kc, n, count, to);
      }
      multiply(kernels, args, m0, m1, nb, ne, k0, kc, panels, nr, kc * nr);
    }
  }
}

RowUnits::RowUnits(const GemmKernels& kernels, const GemmArgs& args) : tiles_(args.m, kernels.mr) {
  if (args.packed_a == nullptr && splits(args)) block_ = kSplitRows;
}

namespace {

// At least about 250 thousand multiply-adds (5 to 10 microseconds) per task, and at most four tasks per thread.
std::int64_t tasks_worth(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch) {
  const std::int64_t threads = current_pool().threads();
  if (threads == 1) return 1;
  const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(std::max<std::int64_t>(k, 1));
  return std::min(static_cast<std::int64_t>(std::min(work / 250000.0, 1e6)), (4 * threads + batch - 1) / batch);
}

// For products by tiles of bfloat16: each cut of the columns splits the rows again, which takes as long as 46 columns, and each
// cut of the rows splits the panels again, as long as 20 rows. The choice is the one that ends first if all threads are equally
// fast.
TaskGrid choose_split_grid(std::int64_t m, std::int64_t n, std::int64_t k) {
  const std::int64_t threads = current_pool().threads(), most_tasks = std::max<std::int64_t>(1, tasks_worth(m, n, k, 1));
  const std::int64_t blocks = up_div(m, kSplitRows), panels = up_div(n, kSplitColumns);
  TaskGrid best;
  double least = 0.0;
  for (std::int64_t r = 1; r <= std::min(blocks, most_tasks); ++r) {
    for (std::int64_t c = 1; c <= std::min(panels, most_tasks / r); ++c) {
      const auto rows = static_cast<double>(up_div(blocks, r) * kSplitRows);
      const auto columns = static_cast<double>(up_div(panels, c) * kSplitColumns);
      const double time = static_cast<double>(up_div(r * c, threads)) * (rows * columns + 46 * rows + 20 * columns);
      if (least == 0.0 || time < least) {
        best = {r, c};
        least = time;
      }
    }
  }
  return best;
}

// For a packed right operand. Times are in multiply-adds per step of K: each task reads its rows of A again, as long as
// multiplying 10 columns, and its panels, as long as 4 rows (of weights in the third-level cache). The fewer tasks a thread has,
// the less it can leave to another one.
TaskGrid choose_packed_grid(const GemmKernels& kernels, std::int64_t m, std::int64_t n, std::int64_t batch, std::int64_t want) {
  constexpr double kReadRows = 10.0, kReadPanels = 4.0, kNothingToLeave = 0.03;
  const std::int64_t threads = current_pool().threads();
  const std::int64_t tiles = up_div(m, kernels.mr), panels = up_div(n, kernels.nr);
  TaskGrid best;
  double least = 0.0;
  const auto consider = [&](std::int64_t r, std::int64_t c) {
    const std::int64_t row_tiles = up_div(tiles, r), column_panels = up_div(panels, c);
    const TaskGrid g{up_div(tiles, row_tiles), up_div(panels, column_panels)};
    const auto turns = static_cast<double>(up_div(batch * g.rows * g.columns, threads));
    const auto rows = static_cast<double>(std::min(m, up_div(row_tiles * m, tiles)));
    const auto columns = static_cast<double>(std::min(n, column_panels * kernels.nr));
    const double time = (turns + kNothingToLeave) * (rows * columns + kReadRows * rows + kReadPanels * columns);
    if (least == 0.0 || time < least) {
      best = g;
      least = time;
    }
  };
  // 1, 2, 3, 4, 6, 8, 12, 16 and so on: enough choices, and few to compute.
  const auto next = [](std::int64_t r) { return (r & (r - 1)) == 0 ? up_div(3 * r, 2) : r / 3 * 4; };
  for (std::int64_t r = 1; r <= std::min(tiles, want); r = next(r)) {
    for (std::int64_t turns = 1; turns <= 4; ++turns) {
      consider(r, std::clamp<std::int64_t>(std::min(want, up_div(turns * threads, batch)) / r, 1, panels));
    }
  }
  return best;
}

}  // namespace

TaskGrid choose_grid(const GemmKernels& kernels, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch,
                     bool packed) {
  const std::int64_t threads = current_pool().threads(), want = tasks_worth(m, n, k, batch);
  if (want <= 1) return {};
  if (packed) return choose_packed_grid(kernels, m, n, batch, want);
  const std::int64_t tiles = (m + kernels.mr - 1) / kernels.mr;
  const std::int64_t panels = (n + kernels.nr - 1) / kernels.nr;
  // Each cut of the rows packs the right operand again, so rows are cut only if there are too few columns for the threads.
  // Few rows, such as the channels of a convolution's weights, are rather read again by each panel of columns.
  TaskGrid g;
  g.columns = std::min(want, std::max({std::int64_t{1}, panels / 2, m <= 4 * n ? std::min(panels, threads) : 0}));
  if (g.columns < threads) {
    g.rows = std::min((threads + g.columns - 1) / g.columns, std::max<std::int64_t>(1, tiles / 2));
  }
  return g;
}

TaskGrid choose_float_grid(const GemmKernels& kernels, const GemmArgs& args, std::int64_t batch) {
  const bool packed = args.packed_b != nullptr || args.like_packed;  // rows are cut alike
  if (packed && batch == 1 && splits(args)) return choose_split_grid(args.m, args.n, args.k);
  return choose_grid(kernels, args.m, args.n, args.k, batch, packed);
}

void gemm_finish(const GemmKernels& kernels, const GemmArgs& args, const GemmPart& part, const float* product, std::int64_t ld) {
  GemmTile t = tile_template(args);
  t.m = part.rows;
  t.n = part.columns;
  t.accumulate = !part.first_k;
  t.last = part.last_k;
  t.c = args.c + part.row * args.ldc + part.column;
  fill_epilogue(t, args, part.row, part.column);
  kernels.finish(t, product, ld);
}

void gemm_unpacking(const GemmArgs& args, const BPacker& packer) {
  const GemmKernels& kernels = gemm_kernels();
  const TaskGrid grid = choose_grid(kernels, args.m, args.n, args.k, 1, false);
  const std::int64_t panels = (args.n + kernels.nr - 1) / kernels.nr;
  const Cuts columns(panels, (panels + grid.columns - 1) / grid.columns);
  parallel_for(columns.parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t c = begin; c < end; ++c) {
      gemm_block(kernels, args, &packer, 0, args.m, columns.begin(c) * kernels.nr,
                 std::min(args.n, columns.begin(c + 1) * kernels.nr));
    }
  });
}

}  // namespace sdx::cpu
