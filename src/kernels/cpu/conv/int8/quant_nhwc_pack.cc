#include "kernels/cpu/conv/int8/quant_nhwc_pack.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "kernels/cpu/conv/int8/depthwise/quant_depthwise_plane.h"
#include "kernels/cpu/conv/int8/grouped/quant_grouped.h"
#include "kernels/cpu/conv/int8/quant_bounded.h"
#include "kernels/cpu/conv/int8/quant_nhwc_layout.h"
#include "kernels/cpu/conv/int8/quant_nhwc_simd.h"
#include "kernels/cpu/conv/int8/quant_octets.h"
#include "kernels/cpu/conv/int8/quant_octets_simd.h"
#include "kernels/cpu/conv/int8/quant_quads_amx.h"
#include "kernels/cpu/simd/cuts.h"

namespace sdx::cpu {

using namespace nhwc;

namespace {

constexpr std::int64_t kLeastOctets = 96;        // K; with less, octets gain no more than a tile's fixed costs
constexpr std::int64_t kLeastOctetColumns = 48;  // with fewer, octets do not make up for splitting the rows
constexpr std::int64_t kMostSingles = 45;        // percent of the quads; single quads are no faster than pairs of int16

// Exchanges the parts of `first` above those in the mask with the masked parts of `second`.
inline void exchange(std::uint64_t& first, std::uint64_t& second, int bits, std::uint64_t mask) {
  const std::uint64_t t = ((first >> bits) ^ second) & mask;
  second ^= t;
  first ^= t << bits;
}

// Transposes 8 words of 8 bytes in three steps that exchange halves.
inline void transpose_8x8(std::uint64_t* words) {
  for (const int i : {0, 1, 2, 3}) exchange(words[i], words[i + 4], 32, 0x00000000FFFFFFFF);
  for (const int i : {0, 1, 4, 5}) exchange(words[i], words[i + 2], 16, 0x0000FFFF0000FFFF);
  for (const int i : {0, 2, 4, 6}) exchange(words[i], words[i + 1], 8, 0x00FF00FF00FF00FF);
}

// Copies output channels [first, first + columns) into rows of kNr bytes in the order of K in packed weights: taps outside,
// channels inside. Bytes of channels that do not exist are undefined. Copying 8-byte words takes a third of the time of single
// bytes.
template <std::int64_t kNr>
void gather_rows(const ConvShape& s, const QWeights& w, std::int64_t first, std::int64_t columns, std::uint8_t* rows) {
  const std::int64_t channels = s.in_channels / s.groups, taps = volume(s.kernel), k = channels * taps;
  const std::uint8_t* const data = Column(s, w, first, k).data();
  std::int64_t tap = 0, channel = 0;
  const auto next = [&] {
    std::uint8_t* const row = rows + (tap * channels + channel) * kNr;
    if (++tap == taps) {
      tap = 0;
      ++channel;
    }
    return row;
  };
  if (w.transposed) {
    for (std::int64_t i = 0; i < k; ++i) std::memcpy(next(), data + i * s.out_channels, to_size(columns));
    return;
  }
  constexpr std::int64_t kLine = 64;
  std::int64_t i = 0;
  for (; kNr % 8 == 0 && i + kLine <= k; i += kLine) {
    std::uint8_t* to[kLine];
    for (std::uint8_t*& row : to) row = next();
    for (std::int64_t j = 0; j < columns; j += 8) {
      const std::uint8_t* from[8];
      for (std::int64_t c = 0; c < 8; ++c) from[c] = data + std::min(j + c, columns - 1) * k + i;
      if (i + 2 * kLine <= k) {
        for (const std::uint8_t* at : from) __builtin_prefetch(at + kLine);
      }
      for (std::int64_t r = 0; r < kLine; r += 8) {
        std::uint64_t words[8];
        for (std::int64_t c = 0; c < 8; ++c) std::memcpy(words + c, from[c] + r, 8);
        transpose_8x8(words);
        for (std::int64_t q = 0; q < 8; ++q) std::memcpy(to[r + q] + j, words + q, 8);
      }
    }
  }
  for (; i < k; ++i) {
    std::uint8_t* const row = next();
    for (std::int64_t j = 0; j < columns; ++j) row[j] = data[j * k + i];
  }
}

// Packs one panel: output channels [first, first + kNr) of a group, `columns` of which exist. cross[kNr] receives the surplus of
// crossed products for each channel: the sum over quads of b0 b2 + b1 b3. Returns an upper bound of the sums' absolute values,
// whatever the image and its zero point: values lie in [-zero, 255 - zero], and all positive weights may meet the largest value
// and all negative weights the smallest. Works row by row on strips whose sums fit int16, so that compilers can vectorize it.
template <class T, std::int64_t kNr>
std::int64_t pack_panel(const ConvShape& s, const QWeights& w, std::int64_t first, std::int64_t columns, T* out,
                        std::int32_t* cross) {
  constexpr std::int64_t kStrip = 64;  // values in [-255, 255]: their sum stays below 2^15
  const std::int64_t k = inner(s), rows = pairs_of(k) * 2;
  std::int16_t zero[kNr] = {};
  for (std::int64_t j = 0; j < columns; ++j) zero[j] = static_cast<std::int16_t>(Column(s, w, first + j, k).zero());
  const auto flip = static_cast<std::uint8_t>(Column(s, w, first, k).flip());
  std::vector<std::uint8_t> bytes(to_size(k * kNr));
  gather_rows<kNr>(s, w, first, columns, bytes.data());
  std::int64_t above[kNr] = {}, total[kNr] = {};
  std::uint32_t sums[kNr] = {};
  std::int16_t strip[kStrip][kNr] = {};
  for (std::int64_t row = 0; row < rows; row += kStrip) {
    const std::int64_t count = std::min(kStrip, rows - row);  // a multiple of 4
    for (std::int64_t r = 0; r < count; ++r) {
      const bool exists = row + r < k;
      const std::uint8_t* const from = bytes.data() + (row + r) * kNr;
      for (std::int64_t j = 0; exists && j < kNr; ++j) strip[r][j] = static_cast<std::int16_t>((from[j] ^ flip) - zero[j]);
      std::fill(strip[r] + (exists ? columns : 0), strip[r] + kNr, std::int16_t{0});
    }
    std::int16_t up[kNr] = {}, all[kNr] = {};
    for (std::int64_t r = 0; r < count; r += 2, out += kNr * 2) {
      for (std::int64_t j = 0; j < kNr; ++j) {
        const std::int16_t v0 = strip[r][j], v1 = strip[r + 1][j];
        out[j * 2] = static_cast<T>(v0);
        out[j * 2 + 1] = static_cast<T>(v1);
      }
      for (std::int64_t j = 0; j < kNr; ++j) {
        const std::int16_t v0 = strip[r][j], v1 = strip[r + 1][j];
        up[j] = static_cast<std::int16_t>(up[j] + std::max<std::int16_t>(v0, 0) + std::max<std::int16_t>(v1, 0));
        all[j] = static_cast<std::int16_t>(all[j] + v0 + v1);
      }
    }
    for (std::int64_t r = 0; r < count; r += 4) {
      for (std::int64_t j = 0; j < kNr; ++j) {
        sums[j] += static_cast<std::uint32_t>(strip[r][j] * strip[r + 2][j] + strip[r + 1][j] * strip[r + 3][j]);
      }
    }
    for (std::int64_t j = 0; j < kNr; ++j) {
      above[j] += up[j];
      total[j] += all[j];
    }
  }
  std::int64_t largest = 0;
  for (std::int64_t j = 0; j < kNr; ++j) {
    largest = std::max({largest, 255 * above[j], 255 * (above[j] - total[j])});
    cross[j] = static_cast<std::int32_t>(sums[j]);
  }
  return largest;
}

template <class T>
auto panel_packer(std::int64_t nr) {
  switch (nr) {
    case 2: return pack_panel<T, 2>;
    case 8: return pack_panel<T, 8>;
    case 16: return pack_panel<T, 16>;
    case 32: return pack_panel<T, 32>;
    default: fail(ErrorCode::internal, "panels of {} columns", nr);
  }
}

// Packs all panels on all threads: on one thread this takes half of a network's loading time. cross: of all panels' columns.
template <class T>
std::int64_t pack_panels(const ConvShape& s, const QWeights& w, std::int64_t nr, T* out, std::int32_t* cross) {
  const std::int64_t columns = s.out_channels / s.groups;
  const std::int64_t panels = (columns + nr - 1) / nr, size = pairs_of(inner(s)) * 2 * nr;
  std::vector<std::int64_t> largest(to_size(s.groups * panels));
  const auto pack = panel_packer<T>(nr);
  parallel_for(s.groups * panels, std::max<std::int64_t>(1, (1 << 14) / size), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t column = i % panels * nr;
      largest[to_size(i)] =
          pack(s, w, i / panels * columns + column, std::min(nr, columns - column), out + i * size, cross + i * nr);
    }
  });
  return *std::max_element(largest.begin(), largest.end());
}

