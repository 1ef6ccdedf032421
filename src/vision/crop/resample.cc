#include "vision/crop/resample.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "vision/crop/filter.h"
#include "vision/crop/source.h"

namespace sdx::vision {
namespace {

using media::Image;

std::uint8_t byte_of(float v) { return static_cast<std::uint8_t>(std::clamp(v + 0.5F, 0.0F, 255.0F)); }

// Colour times opacity, as in Source, back to bytes.
void store(const float* v, int channels, std::uint8_t* to) {
  if (channels != 4) {
    for (int c = 0; c < channels; ++c) to[c] = byte_of(v[c]);
    return;
  }
  const float opacity = v[3] / 255;
  to[3] = byte_of(opacity);
  for (int c = 0; c < 3; ++c) to[c] = opacity > 0 ? byte_of(v[c] / opacity) : std::uint8_t{0};
}

// ---- Upright: down the columns first, then along the row that results.

template <class T>
void blend_rows(const T* from, std::size_t stride, const float* weight, std::size_t rows, std::size_t elements, float* to) {
  constexpr std::size_t kBlock = 32;
  std::size_t i = 0;
  for (; i + kBlock <= elements; i += kBlock) {
    std::array<float, kBlock> sum{};
    for (std::size_t t = 0; t < rows; ++t) {
      const T* p = from + t * stride + i;
      for (std::size_t k = 0; k < kBlock; ++k) sum[k] += weight[t] * static_cast<float>(p[k]);
    }
    std::copy(sum.begin(), sum.end(), to + i);
  }
  for (; i < elements; ++i) {
    float sum = 0;
    for (std::size_t t = 0; t < rows; ++t) sum += weight[t] * static_cast<float>(from[t * stride + i]);
    to[i] = sum;
  }
}

// `row` begins at taps.low and has room for one float more: three channels are summed as four.
template <int Channels>
void blend_columns(const float* row, const Taps& taps, std::uint8_t* to) {
  constexpr std::size_t kLanes = Channels == 1 ? 1 : 4;
  for (std::size_t i = 0; i < taps.first.size(); ++i, to += Channels) {
    const float* p = row + static_cast<std::ptrdiff_t>(taps.first[i] - taps.low) * Channels;
    const float* w = taps.weight.data() + i * static_cast<std::size_t>(taps.most);
    std::array<float, kLanes> sum{};
    for (int t = 0; t < taps.count[i]; ++t, p += Channels) {
      for (std::size_t c = 0; c < kLanes; ++c) sum[c] += w[t] * p[c];
    }
    store(sum.data(), Channels, to);
  }
}

void blend_columns(const float* row, const Taps& taps, int channels, std::uint8_t* to) {
  if (channels == 1) return blend_columns<1>(row, taps, to);
  if (channels == 3) return blend_columns<3>(row, taps, to);
  blend_columns<4>(row, taps, to);
}

struct Axes {
  Taps across, down;
};

Axes axes_of(const Mapping& map, int width, int height) {
  const int reduction = map.reduction();
  return {make_taps(map.center_x - map.width / 2, map.width, map.out_width, width, reduction),
          make_taps(map.center_y - map.height / 2, map.height, map.out_height, height, reduction)};
}

template <class T>
void render_upright(const View<T>& view, const Axes& axes, Image& out) {
  const std::size_t elements =
      static_cast<std::size_t>(axes.across.high - axes.across.low) * static_cast<std::size_t>(view.channels);
  std::vector<float> row(elements + 1);
  const Taps& down = axes.down;
  for (std::size_t y = 0; y < down.first.size(); ++y) {
    blend_rows(view.at(axes.across.low, down.first[y]), view.stride, down.weight.data() + y * static_cast<std::size_t>(down.most),
               static_cast<std::size_t>(down.count[y]), elements, row.data());
    blend_columns(row.data(), axes.across, view.channels, out.row(static_cast<int>(y)));
  }
}

// ---- Turned: the filter lies along the picture's axes and is evaluated for each pixel of the result.

struct Range {
  int low = 0, high = 0;
};

// The cells that the filter reads around the points from `low` to `high`, clamped to the picture.
Range cells_of(double low, double high, double reach, int cells) {
  Range r;
  r.low = to_int(std::floor(low - reach), 0, cells - 1);
  r.high = to_int(std::ceil(high + reach), r.low + 1, cells);
  return r;
}

// The grid of cells that a turned crop reads, and the points of the result in it.
struct Grid {
  const Mapping& map;
  int across, down;  // cells
  int reduction;
  double scale, reach;

