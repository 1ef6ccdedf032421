#pragma once
// Products of bytes under AVX2, eight of them added before a sum widens to 32 bits; internal to this folder.
//
// vpmaddubsw adds two products in int16 and saturates. For activations below 128 (the seven low bits) it is exact with any
// weights, and the sum of two such results fits if, of its four weights, those of one sign add up to at most 258. Two quads of
// channels whose weights allow that in all 16 columns of a panel form an octet; packing pairs them, and records where in a row
// each quad is. Quads without a partner are added one at a time. The share of the eighth bits, 128 times some weights, is added
// separately for the few quads of a row that have any: after a Relu usually fewer than one in fifty.
// 3 multiply instructions compute 64 products, for which int16 pairs take 4: 42.7 instead of 32 products a cycle on two pipes.

#include <cstdint>

#include "kernels/cpu/quant/quant.h"

namespace sdx::cpu {

// For one panel of 16 columns: the number of octets and of single quads, where in a row (in bytes) each quad of the panel is, and
// where in the panel (in quads) each quad of the row is.
struct QOctetTable {
  std::uint16_t* data = nullptr;
  std::int64_t quads = 0;
  std::int64_t octets() const { return data[0]; }
  std::int64_t singles() const { return data[1]; }
  std::uint16_t* order() const { return data + 2; }
  std::uint16_t* place() const { return data + 2 + quads; }
};
inline std::int64_t qoctet_table_units(std::int64_t quads) { return 2 + 2 * quads; }
constexpr std::int64_t kMostOctetQuads = 8192;  // their offsets fit 16 bits

constexpr std::int64_t kOctetRows = 4;  // of a tile

struct QOctetRows {
  std::uint8_t* rows = nullptr;  // [count][stride], `stride` a multiple of 32
  std::int64_t stride = 0;
  std::int64_t count = 0;
  std::int64_t quads = 0;
  // The original bytes, in place or elsewhere; reads may extend past a row, up to `end`.
  const std::uint8_t* from = nullptr;
  std::int64_t from_stride = 0;
  const std::uint8_t* end = nullptr;
  bool flip = false;  // bytes are signed: flip their sign bit, and add 128 to the zero point
  // Quads with eighth bits: 128 in each of the four bytes that has it, and (row of the tile << 16) + quad. Both have room for 8
  // more.
  std::uint32_t* high = nullptr;
  std::uint32_t* where = nullptr;
  std::int64_t most_entries = 0;
  std::int32_t* starts = nullptr;  // [tiles + 1]: a tile's first entry
};

struct QOctetPanel {
  const QOctetRows* rows = nullptr;
  const std::int8_t* weights = nullptr;
  QOctetTable table;
  const QEpilogue* epilogue = nullptr;  // output is bytes; its biases include the zero point's share
  std::int64_t column = 0;              // the panel's first; all 16 exist
  std::uint8_t* y = nullptr;            // [count][16], ldc apart
  std::int64_t ldc = 0;
  const char* ahead = nullptr;  // memory needed next, prefetched piece by piece
  std::int64_t ahead_bytes = 0;
};

struct QOctetKernels {
  // Clears the eighth bits of rows, and lists them as entries; false: there are more than most_entries.
  bool (*split)(const QOctetRows& r);
  void (*panel)(const QOctetPanel& g);
  // Quads of a panel as quant_nhwc_pack.cc packs them, [quads][2][16][2], in int16; `place`: of the first, in a table.
  void (*widen)(const std::int8_t* panel, const std::uint16_t* place, std::int64_t quads, std::int16_t* out);
};
const QOctetKernels* qoctet_kernels();  // null if not compiled

}  // namespace sdx::cpu
