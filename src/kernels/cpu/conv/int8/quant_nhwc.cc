#include "kernels/cpu/conv/int8/quant_nhwc.h"

#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"
#include "kernels/cpu/conv/int8/depthwise/quant_depthwise.h"
#include "kernels/cpu/conv/int8/grouped/quant_grouped.h"
#include "kernels/cpu/conv/int8/quant_fetch.h"
#include "kernels/cpu/conv/int8/quant_gather_simd.h"
#include "kernels/cpu/conv/int8/quant_nhwc_layout.h"
#include "kernels/cpu/conv/int8/quant_nhwc_pack.h"
#include "kernels/cpu/conv/int8/quant_nhwc_simd.h"
#include "kernels/cpu/conv/int8/quant_octets.h"
#include "kernels/cpu/conv/int8/quant_octets_simd.h"
#include "kernels/cpu/conv/int8/quant_quads.h"
#include "kernels/cpu/conv/int8/quant_quads_amx.h"
#include "kernels/cpu/conv/int8/quant_tiles_simd.h"
#include "kernels/cpu/conv/int8/quant_winograd.h"
#include "kernels/cpu/simd/cuts.h"
#include "kernels/cpu/simd/scratch.h"

namespace sdx::cpu {

using namespace nhwc;

namespace {

constexpr std::int64_t kPairBlock = 256;        // a panel of 16 columns takes 16 KB as int16: half of a typical first-level cache
constexpr std::int64_t kLeastCrossed = 24;      // pairs; with fewer, crossed products gain less than their smaller tiles cost
constexpr std::int64_t kRowBytes = 128 * 1024;  // rows widened at a time: they stay in the second-level cache for all panels
constexpr std::int64_t kFinishRows = 48;        // rows finished at once: the setup costs as much as two rows
constexpr std::int64_t kEntriesPer = 10;        // quads: with an eighth bit in one of this many, octets are no faster
constexpr std::int64_t kTaskProducts = 1 << 19;      // about 10 microseconds
constexpr std::int64_t kTileTaskProducts = 1 << 22;  // the same by AMX

// An odd multiple of 32 bytes: rows a power of two apart would compete for the same cache sets.
std::int64_t row_stride(std::int64_t k) {
  const std::int64_t units = round_up(k, 16) / 16 + 1;
  return (units | 1) * 16;
}

// One product: rows of a source, columns of packed panels.
struct Product {
  QSource source;
  std::int64_t m = 0, n = 0, k = 0;
  const void* panels = nullptr;
  const std::int32_t* cross = nullptr;  // of all columns, from the first panel's on
  bool wide = false;
  bool crossed = false;
  std::int64_t mr = 0;
  QEpilogue epilogue;
  void* c = nullptr;
  std::int64_t ldc = 0;
  const std::uint16_t* octets = nullptr;  // tables of panels in the order of octets; null in any other order
  bool quads = false;
  ExcessTables excess = {};                 // of bounded quads; null of others
  const QQuadImage* image = nullptr;        // if set, rows are read from it; quads only
  const std::int32_t* byte_bias = nullptr;  // the epilogue's biases less the zero point's share
};

// The table of panel p, for panels in the order of octets.
QOctetTable octet_table(const Product& g, std::int64_t p) {
  const std::int64_t quads = pairs_of(g.k) / 2;
  return {const_cast<std::uint16_t*>(g.octets) + p * qoctet_table_units(quads), quads};
}

// Biases and scales of a last panel with fewer than 16 columns, padded to 16.
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
  if (n == 8) {  // a fixed size avoids a call
    for (std::int64_t i = 0; i < rows; ++i) std::memcpy(to + i * ldc, from + i * step, 8);
    return;
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < n; ++j) to[i * ldc + j] = from[i * step + j];
  }
}

// Computes one panel for the rows from `first` on and stores the results as bytes. whole_rows: room for nr bytes of each row.
void panel_to_bytes(const Product& g, QTiles q, std::int64_t nr, std::int64_t first, std::int64_t column,
                    std::uint8_t* whole_rows) {
  const QTilesKernel to_bytes = qtiles_kernel();
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
  q.half = g.n - column <= nr / 2;
  to_bytes(q);
  copy_columns(whole_rows, nr, q.rows.m, g.n - column, y, g.ldc);
}

// Pairs [begin, begin + pairs) of panel p as int16. Panels of bytes are widened into `room`.
const std::int16_t* panel_of(const QNhwcKernels& kernels, const Product& g, std::int64_t p, std::int64_t begin,
                             std::int64_t pairs, std::int16_t* room) {
  const std::int64_t nr = kernels.nr, first = p * pairs_of(g.k) * nr * 2, at = first + begin * nr * 2;
  if (g.wide) return static_cast<const std::int16_t*>(g.panels) + at;
  const auto* bytes = static_cast<const std::int8_t*>(g.panels);
  if (g.octets != nullptr) {
    qoctet_kernels()->widen(bytes + first, octet_table(g, p).place() + begin / 2, pairs / 2, room);
  } else {
    kernels.widen_panel(bytes + at, pairs * nr * 2, room);
  }
  return room;
}

