#pragma once
// Products of bytes, eight to a sum of 32 bits before it widens, under AVX2; internal to this folder.
//
// vpmaddubsw adds two products in int16 and saturates. Of activations below 128 (the seven low bits) it is exact for any weights,
// and the sum of two such results fits as long as the weights of one sign add up to no more than 258 among the four that meet in
// it. Two quads of channels whose weights allow that in all 16 columns of a panel make an octet; packing pairs them, and says
// where in a row each quad lies. Quads without a partner are added one at a time. What the eighth bits give, 128 times some
// weights, is added apart for the few quads of a row that have any: behind a Relu usually less than one in fifty.
// 3 multiplying instructions serve 64 products, where int16 pairs take 4: 42.7 instead of 32 products a cycle on two pipes.

#include <cstdint>

#include "kernels/cpu/quant/quant.h"

namespace sdx::cpu {

// Of one panel of 16 columns: how many octets and single quads it has, where in a row (in bytes) each quad of the panel lies, and
// where in the panel (in quads) each quad of the row.
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
  // Bytes as they were, the same or elsewhere; up to `end` they may be read beyond a row.
  const std::uint8_t* from = nullptr;
  std::int64_t from_stride = 0;
  const std::uint8_t* end = nullptr;
  bool flip = false;  // bytes are signed: their sign bit is turned, and 128 added to the zero point
  // Quads with eighth bits: 128 where one of the four bytes has it, and (row of the tile << 16) + quad. Both have room for 8
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
  const QEpilogue* epilogue = nullptr;  // gives bytes; its biases hold the zero point's share
  std::int64_t column = 0;              // the panel's first; all 16 exist
  std::uint8_t* y = nullptr;            // [count][16], ldc apart
  std::int64_t ldc = 0;
  const char* ahead = nullptr;  // memory that is wanted next: fetched piece by piece
  std::int64_t ahead_bytes = 0;
};

struct QOctetKernels {
  // Rows without their eighth bits, and these as entries; false: there are more than most_entries.
  bool (*split)(const QOctetRows& r);
  void (*panel)(const QOctetPanel& g);
  // Quads of a panel as quant_nhwc_pack.cc has them, [quads][2][16][2], in int16; `place`: of the first, in a table.
  void (*widen)(const std::int8_t* panel, const std::uint16_t* place, std::int64_t quads, std::int16_t* out);
};
const QOctetKernels* qoctet_kernels();  // null where it has no build

}  // namespace sdx::cpu
