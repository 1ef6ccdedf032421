#pragma once
// Gathers a convolution's rows of bytes for vpdpbusd with vectors of any width. Copy has run(to, from, n) and padding(to, n),
// which return the position after the last byte, and windows(), which copies the runs at `offsets` for outputs `step` bytes
// apart. Include between HWY_PUSH_ATTRIBUTES and its end; internal to this folder.

#include <algorithm>

#include "kernels/cpu/conv/int8/quant_quads_vnni.h"

namespace sdx::cpu {
namespace {

// Runs of neighbouring taps: whole rows of taps if they are adjacent in the image, else single taps.
struct Runs {
  std::int64_t taps, count, bytes;
  explicit Runs(const ConvShape& s)
      : taps(s.dilation[2] == 1 ? s.kernel[2] : 1), count(s.kernel[2] / taps), bytes(taps * s.in_channels) {}
};

// Gathers one row, from front to back: each copy may overwrite bytes after its own, which the next one fills.
template <class Copy>
void gather_row(const QSource& q, const Runs& runs, const std::int64_t (&origin)[3], std::int64_t batch, std::uint8_t* to,
                const Copy& copy) {
  const ConvShape& s = *q.shape;
  const std::int64_t channels = s.in_channels;
  for (std::int64_t kz = 0; kz < s.kernel[0]; ++kz) {
    const std::int64_t z = origin[0] + kz * s.dilation[0];
    for (std::int64_t ky = 0; ky < s.kernel[1]; ++ky) {
      const std::int64_t y = origin[1] + ky * s.dilation[1];
      const bool inside = z >= 0 && z < s.in[0] && y >= 0 && y < s.in[1];
      const std::uint8_t* line = q.x + ((batch * s.in[0] + z) * s.in[1] + y) * s.in[2] * channels;
      for (std::int64_t i = 0; i < runs.count; ++i) {
        const std::int64_t x = origin[2] + i * s.dilation[2];
        const std::int64_t begin = inside ? std::clamp<std::int64_t>(-x, 0, runs.taps) : runs.taps;
        const std::int64_t stop = std::clamp<std::int64_t>(s.in[2] - x, begin, runs.taps);
        to = copy.padding(to, begin * channels);
        if (stop > begin) to = copy.run(to, line + (x + begin) * channels, (stop - begin) * channels);
        to = copy.padding(to, (runs.taps - stop) * channels);
      }
    }
  }
}

inline constexpr std::int64_t kMostRuns = 64;

template <class Copy>
void gather_by(const Copy& copy, const QQuadWindow& w, std::int64_t first, std::int64_t count, std::uint8_t* rows) {
  const QSource& q = w.source;
  const ConvShape& s = *q.shape;
  const Runs runs(s);
  const std::int64_t all = runs.count * s.kernel[0] * s.kernel[1], channels = s.in_channels;
  std::int64_t offsets[kMostRuns];
  for (std::int64_t i = 0; i < all && all <= kMostRuns; ++i) {
    const std::int64_t line = i / runs.count, z = line / s.kernel[1] * s.dilation[0], y = line % s.kernel[1] * s.dilation[1];
    offsets[i] = (((z * s.in[1]) + y) * s.in[2] + i % runs.count * s.dilation[2]) * channels;
  }
  // Outputs [from, to) of each line: their windows neither begin before the image's lines nor end after them.
  const std::int64_t reach = (s.kernel[2] - 1) * s.dilation[2] + 1, room = s.in[2] + s.pad[2] - reach;
  const std::int64_t from = std::min(s.out[2], std::max<std::int64_t>(0, s.pad[2] + s.stride[2] - 1) / s.stride[2]);
  const std::int64_t to = room < 0 ? from : std::clamp(room / s.stride[2] + 1, from, s.out[2]);
  std::int64_t x = first % s.out[2], line = first / s.out[2];
  while (count > 0) {
    const std::int64_t z = line / s.out[1] % s.out[0], batch = line / (s.out[1] * s.out[0]);
    std::int64_t origin[3] = {z * s.stride[0] - s.pad[0], line % s.out[1] * s.stride[1] - s.pad[1], 0};
    const bool whole = all <= kMostRuns && origin[0] >= 0 && origin[0] + (s.kernel[0] - 1) * s.dilation[0] < s.in[0] &&
                       origin[1] >= 0 && origin[1] + (s.kernel[1] - 1) * s.dilation[1] < s.in[1];
    const std::int64_t stop = std::min(s.out[2], x + count);
    const std::int64_t inner = whole ? std::clamp(from, x, stop) : stop, behind = whole ? std::clamp(to, inner, stop) : stop;
    const auto edges = [&](std::int64_t end) {
      for (; x < end; ++x, --count, rows += w.row_bytes) {
        origin[2] = x * s.stride[2] - s.pad[2];
        gather_row(q, runs, origin, batch, rows, copy);
      }
    };
    edges(inner);
    if (behind > inner) {
      const std::int64_t pixel = ((batch * s.in[0] + origin[0]) * s.in[1] + origin[1]) * s.in[2] + x * s.stride[2] - s.pad[2];
      copy.windows(q.x + pixel * channels, s.stride[2] * channels, offsets, all, runs.bytes, behind - inner, rows, w.row_bytes);
      rows += (behind - inner) * w.row_bytes;
      count -= behind - inner;
      x = behind;
    }
    edges(stop);
    x = 0;
    ++line;
  }
}

}  // namespace
}  // namespace sdx::cpu
