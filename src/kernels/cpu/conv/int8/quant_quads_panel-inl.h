#pragma once
// Computes a panel of quads by tiles of rows, for vpdpbusd of any width. Include between HWY_PUSH_ATTRIBUTES and its end;
// internal to this folder.

#include "kernels/cpu/conv/int8/quant_quads_vnni.h"

namespace sdx::cpu {
namespace {

// Weights come from memory, one panel after the other: prefetches one cache line with each quad until the next panel is complete.
struct Ahead {
  const char* at;
  std::int64_t step;
};

// Computes m rows of the panel, from `row` on.
using QuadTile = void (*)(const QQuadPanel& g, std::int64_t row, std::int64_t m, Ahead ahead);

// Cuts the panel into tiles of at most `rows` rows and `columns` columns. tiles[half][clamp]: half: only the first half of the
// columns exists; clamp: QQuadFinish::clamp.
inline void panel_by(const QQuadPanel& g, std::int64_t rows, std::int64_t columns, const QuadTile (&tiles)[2][2]) {
  const QuadTile tile = tiles[g.columns <= columns / 2 ? 1 : 0][g.finish->clamp ? 1 : 0];
  const std::int64_t count = (g.m + rows - 1) / rows;
  const std::int64_t fetched = g.quads * 64;  // bytes prefetched with each tile
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = g.m * i / count, m = g.m * (i + 1) / count - row;
    const Ahead ahead =
        i * fetched < g.ahead_bytes ? Ahead{g.ahead + i * fetched, 64} : Ahead{reinterpret_cast<const char*>(g.b), 0};
    tile(g, row, m, ahead);
  }
}

}  // namespace
}  // namespace sdx::cpu
