#include "kernels/cpu/conv/int8/quant_octets.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/cpu/simd/cuts.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kColumns = 16;
constexpr std::int64_t kSums = 4 * kColumns;  // of a quad: one for each sign, half and column
constexpr int kMostOfOneSign = 258;           // 127 * 258 < 2^15
constexpr std::size_t kOpen = 12;             // quads that may wait for a partner

// Whether two quads can form an octet. The sums of one quad alone never exceed 256.
bool fits(const std::int16_t* a, const std::int16_t* b) {
  std::int16_t most = 0;
  for (std::int64_t i = 0; i < kSums; ++i) most = std::max<std::int16_t>(most, static_cast<std::int16_t>(a[i] + b[i]));
  return most <= kMostOfOneSign;
}

}  // namespace

void qoctet_choose(const std::int8_t* panel, const QOctetTable& table) {
  const std::int64_t quads = table.quads;
  std::vector<std::int16_t> sums(to_size(quads * kSums));
  for (std::int64_t q = 0; q < quads; ++q) {
    std::int16_t* own = sums.data() + q * kSums;
    const std::int8_t* w = panel + q * kSums;
    for (std::int64_t i = 0; i < kSums / 2; ++i) {
      const int v0 = w[2 * i], v1 = w[2 * i + 1];
      own[i] = static_cast<std::int16_t>(std::max(v0, 0) + std::max(v1, 0));
      own[kSums / 2 + i] = static_cast<std::int16_t>(own[i] - v0 - v1);
    }
  }
  // Pairs each quad with one of the last few that have no partner yet, so that rows and panels are read almost in order.
  std::vector<std::uint16_t> open, single;
  std::uint16_t* order = table.order();
  for (std::int64_t q = 0; q < quads; ++q) {
    const auto partner = std::find_if(open.begin(), open.end(), [&](std::uint16_t other) {
      return fits(sums.data() + q * kSums, sums.data() + other * kSums);
    });
    if (partner != open.end()) {
      *order++ = static_cast<std::uint16_t>(*partner * 4);
      *order++ = static_cast<std::uint16_t>(q * 4);
      open.erase(partner);
      continue;
    }
    if (open.size() == kOpen) {
      single.push_back(open.front());
      open.erase(open.begin());
    }
    open.push_back(static_cast<std::uint16_t>(q));
  }
  single.insert(single.end(), open.begin(), open.end());
  table.data[0] = static_cast<std::uint16_t>((order - table.order()) / 2);
  table.data[1] = static_cast<std::uint16_t>(single.size());
  for (const std::uint16_t q : single) *order++ = static_cast<std::uint16_t>(q * 4);
  for (std::int64_t i = 0; i < quads; ++i) table.place()[table.order()[i] / 4] = static_cast<std::uint16_t>(i);
}

void qoctet_arrange(std::int8_t* panel, const QOctetTable& table, std::int8_t* scratch) {
  std::memcpy(scratch, panel, to_size(table.quads * kSums));
  for (std::int64_t i = 0; i < table.quads; ++i) {
    const std::int8_t* from = scratch + table.order()[i] * kColumns;
    std::int8_t* to = panel + i * kSums;
    for (std::int64_t j = 0; j < kColumns; ++j) {
      std::memcpy(to + 4 * j, from + 2 * j, 2);
      std::memcpy(to + 4 * j + 2, from + 2 * kColumns + 2 * j, 2);
    }
  }
}

void qoctet_gather(const QSource& q, std::int64_t first, const QOctetRows& r) {
  const std::int64_t bytes = q.k;
  const auto tail = [&](std::uint8_t* row) { std::memset(row + bytes, 0, to_size(r.stride - bytes)); };
  if (q.shape == nullptr) {
    for (std::int64_t i = 0; i < r.count; ++i) {
      std::memcpy(r.rows + i * r.stride, q.x + (first + i) * q.lda, to_size(bytes));
      tail(r.rows + i * r.stride);
    }
    return;
  }
  const ConvShape& s = *q.shape;
  const std::int64_t channels = s.in_channels;
  // Copies whole runs of neighbouring taps if they are adjacent, else one tap at a time.
  const bool runs = s.dilation[2] == 1;
  const std::int64_t parts = runs ? 1 : s.kernel[2];
  const std::int64_t taps = runs ? s.kernel[2] : 1;
  for (std::int64_t i = 0; i < r.count; ++i) {
    const std::int64_t at = first + i;
    const std::int64_t x0 = at % s.out[2] * s.stride[2] - s.pad[2];
    const std::int64_t y0 = at / s.out[2] % s.out[1] * s.stride[1] - s.pad[1];
    const std::int64_t z0 = at / (s.out[2] * s.out[1]) % s.out[0] * s.stride[0] - s.pad[0];
    const std::int64_t batch = at / (s.out[2] * s.out[1] * s.out[0]);
    std::uint8_t* to = r.rows + i * r.stride;
    for (std::int64_t kz = 0; kz < s.kernel[0]; ++kz) {
      const std::int64_t z = z0 + kz * s.dilation[0];
      for (std::int64_t ky = 0; ky < s.kernel[1]; ++ky) {
        const std::int64_t y = y0 + ky * s.dilation[1];
        const bool inside = z >= 0 && z < s.in[0] && y >= 0 && y < s.in[1];
        const std::uint8_t* line = q.x + ((batch * s.in[0] + z) * s.in[1] + y) * s.in[2] * channels;
        for (std::int64_t part = 0; part < parts; ++part, to += taps * channels) {
          const std::int64_t x = x0 + part * s.dilation[2];
          const std::int64_t begin = inside ? std::clamp<std::int64_t>(-x, 0, taps) : taps;
          const std::int64_t stop = std::clamp<std::int64_t>(s.in[2] - x, begin, taps);
          std::memset(to, q.zero & 0xFF, to_size(begin * channels));
          if (stop > begin) std::memcpy(to + begin * channels, line + (x + begin) * channels, to_size((stop - begin) * channels));
          std::memset(to + stop * channels, q.zero & 0xFF, to_size((taps - stop) * channels));
        }
      }
    }
    tail(r.rows + i * r.stride);
  }
}

}  // namespace sdx::cpu
