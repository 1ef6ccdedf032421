#pragma once
// Products of bytes under AVX2, which adds eight of them before it widens a sum to 32 bits; internal to this folder.
//
// vpmaddubsw adds two products in int16 and saturates. For activations below 128 (their seven low bits) it is exact with any
// weights, and the sum of two such results fits int16 if, of its four weights, those of one sign add up to at most 258. Two quads
// of channels whose weights allow that in all 16 columns of a panel form an octet. Packing pairs the quads and records where each
// quad is in a row. Quads without a partner are added one at a time. The share of the eighth bits, 128 times some weights, is
// added separately for the quads of a row that have such bits: after a Relu usually fewer than one in fifty. Three multiply
// instructions compute 64 products, for which pairs of int16 take four: 42.7 instead of 32 products per cycle on two pipes.

#include <cstdint>

#include "kernels/cpu/quant/quant.h"

namespace sdx::cpu {

// For one panel of 16 columns: the number of octets and of single quads; where in a row, in bytes, each quad of the panel is; and
// where in the panel, in quads, each quad of the row is.
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
  // The original bytes, which may be the rows themselves. Reads may extend past a row, up to `end`.
  const std::uint8_t* from = nullptr;
  std::int64_t from_stride = 0;
  const std::uint8_t* end = nullptr;
  bool flip = false;  // bytes are signed: their sign bit is flipped, and 128 is added to the zero point
  // The entries: quads with eighth bits. `high` holds 128 in each of the four bytes that has the bit; `where` holds (row of the
  // tile << 16) + quad. Both have room for 8 more.
  std::uint32_t* high = nullptr;
  std::uint32_t* where = nullptr;
  std::int64_t most_entries = 0;
  std::int32_t* starts = nullptr;  // [tiles + 1]: the first entry of each tile
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
  // Clears the eighth bits of rows and lists them as entries; false if there are more than most_entries.
  bool (*split)(const QOctetRows& r);
  void (*panel)(const QOctetPanel& g);
  // Widens quads of a panel to int16 in the order in which quant_nhwc_pack.cc packs pairs, [quads][2][16][2]. `place`: the first
  // quad's entry in a table.
  void (*widen)(const std::int8_t* panel, const std::uint16_t* place, std::int64_t quads, std::int16_t* out);
};
const QOctetKernels* qoctet_kernels();  // null if not compiled

}  // namespace sdx::cpu
