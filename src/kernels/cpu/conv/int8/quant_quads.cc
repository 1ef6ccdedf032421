#include "kernels/cpu/conv/int8/quant_quads.h"

#include <algorithm>
#include <cmath>

#include "base/system/amx.h"
#include "kernels/cpu/conv/int8/neon/quant_quads_neon.h"
#include "kernels/cpu/conv/int8/quant_nhwc_layout.h"
#include "kernels/cpu/conv/int8/quant_nhwc_simd.h"
#include "kernels/cpu/conv/int8/quant_octets.h"
#include "kernels/cpu/conv/int8/quant_quads_amx.h"
#include "kernels/cpu/conv/int8/quant_quads_vnni.h"
#include "kernels/cpu/simd/cuts.h"
#include "kernels/cpu/simd/scratch.h"

namespace sdx::cpu {

using namespace nhwc;

namespace {

constexpr std::int64_t kRowBytes = 384 * 1024;  // rows at a time: they stay in the second-level cache for all panels
constexpr std::int64_t kSumRows = 48;           // rows of sums finished at once

constexpr std::int64_t kTileBlock = 2 * kTileRows;
constexpr std::int64_t kTileByteRows = 8192;
constexpr std::int64_t kTileSumRows = 256;                        // the same for tiles
constexpr std::int64_t kLeastTileRows = 8, kLeastTileBytes = 32;  // with fewer, vpdpbusd is as fast

struct Rows {
  const std::uint8_t* a;
  std::int64_t stride;
  std::int64_t first, count;           // rows of the product
  const std::uint8_t* ends = nullptr;  // tiles only: the last bytes of rows that are read in place
};

// The kernels for the instruction set of the panels of qnhwc_kernels().
const QQuadKernels& quad_kernels() {
  switch (qnhwc_kernels().nr) {
    case 8: return *qquad_neon_kernels();
    case 16: return *qquad_avx2_kernels();
    default: return *qquad_avx512_kernels();
  }
}

// Whether rows can be read in place: they are whole quads of bytes with the sign that kernels need.
bool lies_ready(const QSource& q) {
  return q.shape == nullptr && qquad_shift(q.is_signed) == 0 && q.k % 4 == 0 && q.lda % 4 == 0;
}

void gather(const QSource& q, const Rows& r, std::uint8_t* to) {
  if (q.shape != nullptr) return quad_kernels().gather({q, r.stride}, r.first, r.count, to);
  QOctetRows o;
  o.rows = to;
  o.stride = r.stride;
  o.count = r.count;
  qoctet_gather(q, r.first, o);
  if (qquad_shift(q.is_signed) == 0) return;
  for (std::int64_t j = 0; j < r.count * r.stride; ++j) to[j] ^= 0x80;
}

// Computes panel p for these rows and stores bytes.
void to_bytes(const QQuadProduct& g, const Rows& r, std::int64_t p, bool last) {
  const QQuadKernels& kernels = quad_kernels();
  const std::int64_t column = p * kernels.columns;
  QQuadPanel q;
  q.a = r.a;
  q.stride = r.stride;
  q.m = r.count;
  q.quads = pairs_of(g.source.k) / 2;
  const std::int64_t bytes = q.quads * 4 * kernels.columns;
  q.b = g.panels + p * bytes;
  q.columns = std::min(kernels.columns, g.n - column);
  const QQuadFinish f = qquad_finish(g.epilogue, column, q.columns);
  q.finish = &f;
  q.y = static_cast<std::uint8_t*>(g.c) + r.first * g.ldc + column;
  q.ldc = g.ldc;
  q.ahead = reinterpret_cast<const char*>(q.b + bytes);
  q.ahead_bytes = last ? 0 : bytes;
  kernels.panel(q);
}

// The same with results as int32 or float, by way of `sums`.
void to_words(const QQuadProduct& g, const Rows& r, std::int64_t p, std::int32_t* sums) {
  const QNhwcKernels& kernels = qnhwc_kernels();
  const std::int64_t column = p * kernels.nr;
  QRows t;
  t.stride = r.stride / 2;
  t.pairs = pairs_of(g.source.k) / 2;
  t.b = reinterpret_cast<const std::int16_t*>(g.panels + p * t.pairs * 4 * kernels.nr);
  for (std::int64_t from = 0; from < r.count; from += kSumRows) {
    const std::int64_t rows = std::min(kSumRows, r.count - from);
    for (std::int64_t row = 0; row < rows; row += t.m) {
      t.m = std::min<std::int64_t>(kernels.mr, rows - row);
      t.a = reinterpret_cast<const std::int16_t*>(r.a + (from + row) * r.stride);
      t.sums = sums + row * kernels.nr;
      (g.excess != nullptr ? kernels.bounded : kernels.quads)(t);
    }
    if (g.excess != nullptr) {
      add_excess(g.excess->of(p, pairs_of(g.source.k)), g.excess->counts[p], r.a + from * r.stride, r.stride, rows, kernels.nr,
                 sums);
    }
    kernels.finish(g.epilogue, sums, rows, std::min<std::int64_t>(kernels.nr, g.n - column), column,
                   static_cast<char*>(g.c) + ((r.first + from) * g.ldc + column) * bytes_per_output(g.epilogue), g.ldc);
  }
}

// The arguments that tiles_to_bytes() and tiles_to_words() share.
QTilePanel tile_panel(const QQuadProduct& g, const Rows& r, std::int64_t p, bool last) {
  const std::int64_t k = g.source.k;
  QTilePanel t;
  t.a = r.a;
  t.stride = r.stride;
  t.m = r.count;
  t.steps = r.ends != nullptr ? k / kTileBytes : up_div(k, kTileBytes);
  t.tail = r.ends;
  const std::int64_t bytes = pairs_of(k) / 2 * 4 * kQuadColumns;
  t.b = g.panels + p * bytes;
  t.ahead = reinterpret_cast<const char*>(t.b + bytes);
  t.ahead_bytes = last ? 0 : bytes;
  t.columns = std::min(kQuadColumns, g.n - p * kQuadColumns);
  return t;
}

void tiles_to_bytes(const QQuadProduct& g, const Rows& r, std::int64_t p, bool last) {
  const std::int64_t column = p * kQuadColumns;
  QTilePanel t = tile_panel(g, r, p, last);
  const QQuadFinish f = qquad_finish(g.epilogue, column, t.columns);
  t.finish = &f;
  t.y = static_cast<std::uint8_t*>(g.c) + column;
  t.ldc = g.ldc;
  t.first = r.first;
  if (g.image != nullptr) {
    t.places = g.image->places;
    t.line = g.image->line;
    t.width = g.image->width;
  }
  qtile_kernels()->bytes(t);
}

// Computes rows [m0, m1) of panels [p0, p1) if the rows are read from an image.
void image_block(const QQuadProduct& g, std::int64_t m0, std::int64_t m1, std::int64_t p0, std::int64_t p1) {
  const Rows rows{g.image->pixels + m0 * g.image->step, g.image->step, m0, m1 - m0, nullptr};
  const TileScope scope(qtile_config(std::min(rows.count, kTileRows)));
  for (std::int64_t p = p0; p < p1; ++p) tiles_to_bytes(g, rows, p, p + 1 == p1);
}

// sums: [r.count][32].
void tiles_to_words(const QQuadProduct& g, const Rows& r, std::int64_t p, bool last, std::int32_t* sums) {
  const std::int64_t column = p * kQuadColumns;
  const QTilePanel t = tile_panel(g, r, p, last);
  qtile_kernels()->sums(t, sums);
  qnhwc_kernels().finish(g.epilogue, sums, r.count, t.columns, column,
                         static_cast<char*>(g.c) + (r.first * g.ldc + column) * bytes_per_output(g.epilogue), g.ldc);
}

void tile_block(const QQuadProduct& g, std::int64_t m0, std::int64_t m1, std::int64_t p0, std::int64_t p1) {
  const QSource& q = g.source;
  const bool ready = lies_ready(q), bytes = gives_bytes(g.epilogue);
  const bool ends = ready && q.k % kTileBytes != 0;
  // An odd multiple of a cache line: rows a power of two apart would compete for the same cache sets.
  const std::int64_t gathered_stride = (up_div(q.k, kTileBytes) | 1) * kTileBytes;
  const std::int64_t stride = ready ? q.lda : gathered_stride;
  const std::int64_t row_bytes = std::max(stride, kTileBytes);
  const std::int64_t most =
      std::clamp(kRowBytes / row_bytes / kTileBlock * kTileBlock, kTileBlock, bytes ? kTileByteRows : kTileSumRows);
  const Cuts blocks(m1 - m0, most);  // each at least kTileRows if there are that many
  const std::int64_t at_once = up_div(m1 - m0, blocks.parts), room = at_once * (ready ? kTileBytes : stride) + kQuadSlack;
  auto* own = ready && !ends ? nullptr : reinterpret_cast<std::uint8_t*>(thread_scratch(0, to_size(room / 4)));
  auto* sums = bytes ? nullptr : reinterpret_cast<std::int32_t*>(thread_scratch(1, to_size(at_once * kQuadColumns)));
  const TileScope scope(qtile_config(std::min(m1 - m0, kTileRows)));
  for (std::int64_t i = 0; i < blocks.parts; ++i) {
    Rows r{own, stride, m0 + blocks.begin(i), blocks.size(i), nullptr};
    if (ready) {
      r.a = q.x + r.first * q.lda;
      if (ends) qtile_kernels()->copy_ends(r.a, stride, r.count, q.k, own);
      r.ends = ends ? own : nullptr;
    } else {
      gather(q, r, own);
      qtile_kernels()->clear_ends(own, stride, r.count, q.k, round_up(q.k, kTileBytes));
    }
    for (std::int64_t p = p0; p < p1; ++p) {
      const bool last = p + 1 == p1;
      bytes ? tiles_to_bytes(g, r, p, last) : tiles_to_words(g, r, p, last, sums);
    }
  }
}

}  // namespace

std::int32_t qquad_shift(bool is_signed) { return is_signed == quad_kernels().signed_rows ? 0 : 128; }

QQuadFinish qquad_finish(const QEpilogue& e, std::int64_t column, std::int64_t n) {
  QQuadFinish f;
  for (std::int64_t i = 0; i < n; ++i) {
    f.bias[i] = e.bias != nullptr ? e.bias[column + i] : 0;
    f.scale[i] = e.scale[e.scale_is_array ? column + i : 0];
  }
  f.low = static_cast<float>(e.low - e.zero_point);
  f.high = static_cast<float>(e.high - e.zero_point);
  f.zero_point = e.zero_point;
  f.is_signed = e.output == QEpilogue::Output::s8;
  const std::int32_t least = f.is_signed ? -128 : 0;
  // Half of any int32 still fits an int32.
  f.clamp = e.low != least || e.high != least + 255 ||
            !std::all_of(f.scale, f.scale + n, [](float scale) { return std::fabs(scale) <= 0.5F; });
  return f;
}

bool qquad_by_tiles(std::int64_t k) { return k >= kLeastTileBytes && use_amx(); }

void qquad_block(const QQuadProduct& g, std::int64_t m0, std::int64_t m1, std::int64_t p0, std::int64_t p1) {
  if (g.image != nullptr) return image_block(g, m0, m1, p0, p1);
  if (m1 - m0 >= kLeastTileRows && qquad_by_tiles(g.source.k)) return tile_block(g, m0, m1, p0, p1);
  const QSource& q = g.source;
  const bool ready = lies_ready(q);
  // An odd multiple of 32: rows a power of two apart would compete for the same cache sets.
  const std::int64_t stride = ready ? q.lda : (round_up(q.k, 32) / 32 | 1) * 32;
  const Cuts blocks(m1 - m0, std::max(kQuadRows, kRowBytes / stride / kQuadRows * kQuadRows));
  const std::int64_t most = up_div(m1 - m0, blocks.parts);
  auto* gathered =
      ready ? nullptr : reinterpret_cast<std::uint8_t*>(thread_scratch(0, to_size((most * stride + kQuadSlack) / 4)));
  const bool bytes = gives_bytes(g.epilogue) && g.excess == nullptr;
  auto* sums = bytes ? nullptr : reinterpret_cast<std::int32_t*>(thread_scratch(1, to_size(kSumRows * kQuadColumns)));
  for (std::int64_t i = 0; i < blocks.parts; ++i) {
    Rows r{gathered, stride, m0 + blocks.begin(i), blocks.size(i)};
    if (ready) {
      r.a = q.x + r.first * q.lda;
    } else {
      gather(q, r, gathered);
    }
    for (std::int64_t p = p0; p < p1; ++p) bytes ? to_bytes(g, r, p, p + 1 == p1) : to_words(g, r, p, sums);
  }
}

}  // namespace sdx::cpu
