#include "kernels/cpu/quant_nhwc.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/gemm_kernels.h"
#include "kernels/cpu/quant_depthwise.h"
#include "kernels/cpu/quant_nhwc_kernels.h"
#include "kernels/cpu/quant_octets.h"
#include "kernels/cpu/quant_tiles.h"
#include "kernels/cpu/quant_winograd.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kPairBlock = 256;        // a panel of 16 columns takes 16 KB as int16: half of a usual first-level cache
constexpr std::int64_t kLeastCrossed = 24;      // pairs; below, tiles of fewer rows cost more than crossed products gain
constexpr std::int64_t kRowBytes = 128 * 1024;  // rows widened at a time: they meet all panels from the second-level cache
constexpr std::int64_t kFinishRows = 48;   // rows whose sums are finished at once: what is set up for that costs as much as two
constexpr std::int64_t kLeastOctets = 96;  // K; below, a tile's other costs are as much as what octets gain
constexpr std::int64_t kLeastOctetColumns = 48;  // fewer do not pay for taking rows apart
constexpr std::int64_t kMostSingles = 45;        // of a hundred quads: single ones are no faster than pairs in int16
constexpr std::int64_t kEntriesPer = 10;         // quads: with an eighth bit in each of so many, octets are no faster
constexpr std::int64_t kTaskProducts = 1 << 19;  // about 10 microseconds

std::size_t to_size(std::int64_t v) { return static_cast<std::size_t>(v); }
std::int64_t pairs_of(std::int64_t k) { return (k + 3) / 4 * 2; }  // whole quads, for crossed products
std::int64_t round_up(std::int64_t v, std::int64_t unit) { return (v + unit - 1) / unit * unit; }
std::int64_t volume(const std::int64_t (&v)[3]) { return v[0] * v[1] * v[2]; }
std::int64_t inner(const ConvShape& s) { return s.in_channels / s.groups * volume(s.kernel); }
// An odd multiple of 32 bytes: rows a power of two apart would compete for the same lines of the cache.
std::int64_t row_stride(std::int64_t k) {
  const std::int64_t units = round_up(k, 16) / 16 + 1;
  return (units | 1) * 16;
}

// One output channel's weights, k of them, minus their zero point.
class Column {
 public:
  Column(const ConvShape& s, const QWeights& w, std::int64_t column, std::int64_t k)
      : data_(static_cast<const std::uint8_t*>(w.data) + (w.transposed ? column : column * k)),
        step_(w.transposed ? s.out_channels : 1),
        flip_(w.is_signed ? 0x80 : 0),
        // (v ^ 128) - 128 is the signed value of a byte.
        zero_(flip_ + (w.zero_points == nullptr ? 0 : w.zero_points[w.zero_point_count > 1 ? column : 0])) {}
  std::int32_t operator[](std::int64_t i) const { return (data_[i * step_] ^ flip_) - zero_; }
  const std::uint8_t* data() const { return data_; }
  std::int64_t step() const { return step_; }
  std::int32_t flip() const { return flip_; }
  std::int32_t zero() const { return zero_; }

 private:
  const std::uint8_t* data_;
  std::int64_t step_;
  std::int32_t flip_, zero_;
};

std::int64_t bytes_per_output(QEpilogue::Output output) {
  return output == QEpilogue::Output::i32 || output == QEpilogue::Output::f32 ? 4 : 1;
}

// One panel: output channels [first, first + nr) of a group, `columns` of which exist. The order of K in packed weights: kernel
// taps outside, channels inside. cross[nr]: what crossed products have too much for each of them, the sum over quads of
// b0 b2 + b1 b3. Returns what the absolute value of a sum cannot exceed, whatever the image and its zero point: of values in
// [-zero, 255 - zero] all the positive weights may meet the largest and all negative ones the smallest.
template <class T>
std::int64_t pack_panel(const ConvShape& s, const QWeights& w, std::int64_t first, std::int64_t columns, std::int64_t nr, T* out,
                        std::int32_t* cross) {
  const std::int64_t channels = s.in_channels / s.groups;
  const std::int64_t taps = volume(s.kernel);
  const std::int64_t k = channels * taps;
  const std::int64_t pairs = pairs_of(k);
  // Arrays of this function's own: what is behind pointers would be read again after every byte stored.
  constexpr std::int64_t kMost = 64;  // above any nr: two vectors
  const std::uint8_t* at[kMost] = {};
  std::int32_t zero[kMost] = {};
  std::int64_t above[kMost] = {}, total[kMost] = {};
  std::uint32_t sums[kMost] = {};
  std::int32_t before[2 * kMost] = {};
  const Column any(s, w, first, k);
  const std::int64_t step = any.step();
  const std::int32_t flip = any.flip();
  for (std::int64_t j = 0; j < columns; ++j) {
    const Column c(s, w, first + j, k);
    at[j] = c.data();
    zero[j] = c.zero();
  }
  std::int64_t tap = 0, channel = 0;
  const auto next = [&] {
    if (tap == taps) return std::int64_t{-1};
    const std::int64_t i = channel * taps + tap;
    if (++channel == channels) {
      channel = 0;
      ++tap;
    }
    return i;
  };
  for (std::int64_t p = 0; p < pairs; ++p, out += nr * 2) {
    const std::int64_t i0 = next() * step, i1 = next() * step;
    for (std::int64_t j = 0; j < columns; ++j) {
      const std::int32_t v0 = i0 >= 0 ? (at[j][i0] ^ flip) - zero[j] : 0;
      const std::int32_t v1 = i1 >= 0 ? (at[j][i1] ^ flip) - zero[j] : 0;
      out[j * 2] = static_cast<T>(v0);
      out[j * 2 + 1] = static_cast<T>(v1);
      above[j] += std::max(v0, 0) + std::max(v1, 0);
      total[j] += v0 + v1;
      if (p % 2 != 0) sums[j] += static_cast<std::uint32_t>(before[j * 2] * v0 + before[j * 2 + 1] * v1);
      before[j * 2] = v0;
      before[j * 2 + 1] = v1;
    }
    std::fill(out + columns * 2, out + nr * 2, T{0});
  }
  std::int64_t largest = 0;
  std::fill(cross, cross + nr, 0);
  for (std::int64_t j = 0; j < columns; ++j) {
    largest = std::max({largest, 255 * above[j], 255 * (above[j] - total[j])});
    cross[j] = static_cast<std::int32_t>(sums[j]);
  }
  return largest;
}