// Stores four rows of kNr bytes column by column.
template <std::int64_t kNr>
void interleave_rows(const std::uint8_t* rows, std::int8_t* to) {
  static_assert(kNr % 8 == 0);
  constexpr std::uint64_t kLow = 0xFFFFFFFF;
  for (std::int64_t j = 0; j < kNr; j += 8, to += 32) {
    std::uint64_t words[4];
    for (std::int64_t r = 0; r < 4; ++r) std::memcpy(words + r, rows + r * kNr + j, 8);
    for (const int i : {0, 2}) exchange(words[i], words[i + 1], 8, 0x00FF00FF00FF00FF);
    for (const int i : {0, 1}) exchange(words[i], words[i + 2], 16, 0x0000FFFF0000FFFF);
    // Words hold columns 0 and 4, 1 and 5, 2 and 6, 3 and 7.
    const std::uint64_t columns[4] = {(words[0] & kLow) | words[1] << 32, (words[2] & kLow) | words[3] << 32,
                                      words[0] >> 32 | (words[1] & ~kLow), words[2] >> 32 | (words[3] & ~kLow)};
    std::memcpy(to, columns, sizeof(columns));
  }
}

// Packs panels as quads [quads][kNr][4], and sums their columns.
template <std::int64_t kNr>
class QuadPacker {
 public:
  QuadPacker(const ConvShape& s, const QWeights& w, std::int8_t* packed, std::int32_t* sums)
      : s_(s), w_(w), k_(inner(s)), rows_(pairs_of(k_) * 2), packed_(packed), sums_(sums) {}

