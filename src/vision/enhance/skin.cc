#include <algorithm>
#include <array>

#include "vision/enhance/blur.h"
#include "vision/enhance/ellipse.h"
#include "vision/enhance/steps.h"

namespace sdx::vision {
namespace {

// A bilateral grid (Chen, Paris, Durand 2007): pixels are added up in cells of place and luma, the cells blurred, and each pixel
// read between eight cells. Nearest cell in, a mean of three cells (of luma: 1 2 1), linear interpolation out: the deviation is
// 0.96 cells in place and 0.87 in luma, hence 3 pixels and 29 levels for the filter's 3 and 25.
constexpr int kCell = 3;
constexpr float kLevels = 29;
constexpr std::size_t kBins = 10;
constexpr std::size_t kLanes = 4;  // red, green, blue, count

float luma(const std::uint8_t* p) {
  return 0.299F * static_cast<float>(p[0]) + 0.587F * static_cast<float>(p[1]) + 0.114F * static_cast<float>(p[2]);
}

// 1 within [low, high], 0 from 6 outside on.
float ramp(float v, float low, float high) { return std::clamp(1 - std::max(low - v, v - high) / 6, 0.0F, 1.0F); }

// Cb 77 to 127 and Cr 133 to 173 (Chai and Ngan 1999), which skin of all tones shares: it differs in luma.
float skin(const std::uint8_t* p, float y) {
  const float cb = 128 + 0.564F * (static_cast<float>(p[2]) - y), cr = 128 + 0.713F * (static_cast<float>(p[0]) - y);
  return ramp(cb, 77, 127) * ramp(cr, 133, 173);
}

// Rows of cells over the columns of `part`, three blurred ones at a time.
class Grid {
 public:
  Grid(const media::Image& picture, const Pixels& part)
      : picture_(picture),
        part_(part),
        columns_(static_cast<std::size_t>((part.right - part.left - 1) / kCell + 1)),
        rows_((part.bottom - part.top - 1) / kCell + 1) {
    for (auto& row : blurred_) row.resize(columns_ * kBins * kLanes);
    for (auto& row : across_) row.resize(columns_ * kBins * kLanes);
    cells_.resize((columns_ + 2) * kBins * kLanes);
  }

  // Row `row` of blurred cells, clamped; rows are asked for in ascending order, and the last two stay.
  const float* row(int row) {
    row = std::clamp(row, 0, rows_ - 1);
    for (; done_ <= row; ++done_) blend(done_);
    return blurred_[static_cast<std::size_t>(row) % blurred_.size()].data();
  }
  std::size_t columns() const { return columns_; }

 private:
  std::vector<float>& across(int row) { return across_[static_cast<std::size_t>(row) % across_.size()]; }

  void blend(int row) {
    for (; read_ <= std::min(row + 1, rows_ - 1); ++read_) read(read_);
    auto& to = blurred_[static_cast<std::size_t>(row) % blurred_.size()];
    const float* above = across(std::max(row - 1, 0)).data();
    const float* here = across(row).data();
    const float* below = across(std::min(row + 1, rows_ - 1)).data();
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = above[i] + here[i] + below[i];
  }

  // Adds up the pixels of a row of cells, and blurs by luma and along the row.
  void read(int row) {
    std::fill(cells_.begin(), cells_.end(), 0.0F);
    const int top = part_.top + row * kCell, bottom = std::min(top + kCell, part_.bottom);
    for (int y = top; y < bottom; ++y) {
      const std::uint8_t* p = picture_.row(y) + static_cast<std::ptrdiff_t>(part_.left) * picture_.channels;
      for (int x = 0; x < part_.right - part_.left; ++x, p += picture_.channels) {
        const auto bin = static_cast<std::size_t>(luma(p) / kLevels + 0.5F);
        float* cell = cells_.data() + (static_cast<std::size_t>(x / kCell + 1) * kBins + bin) * kLanes;
        for (std::size_t c = 0; c < 3; ++c) cell[c] += static_cast<float>(p[c]);
        cell[3] += 1;
      }
    }
    constexpr std::size_t kColumn = kBins * kLanes;
    std::vector<float>& to = across(row);
    std::array<float, kColumn + 2 * kLanes> sum{};
    for (std::size_t x = 0; x < columns_; ++x) {
      const float* cell = cells_.data() + x * kColumn;
      for (std::size_t i = 0; i < kColumn; ++i) sum[kLanes + i] = cell[i] + cell[i + kColumn] + cell[i + 2 * kColumn];
      float* out = to.data() + x * kColumn;
      for (std::size_t i = 0; i < kColumn; ++i) out[i] = sum[i] + 2 * sum[i + kLanes] + sum[i + 2 * kLanes];
    }
  }

