#include "kernels/cpu/conv/blocked/blocked_regions.h"

#include <algorithm>

#include "kernels/cpu/conv/blocked/blocked_simd.h"
#include "kernels/cpu/conv/blocked/blocked_split.h"
#include "kernels/cpu/simd/cuts.h"

namespace sdx::cpu {
namespace {

struct AxisRegion {
  Span outputs, taps;
};

std::vector<AxisRegion> along(const ConvShape& s, int axis) {
  std::vector<AxisRegion> all;
  for (std::int64_t o = 0; o < s.out[axis]; ++o) {
    const Span taps = taps_inside(s, axis, o);
    if (!all.empty() && all.back().taps.begin == taps.begin && all.back().taps.end == taps.end) {
      all.back().outputs.end = o + 1;
    } else {
      all.push_back({{o, o + 1}, taps});
    }
  }
  return all;
}

// The share of the window's taps that lie inside, along one axis.
double share_inside(const std::vector<AxisRegion>& regions, const ConvShape& s, int axis) {
  std::int64_t inside = 0;
  for (const AxisRegion& r : regions) inside += r.outputs.size() * r.taps.size();
  return static_cast<double>(inside) / static_cast<double>(s.out[axis] * s.kernel[axis]);
}

// The time of `lines` rows of `width` outputs, in products for each tap. Register tiles of fewer than four pixels neither hide
// the latency of multiply-adds nor keep up with reading weights.
double pixels_of(std::int64_t lines, std::int64_t width) {
  const Cuts tiles(width, blocked_kernels().wide_pixels);
  return static_cast<double>(lines * std::max(width, 4 * tiles.parts));
}

// Weights that do not stay in the caches cost at least the time to read them: as much as 15 products each (conv_blocked_choose).
double with_weights(const ConvShape& s, double pixels) {
  const std::int64_t weights = s.kernel[1] * s.kernel[2] * s.out_channels * (s.in_channels / s.groups);
  return weights * 4 > 2000000 ? std::max(pixels, 15.0) : pixels;
}

double products_of(const ConvShape& s, const std::vector<Region>& regions) {
  double sum = 0;
  for (const Region& r : regions) {
    sum += static_cast<double>(r.taps()) *
           with_weights(s, static_cast<double>(s.batch) * pixels_of(r.rows.size(), r.columns.size()));
  }
  return sum;
}

double products_of_all(const ConvShape& s) {
  const double pixels = static_cast<double>(s.batch) * pixels_of(s.out[1], s.out[2]);
  return static_cast<double>(s.kernel[1] * s.kernel[2]) * with_weights(s, pixels);
}

// Tiles of bfloat16 multiply only whole windows, but about three times as fast.
bool splits(const ConvShape& s) {
  const std::int64_t channels = s.in_channels / s.groups, pairs = s.out_channels / s.groups / 32;
  return pairs > 0 && split_pixels_pay(s.out[1] * s.out[2], channels * s.kernel[1] * s.kernel[2] / 16, pairs);
}

}  // namespace

std::vector<Region> regions_worth_it(const ConvShape& s) {
  if (s.joined > 1 || s.out[1] <= 0 || s.out[2] <= 0) return {};
  const std::vector<AxisRegion> rows = along(s, 1), columns = along(s, 2);
  constexpr double kMost = 0.85;
  if (share_inside(rows, s, 1) * share_inside(columns, s, 2) > kMost) return {};
  std::vector<Region> regions;
  for (const AxisRegion& r : rows) {
    for (const AxisRegion& c : columns) regions.push_back({r.outputs, c.outputs, r.taps, c.taps});
  }
  const double most = (splits(s) ? 1.0 / 3 : kMost) * products_of_all(s);
  if (products_of(s, regions) > most) regions.clear();
  return regions;
}

double direct_products(const ConvShape& s) {
  const std::vector<Region> regions = regions_worth_it(s);
  return regions.empty() ? static_cast<double>(s.batch * s.out[1] * s.out[2] * s.kernel[1] * s.kernel[2])
                         : products_of(s, regions);
}

}  // namespace sdx::cpu