// All panels, on all threads: half of a network's loading otherwise. cross: of all panels' columns.
template <class T>
std::int64_t pack_panels(const ConvShape& s, const QWeights& w, std::int64_t nr, T* out, std::int32_t* cross) {
  const std::int64_t columns = s.out_channels / s.groups;
  const std::int64_t panels = (columns + nr - 1) / nr, size = pairs_of(inner(s)) * 2 * nr;
  std::vector<std::int64_t> largest(to_size(s.groups * panels));
  parallel_for(s.groups * panels, std::max<std::int64_t>(1, (1 << 14) / size), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t column = i % panels * nr;
      largest[to_size(i)] =
          pack_panel(s, w, i / panels * columns + column, std::min(nr, columns - column), nr, out + i * size, cross + i * nr);
    }
  });
  return *std::max_element(largest.begin(), largest.end());
}

void pack_depthwise(const ConvShape& s, const QWeights& w, std::int64_t nr, void* packed) {
  const std::int64_t taps = volume(s.kernel);
  const std::int64_t even = round_up(taps, 2);
  const std::int64_t blocks = round_up(s.groups, nr);
  auto* sums = static_cast<std::int32_t*>(packed);
  auto* out = reinterpret_cast<std::int16_t*>(sums + round_up(blocks, 16));
  // A second copy, tap by tap, for the kernel of 3x3.
  std::int16_t* by_tap = qdepthwise3_takes(s) ? out + blocks * even : nullptr;
  const std::int64_t tap_step = round_up(s.groups, 16);
  std::fill(sums, sums + round_up(blocks, 16), 0);
  std::fill(out, out + blocks * even, std::int16_t{0});
  if (by_tap != nullptr) std::fill(by_tap, by_tap + taps * tap_step, std::int16_t{0});
  for (std::int64_t c = 0; c < s.groups; ++c) {
    const Column values(s, w, c, taps);
    for (std::int64_t t = 0; t < taps; ++t) {
      const std::int32_t v = values[t];
      sums[c] += v;
      out[c / nr * nr * even + t / 2 * nr * 2 + c % nr * 2 + t % 2] = static_cast<std::int16_t>(v);
      if (by_tap != nullptr) by_tap[t * tap_step + c] = static_cast<std::int16_t>(v);
    }
  }
}

// Columns with those that fill up each group's last panel.
std::int64_t padded_columns(const ConvShape& s, std::int64_t nr) { return s.groups * round_up(s.out_channels / s.groups, nr); }

// Behind the panels.
struct Trailer {
  std::int64_t largest = 0;  // what pack_panels() returns
  std::int64_t octets = 0;   // 1: panels are in the order of octets
};

// Whether packing may try octets. 3x3 without strides is Winograd's, which reads pairs.
bool may_use_octets(const ConvShape& s, const QWeights& w, bool wide) {
  if (!w.low_activations || wide || s.groups != 1 || qoctet_kernels() == nullptr) return false;
  const std::int64_t k = inner(s);
  if (k < kLeastOctets || s.out_channels < kLeastOctetColumns || k > 4 * kMostOctetQuads) return false;
  return volume(s.kernel) == 1 || s.stride[1] > 1 || s.stride[2] > 1;
}

// Panels are followed by a trailer, by `cross`, and where octets are tried by the sum of each column's weights and a table for
// each panel.
std::size_t panel_bytes(const ConvShape& s, std::int64_t nr, bool wide) {
  const std::int64_t count = padded_columns(s, nr) * pairs_of(inner(s)) * 2;
  return to_size(round_up(count * (wide ? 2 : 1), 8));
}