  void pack(std::int64_t begin, std::int64_t end) const {
    std::fill(sums_ + begin * kNr, sums_ + end * kNr, 0);
    std::vector<std::uint8_t> bytes(to_size((w_.transposed ? kStrip : rows_) * kNr));
    if (!w_.transposed) {
      for (std::int64_t p = begin; p < end; ++p) {
        gather_rows<kNr>(s_, w_, p * kNr, columns(p), bytes.data());
        for (std::int64_t row = 0; row < rows_; row += kStrip) pack_strip(p, row, bytes.data() + row * kNr);
      }
      return;
    }
    // Panels next to each other share cache lines.
    constexpr std::int64_t kTogether = 8;
    for (std::int64_t first = begin; first < end; first += kTogether) {
      for (std::int64_t row = 0; row < rows_; row += kStrip) {
        for (std::int64_t p = first; p < std::min(end, first + kTogether); ++p) {
          copy_rows(p, row, p == first ? kTogether * kNr : 0, bytes.data());
          pack_strip(p, row, bytes.data());
        }
      }
    }
  }

 private:
  static constexpr std::int64_t kStrip = 128;  // rows of values in [-128, 127], whose sums fit int16

  std::int64_t columns(std::int64_t panel) const { return std::min(kNr, s_.out_channels - panel * kNr); }