  const media::Image& picture_;
  Pixels part_;
  std::size_t columns_;
  int rows_;
  int read_ = 0, done_ = 0;                   // rows so far
  std::vector<float> cells_;                  // with an empty column on either side
  std::array<std::vector<float>, 4> across_;  // rows blurred by luma and along
  std::array<std::vector<float>, 3> blurred_;
};

// Interpolates between four columns of cells and two bins of each.
std::array<float, kLanes> read_cells(const float* above, const float* below, std::size_t left, std::size_t right, float across,
                                     float down, float level) {
  const auto bin = static_cast<std::size_t>(level);
  const float up = level - static_cast<float>(bin);
  std::array<float, kLanes> sum{};
  const auto add = [&](const float* row, std::size_t column, float weight) {
    const float* cell = row + (column * kBins + bin) * kLanes;
    for (std::size_t c = 0; c < kLanes; ++c) sum[c] += weight * (cell[c] + up * (cell[c + kLanes] - cell[c]));
  };
  add(above, left, (1 - across) * (1 - down));
  add(above, right, across * (1 - down));
  add(below, left, (1 - across) * down);
  add(below, right, across * down);
  return sum;
}

void mix(std::uint8_t* p, const std::array<float, kLanes>& sum, float share) {
  if (!(sum[3] > 0)) return;
  for (std::size_t c = 0; c < 3; ++c) {
    const float v = static_cast<float>(p[c]);
    p[c] = static_cast<std::uint8_t>(std::clamp(v + share * (sum[c] / sum[3] - v) + 0.5F, 0.0F, 255.0F));
  }
}

}  // namespace

void smooth_skin(media::Image& picture, const faces::Face& face, double share) {
  const Ellipse ellipse(face.box, 1.1, 1.1);
  const Pixels part = ellipse.pixels(picture.width, picture.height);
  if (part.empty()) return;
  // A row is changed after the grid has read it.
  Grid grid(picture, part);
  std::vector<float> radii(static_cast<std::size_t>(part.right - part.left));
  const int last = static_cast<int>(grid.columns()) - 1;
  for (int y = part.top; y < part.bottom; ++y) {
    ellipse.radii(part.left, y, radii);
    const Between down = between_cells(y - part.top, kCell);
    const float* above = grid.row(down.at);
    const float* below = grid.row(down.at + 1);
    std::uint8_t* p = picture.row(y) + static_cast<std::ptrdiff_t>(part.left) * picture.channels;
    for (std::size_t i = 0; i < radii.size(); ++i, p += picture.channels) {
      if (radii[i] >= 1) continue;
      const float brightness = luma(p);
      const float weight = static_cast<float>(share) * skin(p, brightness) * std::min(1.0F, (1 - radii[i]) * 5);
      if (weight <= 0) continue;
      const Between across = between_cells(static_cast<int>(i), kCell);
      const auto left = static_cast<std::size_t>(std::max(across.at, 0));
      const auto right = static_cast<std::size_t>(std::min(across.at + 1, last));
      mix(p, read_cells(above, below, left, right, across.share, down.share, brightness / kLevels), weight);
    }
  }
}

}  // namespace sdx::vision
