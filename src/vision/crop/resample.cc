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

// `row` begins at taps.low and has room for one more float, because three channels are summed as four.
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

constexpr std::size_t kLanes = 4;

struct Range {
  int low = 0, high = 0;
};

// The grid of cells that a turned crop reads, and the points of the result in it. A point reads the cell that it lies in and
// `reach` cells on either side.
struct Grid {
  const Mapping& map;
  int across, down;  // cells
  int reduction, reach;
  double scale;

  Grid(const Mapping& m, int width, int height) : map(m), reduction(m.reduction()) {
    across = (width - 1) / reduction + 1;
    down = (height - 1) / reduction + 1;
    // Above 3, the whole picture is one cell.
    scale = std::clamp(map.scale() / reduction, 1.0, 3.0);
    reach = static_cast<int>(std::ceil(kLobes * scale));
  }

  // The source of point (i, j) of the result, in pixels. Beyond the reach of the filter, positions make no difference.
  std::array<double, 2> at(double i, double j) const {
    const double u = (i / map.out_width - 0.5) * map.width, v = (j / map.out_height - 0.5) * map.height;
    const double x = (map.center_x + u * map.cos - v * map.sin) / reduction;
    const double y = (map.center_y + u * map.sin + v * map.cos) / reduction;
    return {std::clamp<double>(x, -reach - 1, across + reach + 1), std::clamp<double>(y, -reach - 1, down + reach + 1)};
  }
  // The cells for the pixels [left, right) x [top, bottom) of the result, and `more` cells around them: a point and the corners
  // around it may round differently, and so may the corners of a tile and those of the whole. May lie outside the picture.
  std::array<Range, 2> cells(double left, double top, double right, double bottom, int more) const {
    const std::array corners{at(left, top), at(right, top), at(left, bottom), at(right, bottom)};
    std::array<Range, 2> r;
    for (std::size_t axis = 0; axis < 2; ++axis) {
      double low = corners[0][axis], high = low;
      for (const auto& corner : corners) {
        low = std::min(low, corner[axis]);
        high = std::max(high, corner[axis]);
      }
      r[axis] = {static_cast<int>(std::floor(low)) - reach - more, static_cast<int>(std::floor(high)) + reach + more + 1};
    }
    return r;
  }
};

// The filter's weights for points at 512 places within a cell (a thousandth of a cell away at most), four copies of each, one for
// each lane of a pixel.
class Phases {
 public:
  explicit Phases(const Grid& grid)
      : taps_((2 * static_cast<std::size_t>(grid.reach) + 1 + kTogether - 1) / kTogether * kTogether) {
    const LanczosTable& table = LanczosTable::get();
    weights_.resize(kPhases * taps_ * kLanes);
    for (std::size_t phase = 0; phase < kPhases; ++phase) {
      float* w = weights_.data() + phase * taps_ * kLanes;
      const double inside = (static_cast<double>(phase) + 0.5) / kPhases;
      double sum = 0;
      const auto weight = [&](int t) { return table(std::abs(t - grid.reach + 0.5 - inside) / grid.scale); };
      for (int t = 0; t <= 2 * grid.reach; ++t) sum += weight(t);
      for (int t = 0; t <= 2 * grid.reach; ++t, w += kLanes) std::fill(w, w + kLanes, static_cast<float>(weight(t) / sum));
    }
  }

  // The weights for a point `inside` a cell, 0 to 1.
  const float* at(double inside) const {
    return weights_.data() + std::min(static_cast<std::size_t>(inside * kPhases), kPhases - 1) * taps_ * kLanes;
  }
  std::size_t taps() const { return taps_; }  // with zeros at the end

  static constexpr std::size_t kTogether = 4;  // pixels summed side by side

 private:
  static constexpr std::size_t kPhases = 512;
  std::size_t taps_;
  std::vector<float> weights_;
};

// A part of the grid as floats, four to a pixel; beyond the picture, its edge is repeated.
struct Tile {
  Range across, down;
  std::vector<float> values;

  std::size_t stride() const { return static_cast<std::size_t>(across.high - across.low) * kLanes; }

  template <class T>
  void load(const View<T>& view, const Grid& grid) {
    // Weights of zero read on behind the last pixel.
    values.assign(stride() * static_cast<std::size_t>(down.high - down.low) + Phases::kTogether * kLanes, 0.0F);
    float* to = values.data();
    for (int y = down.low; y < down.high; ++y) {
      const int row = std::clamp(y, 0, grid.down - 1);
      for (int x = across.low; x < across.high; ++x, to += kLanes) {
        const T* from = view.at(std::clamp(x, 0, grid.across - 1), row);
        for (int c = 0; c < view.channels; ++c) to[c] = static_cast<float>(from[c]);
      }
    }
  }
};

std::array<float, kLanes> sum_at(const Tile& tile, const Grid& grid, const Phases& phases, double x, double y) {
  constexpr std::size_t kWide = Phases::kTogether * kLanes;
  const double left = std::floor(x), top = std::floor(y);
  const float* across = phases.at(x - left);
  const float* down = phases.at(y - top);
  const std::size_t stride = tile.stride(), elements = phases.taps() * kLanes;
  const float* row = tile.values.data() + static_cast<std::size_t>(static_cast<int>(top) - grid.reach - tile.down.low) * stride +
                     static_cast<std::size_t>(static_cast<int>(left) - grid.reach - tile.across.low) * kLanes;
  float sum[kWide] = {};
  for (int t = 0; t <= 2 * grid.reach; ++t, row += stride, down += kLanes) {
    float line[kWide] = {};
    for (std::size_t i = 0; i < elements; i += kWide) {
      for (std::size_t k = 0; k < kWide; ++k) line[k] += across[i + k] * row[i + k];
    }
    for (std::size_t k = 0; k < kWide; ++k) sum[k] += down[0] * line[k];
  }
  std::array<float, kLanes> out{};
  for (std::size_t k = 0; k < kWide; ++k) out[k % kLanes] += sum[k];
  return out;
}

template <class T>
void render_turned(const View<T>& view, const Grid& grid, Image& out) {
  constexpr int kTile = 32;  // of the result: its cells stay in the cache
  const Phases phases(grid);
  Tile tile;
  for (int top = 0; top < out.height; top += kTile) {
    for (int left = 0; left < out.width; left += kTile) {
      const int right = std::min(left + kTile, out.width), bottom = std::min(top + kTile, out.height);
      const auto cells = grid.cells(left, top, right, bottom, 1);
      tile.across = cells[0];
      tile.down = cells[1];
      tile.load(view, grid);
      for (int j = top; j < bottom; ++j) {
        std::uint8_t* to = out.row(j) + static_cast<std::size_t>(left) * static_cast<std::size_t>(out.channels);
        for (int i = left; i < right; ++i, to += out.channels) {
          const auto [x, y] = grid.at(i + 0.5, j + 0.5);
          store(sum_at(tile, grid, phases, x, y).data(), out.channels, to);
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
  const auto cells = grid.cells(0, 0, grid.map.out_width, grid.map.out_height, 2);
  const auto inside = [](const Range& r, int side) {
    const int low = std::clamp(r.low, 0, side - 1);
    return Range{low, std::clamp(r.high, low + 1, side)};
  };
  return pixels_of(inside(cells[0], grid.across), inside(cells[1], grid.down), grid.reduction, width, height);
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