const std::int32_t* cross_of(const ConvShape& s, std::int64_t nr, const void* packed, bool wide) {
  return reinterpret_cast<const std::int32_t*>(static_cast<const char*>(packed) + panel_bytes(s, nr, wide) + sizeof(Trailer));
}

const std::int32_t* column_sums_of(const ConvShape& s, std::int64_t nr, const void* packed) {
  return cross_of(s, nr, packed, false) + padded_columns(s, nr);
}

QOctetTable octet_table_of(const ConvShape& s, std::int64_t nr, const void* packed, std::int64_t panel) {
  const std::int32_t* sums = column_sums_of(s, nr, packed);
  const std::int64_t quads = pairs_of(inner(s)) / 2;
  auto* tables = reinterpret_cast<std::uint16_t*>(const_cast<std::int32_t*>(sums + padded_columns(s, nr)));
  return {tables + panel * qoctet_table_units(quads), quads};
}

// Panels from pairs into octets, unless too many quads find no partner.
bool pack_octets(const ConvShape& s, std::int64_t nr, std::int8_t* packed) {
  const std::int64_t panels = padded_columns(s, nr) / nr, size = pairs_of(inner(s)) * 2 * nr;
  auto* sums = const_cast<std::int32_t*>(column_sums_of(s, nr, packed));
  const std::int64_t grain = std::max<std::int64_t>(1, (1 << 14) / size);
  std::vector<std::int64_t> singles(to_size(panels));
  parallel_for(panels, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      const QOctetTable table = octet_table_of(s, nr, packed, p);
      qoctet_choose(packed + p * size, table);
      singles[to_size(p)] = table.singles();
      std::int32_t* own = sums + p * nr;
      std::fill(own, own + nr, 0);
      for (std::int64_t i = 0; i < size; i += 2 * nr) {
        for (std::int64_t j = 0; j < nr; ++j) own[j] += packed[p * size + i + 2 * j] + packed[p * size + i + 2 * j + 1];
      }
    }
  });
  const std::int64_t all = std::accumulate(singles.begin(), singles.end(), std::int64_t{0});
  if (all * 100 > panels * size / (4 * nr) * kMostSingles) return false;
  parallel_for(panels, grain, [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::int8_t> scratch(to_size(size));
    for (std::int64_t p = begin; p < end; ++p) {
      qoctet_arrange(packed + p * size, octet_table_of(s, nr, packed, p), scratch.data());
    }
  });
  return true;
}

// One product: rows of a source, columns of packed panels.
struct Product {
  QSource source;
  std::int64_t m = 0, n = 0, k = 0;
  const void* panels = nullptr;
  const std::int32_t* cross = nullptr;  // of the first panel's columns
  bool wide = false;
  bool crossed = false;
  std::int64_t mr = 0;
  QEpilogue epilogue;
  void* c = nullptr;
  std::int64_t ldc = 0;
  const std::uint16_t* octets = nullptr;     // tables, where the panels are in that order
  const std::int32_t* octet_bias = nullptr;  // the epilogue's with the zero point's share
};

// Of panel p of a product in the order of octets.
QOctetTable octet_table(const Product& g, std::int64_t p) {
  const std::int64_t quads = pairs_of(g.k) / 2;
  return {const_cast<std::uint16_t*>(g.octets) + p * qoctet_table_units(quads), quads};
}

// Weights come from memory, and are wanted one panel after the other: while a panel is multiplied, the next one is fetched, a
// part with each tile.
struct Fetch {
  const char* at = nullptr;
  std::int64_t left = 0, step = 0;
  Fetch(const char* next, std::int64_t bytes, std::int64_t tiles)
      : at(next), left(bytes), step(round_up(bytes / tiles + 1, 64)) {}
  void part() {
    for (const std::int64_t stop = std::max<std::int64_t>(0, left - step); left > stop; left -= 64, at += 64) {
      __builtin_prefetch(at, 0, 2);
    }
  }
};

// The last panel of columns, where there are less than 16: what their results need, filled up.
struct PartialPanel {
  QEpilogue epilogue;
  std::int32_t bias[16] = {};
  float scale[16] = {};
  PartialPanel(const QEpilogue& e, std::int64_t column, std::int64_t n) : epilogue(e) {
    for (std::int64_t i = 0; i < n; ++i) {
      bias[i] = e.bias != nullptr ? e.bias[column + i] : 0;
      scale[i] = e.scale[e.scale_is_array ? column + i : 0];
    }
    epilogue.bias = bias;
    epilogue.scale = scale;
    epilogue.scale_is_array = true;
  }
  PartialPanel(const PartialPanel&) = delete;
  PartialPanel& operator=(const PartialPanel&) = delete;
};

void copy_columns(const std::uint8_t* from, std::int64_t step, std::int64_t rows, std::int64_t n, std::uint8_t* to,
                  std::int64_t ldc) {
  if (n == 8) {  // of a fixed size it is no call
    for (std::int64_t i = 0; i < rows; ++i) std::memcpy(to + i * ldc, from + i * step, 8);
    return;
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < n; ++j) to[i * ldc + j] = from[i * step + j];
  }
}

