#pragma once
// Where things lie in weights packed by quant_nhwc_pack.cc; internal to this folder.
//
// Panels of nr columns, each [pairs][nr][2] or as Order says, are followed by a trailer, by what crossed products have too much
// for each column, of quads and octets by the sum of each column's weights, and where octets are tried by a table for each panel.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/conv/int8/quant_octets_simd.h"

namespace sdx::cpu::nhwc {

enum Order : int { kPairs = 0, kOctets = 1, kQuads = 2 };

struct Trailer {
  std::int64_t largest = 0;  // what the absolute value of a sum cannot exceed
  std::int64_t order = 0;    // of panels: an Order
};

inline std::int64_t pairs_of(std::int64_t k) { return (k + 3) / 4 * 2; }  // whole quads, for crossed products
inline std::int64_t inner(const ConvShape& s) { return s.in_channels / s.groups * volume(s.kernel); }

// Parts that differ by one at most, the larger ones spread evenly: neighbouring parts go to the same thread.
struct Shares {
  std::int64_t total = 0, parts = 1;
  std::int64_t begin(std::int64_t i) const { return total * i / parts; }
};

// Columns with those that fill up each group's last panel, and the bytes of all panels.
std::int64_t padded_columns(const ConvShape& s, std::int64_t nr);
std::size_t panel_bytes(const ConvShape& s, std::int64_t nr, bool wide);

// Weights of depthwise convolutions: each channel's sum, whether all of them fit 8 bits, blocks of nr channels in pairs of taps,
// and where qdepthwise_plane_takes() them once more tap by tap, each of as many channels as fill up blocks of 16.
struct DepthwiseParts {
  std::int32_t* sums;
  std::int32_t* narrow;  // 16 times the same
  std::int16_t* by_block;
  std::int16_t* by_tap;
};
DepthwiseParts depthwise_parts(const ConvShape& s, std::int64_t nr, void* packed);

Trailer trailer_of(const ConvShape& s, std::int64_t nr, const void* packed, bool wide);
const std::int32_t* cross_of(const ConvShape& s, std::int64_t nr, const void* packed, bool wide);
const std::int32_t* column_sums_of(const ConvShape& s, std::int64_t nr, const void* packed);
QOctetTable octet_table_of(const ConvShape& s, std::int64_t nr, const void* packed, std::int64_t panel);

}  // namespace sdx::cpu::nhwc
