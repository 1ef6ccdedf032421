#include "kernels/cpu/conv/int8/quant_nhwc_layout.h"

#include <cstring>

#include "kernels/cpu/simd/cuts.h"

namespace sdx::cpu::nhwc {

std::int64_t padded_columns(const ConvShape& s, std::int64_t nr) { return s.groups * round_up(s.out_channels / s.groups, nr); }

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

ExcessTables excess_of(const ConvShape& s, std::int64_t nr, const void* packed) {
  const std::int64_t columns = padded_columns(s, nr);
  auto* counts = const_cast<std::int32_t*>(column_sums_of(s, nr, packed)) + columns;
  return {counts, reinterpret_cast<QExcess*>(counts + columns / nr)};
}

DepthwiseParts depthwise_parts(const ConvShape& s, std::int64_t nr, void* packed) {
  const std::int64_t blocks = round_up(s.groups, nr);
  DepthwiseParts p{};
  p.sums = static_cast<std::int32_t*>(packed);
  p.narrow = p.sums + round_up(blocks, 16);
  p.by_block = reinterpret_cast<std::int16_t*>(p.narrow + 16);
  p.by_tap = p.by_block + blocks * round_up(volume(s.kernel), 2);
  return p;
}

void bias_without_zero(const QEpilogue& e, const std::int32_t* sums, std::int32_t zero, std::int64_t channels,
                       std::int32_t* bias) {
  for (std::int64_t c = 0; c < channels; ++c) {
    const auto own = static_cast<std::uint32_t>(e.bias != nullptr ? e.bias[c] : 0);
    bias[c] = static_cast<std::int32_t>(own - static_cast<std::uint32_t>(sums[c]) * static_cast<std::uint32_t>(zero));
  }
}

Trailer trailer_of(const ConvShape& s, std::int64_t nr, const void* packed, bool wide) {
  Trailer trailer;
  std::memcpy(&trailer, static_cast<const char*>(packed) + panel_bytes(s, nr, wide), sizeof(trailer));
  return trailer;
}

}  // namespace sdx::cpu::nhwc