// Rows [m0, m1), panels [p0, p1), on this thread.
void block(const QNhwcKernels& kernels, const Product& g, std::int64_t m0, std::int64_t m1, std::int64_t p0, std::int64_t p1) {
  const std::int64_t nr = kernels.nr;
  const std::int64_t pairs = pairs_of(g.k);
  const std::int64_t stride = row_stride(g.k);
  const std::int64_t rows_at_once = std::max<std::int64_t>(g.mr, kRowBytes / (stride * 2) / g.mr * g.mr);
  const Cuts blocks(m1 - m0, rows_at_once);
  const std::int64_t bytes = bytes_per_output(g.epilogue.output);
  const std::int64_t most = (m1 - m0 + blocks.parts - 1) / blocks.parts;
  auto* rows = reinterpret_cast<std::int16_t*>(thread_scratch(0, to_size(most * stride + 32) / 2));
  const std::int64_t pair_blocks = std::max<std::int64_t>(1, (pairs + kPairBlock - 1) / kPairBlock);
  const std::int64_t sums_kept = pair_blocks > 1 ? most : kFinishRows + g.mr;
  const std::int64_t widened = g.wide ? 0 : std::min(pairs, kPairBlock) * nr;  // in units of 4 bytes
  const std::int64_t row_space = round_up(most, 16);
  const std::int64_t byte_space = round_up(most * nr, 16) / 4;
  auto* scratch = thread_scratch(1, to_size(round_up(sums_kept * nr, 16) + widened + row_space + byte_space));
  auto* sums = reinterpret_cast<std::int32_t*>(scratch);
  std::int32_t* row_cross = sums + round_up(sums_kept * nr, 16) + widened;
  auto* whole_rows = reinterpret_cast<std::uint8_t*>(row_cross + row_space);
  auto* panel16 = reinterpret_cast<std::int16_t*>(scratch + round_up(sums_kept * nr, 16));
  const std::int64_t unit = g.wide ? 2 : 1;
  const auto product = g.crossed ? kernels.crossed : kernels.product;
  const QTilesKernel to_bytes = bytes == 1 ? qtiles_kernel() : nullptr;
  QRows t;
  t.stride = stride;
  // One panel's results of rows from `first` on.
  const auto give = [&](QTiles q, std::int64_t first, std::int64_t column) {
    auto* y = static_cast<std::uint8_t*>(g.c) + first * g.ldc + column;
    q.epilogue = &g.epilogue;
    q.column = column;
    q.y = y;
    q.ldc = g.ldc;
    if (g.n - column >= nr) return to_bytes(q);
    const PartialPanel part(g.epilogue, column, g.n - column);
    q.epilogue = &part.epilogue;
    q.column = 0;
    q.y = whole_rows;
    q.ldc = nr;
    to_bytes(q);
    copy_columns(whole_rows, nr, q.rows.m, g.n - column, y, g.ldc);
  };
  if (m1 - m0 == 1 && to_bytes != nullptr && !g.wide && g.octets == nullptr) {
    kernels.gather(g.source, m0, 1, rows, stride);
    t.a = rows;
    t.m = 1;
    t.pairs = pairs;
    for (std::int64_t p = p0; p < p1; ++p) {
      const auto* panel = static_cast<const std::int8_t*>(g.panels) + p * pairs * nr * 2;
      give({t, false, panel, nullptr, 0, nullptr, 0, nullptr, 0}, m0, p * nr);
    }
    return;
  }
  for (std::int64_t i = 0; i < blocks.parts; ++i) {
    const std::int64_t first = m0 + blocks.begin(i);
    const std::int64_t count = blocks.size(i);
    kernels.gather(g.source, first, count, rows, stride);
    if (g.crossed) kernels.cross_rows(rows, count, stride, pairs, row_cross);
    const Cuts tiles(count, g.mr);
    for (std::int64_t p = p0; p < p1; ++p) {
      const std::int64_t column = p * nr;
      t.column_cross = g.cross + column;
      for (std::int64_t kb = 0; kb < pair_blocks; ++kb) {
        t.pairs = std::min(kPairBlock, pairs - kb * kPairBlock);
        t.add = kb > 0;
        const std::int64_t at = (p * pairs + kb * kPairBlock) * nr * 2;
        if (g.octets != nullptr) {
          const auto* panel = static_cast<const std::int8_t*>(g.panels) + p * pairs * nr * 2;
          qoctet_kernels()->widen(panel, octet_table(g, p).place() + kb * kPairBlock / 2, t.pairs / 2, panel16);
          t.b = panel16;
        } else if (g.wide) {
          t.b = static_cast<const std::int16_t*>(g.panels) + at;
        } else {
          kernels.widen_panel(static_cast<const std::int8_t*>(g.panels) + at, t.pairs * nr * 2, panel16);
          t.b = panel16;
        }
        // The next K block of this panel, or the first of the next: they lie one behind the other.
        const std::int64_t ahead = p + 1 < p1 || kb + 1 < pair_blocks ? std::min(kPairBlock, pairs) * nr * 2 * unit : 0;
        const char* next = static_cast<const char*>(g.panels) + (at + t.pairs * nr * 2) * unit;
        if (to_bytes != nullptr && kb + 1 == pair_blocks) {
          t.m = count;
          t.row_cross = row_cross;
          t.a = rows + kb * kPairBlock * 2;
          t.sums = sums;
          give({t, g.crossed, nullptr, nullptr, 0, nullptr, 0, next, ahead}, first, column);
          continue;
        }
        Fetch fetch(next, ahead, tiles.parts);
        std::int64_t from = 0;  // the first row that is not finished
        for (std::int64_t j = 0; j < tiles.parts; ++j) {
          fetch.part();
          const std::int64_t row = tiles.begin(j);
          t.m = tiles.size(j);
          t.row_cross = row_cross + row;
          t.a = rows + row * stride + kb * kPairBlock * 2;
          t.sums = sums + (pair_blocks > 1 ? row : row - from) * nr;
          product(t);
          const std::int64_t done = row + t.m;
          if (kb + 1 < pair_blocks || (done - from < kFinishRows && j + 1 < tiles.parts)) continue;
          kernels.finish(g.epilogue, sums + (pair_blocks > 1 ? from : 0) * nr, done - from, std::min(nr, g.n - column), column,
                         static_cast<char*>(g.c) + ((first + from) * g.ldc + column) * bytes, g.ldc);
          from = done;
        }
      }
    }
  }
}

