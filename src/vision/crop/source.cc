#include "vision/crop/source.h"

#include <algorithm>

namespace sdx::vision {
namespace {

const std::uint8_t* pixel(const Part& part, int x, int y) {
  return part.pixels.row(y - part.y) + static_cast<std::size_t>(x - part.x) * static_cast<std::size_t>(part.pixels.channels);
}

// 65535 rows of 65025 fit into 32 bits.
void add_row(const std::uint8_t* from, std::size_t pixels, int channels, std::uint32_t* to) {
  if (channels != 4) {
    for (std::size_t i = 0; i < pixels * static_cast<std::size_t>(channels); ++i) to[i] += from[i];
    return;
  }
  for (std::size_t i = 0; i < pixels; ++i, from += 4, to += 4) {
    const std::uint32_t opacity = from[3];
    for (std::size_t c = 0; c < 3; ++c) to[c] += from[c] * opacity;
    to[3] += opacity * 255;
  }
}

}  // namespace

Source::Source(const Part& part, const faces::Region& region, int reduction) {
  if (reduction > 1) {
    average(part, region, reduction);
  } else if (part.pixels.channels == 4) {
    multiply(part, region);
  } else {
    view_ = View<std::uint8_t>{part.pixels.pixels.data(), part.pixels.stride(), part.x, part.y, part.pixels.channels};
  }
}

void Source::multiply(const Part& part, const faces::Region& region) {
  const auto width = static_cast<std::size_t>(region.width), height = static_cast<std::size_t>(region.height);
  multiplied_.resize(width * height * 4);
  for (std::size_t row = 0; row < height; ++row) {
    const std::uint8_t* from = pixel(part, region.x, region.y + static_cast<int>(row));
    std::uint16_t* to = multiplied_.data() + row * width * 4;
    for (std::size_t i = 0; i < width; ++i, from += 4, to += 4) {
      const unsigned opacity = from[3];
      for (std::size_t c = 0; c < 3; ++c) to[c] = static_cast<std::uint16_t>(from[c] * opacity);
      to[3] = static_cast<std::uint16_t>(opacity * 255);
    }
  }
  view_ = View<std::uint16_t>{multiplied_.data(), width * 4, region.x, region.y, 4};
}

void Source::average(const Part& part, const faces::Region& region, int reduction) {
  const int channels = part.pixels.channels;
  const auto lanes = static_cast<std::size_t>(channels);
  const int across = (region.width - 1) / reduction + 1, down = (region.height - 1) / reduction + 1;
  const std::size_t stride = static_cast<std::size_t>(across) * lanes;
  averaged_.resize(stride * static_cast<std::size_t>(down));
  std::vector<std::uint32_t> sums(static_cast<std::size_t>(region.width) * lanes);
  for (int row = 0; row < down; ++row) {
    std::fill(sums.begin(), sums.end(), 0U);
    const std::int64_t begin = static_cast<std::int64_t>(row) * reduction;
    const int rows = static_cast<int>(std::min<std::int64_t>(reduction, region.height - begin));
    for (int i = 0; i < rows; ++i) {
      add_row(pixel(part, region.x, region.y + static_cast<int>(begin) + i), static_cast<std::size_t>(region.width), channels,
              sums.data());
    }
    float* to = averaged_.data() + static_cast<std::size_t>(row) * stride;
    for (int column = 0; column < across; ++column) {
      const std::int64_t left = static_cast<std::int64_t>(column) * reduction;
      const auto columns = static_cast<std::size_t>(std::min<std::int64_t>(reduction, region.width - left));
      const std::uint32_t* from = sums.data() + static_cast<std::size_t>(left) * lanes;
      const double count = static_cast<double>(rows) * static_cast<double>(columns);
      for (std::size_t c = 0; c < lanes; ++c) {
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < columns; ++i) sum += from[i * lanes + c];
        *to++ = static_cast<float>(static_cast<double>(sum) / count);
      }
    }
  }
  view_ = View<float>{averaged_.data(), stride, region.x / reduction, region.y / reduction, channels};
}

}  // namespace sdx::vision