  // Prefetches `ahead` bytes of rows that follow.
  void copy_rows(std::int64_t panel, std::int64_t row, std::int64_t ahead, std::uint8_t* to) const {
    const auto* from = static_cast<const std::uint8_t*>(w_.data) + row * s_.out_channels + panel * kNr;
    const std::int64_t count = std::min(kStrip, k_ - row), existing = columns(panel);
    for (std::int64_t r = 0; r < count; ++r, from += s_.out_channels, to += kNr) {
      for (std::int64_t i = 0; i < ahead; i += 64) __builtin_prefetch(from + 24 * s_.out_channels + i);
      existing == kNr ? std::memcpy(to, from, kNr) : std::memcpy(to, from, to_size(existing));
    }
  }

  void pack_strip(std::int64_t panel, std::int64_t row, std::uint8_t* bytes) const {
    std::uint8_t zero[kNr] = {}, exists[kNr] = {};
    for (std::int64_t j = 0; j < columns(panel); ++j) {
      zero[j] = static_cast<std::uint8_t>(Column(s_, w_, panel * kNr + j, k_).zero());
      exists[j] = 0xFF;
    }
    const auto flip = static_cast<std::uint8_t>(w_.is_signed ? 0x80 : 0);
    const std::int64_t count = std::min(kStrip, rows_ - row), filled = std::min(count, k_ - row);
    std::int16_t all[kNr] = {};
    for (std::int64_t r = 0; r < filled; ++r) {
      std::uint8_t* const values = bytes + r * kNr;
      for (std::int64_t j = 0; j < kNr; ++j) values[j] = static_cast<std::uint8_t>(((values[j] ^ flip) - zero[j]) & exists[j]);
      if constexpr (kNr > 8) {
        for (std::int64_t j = 0; j < kNr; ++j) all[j] = static_cast<std::int16_t>(all[j] + static_cast<std::int8_t>(values[j]));
      }
    }
    // NEON's panels: GCC 12.2 vectorises the sum above over pairs of rows and forgets one of each.
    for (std::int64_t j = 0; kNr == 8 && j < kNr; ++j) {
      std::int32_t sum = 0;
      for (std::int64_t r = 0; r < filled; ++r) sum += static_cast<std::int8_t>(bytes[r * kNr + j]);
      all[j] = static_cast<std::int16_t>(sum);
    }
    std::fill(bytes + filled * kNr, bytes + count * kNr, std::uint8_t{0});
    for (std::int64_t j = 0; j < kNr; ++j) sums_[panel * kNr + j] += all[j];
    std::int8_t* out = packed_ + (panel * rows_ + row) * kNr;
    for (std::int64_t r = 0; r < count; r += 4, out += 4 * kNr) interleave_rows<kNr>(bytes + r * kNr, out);
  }

  const ConvShape& s_;
  const QWeights& w_;
  std::int64_t k_, rows_;
  std::int8_t* packed_;
  std::int32_t* sums_;
};

// Packs all panels as quads: of one group, with weights of 8 bits.
void pack_all_quads(const ConvShape& s, const QWeights& w, std::int64_t nr, std::int8_t* packed) {
  const std::int64_t panels = padded_columns(s, nr) / nr, size = pairs_of(inner(s)) * 2 * nr;
  auto* const sums = const_cast<std::int32_t*>(column_sums_of(s, nr, packed));
  parallel_for(panels, std::max<std::int64_t>(1, (1 << 14) / size), [&](std::int64_t begin, std::int64_t end) {
    switch (nr) {
      case 8: return QuadPacker<8>(s, w, packed, sums).pack(begin, end);
      case 16: return QuadPacker<16>(s, w, packed, sums).pack(begin, end);
      case 32: return QuadPacker<32>(s, w, packed, sums).pack(begin, end);
      default: fail(ErrorCode::internal, "panels of {} columns", nr);
    }
  });
}