// Like block(), by octets where the activations allow it.
void octet_block(const QNhwcKernels& kernels, const Product& g, std::int64_t m0, std::int64_t m1, std::int64_t p0,
                 std::int64_t p1) {
  const QOctetKernels& octets = *qoctet_kernels();
  const std::int64_t nr = kernels.nr;
  QOctetRows r;
  r.quads = pairs_of(g.k) / 2;
  r.stride = (round_up(r.quads * 4, 32) / 32 | 1) * 32;
  r.flip = g.source.is_signed;
  const Cuts blocks(m1 - m0, std::max(kOctetRows, kRowBytes / r.stride / kOctetRows * kOctetRows));
  const std::int64_t most = (m1 - m0 + blocks.parts - 1) / blocks.parts;
  const std::int64_t entries = most * r.quads / kEntriesPer + 1;
  QEpilogue epilogue = g.epilogue;
  epilogue.bias = g.octet_bias;
  for (std::int64_t i = 0; i < blocks.parts; ++i) {
    const std::int64_t first = m0 + blocks.begin(i);
    r.count = blocks.size(i);
    // Rows, entries, starts, and the last panel's results; every time anew, for block() uses the same memory.
    const std::int64_t row_floats = most * r.stride / 4, result_floats = round_up(most * nr, 16) / 4;
    float* scratch = thread_scratch(0, to_size(row_floats + 2 * (entries + 8) + most / kOctetRows + 2 + result_floats + 8));
    r.rows = reinterpret_cast<std::uint8_t*>(scratch);
    r.high = reinterpret_cast<std::uint32_t*>(scratch + row_floats);
    r.where = r.high + entries + 8;
    r.most_entries = entries;
    r.starts = reinterpret_cast<std::int32_t*>(r.where + entries + 8);
    auto* whole_rows = reinterpret_cast<std::uint8_t*>(r.starts + most / kOctetRows + 2);
    if (g.source.shape == nullptr) {
      r.from = g.source.x + first * g.source.lda;
      r.from_stride = g.source.lda;
      r.end = g.source.end;
    } else {
      qoctet_gather(g.source, first, r);
      r.from = r.rows;
      r.from_stride = r.stride;
      r.end = r.rows + r.count * r.stride;
    }
    if (!octets.split(r)) {
      return block(kernels, g, first, m1, p0, p1);  // what follows will hardly differ
    }
    for (std::int64_t p = p0; p < p1; ++p) {
      const std::int64_t column = p * nr;
      QOctetPanel q;
      q.rows = &r;
      q.table = octet_table(g, p);
      q.weights = static_cast<const std::int8_t*>(g.panels) + p * r.quads * 4 * nr;
      q.ahead = reinterpret_cast<const char*>(q.weights + r.quads * 4 * nr);
      q.ahead_bytes = p + 1 < p1 ? r.quads * 4 * nr : 0;
      auto* y = static_cast<std::uint8_t*>(g.c) + first * g.ldc + column;
      if (g.n - column >= nr) {
        q.epilogue = &epilogue;
        q.column = column;
        q.y = y;
        q.ldc = g.ldc;
        octets.panel(q);
        continue;
      }
      const PartialPanel part(epilogue, column, g.n - column);
      q.epilogue = &part.epilogue;
      q.y = whole_rows;
      q.ldc = nr;
      octets.panel(q);
      copy_columns(whole_rows, nr, r.count, g.n - column, y, g.ldc);
    }
  }
}