  Grid(const Mapping& m, int width, int height) : map(m), reduction(m.reduction()) {
    across = (width - 1) / reduction + 1;
    down = (height - 1) / reduction + 1;
    // Above 3 the whole picture is one cell.
    scale = std::clamp(map.scale() / reduction, 1.0, 3.0);
    reach = kLobes * scale;
  }

  // Of point (i, j) of the result, in its pixels. What lies further outside than the filter reaches differs in nothing.
  std::array<double, 2> at(double i, double j) const {
    const double u = (i / map.out_width - 0.5) * map.width, v = (j / map.out_height - 0.5) * map.height;
    const double x = (map.center_x + u * map.cos - v * map.sin) / reduction;
    const double y = (map.center_y + u * map.sin + v * map.cos) / reduction;
    return {std::clamp(x, -reach - 1, across + reach + 1), std::clamp(y, -reach - 1, down + reach + 1)};
  }
  // Of the pixels [left, right) x [top, bottom) of the result, and `more` cells around them: a point and the corners around it
  // may round differently, and so may the corners of a tile and those of the whole.
  std::array<Range, 2> cells(double left, double top, double right, double bottom, int more) const {
    const std::array corners{at(left, top), at(right, top), at(left, bottom), at(right, bottom)};
    std::array<Range, 2> r;
    for (std::size_t axis = 0; axis < 2; ++axis) {
      double low = corners[0][axis], high = low;
      for (const auto& corner : corners) {
        low = std::min(low, corner[axis]);
        high = std::max(high, corner[axis]);
      }
      r[axis] = cells_of(low, high, reach + more, axis == 0 ? across : down);
    }
    return r;
  }
};

// What one pixel takes along one axis.
struct PointTaps {
  std::vector<float> weight;
  std::vector<std::size_t> offset;  // into the tile, elements
  std::size_t count = 0;