void pack_depthwise(const ConvShape& s, const QWeights& w, std::int64_t nr, void* packed) {
  const std::int64_t taps = volume(s.kernel);
  const std::int64_t even = round_up(taps, 2);
  const std::int64_t blocks = round_up(s.groups, nr);
  const DepthwiseParts parts = depthwise_parts(s, nr, packed);
  std::int32_t* const sums = parts.sums;
  std::int16_t* const out = parts.by_block;
  // The kernels of quant_depthwise_plane.cc read a second copy, tap by tap.
  std::int16_t* by_tap = qdepthwise_plane_takes(s) ? parts.by_tap : nullptr;
  const std::int64_t tap_step = round_up(s.groups, 16);
  std::fill(sums, sums + round_up(blocks, 16), 0);
  std::fill(out, out + blocks * even, std::int16_t{0});
  if (by_tap != nullptr) std::fill(by_tap, by_tap + taps * tap_step, std::int16_t{0});
  bool narrow = true;
  for (std::int64_t c = 0; c < s.groups; ++c) {
    const Column values(s, w, c, taps);
    for (std::int64_t t = 0; t < taps; ++t) {
      const std::int32_t v = values[t];
      narrow = narrow && v >= -128 && v <= 127;
      sums[c] += v;
      out[c / nr * nr * even + t / 2 * nr * 2 + c % nr * 2 + t % 2] = static_cast<std::int16_t>(v);
      if (by_tap != nullptr) by_tap[t * tap_step + c] = static_cast<std::int16_t>(v);
    }
  }
  std::fill(parts.narrow, parts.narrow + 16, narrow ? 1 : 0);
}

// Shapes for which quant_winograd.cc needs panels of pairs.
bool winograd_shape(const ConvShape& s) {
  return s.kernel[0] == 1 && s.kernel[1] == 3 && s.kernel[2] == 3 && s.stride[1] == 1 && s.stride[2] == 1 && s.dilation[1] == 1 &&
         s.dilation[2] == 1;
}

// Whether panels hold quads of bytes: the machine has instructions that multiply bytes exactly.
bool uses_quads(const ConvShape& s, bool wide) { return !wide && s.groups == 1 && qnhwc_kernels().quads != nullptr; }

// Whether packing tries octets.
bool may_use_octets(const ConvShape& s, const QWeights& w, bool wide) {
  if (!w.low_activations || wide || s.groups != 1 || qoctet_kernels() == nullptr) return false;
  const std::int64_t k = inner(s);
  if (k < kLeastOctets || s.out_channels < kLeastOctetColumns || k > 4 * kMostOctetQuads) return false;
  return w.for_convolution && !winograd_shape(s);
}

// Whether packing tries bounded quads: for matrices, which are quantised with one scale more often than convolutions are.
bool may_be_bounded(const ConvShape& s, const QWeights& w, bool wide) {
  constexpr std::int64_t kLeast = 32, kMost = 65536;  // K
  if (wide || s.groups != 1 || w.for_convolution || volume(s.kernel) != 1 || qnhwc_kernels().bounded == nullptr) return false;
  return inner(s) >= kLeast && inner(s) <= kMost;
}

void sum_columns(const std::int8_t* panel, std::int64_t size, std::int64_t nr, std::int32_t* sums) {
  std::fill(sums, sums + nr, 0);
  for (std::int64_t i = 0; i < size; i += 2 * nr) {
    for (std::int64_t j = 0; j < nr; ++j) sums[j] += panel[i + 2 * j] + panel[i + 2 * j + 1];
  }
}