void multiply(const QNhwcKernels& kernels, Product g) {
  g.crossed = kernels.crossed != nullptr && pairs_of(g.k) >= kLeastCrossed;
  g.mr = g.crossed ? kernels.crossed_mr : kernels.mr;
  const std::int64_t tiles = (g.m + g.mr - 1) / g.mr;
  const std::int64_t panels = (g.n + kernels.nr - 1) / kernels.nr;
  const std::int64_t threads = current_pool().threads();
  const std::int64_t work = g.m * round_up(g.n, kernels.nr) * std::max<std::int64_t>(1, g.k);
  const std::int64_t wanted = threads == 1 ? 1 : std::clamp<std::int64_t>(work / kTaskProducts, 1, 4 * threads);
  // Rows first: a cut across columns gathers the same rows twice. At least four tiles in a row block, so that widening a panel
  // is little beside multiplying by it.
  const std::int64_t row_parts = std::clamp<std::int64_t>(tiles / 4, 1, wanted);
  const std::int64_t column_parts = std::clamp<std::int64_t>((wanted + row_parts - 1) / row_parts, 1, panels);
  const Cuts rows(tiles, (tiles + row_parts - 1) / row_parts);
  const Cuts columns(panels, (panels + column_parts - 1) / column_parts);
  parallel_for(rows.parts * columns.parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t r = i / columns.parts;
      const std::int64_t c = i % columns.parts;
      const bool by_octets = g.octets != nullptr && bytes_per_output(g.epilogue.output) == 1;
      (by_octets ? octet_block : block)(kernels, g, rows.begin(r) * g.mr, std::min(g.m, rows.begin(r + 1) * g.mr),
                                        columns.begin(c), columns.begin(c + 1));
    }
  });
}

QEpilogue from_column(QEpilogue e, std::int64_t column) {
  if (e.bias != nullptr) e.bias += column;
  if (e.bias_f32 != nullptr) e.bias_f32 += column;
  if (e.scale_is_array) e.scale += column;
  return e;
}

// Biases less the zero point's share of the sums, read by all threads; valid until this thread's next call.
const std::int32_t* octet_bias(const ConvShape& s, std::int64_t nr, const void* packed, std::int32_t zero, const QEpilogue& e) {
  if (zero == 0) return e.bias;
  const std::int32_t* sums = column_sums_of(s, nr, packed);
  auto* bias = reinterpret_cast<std::int32_t*>(thread_scratch(2, to_size(s.out_channels)));
  for (std::int64_t c = 0; c < s.out_channels; ++c) {
    const auto own = static_cast<std::uint32_t>(e.bias != nullptr ? e.bias[c] : 0);
    bias[c] = static_cast<std::int32_t>(own - static_cast<std::uint32_t>(sums[c]) * static_cast<std::uint32_t>(zero));
  }
  return bias;
}

struct Depthwise {
  const ConvShape* shape;
  const std::uint8_t* x;
  const std::uint8_t* zeros;  // a pixel of zero points
  bool is_signed;
  const std::int16_t* weights;
  const QEpilogue* epilogue;
  char* y;
};

// Output rows [begin, end), counted over batch, depth and height.
void depthwise_rows(const QNhwcKernels& kernels, const Depthwise& d, std::int64_t begin, std::int64_t end) {
  const ConvShape& s = *d.shape;
  const std::int64_t taps = volume(s.kernel);
  const std::int64_t even = round_up(taps, 2);
  const std::int64_t width = s.out[2];
  const std::int64_t channels = s.groups;
  // In floats: pointers first, then sums.
  const std::int64_t pointer_floats = round_up(width * even * 2, 16);
  float* scratch = thread_scratch(0, to_size(pointer_floats + round_up(channels, 64)));
  auto* pointers = reinterpret_cast<const std::uint8_t**>(scratch);
  QDepthwiseRow r;
  r.taps = pointers;
  r.taps_count = even;
  r.is_signed = d.is_signed;
  r.channels = channels;
  r.width = width;
  r.weights = d.weights;
  r.sums = reinterpret_cast<std::int32_t*>(scratch + pointer_floats);
  r.epilogue = d.epilogue;
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t oy = row % s.out[1];
    const std::int64_t oz = row / s.out[1] % s.out[0];
    const std::int64_t batch = row / (s.out[1] * s.out[0]);
    for (std::int64_t t = 0; t < even; ++t) {
      const std::int64_t kx = t % s.kernel[2];
      const std::int64_t iy = oy * s.stride[1] - s.pad[1] + t / s.kernel[2] % s.kernel[1] * s.dilation[1];
      const std::int64_t iz = oz * s.stride[0] - s.pad[0] + t / (s.kernel[2] * s.kernel[1]) * s.dilation[0];
      const bool inside = t < taps && iy >= 0 && iy < s.in[1] && iz >= 0 && iz < s.in[0];
      const std::uint8_t* line = inside ? d.x + ((batch * s.in[0] + iz) * s.in[1] + iy) * s.in[2] * channels : nullptr;
      // Outputs [from, to) meet a pixel of the line.
      const std::int64_t x0 = kx * s.dilation[2] - s.pad[2];
      const std::int64_t stride = s.stride[2];
      const std::int64_t from = std::min(width, x0 >= 0 ? 0 : (-x0 + stride - 1) / stride);
      const std::int64_t to = !inside || x0 >= s.in[2] ? from : std::clamp((s.in[2] - x0 + stride - 1) / stride, from, width);
      const std::uint8_t** at = pointers + t;
      for (std::int64_t ox = 0; ox < from; ++ox, at += even) *at = d.zeros;
      const std::uint8_t* pixel = to > from ? line + (x0 + from * stride) * channels : nullptr;
      for (std::int64_t ox = from; ox < to; ++ox, at += even, pixel += stride * channels) *at = pixel;
      for (std::int64_t ox = to; ox < width; ++ox, at += even) *at = d.zeros;
    }
    r.y = d.y + row * width * channels * bytes_per_output(d.epilogue->output);
    kernels.depthwise(r);
  }
}

