#include "vision/crop/source.h"

#include <algorithm>
#include <type_traits>

namespace sdx::vision {
namespace {

const std::uint8_t* pixel(const Part& part, int x, int y) {
  return part.pixels.row(y - part.y) + static_cast<std::size_t>(x - part.x) * static_cast<std::size_t>(part.pixels.channels);
}

// Sums of up to 65535 rows fit into 32 bits, of colours times opacity too; of up to 257 rows of bytes into 16, at half the time.
template <class Sum>
void add_row(const std::uint8_t* from, std::size_t elements, Sum* to) {
  for (std::size_t i = 0; i < elements; ++i) to[i] = static_cast<Sum>(to[i] + from[i]);
}

void add_multiplied(const std::uint8_t* from, std::size_t elements, std::uint32_t* to) {
  for (std::size_t i = 0; i < elements; i += 4) {
    const std::uint32_t opacity = from[i + 3];
    for (std::size_t c = 0; c < 3; ++c) to[i + c] += from[i + c] * opacity;
    to[i + 3] += opacity * 255;
  }
}

template <int Channels, class Sum>
void average_columns(const std::vector<Sum>& sums, int reduction, int rows, float* to) {
  const std::size_t pixels = sums.size() / Channels;
  for (std::size_t left = 0; left < pixels; left += static_cast<std::size_t>(reduction), to += Channels) {
    const std::size_t right = std::min(left + static_cast<std::size_t>(reduction), pixels);
    std::conditional_t<sizeof(Sum) == 2, std::uint32_t, std::uint64_t> sum[Channels] = {};
    for (std::size_t i = left; i < right; ++i) {
      for (std::size_t c = 0; c < Channels; ++c) sum[c] += sums[i * Channels + c];
    }
    const double share = 1 / (static_cast<double>(rows) * static_cast<double>(right - left));
    for (std::size_t c = 0; c < Channels; ++c) to[c] = static_cast<float>(static_cast<double>(sum[c]) * share);
  }
}

template <int Channels, class Sum>
void average_part(const Part& part, const faces::Region& region, int reduction, float* to) {
  std::vector<Sum> sums(static_cast<std::size_t>(region.width) * Channels);
  const std::size_t stride = static_cast<std::size_t>((region.width - 1) / reduction + 1) * Channels;
  for (std::int64_t top = 0; top < region.height; top += reduction, to += stride) {
    std::fill(sums.begin(), sums.end(), Sum{0});
    const int rows = static_cast<int>(std::min<std::int64_t>(reduction, region.height - top));
    for (int i = 0; i < rows; ++i) {
      const std::uint8_t* from = pixel(part, region.x, region.y + static_cast<int>(top) + i);
      if constexpr (Channels == 4) {
        add_multiplied(from, sums.size(), sums.data());
      } else {
        add_row(from, sums.size(), sums.data());
      }
    }
    average_columns<Channels>(sums, reduction, rows, to);
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
  const int across = (region.width - 1) / reduction + 1, down = (region.height - 1) / reduction + 1;
  const std::size_t stride = static_cast<std::size_t>(across) * static_cast<std::size_t>(channels);
  averaged_.resize(stride * static_cast<std::size_t>(down));
  const bool narrow = reduction <= 257;
  if (channels == 4) {
    average_part<4, std::uint32_t>(part, region, reduction, averaged_.data());
  } else if (channels == 3) {
    const auto run = narrow ? average_part<3, std::uint16_t> : average_part<3, std::uint32_t>;
    run(part, region, reduction, averaged_.data());
  } else {
    const auto run = narrow ? average_part<1, std::uint16_t> : average_part<1, std::uint32_t>;
    run(part, region, reduction, averaged_.data());
  }
  view_ = View<float>{averaged_.data(), stride, region.x / reduction, region.y / reduction, channels};
}

}  // namespace sdx::vision