// Rearranges panels from [quads][2][nr][2] to [quads][nr][4].
void pack_quads(const ConvShape& s, std::int64_t nr, std::int8_t* packed) {
  const std::int64_t panels = padded_columns(s, nr) / nr, size = pairs_of(inner(s)) * 2 * nr;
  auto* sums = const_cast<std::int32_t*>(column_sums_of(s, nr, packed));
  parallel_for(panels, std::max<std::int64_t>(1, (1 << 14) / size), [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::int8_t> pairs(to_size(size));
    for (std::int64_t p = begin; p < end; ++p) {
      std::int8_t* to = packed + p * size;
      std::memcpy(pairs.data(), to, to_size(size));
      sum_columns(to, size, nr, sums + p * nr);
      for (const std::int8_t* from = pairs.data(); from < pairs.data() + size; from += 4 * nr) {
        for (std::int64_t j = 0; j < nr; ++j, to += 4) {
          std::memcpy(to, from + 2 * j, 2);
          std::memcpy(to + 2, from + 2 * nr + 2 * j, 2);
        }
      }
    }
  });
}

// Bounds panels of pairs and rearranges them into quads; false, and they are as before, if one has too much excess.
bool pack_bounded(const ConvShape& s, std::int64_t nr, std::int8_t* packed) {
  const std::int64_t panels = padded_columns(s, nr) / nr, pairs = pairs_of(inner(s));
  const std::int64_t grain = std::max<std::int64_t>(1, (1 << 14) / (pairs * nr));
  const ExcessTables tables = excess_of(s, nr, packed);
  parallel_for(panels, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      tables.counts[p] = find_excess(packed + p * pairs * 2 * nr, pairs, nr, tables.of(p, pairs));
    }
  });
  if (*std::min_element(tables.counts, tables.counts + panels) < 0) return false;
  for (std::int64_t p = 0; p < panels; ++p) {
    cut_excess(packed + p * pairs * 2 * nr, nr, tables.of(p, pairs), tables.counts[p]);
  }
  pack_quads(s, nr, packed);
  auto* sums = const_cast<std::int32_t*>(column_sums_of(s, nr, packed));
  for (std::int64_t p = 0; p < panels; ++p) {
    for (std::int64_t i = 0; i < tables.counts[p]; ++i) {
      const QExcess& e = tables.of(p, pairs)[i];
      sums[p * nr + e.column] += e.weight;
    }
  }
  return true;
}

// Rearranges panels of pairs into octets; false if too many quads find no partner.
bool pack_octets(const ConvShape& s, std::int64_t nr, std::int8_t* packed) {
  const std::int64_t panels = padded_columns(s, nr) / nr, size = pairs_of(inner(s)) * 2 * nr;
  auto* sums = const_cast<std::int32_t*>(column_sums_of(s, nr, packed));
  const std::int64_t grain = std::max<std::int64_t>(1, (1 << 14) / size);
  std::vector<std::int64_t> singles(to_size(panels));
  parallel_for(panels, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      const QOctetTable table = octet_table_of(s, nr, packed, p);
      qoctet_choose(packed + p * size, table);
      singles[to_size(p)] = table.singles();
      sum_columns(packed + p * size, size, nr, sums + p * nr);
    }
  });
  const std::int64_t all = std::accumulate(singles.begin(), singles.end(), std::int64_t{0});
  if (all * 100 > panels * size / (4 * nr) * kMostSingles) return false;
  parallel_for(panels, grain, [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::int8_t> scratch(to_size(size));
    for (std::int64_t p = begin; p < end; ++p) {
      qoctet_arrange(packed + p * size, octet_table_of(s, nr, packed, p), scratch.data());
    }
  });
  return true;
}

}  // namespace

bool qnhwc_is_depthwise(const ConvShape& s) { return s.groups > 1 && s.in_channels == s.groups && s.out_channels == s.groups; }