void depthwise_conv(const QNhwcKernels& kernels, const ConvShape& s, const void* x, bool x_signed, std::int32_t x_zero,
                    const void* packed, const QEpilogue& epilogue, void* y) {
  const std::int64_t channels = s.groups;
  const auto* sums = static_cast<const std::int32_t*>(packed);
  // The zero point's share of the sums goes into the bias; both arrays are read by all threads.
  float* scratch = thread_scratch(2, to_size(round_up(channels, 16) * 2 + 16));
  auto* bias = reinterpret_cast<std::int32_t*>(scratch);
  auto* zeros = reinterpret_cast<std::uint8_t*>(bias + round_up(channels, 16));
  for (std::int64_t c = 0; c < channels; ++c) {
    const auto own = static_cast<std::uint32_t>(epilogue.bias != nullptr ? epilogue.bias[c] : 0);
    bias[c] = static_cast<std::int32_t>(own - static_cast<std::uint32_t>(sums[c]) * static_cast<std::uint32_t>(x_zero));
  }
  std::memset(zeros, x_zero & 0xFF, to_size(channels));
  QEpilogue e = epilogue;
  e.bias = bias;
  const auto* weights = reinterpret_cast<const std::int16_t*>(sums + round_up(round_up(channels, kernels.nr), 16));
  if (qdepthwise3_runs(s, e)) {
    const std::int16_t* by_tap = weights + round_up(channels, kernels.nr) * round_up(volume(s.kernel), 2);
    return qdepthwise3_conv(s, static_cast<const std::uint8_t*>(x), x_signed, x_zero, by_tap, e, static_cast<std::uint8_t*>(y));
  }
  const Depthwise d{&s, static_cast<const std::uint8_t*>(x), zeros, x_signed, weights, &e, static_cast<char*>(y)};
  const std::int64_t row_work = s.out[2] * channels * volume(s.kernel);
  parallel_for(s.batch * s.out[0] * s.out[1], std::max<std::int64_t>(1, 200000 / std::max<std::int64_t>(1, row_work)),
               [&](std::int64_t begin, std::int64_t end) { depthwise_rows(kernels, d, begin, end); });
}

}  // namespace

bool qnhwc_is_depthwise(const ConvShape& s) { return s.groups > 1 && s.in_channels == s.groups && s.out_channels == s.groups; }

bool qnhwc_is_wide(const ConvShape& s, const QWeights& w) {
  if (qnhwc_is_depthwise(s)) return true;
  // The usual zero points leave nothing to look for, so that weights are not read here.
  const std::int32_t usual = w.is_signed ? 0 : 128;
  const std::int64_t zeros = w.zero_points == nullptr ? 0 : std::max<std::int64_t>(1, w.zero_point_count);
  bool narrow = zeros > 0 || w.is_signed;
  for (std::int64_t j = 0; j < zeros; ++j) narrow = narrow && w.zero_points[j] == usual;
  if (narrow || w.data == nullptr) return !narrow;
  const std::int64_t k = inner(s);
  for (std::int64_t j = 0; j < s.out_channels; ++j) {
    const Column values(s, w, j, k);
    for (std::int64_t i = 0; i < k; ++i) {
      if (values[i] < -128 || values[i] > 127) return true;
    }
  }
  return false;
}

std::size_t qnhwc_packed_bytes(const ConvShape& s, const QWeights& w, bool wide) {
  const std::int64_t nr = qnhwc_kernels().nr;
  if (qnhwc_is_depthwise(s)) {
    const std::int64_t blocks = round_up(s.groups, nr);
    const std::int64_t by_tap = qdepthwise3_takes(s) ? round_up(s.groups, 16) * 9 : 0;
    return to_size(round_up(blocks, 16) * 4 + (blocks * round_up(volume(s.kernel), 2) + by_tap) * 2);
  }
  const std::int64_t columns = padded_columns(s, nr);
  const std::size_t usual = panel_bytes(s, nr, wide) + sizeof(Trailer) + to_size(columns) * sizeof(std::int32_t);
  if (!may_use_octets(s, w, wide)) return usual;
  return usual + to_size(columns) * sizeof(std::int32_t) +
         to_size(columns / nr * qoctet_table_units(pairs_of(inner(s)) / 2)) * sizeof(std::uint16_t);
}