// This thread's scratch memory for block(), for at most `most` rows at a time.
struct BlockRoom {
  std::int16_t* rows;  // widened
  std::int32_t* sums;
  std::int16_t* panel;  // widened
  std::int32_t* row_cross;
  std::uint8_t* whole_rows;  // nr results of each row

  BlockRoom(const Product& g, std::int64_t nr, std::int64_t most, std::int64_t pair_blocks) {
    const std::int64_t sums_kept = pair_blocks > 1 ? most : kFinishRows + g.mr, sums_space = round_up(sums_kept * nr, 16);
    const std::int64_t widened = g.wide ? 0 : std::min(pairs_of(g.k), kPairBlock) * nr;  // in units of 4 bytes
    const std::int64_t row_space = round_up(most, 16), byte_space = round_up(most * nr, 16) / 4;
    rows = reinterpret_cast<std::int16_t*>(thread_scratch(0, to_size(most * row_stride(g.k) + 32) / 2));
    float* const scratch = thread_scratch(1, to_size(sums_space + widened + row_space + byte_space));
    sums = reinterpret_cast<std::int32_t*>(scratch);
    panel = reinterpret_cast<std::int16_t*>(scratch + sums_space);
    row_cross = sums + sums_space + widened;
    whole_rows = reinterpret_cast<std::uint8_t*>(row_cross + row_space);
  }
};

// Computes a single row of bytes: each weight is used once, so it is widened in registers.
void single_row(const Product& g, std::int64_t nr, std::int64_t row, std::int64_t p0, std::int64_t p1) {
  const std::int64_t pairs = pairs_of(g.k);
  const BlockRoom room(g, nr, 1, 1);
  QTiles q;
  q.rows.stride = row_stride(g.k);
  q.rows.a = room.rows;
  q.rows.m = 1;
  q.rows.pairs = pairs;
  qgather_kernels().gather(g.source, row, 1, room.rows, q.rows.stride);
  for (std::int64_t p = p0; p < p1; ++p) {
    q.narrow = static_cast<const std::int8_t*>(g.panels) + p * pairs * nr * 2;
    panel_to_bytes(g, q, nr, row, p * nr, room.whole_rows);
  }
}

// Computes rows [m0, m1) of panels [p0, p1) on this thread.
void block(const QNhwcKernels& kernels, const Product& g, std::int64_t m0, std::int64_t m1, std::int64_t p0, std::int64_t p1) {
  const std::int64_t nr = kernels.nr;
  const std::int64_t pairs = pairs_of(g.k);
  const std::int64_t stride = row_stride(g.k);
  const std::int64_t rows_at_once = std::max<std::int64_t>(g.mr, kRowBytes / (stride * 2) / g.mr * g.mr);
  const Cuts blocks(m1 - m0, rows_at_once);
  const std::int64_t bytes = bytes_per_output(g.epilogue);
  const std::int64_t pair_blocks = std::max<std::int64_t>(1, (pairs + kPairBlock - 1) / kPairBlock);
  const std::int64_t unit = g.wide ? 2 : 1;
  const auto product = g.crossed ? kernels.crossed : kernels.product;
  const bool to_bytes = bytes == 1 && qtiles_kernel() != nullptr;
  if (m1 - m0 == 1 && to_bytes && !g.wide && g.octets == nullptr) return single_row(g, nr, m0, p0, p1);
  const BlockRoom room(g, nr, up_div(m1 - m0, blocks.parts), pair_blocks);
  QRows t;
  t.stride = stride;
  for (std::int64_t i = 0; i < blocks.parts; ++i) {
    const std::int64_t first = m0 + blocks.begin(i);
    const std::int64_t count = blocks.size(i);
    qgather_kernels().gather(g.source, first, count, room.rows, stride);
    if (g.crossed) kernels.cross_rows(room.rows, count, stride, pairs, room.row_cross);
    const Cuts tiles(count, g.mr);
    for (std::int64_t p = p0; p < p1; ++p) {
      const std::int64_t column = p * nr;
      t.column_cross = g.cross + column;
      t.half = g.n - column <= nr / 2;
      for (std::int64_t kb = 0; kb < pair_blocks; ++kb) {
        t.pairs = std::min(kPairBlock, pairs - kb * kPairBlock);
        t.add = kb > 0;
        t.b = panel_of(kernels, g, p, kb * kPairBlock, t.pairs, room.panel);
        // The next block of K of this panel or the first of the next panel: both follow directly in memory.
        const std::int64_t ahead = p + 1 < p1 || kb + 1 < pair_blocks ? std::min(kPairBlock, pairs) * nr * 2 * unit : 0;
        const char* next = static_cast<const char*>(g.panels) + (p * pairs + kb * kPairBlock + t.pairs) * nr * 2 * unit;
        if (to_bytes && kb + 1 == pair_blocks) {
          t.m = count;
          t.row_cross = room.row_cross;
          t.a = room.rows + kb * kPairBlock * 2;
          t.sums = room.sums;
          QTiles q;
          q.rows = t;
          q.crossed = g.crossed;
          q.ahead = next;
          q.ahead_bytes = ahead;
          panel_to_bytes(g, q, nr, first, column, room.whole_rows);
          continue;
        }
        Fetch fetch(next, ahead, tiles.parts);
        std::int64_t from = 0;  // the first row whose sums are not finished
        for (std::int64_t j = 0; j < tiles.parts; ++j) {
          fetch.part();
          const std::int64_t row = tiles.begin(j);
          t.m = tiles.size(j);
          t.row_cross = room.row_cross + row;
          t.a = room.rows + row * stride + kb * kPairBlock * 2;
          t.sums = room.sums + (pair_blocks > 1 ? row : row - from) * nr;
          product(t);
          const std::int64_t done = row + t.m;
          if (kb + 1 < pair_blocks || (done - from < kFinishRows && j + 1 < tiles.parts)) continue;
          kernels.finish(g.epilogue, room.sums + (pair_blocks > 1 ? from : 0) * nr, done - from, std::min(nr, g.n - column),
                         column, static_cast<char*>(g.c) + ((first + from) * g.ldc + column) * bytes, g.ldc);
          from = done;
        }
      }
    }
  }
}

