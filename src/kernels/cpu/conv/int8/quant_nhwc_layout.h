#pragma once
// Layout of weights packed by quant_nhwc_pack.cc; internal to this folder.
//
// Panels of nr columns, each [pairs][nr][2] unless Order says otherwise, are followed by a trailer. Then come, for each column,
// the surplus of crossed products; for all but pairs, each column's sum of weights; and, if octets or bounded quads are tried, a
// table for each panel.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/conv/int8/quant_bounded.h"
#include "kernels/cpu/conv/int8/quant_nhwc_pack.h"
#include "kernels/cpu/conv/int8/quant_octets_simd.h"
#include "kernels/cpu/quant/quant.h"

namespace sdx::cpu::nhwc {

// kGrouped: quant_grouped.h has its own layout.
enum Order : int { kPairs = 0, kOctets = 1, kQuads = 2, kBounded = 3, kGrouped = 4 };

struct Trailer {
  std::int64_t largest = 0;  // upper bound of the sums' absolute values
  std::int64_t order = 0;    // of panels: an Order
};

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

inline std::int64_t pairs_of(std::int64_t k) { return (k + 3) / 4 * 2; }  // whole quads, for crossed products
inline std::int64_t inner(const ConvShape& s) { return s.in_channels / s.groups * volume(s.kernel); }

// Splits `total` into parts whose sizes differ by at most one. The larger parts are spread evenly, because neighbouring parts go
// to the same thread.
struct Shares {
  std::int64_t total = 0, parts = 1;
  std::int64_t begin(std::int64_t i) const { return total * i / parts; }
};

// The number of columns including the padding of each group's last panel, and the size of all panels.
std::int64_t padded_columns(const ConvShape& s, std::int64_t nr);
std::size_t panel_bytes(const ConvShape& s, std::int64_t nr, bool wide);

// Weights of a depthwise convolution: the sum of each channel; whether all weights fit 8 bits; the weights in blocks of nr
// channels, in pairs of taps; and, if qdepthwise_plane_takes() the shape, a copy tap by tap, with channels padded to a multiple
// of 16.
struct DepthwiseParts {
  std::int32_t* sums;
  std::int32_t* narrow;  // 16 equal values
  std::int16_t* by_block;
  std::int16_t* by_tap;
};
DepthwiseParts depthwise_parts(const ConvShape& s, std::int64_t nr, void* packed);

// The epilogue's biases, of `channels` columns, less the share that a zero point has in their sums.
void bias_without_zero(const QEpilogue& e, const std::int32_t* sums, std::int32_t zero, std::int64_t channels,
                       std::int32_t* bias);

Trailer trailer_of(const ConvShape& s, std::int64_t nr, const void* packed, bool wide);
const std::int32_t* cross_of(const ConvShape& s, std::int64_t nr, const void* packed, bool wide);
const std::int32_t* column_sums_of(const ConvShape& s, std::int64_t nr, const void* packed);
QOctetTable octet_table_of(const ConvShape& s, std::int64_t nr, const void* packed, std::int64_t panel);
// The excess of bounded quads: most_excess() entries for each panel, and before them the number of each panel's.
struct ExcessTables {
  std::int32_t* counts;
  QExcess* entries;
  QExcess* of(std::int64_t panel, std::int64_t pairs) const { return entries + panel * most_excess(pairs); }
};
ExcessTables excess_of(const ConvShape& s, std::int64_t nr, const void* packed);

}  // namespace sdx::cpu::nhwc