void qnhwc_pack(const ConvShape& s, const QWeights& w, bool wide, void* packed) {
  const std::int64_t nr = qnhwc_kernels().nr;
  if (qnhwc_is_depthwise(s)) return pack_depthwise(s, w, nr, packed);
  char* const behind = static_cast<char*>(packed) + panel_bytes(s, nr, wide);
  auto* cross = reinterpret_cast<std::int32_t*>(behind + sizeof(Trailer));
  Trailer trailer;
  trailer.largest = wide ? pack_panels(s, w, nr, static_cast<std::int16_t*>(packed), cross)
                         : pack_panels(s, w, nr, static_cast<std::int8_t*>(packed), cross);
  trailer.octets = may_use_octets(s, w, wide) && pack_octets(s, nr, static_cast<std::int8_t*>(packed)) ? 1 : 0;
  std::memcpy(behind, &trailer, sizeof(trailer));
}

void qnhwc_conv(const ConvShape& s, const void* x, bool x_signed, std::int32_t x_zero, const void* packed, bool wide,
                const QEpilogue& epilogue, void* y) {
  if (s.batch * volume(s.out) * s.out_channels == 0) return;
  const QNhwcKernels& kernels = qnhwc_kernels();
  if (qnhwc_is_depthwise(s)) return depthwise_conv(kernels, s, x, x_signed, x_zero, packed, epilogue, y);
  Trailer trailer;
  std::memcpy(&trailer, static_cast<const char*>(packed) + panel_bytes(s, kernels.nr, wide), sizeof(trailer));
  if (!wide && trailer.octets == 0 && qwinograd_pays(s, trailer.largest)) {
    return qwinograd_conv(s, static_cast<const std::uint8_t*>(x), x_signed, x_zero, static_cast<const std::int8_t*>(packed),
                          epilogue, static_cast<char*>(y));
  }
  const std::int64_t columns = s.out_channels / s.groups;
  const std::int64_t k = inner(s);
  const std::size_t group_bytes = to_size(round_up(columns, kernels.nr) * pairs_of(k) * 2) * (wide ? 2U : 1U);
  bool pointwise = s.groups == 1 && volume(s.kernel) == 1;
  for (int i = 0; i < 3; ++i) pointwise = pointwise && s.stride[i] == 1 && s.pad[i] == 0 && s.in[i] == s.out[i];
  for (std::int64_t group = 0; group < s.groups; ++group) {
    Product g;
    g.source.shape = pointwise ? nullptr : &s;
    g.source.x = static_cast<const std::uint8_t*>(x);
    g.source.end = g.source.x + s.batch * volume(s.in) * s.in_channels;
    g.source.is_signed = x_signed;
    g.source.zero = x_zero;
    g.source.k = k;
    g.source.lda = k;
    g.source.group = group;
    g.m = s.batch * volume(s.out);
    g.n = columns;
    g.k = k;
    g.panels = static_cast<const char*>(packed) + to_size(group) * group_bytes;
    g.cross = cross_of(s, kernels.nr, packed, wide) + group * round_up(columns, kernels.nr);
    g.wide = wide;
    g.epilogue = from_column(epilogue, group * columns);
    g.c = static_cast<char*>(y) + group * columns * bytes_per_output(epilogue.output);
    g.ldc = s.out_channels;
    if (trailer.octets != 0) {
      g.octets = octet_table_of(s, kernels.nr, packed, 0).data;
      g.octet_bias = octet_bias(s, kernels.nr, packed, x_zero + (x_signed ? 128 : 0), epilogue);
    }
    multiply(kernels, g);
  }
}

ConvShape matrix_shape(std::int64_t k, std::int64_t n) {
  ConvShape s;
  s.in_channels = k;
  s.out_channels = n;
  return s;
}

void qnhwc_product(const QMatrix& a, std::int64_t n, const void* packed, bool wide, const QEpilogue& epilogue, void* c,
                   std::int64_t ldc) {
  if (a.m <= 0 || n <= 0) return;
  Product g;
  g.source.x = static_cast<const std::uint8_t*>(a.a);
  g.source.end = g.source.x + (a.m - 1) * a.lda + a.k;
  g.source.is_signed = a.is_signed;
  g.source.zero = a.zero;
  g.source.zeros = a.zeros;
  g.source.k = a.k;
  g.source.lda = a.lda;
  g.m = a.m;
  g.n = n;
  g.k = a.k;
  g.panels = packed;
  g.cross = cross_of(matrix_shape(a.k, n), qnhwc_kernels().nr, packed, wide);
  g.wide = wide;
  g.epilogue = epilogue;
  g.c = c;
  g.ldc = ldc;
  multiply(qnhwc_kernels(), g);
}

}  // namespace sdx::cpu