// Like block(), but by octets as long as the activations allow it.
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
  epilogue.bias = g.byte_bias;
  for (std::int64_t i = 0; i < blocks.parts; ++i) {
    const std::int64_t first = m0 + blocks.begin(i);
    r.count = blocks.size(i);
    // Holds rows, entries, starts and the last panel's results. Taken anew for each block: block() uses the same scratch memory.
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
      return block(kernels, g, first, m1, p0, p1);  // the remaining rows probably have as many eighth bits
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

// Like block(), for panels of quads, which multiply bytes.
void quad_block(const QNhwcKernels&, const Product& g, std::int64_t m0, std::int64_t m1, std::int64_t p0, std::int64_t p1) {
  QQuadProduct q;
  q.source = g.source;
  q.n = g.n;
  q.panels = static_cast<const std::int8_t*>(g.panels);
  q.epilogue = g.epilogue;
  q.epilogue.bias = g.byte_bias;
  q.c = g.c;
  q.ldc = g.ldc;
  q.excess = g.excess.counts != nullptr ? &g.excess : nullptr;
  q.image = g.image;
  qquad_block(q, m0, m1, p0, p1);
}

void multiply(const QNhwcKernels& kernels, Product g) {
  g.crossed = !g.quads && kernels.crossed != nullptr && pairs_of(g.k) >= kLeastCrossed;
  g.mr = g.crossed ? kernels.crossed_mr : kernels.mr;
  const bool by_tiles = g.quads && qquad_by_tiles(g.k);
  if (by_tiles) g.mr = 2 * kTileRows;
  const std::int64_t tiles = (g.m + g.mr - 1) / g.mr;
  const std::int64_t panels = (g.n + kernels.nr - 1) / kernels.nr;
  const std::int64_t threads = current_pool().threads();
  const std::int64_t work = g.m * round_up(g.n, kernels.nr) * std::max<std::int64_t>(1, g.k);
  const std::int64_t wanted =
      threads == 1 ? 1 : std::clamp<std::int64_t>(work / (by_tiles ? kTileTaskProducts : kTaskProducts), 1, 4 * threads);
  // Each additional column part gathers the rows again; each additional row part reads and widens the weights again. So the
  // smaller of the two is cut only if needed. A row part has at least four tiles, so that widening a panel costs little beside
  // multiplying.
  const bool columns_first = g.n >= 2 * g.m && panels >= 2 * threads;
  const std::int64_t most_row_parts = std::max<std::int64_t>(1, tiles / 4);
  const std::int64_t first = std::clamp<std::int64_t>(columns_first ? panels : most_row_parts, 1, wanted);
  const std::int64_t second = std::clamp<std::int64_t>((wanted + first - 1) / first, 1, columns_first ? most_row_parts : panels);
  const Shares rows{tiles, columns_first ? second : first};
  const Shares columns{panels, columns_first ? first : second};
  auto* run = block;
  if (g.octets != nullptr && gives_bytes(g.epilogue)) run = octet_block;
  if (g.quads) run = quad_block;
  parallel_for(rows.parts * columns.parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t r = columns_first ? i % rows.parts : i / columns.parts;
      const std::int64_t c = columns_first ? i / rows.parts : i % columns.parts;
      run(kernels, g, rows.begin(r) * g.mr, std::min(g.m, rows.begin(r + 1) * g.mr), columns.begin(c), columns.begin(c + 1));
    }
  });
}

