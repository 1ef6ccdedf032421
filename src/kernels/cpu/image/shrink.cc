#include "kernels/cpu/image/shrink.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/cpu/image/shrink_simd.h"

namespace sdx::cpu {
namespace {

// The pixels along a side that each new pixel covers, and their weights. Each has `count` weights; surplus ones are 0.
struct Cover {
  std::vector<std::int64_t> first;
  std::vector<float> weights;  // [new side][count]
  std::int64_t count = 0;
};

Cover cover(std::int64_t side, std::int64_t new_side) {
  const double ratio = static_cast<double>(side) / static_cast<double>(new_side);
  Cover out;
  out.count = std::min(side, static_cast<std::int64_t>(std::ceil(ratio)) + 1);
  out.weights.assign(static_cast<std::size_t>(new_side * out.count), 0.0F);
  for (std::int64_t i = 0; i < new_side; ++i) {
    const double begin = static_cast<double>(i) * ratio, end = std::min(begin + ratio, static_cast<double>(side));
    const std::int64_t first = std::clamp(static_cast<std::int64_t>(begin), std::int64_t{0}, side - out.count);
    out.first.push_back(first);
    for (std::int64_t t = 0; t < out.count; ++t) {
      const auto left = static_cast<double>(first + t);
      const double covered = std::min(end, left + 1) - std::max(begin, left);
      if (covered > 1e-6) out.weights[static_cast<std::size_t>(i * out.count + t)] = static_cast<float>(covered / ratio);
    }
  }
  return out;
}

using Four = float __attribute__((vector_size(16)));

Four load4(const float* p) {
  Four v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// A pixel's channels side by side in one vector, which may extend past the row's end by up to three floats.
template <int kChannels>
void across(const Cover& columns, const float* row, std::uint8_t* to) {
  for (std::size_t x = 0; x < columns.first.size(); ++x, to += kChannels) {
    const float* p = row + columns.first[x] * kChannels;
    const float* w = columns.weights.data() + x * static_cast<std::size_t>(columns.count);
    Four even{}, odd{};
    std::int64_t t = 0;
    for (; t + 2 <= columns.count; t += 2, p += 2 * kChannels) {
      even += load4(p) * w[t];
      odd += load4(p + kChannels) * w[t + 1];
    }
    if (t < columns.count) even += load4(p) * w[t];
    even += odd;
    for (int c = 0; c < kChannels; ++c) to[c] = static_cast<std::uint8_t>(std::lrint(even[c]));
  }
}

}  // namespace

void shrink_u8(const ShrinkShape& s, const std::uint8_t* from, std::uint8_t* to) {
  const Cover columns = cover(s.width, s.new_width), rows = cover(s.height, s.new_height);
  const std::int64_t stride = s.width * s.channels;
  std::vector<float> sums(static_cast<std::size_t>(stride) + 4);
  const ShrinkKernels& kernels = shrink_kernels();
  for (std::int64_t y = 0; y < s.new_height; ++y) {
    const auto at = static_cast<std::size_t>(y);
    kernels.add_rows(from + rows.first[at] * stride, stride, rows.weights.data() + at * static_cast<std::size_t>(rows.count),
                     rows.count, sums.data(), stride);
    std::uint8_t* const row = to + y * s.new_width * s.channels;
    if (s.channels == 1) across<1>(columns, sums.data(), row);
    if (s.channels == 3) across<3>(columns, sums.data(), row);
    if (s.channels == 4) across<4>(columns, sums.data(), row);
  }
}

void split3_u8(const std::uint8_t* pixels, std::int64_t count, const std::array<float, 3>& mean, float scale,
               const std::array<float*, 3>& planes) {
  shrink_kernels().split3(pixels, count, mean.data(), scale, planes.data());
}

}  // namespace sdx::cpu
