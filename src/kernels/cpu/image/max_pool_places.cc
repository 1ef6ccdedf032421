#include "kernels/cpu/image/max_pool_places.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/image/max_pool_places_simd.h"
#include "kernels/cpu/image/pool_simd.h"

namespace sdx::cpu {
namespace {

// Results [begin, end) along an axis: those whose windows do not extend past its ends.
struct Inner {
  std::int64_t begin, end;
};
Inner inner_of(const ConvShape& s, int i) {
  const std::int64_t reach = (s.kernel[i] - 1) * s.dilation[i];
  const std::int64_t begin = std::clamp<std::int64_t>((s.pad[i] + s.stride[i] - 1) / s.stride[i], 0, s.out[i]);
  const std::int64_t space = s.in[i] + s.pad[i] - reach;
  const std::int64_t end = space <= 0 ? 0 : std::min(s.out[i], (space + s.stride[i] - 1) / s.stride[i]);
  return {begin, std::max(begin, end)};
}

struct Plane {
  const float* x;
  float* y;
  std::int64_t* places;
  std::int64_t base;
};

void one(const ConvShape& s, const Plane& p, std::int64_t oz, std::int64_t oy, std::int64_t ox) {
  float best = -std::numeric_limits<float>::infinity();
  std::int64_t where = -1;
  for (std::int64_t kz = 0; kz < s.kernel[0]; ++kz) {
    const std::int64_t iz = oz * s.stride[0] - s.pad[0] + kz * s.dilation[0];
    if (iz < 0 || iz >= s.in[0]) continue;
    for (std::int64_t ky = 0; ky < s.kernel[1]; ++ky) {
      const std::int64_t iy = oy * s.stride[1] - s.pad[1] + ky * s.dilation[1];
      if (iy < 0 || iy >= s.in[1]) continue;
      for (std::int64_t kx = 0; kx < s.kernel[2]; ++kx) {
        const std::int64_t ix = ox * s.stride[2] - s.pad[2] + kx * s.dilation[2];
        if (ix < 0 || ix >= s.in[2]) continue;
        const std::int64_t at = (iz * s.in[1] + iy) * s.in[2] + ix;
        const float v = p.x[at];
        if (v > best || where < 0 || v != v) best = v, where = at;
      }
    }
  }
  const std::int64_t to = (oz * s.out[1] + oy) * s.out[2] + ox;
  p.y[to] = best;
  p.places[to] = where < 0 ? -1 : p.base + where;
}

void one_row(const ConvShape& s, const Plane& p, std::int64_t oz, std::int64_t oy, std::int64_t begin, std::int64_t end) {
  for (std::int64_t ox = begin; ox < end; ++ox) one(s, p, oz, oy, ox);
}

}  // namespace

void max_pool_places_f32(const ConvShape& s, const float* x, float* y, std::int64_t* places) {
  const std::int64_t in = volume(s.in), out = volume(s.out);
  if (out <= 0) return;
  const PlacesKernels& k = places_kernels();
  const PoolKernels& pool = pool_kernels();
  const Inner z = inner_of(s, 0), h = inner_of(s, 1), w = inner_of(s, 2);
  const bool fast = s.stride[2] <= 2 && in < std::numeric_limits<std::int32_t>::max() && w.end > w.begin;
  std::vector<std::int64_t> rows;
  for (std::int64_t kz = 0; fast && kz < s.kernel[0]; ++kz) {
    for (std::int64_t ky = 0; ky < s.kernel[1]; ++ky)
      rows.push_back((kz * s.dilation[0] * s.in[1] + ky * s.dilation[1]) * s.in[2]);
  }
  const std::int64_t work = std::max<std::int64_t>(1, out * volume(s.kernel));
  parallel_for(s.batch * s.in_channels, std::max<std::int64_t>(1, 65536 / work), [&](std::int64_t begin, std::int64_t end) {
    PlacesRow r;
    r.rows = rows.data();
    r.count = static_cast<std::int64_t>(rows.size());
    r.kernel = s.kernel[2], r.dilation = s.dilation[2], r.stride = s.stride[2], r.columns = w.end - w.begin;
    for (std::int64_t c = begin; c < end; ++c) {
      const Plane p{x + c * in, y + c * out, places + c * out, c * in};
      const bool vectors = fast && pool.finite(p.x, in);
      r.plane = p.x;
      r.base = p.base;
      for (std::int64_t row = 0; row < s.out[0] * s.out[1]; ++row) {
        const std::int64_t oz = row / s.out[1], oy = row % s.out[1];
        if (!vectors || oz < z.begin || oz >= z.end || oy < h.begin || oy >= h.end) {
          one_row(s, p, oz, oy, 0, s.out[2]);
          continue;
        }
        one_row(s, p, oz, oy, 0, w.begin);
        const std::int64_t iz = oz * s.stride[0] - s.pad[0], iy = oy * s.stride[1] - s.pad[1];
        r.at = (iz * s.in[1] + iy) * s.in[2] + w.begin * s.stride[2] - s.pad[2];
        r.y = p.y + row * s.out[2] + w.begin;
        r.places = p.places + row * s.out[2] + w.begin;
        k.row(r);
        one_row(s, p, oz, oy, w.end, s.out[2]);
      }
    }
  });
}

std::int64_t add_at_places_f32(std::int64_t planes, std::int64_t in_plane, std::int64_t out_plane, const float* dy,
                               const std::int64_t* places, float* dx) {
  std::atomic<bool> foreign = false;  // whether a place is in another plane than its window
  parallel_for(planes, std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, in_plane)),
               [&](std::int64_t begin, std::int64_t end) {
                 bool some = false;
                 for (std::int64_t p = begin; p < end; ++p) {
                   float* const to = dx + p * in_plane;
                   std::fill_n(to, in_plane, 0.0F);
                   for (std::int64_t i = p * out_plane; i < (p + 1) * out_plane; ++i) {
                     const std::int64_t at = places[i] - p * in_plane;
                     if (at >= 0 && at < in_plane) {
                       to[at] += dy[i];
                     } else {
                       some = some || places[i] != -1;
                     }
                   }
                 }
                 if (some) foreign = true;
               });
  if (!foreign) return -1;
  const std::int64_t all = planes * in_plane;
  std::fill_n(dx, all, 0.0F);
  for (std::int64_t i = 0; i < planes * out_plane; ++i) {
    if (places[i] == -1) continue;
    if (places[i] < -1 || places[i] >= all) return places[i];
    dx[places[i]] += dy[i];
  }
  return -1;
}

}  // namespace sdx::cpu