QEpilogue from_column(QEpilogue e, std::int64_t column) {
  if (e.bias != nullptr) e.bias += column;
  if (e.bias_f32 != nullptr) e.bias_f32 += column;
  if (e.scale_is_array) e.scale += column;
  return e;
}

// The epilogue's biases less the zero point's share of the sums. All threads read them; valid until this thread's next call.
const std::int32_t* byte_bias(const ConvShape& s, std::int64_t nr, const void* packed, std::int32_t zero, const QEpilogue& e) {
  if (zero == 0) return e.bias;
  const std::int32_t* sums = column_sums_of(s, nr, packed);
  auto* bias = reinterpret_cast<std::int32_t*>(thread_scratch(2, to_size(s.out_channels)));
  bias_without_zero(e, sums, zero, s.out_channels, bias);
  return bias;
}

// Sets what panels of octets or quads need; their shape has one group.
void set_order(Product& g, const ConvShape& s, std::int64_t nr, const void* packed, std::int64_t order) {
  if (order == kPairs) return;
  // Signed bytes become unsigned, or the other way round, by adding 128: their zero point moves likewise, within their new range.
  const bool is_signed = g.source.is_signed;
  const std::int32_t shift = order == kOctets ? (is_signed ? 128 : 0) : qquad_shift(is_signed);
  g.byte_bias = byte_bias(s, nr, packed, g.source.zero + (is_signed ? shift : -shift), g.epilogue);
  if (order == kOctets) g.octets = octet_table_of(s, nr, packed, 0).data;
  g.quads = order == kQuads || order == kBounded;
  if (order == kBounded) g.excess = excess_of(s, nr, packed);
}

// Computes a convolution straight from the images, without gathering rows, one image after the other.
void multiply_images(const QNhwcKernels& kernels, Product g, const ConvShape& s) {
  const std::int64_t in_bytes = volume(s.in) * s.in_channels, out_bytes = volume(s.out) * s.out_channels;
  const std::uint8_t* const x = g.source.x;
  char* const y = static_cast<char*>(g.c);
  for (std::int64_t b = 0; b < s.batch; ++b) {
    const QQuadImage image = qimage_of(s, x + b * in_bytes, g.source.is_signed, g.source.zero);
    g.image = &image;
    g.m = image.outputs;
    g.c = y + b * out_bytes;
    multiply(kernels, g);
  }
}

}  // namespace

void qnhwc_conv(const ConvShape& s, const void* x, bool x_signed, std::int32_t x_zero, const void* packed, bool wide,
                const QEpilogue& epilogue, void* y) {
  if (s.batch * volume(s.out) * s.out_channels == 0) return;
  const QNhwcKernels& kernels = qnhwc_kernels();
  if (qnhwc_is_depthwise(s)) return qdepthwise_conv(s, x, x_signed, x_zero, packed, epilogue, y);
  if (qgrouped_takes(s, wide))
    return qgrouped_conv(s, {static_cast<const std::uint8_t*>(x), x_signed, x_zero}, packed, epilogue, y);
  const Trailer trailer = trailer_of(s, kernels.nr, packed, wide);
  if (!wide && trailer.order == kPairs && qwinograd_pays(s, trailer.largest)) {
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
    g.c = static_cast<char*>(y) + group * columns * bytes_per_output(epilogue);
    g.ldc = s.out_channels;
    set_order(g, s, kernels.nr, packed, trailer.order);
    if (g.quads && qimage_takes(s, epilogue)) {
      multiply_images(kernels, g, s);
    } else {
      multiply(kernels, g);
    }
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
  const QNhwcKernels& kernels = qnhwc_kernels();
  const ConvShape shape = matrix_shape(a.k, n);
  Product g;
  g.source.x = static_cast<const std::uint8_t*>(a.a);
  g.source.end = g.source.x + (a.m - 1) * a.lda + a.k;
  g.source.is_signed = a.is_signed;
  g.source.zero = a.zero;
  g.source.k = a.k;
  g.source.lda = a.lda;
  g.m = a.m;
  g.n = n;
  g.k = a.k;
  g.panels = packed;
  g.cross = cross_of(shape, kernels.nr, packed, wide);
  g.wide = wide;
  g.epilogue = epilogue;
  g.c = c;
  g.ldc = ldc;
  set_order(g, shape, kernels.nr, packed, trailer_of(shape, kernels.nr, packed, wide).order);
  multiply(kernels, g);
}

}  // namespace sdx::cpu
