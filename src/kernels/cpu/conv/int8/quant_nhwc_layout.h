#pragma once
// Layout of weights packed by quant_nhwc_pack.cc; internal to this folder.
//
// Panels of nr columns, each [pairs][nr][2] or as Order says, are followed by a trailer; then, for each column, the surplus of
// crossed products, or the weights' sum for quads and octets; and, if octets are tried, a table for each panel.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/conv/int8/quant_octets_simd.h"

namespace sdx::cpu::nhwc {

enum Order : int { kPairs = 0, kOctets = 1, kQuads = 2 };

struct Trailer {
  std::int64_t largest = 0;  // upper bound of a sum's absolute value
  std::int64_t order = 0;    // of panels: an Order
};

inline std::int64_t pairs_of(std::int64_t k) { return (k + 3) / 4 * 2; }  // whole quads, for crossed products
inline std::int64_t inner(const ConvShape& s) { return s.in_channels / s.groups * volume(s.kernel); }

// Parts whose sizes differ by at most one, with the larger ones spread evenly: adjacent parts go to the same thread.
struct Shares {
  std::int64_t total = 0, parts = 1;
  std::int64_t begin(std::int64_t i) const { return total * i / parts; }
};

// Number of columns including those that fill up each group's last panel, and size of all panels.
std::int64_t padded_columns(const ConvShape& s, std::int64_t nr);
std::size_t panel_bytes(const ConvShape& s, std::int64_t nr, bool wide);

// Weights of depthwise convolutions: each channel's sum, whether all of them fit 8 bits, blocks of nr channels in pairs of taps,
// and, if qdepthwise_plane_takes() the shape, once more tap by tap, with channels filled up to blocks of 16.
struct DepthwiseParts {
  std::int32_t* sums;
  std::int32_t* narrow;  // 16 equal values
  std::int16_t* by_block;
  std::int16_t* by_tap;
};
DepthwiseParts depthwise_parts(const ConvShape& s, std::int64_t nr, void* packed);

Trailer trailer_of(const ConvShape& s, std::int64_t nr, const void* packed, bool wide);
const std::int32_t* cross_of(const ConvShape& s, std::int64_t nr, const void* packed, bool wide);
const std::int32_t* column_sums_of(const ConvShape& s, std::int64_t nr, const void* packed);
QOctetTable octet_table_of(const ConvShape& s, std::int64_t nr, const void* packed, std::int64_t panel);

}  // namespace sdx::cpu::nhwc