  void set(double center, const Grid& grid, int cells, const Range& tile, std::size_t step, const LanczosTable& table) {
    const int low = static_cast<int>(std::floor(center - grid.reach));
    const int high = static_cast<int>(std::ceil(center + grid.reach));
    count = static_cast<std::size_t>(high - low);
    if (weight.size() < count) {
      weight.resize(count);
      offset.resize(count);
    }
    float sum = 0;
    for (int p = low; p < high; ++p) {
      const auto t = static_cast<std::size_t>(p - low);
      weight[t] = static_cast<float>(table(std::abs(p + 0.5 - center) / grid.scale));
      sum += weight[t];
      offset[t] = static_cast<std::size_t>(std::clamp(p, 0, cells - 1) - tile.low) * step;
    }
    for (std::size_t t = 0; t < count; ++t) weight[t] /= sum;
  }
};

constexpr std::size_t kLanes = 4;

// As floats, four to a pixel.
template <class T>
void load(const View<T>& view, const Range& across, const Range& down, std::vector<float>& tile) {
  const auto width = static_cast<std::size_t>(across.high - across.low);
  tile.resize(width * static_cast<std::size_t>(down.high - down.low) * kLanes);
  float* to = tile.data();
  for (int y = down.low; y < down.high; ++y) {
    const T* from = view.at(across.low, y);
    for (std::size_t i = 0; i < width; ++i, from += view.channels, to += kLanes) {
      for (int c = 0; c < view.channels; ++c) to[c] = static_cast<float>(from[c]);
    }
  }
}

std::array<float, kLanes> sum_of(const float* tile, const PointTaps& across, const PointTaps& down) {
  std::array<float, kLanes> sum{};
  for (std::size_t y = 0; y < down.count; ++y) {
    const float* row = tile + down.offset[y];
    std::array<float, kLanes> line{};
    for (std::size_t x = 0; x < across.count; ++x) {
      const float* p = row + across.offset[x];
      for (std::size_t c = 0; c < kLanes; ++c) line[c] += across.weight[x] * p[c];
    }
    for (std::size_t c = 0; c < kLanes; ++c) sum[c] += down.weight[y] * line[c];
  }
  return sum;
}

template <class T>
void render_turned(const View<T>& view, const Grid& grid, Image& out) {
  constexpr int kTile = 32;  // of the result: its cells stay in the cache
  const LanczosTable& table = LanczosTable::get();
  std::vector<float> tile;
  PointTaps across, down;
  for (int top = 0; top < out.height; top += kTile) {
    for (int left = 0; left < out.width; left += kTile) {
      const int right = std::min(left + kTile, out.width), bottom = std::min(top + kTile, out.height);
      const auto [columns, rows] = grid.cells(left, top, right, bottom, 1);
      load(view, columns, rows, tile);
      const std::size_t row = static_cast<std::size_t>(columns.high - columns.low) * kLanes;
      for (int j = top; j < bottom; ++j) {
        std::uint8_t* to = out.row(j) + static_cast<std::size_t>(left) * static_cast<std::size_t>(out.channels);
        for (int i = left; i < right; ++i, to += out.channels) {
          const auto [x, y] = grid.at(i + 0.5, j + 0.5);
          across.set(x, grid, grid.across, columns, kLanes, table);
          down.set(y, grid, grid.down, rows, row, table);
          store(sum_of(tile.data(), across, down).data(), out.channels, to);
        }
      }
    }
  }
}

faces::Region pixels_of(const Range& across, const Range& down, int reduction, int width, int height) {
  const auto begin = [&](int cell) { return cell * reduction; };
  const auto end = [&](int cell, int side) {
    return static_cast<int>(std::min<std::int64_t>(static_cast<std::int64_t>(cell) * reduction, side));
  };
  const int x = begin(across.low), y = begin(down.low);
  return {x, y, end(across.high, width) - x, end(down.high, height) - y};
}

faces::Region region_of(const Grid& grid, int width, int height) {
  const auto [across, down] = grid.cells(0, 0, grid.map.out_width, grid.map.out_height, 2);
  return pixels_of(across, down, grid.reduction, width, height);
}

faces::Region region_of(const Axes& axes, int reduction, int width, int height) {
  return pixels_of({axes.across.low, axes.across.high}, {axes.down.low, axes.down.high}, reduction, width, height);
}

}  // namespace

faces::Region read_region(const Mapping& map, int width, int height) {
  if (map.turned()) return region_of(Grid(map, width, height), width, height);
  return region_of(axes_of(map, width, height), map.reduction(), width, height);
}

Image render(const Part& part, const Mapping& map) {
  Image out = Image::blank(map.out_width, map.out_height, part.pixels.channels);
  if (map.turned()) {
    const Grid grid(map, part.width, part.height);
    const Source source(part, region_of(grid, part.width, part.height), grid.reduction);
    std::visit([&](const auto& view) { render_turned(view, grid, out); }, source.view());
  } else {
    const Axes axes = axes_of(map, part.width, part.height);
    const Source source(part, region_of(axes, map.reduction(), part.width, part.height), map.reduction());
    std::visit([&](const auto& view) { render_upright(view, axes, out); }, source.view());
  }
  return out;
}

}  // namespace sdx::vision