bool qnhwc_is_wide(const ConvShape& s, const QWeights& w) {
  if (qnhwc_is_depthwise(s)) return true;
  // With the usual zero points all weights fit 8 bits, so they need not be read.
  const std::int32_t usual = w.is_signed ? 0 : 128;
  const std::int64_t zeros = w.zero_points == nullptr ? 0 : std::max<std::int64_t>(1, w.zero_point_count);
  bool narrow = zeros > 0 || w.is_signed;
  for (std::int64_t j = 0; j < zeros; ++j) narrow = narrow && w.zero_points[j] == usual;
  if (narrow || w.data == nullptr) return !narrow;
  const std::int64_t k = inner(s);
  for (std::int64_t j = 0; j < s.out_channels; ++j) {
    const Column values(s, w, j, k);
    for (std::int64_t i = 0; i < k; ++i) {
      if (values[i] < -128 || values[i] > 127) return true;
    }
  }
  return false;
}

int qnhwc_order(const ConvShape& s, const QWeights& w, bool wide) {
  if (qnhwc_is_depthwise(s)) return kPairs;
  if (qgrouped_takes(s, wide)) return kGrouped;
  if (uses_quads(s, wide)) return kQuads;
  if (may_use_octets(s, w, wide)) return kOctets;
  return may_be_bounded(s, w, wide) ? kBounded : kPairs;
}

std::size_t qnhwc_packed_bytes(const ConvShape& s, const QWeights& w, bool wide) {
  const std::int64_t nr = qnhwc_kernels().nr;
  if (qnhwc_is_depthwise(s)) {
    const std::int64_t blocks = round_up(s.groups, nr);
    const std::int64_t by_tap = qdepthwise_plane_takes(s) ? round_up(s.groups, 16) * volume(s.kernel) : 0;
    return to_size(round_up(blocks, 16) * 4 + 64 + (blocks * round_up(volume(s.kernel), 2) + by_tap) * 2);
  }
  if (qgrouped_takes(s, wide)) return qgrouped_packed_bytes(s);
  const std::int64_t columns = padded_columns(s, nr);
  const std::size_t usual = panel_bytes(s, nr, wide) + sizeof(Trailer) + to_size(columns) * sizeof(std::int32_t);
  const int order = qnhwc_order(s, w, wide);
  if (order == kPairs) return usual;
  if (order == kQuads) return usual + to_size(columns) * sizeof(std::int32_t) + to_size(kTileSlack);
  if (order == kBounded) {
    return usual + to_size(columns) * sizeof(std::int32_t) +
           to_size(columns / nr) * (sizeof(std::int32_t) + to_size(most_excess(pairs_of(inner(s)))) * sizeof(QExcess));
  }
  return usual + to_size(columns) * sizeof(std::int32_t) +
         to_size(columns / nr * qoctet_table_units(pairs_of(inner(s)) / 2)) * sizeof(std::uint16_t);
}

void qnhwc_pack(const ConvShape& s, const QWeights& w, bool wide, void* packed) {
  const std::int64_t nr = qnhwc_kernels().nr;
  if (qnhwc_is_depthwise(s)) return pack_depthwise(s, w, nr, packed);
  if (qgrouped_takes(s, wide)) return qgrouped_pack(s, w, packed);
  char* const behind = static_cast<char*>(packed) + panel_bytes(s, nr, wide);
  auto* cross = reinterpret_cast<std::int32_t*>(behind + sizeof(Trailer));
  Trailer trailer;
  trailer.order = qnhwc_order(s, w, wide);
  if (trailer.order == kQuads) {  // no other order is tried, and crossed products not used
    std::fill_n(cross, padded_columns(s, nr), 0);
    pack_all_quads(s, w, nr, static_cast<std::int8_t*>(packed));
  } else {
    trailer.largest = wide ? pack_panels(s, w, nr, static_cast<std::int16_t*>(packed), cross)
                           : pack_panels(s, w, nr, static_cast<std::int8_t*>(packed), cross);
  }
  if (trailer.order == kOctets && !pack_octets(s, nr, static_cast<std::int8_t*>(packed))) trailer.order = kPairs;
  if (trailer.order == kBounded && !pack_bounded(s, nr, static_cast<std::int8_t*>(packed))) trailer.order = kPairs;
  std::memcpy(behind, &trailer, sizeof(trailer));
}

}  // namespace sdx::cpu
