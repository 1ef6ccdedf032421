#include "kernels/cpu/image/pool.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/conv/plain/conv_simd.h"
#include "kernels/cpu/image/image_simd.h"
#include "kernels/cpu/image/pool_simd.h"
#include "kernels/cpu/simd/scratch.h"

namespace sdx::cpu {
namespace {

// Both poolings compute each output row in two steps: combine the window's input rows element by element (contiguous), then
// combine kernel-width neighbours of the result, read through its phases by stride (contiguous again).
struct Plan {
  std::int64_t width;  // padded row: everything that windows touch, a multiple of the stride
  std::int64_t phase_width;
};

Plan plan_of(const ConvShape& s, std::int64_t lanes) {
  Plan p{};
  const std::int64_t reach = (s.kernel[2] - 1) * s.dilation[2] / s.stride[2];
  p.phase_width = (s.out[2] + lanes - 1) / lanes * lanes + reach + 1 + lanes;
  p.width = p.phase_width * s.stride[2];
  return p;
}

// Number of the window's steps, from `first` on, that fall into [lo, hi).
std::int64_t count_inside(std::int64_t first, std::int64_t kernel, std::int64_t dilation, std::int64_t lo, std::int64_t hi) {
  std::int64_t n = 0;
  for (std::int64_t k = 0; k < kernel; ++k) {
    const std::int64_t at = first + k * dilation;
    n += at >= lo && at < hi ? 1 : 0;
  }
  return n;
}

// Splits `row` (in input coordinates) into phases with `fill` outside the input.
void split(const ConvKernels& k, const float* row, const ConvShape& s, const Plan& p, float fill, float* phases) {
  const std::int64_t stride = s.stride[2];
  k.split_rows(row, 1, s.in[2], s.pad[2], stride, p.phase_width, phases);
  if (fill == 0.0F) return;
  for (std::int64_t f = 0; f < stride; ++f) {
    float* dst = phases + f * p.phase_width;
    const std::int64_t first = f - s.pad[2];
    const std::int64_t b = first >= 0 ? 0 : std::min(p.phase_width, (-first + stride - 1) / stride);
    const std::int64_t e = first >= s.in[2] ? 0 : std::min(p.phase_width, (s.in[2] - first + stride - 1) / stride);
    std::fill(dst, dst + b, fill);
    std::fill(dst + std::max(b, e), dst + p.phase_width, fill);
  }
}

constexpr std::int64_t kRowsAtOnce = 32;

// Combines the rows (max or sum) that `next` returns into out[0, n), until it returns null. Returns the number of rows.
template <class Next>
std::int64_t combine(const ImageKernels& k, bool max, Next&& next, const float* ones, float* out, std::int64_t n) {
  const float* rows[kRowsAtOnce + 1];
  std::int64_t used = 0;
  bool started = false;
  std::int64_t total = 0;
  const auto flush = [&] {
    if (used == 0) return;
    if (started) rows[used++] = out;
    if (max) {
      k.max_rows(rows, used, out, n);
    } else {
      k.sum_rows(rows, used, ones, out, n);
    }
    started = true;
    used = 0;
  };
  while (const float* row = next()) {
    rows[used++] = row;
    ++total;
    if (used == kRowsAtOnce) flush();
  }
  flush();
  return total;
}

// Scratch, in floats, for pooling one channel row by row.
std::int64_t channel_floats(const ConvShape& s) {
  const std::int64_t lanes = image_kernels().lanes;
  return 2 * (s.in[2] + lanes) + plan_of(s, lanes).width + lanes + 2 * (s.out[2] + s.in[2] + lanes);
}

void join(bool max, float v, float& into) {
  if (max) {
    into = v > into || v != v ? v : into;
  } else {
    into += v;
  }
}

// The input rows in the window of output row (oz, oy), one per call; null when there are no more.
class InputRows {
 public:
  InputRows(const ConvShape& s, const float* plane, std::int64_t oz, std::int64_t oy) : s_(s), plane_(plane), oz_(oz), oy_(oy) {}
  const float* operator()() {
    for (; kz_ < s_.kernel[0]; ++kz_, ky_ = 0) {
      const std::int64_t iz = oz_ * s_.stride[0] - s_.pad[0] + kz_ * s_.dilation[0];
      if (iz < 0 || iz >= s_.in[0]) continue;
      for (; ky_ < s_.kernel[1];) {
        const std::int64_t iy = oy_ * s_.stride[1] - s_.pad[1] + ky_++ * s_.dilation[1];
        if (iy >= 0 && iy < s_.in[1]) return plane_ + (iz * s_.in[1] + iy) * s_.in[2];
      }
    }
    return nullptr;
  }

 private:
  const ConvShape& s_;
  const float* plane_;
  std::int64_t oz_, oy_, kz_ = 0, ky_ = 0;
};

// Combines elements [whole, n) of the rows, one by one; returns the number of rows.
std::int64_t combine_ends(InputRows next, bool max, float fill, std::int64_t whole, std::int64_t n, float* combined) {
  std::int64_t rows = 0;
  std::fill(combined + whole, combined + n, fill);
  for (const float* row = next(); row != nullptr; row = next(), ++rows) {
    for (std::int64_t i = whole; i < n; ++i) join(max, row[i], combined[i]);
  }
  return rows;
}

// A row of results from the combined rows' phases.
void combine_columns(const ConvShape& s, const Plan& p, const float* phases, bool max, float fill, const float* scales,
                     float* out) {
  const ImageKernels& k = image_kernels();
  const auto column = [&](std::int64_t kx) {
    const std::int64_t o = kx * s.dilation[2];
    return phases + o % s.stride[2] * p.phase_width + o / s.stride[2];
  };
  // Kernels wider than 32 would need several passes over `out`, whose rows have no slack.
  if (s.kernel[2] <= kRowsAtOnce) {
    const float* list[kRowsAtOnce];
    for (std::int64_t kx = 0; kx < s.kernel[2]; ++kx) list[kx] = column(kx);
    max ? k.max_rows(list, s.kernel[2], out, s.out[2]) : k.sum_rows(list, s.kernel[2], scales, out, s.out[2]);
    return;
  }
  for (std::int64_t i = 0; i < s.out[2]; ++i) {
    float v = fill;
    for (std::int64_t kx = 0; kx < s.kernel[2]; ++kx) join(max, column(kx)[i], v);
    out[i] = max ? v : v * scales[i];
  }
}

// Any window and any values, row by row. scratch: channel_floats().
template <class Scale>
void pool_channel(const ConvShape& s, const float* plane, float* y, bool max, Scale&& scale_of_row, float* scratch) {
  const ImageKernels& k = image_kernels();
  const ConvKernels& conv = conv_kernels();
  const Plan p = plan_of(s, k.lanes);
  const float fill = max ? -std::numeric_limits<float>::infinity() : 0.0F;
  const std::int64_t padded_in = s.in[2] + k.lanes;
  // The combined rows, their phases, ones, and the scales of a row of outputs. Rows of the input are copied if reading whole
  // vectors could run past the tensor's end.
  float* combined = scratch;
  float* phases = combined + 2 * padded_in;
  float* ones = phases + p.width + k.lanes;
  float* scales = ones + s.out[2] + padded_in;
  std::fill_n(ones, s.out[2] + padded_in, 1.0F);
  std::int64_t area = -1;  // for which `scales` were computed
  // Whole vectors of the input's row; the partial last one element by element.
  const std::int64_t whole = s.in[2] / k.lanes * k.lanes;
  for (std::int64_t oz = 0; oz < s.out[0]; ++oz) {
    for (std::int64_t oy = 0; oy < s.out[1]; ++oy) {
      const InputRows next(s, plane, oz, oy);
      std::int64_t rows = 0;
      if (whole > 0) rows = combine(k, max, InputRows(next), ones, combined, whole);
      if (whole < s.in[2]) rows = combine_ends(next, max, fill, whole, s.in[2], combined);
      if (rows == 0) std::fill_n(combined, s.in[2], fill);
      split(conv, combined, s, p, fill, phases);
      if (!max) scale_of_row(oz, oy, area, scales);
      combine_columns(s, p, phases, max, fill, scales, y + (oz * s.out[1] + oy) * s.out[2]);
    }
  }
}

// The same for many rows at a time, for common windows.
struct WindowRows {
  std::vector<std::int64_t> first, offsets;  // of input rows, for each row of results
  std::vector<std::vector<float>> scales;
  std::vector<const float*> scale_of;  // per row of results
};

constexpr std::int64_t kManyTaps = 64;
constexpr std::int64_t kRowFloats = 32 * 1024;
constexpr std::int64_t kBandFloats = 4096;  // of combined rows, in the first-level cache

bool usual_windows(const ConvShape& s) {
  if (s.stride[2] > 2 || (s.stride[2] == 2 && s.dilation[2] != 1)) return false;
  for (int i = 0; i < 3; ++i) {
    if (s.kernel[i] > kManyTaps || s.dilation[i] > kManyTaps || s.pad[i] < 0 || s.pad[i] > kManyTaps * kManyTaps) return false;
  }
  return s.kernel[0] * s.kernel[1] <= kManyTaps && s.in[2] <= kRowFloats / 2 && s.out[2] <= kRowFloats / 2;
}

template <class Scale>
WindowRows window_rows(const ConvShape& s, bool max, Scale&& scale_of_row) {
  WindowRows w;
  std::int64_t area = -1;
  std::vector<float> scales(max ? 0 : static_cast<std::size_t>(s.out[2]));
  for (std::int64_t oz = 0; oz < s.out[0]; ++oz) {
    for (std::int64_t oy = 0; oy < s.out[1]; ++oy) {
      w.first.push_back(static_cast<std::int64_t>(w.offsets.size()));
      for (std::int64_t kz = 0; kz < s.kernel[0]; ++kz) {
        const std::int64_t iz = oz * s.stride[0] - s.pad[0] + kz * s.dilation[0];
        if (iz < 0 || iz >= s.in[0]) continue;
        for (std::int64_t ky = 0; ky < s.kernel[1]; ++ky) {
          const std::int64_t iy = oy * s.stride[1] - s.pad[1] + ky * s.dilation[1];
          if (iy >= 0 && iy < s.in[1]) w.offsets.push_back((iz * s.in[1] + iy) * s.in[2]);
        }
      }
      if (max) continue;
      const std::int64_t before = area;
      scale_of_row(oz, oy, area, scales.data());
      if (area != before) w.scales.push_back(scales);
      w.scale_of.push_back(w.scales.back().data());
    }
  }
  w.first.push_back(static_cast<std::int64_t>(w.offsets.size()));
  return w;
}

template <class Scale>
void pool(const ConvShape& s, const float* x, float* y, bool max, Scale&& scale_of_row) {
  const PoolKernels& k = pool_kernels();
  const std::int64_t in_plane = volume(s.in), out_plane = volume(s.out);
  if (out_plane <= 0) return;
  const bool usual = usual_windows(s);
  const WindowRows windows = usual ? window_rows(s, max, scale_of_row) : WindowRows{};
  const float fill = max ? -std::numeric_limits<float>::infinity() : 0.0F;
  PoolRows rows;
  rows.width = s.in[2];
  rows.left = s.pad[2];
  rows.kernel = s.kernel[2], rows.stride = s.stride[2], rows.dilation = s.dilation[2];
  rows.columns = s.out[2];
  rows.offsets = windows.offsets.data();
  rows.fill = fill;
  rows.buffer_step = pool_buffer_step(rows, k.lanes);
  const std::int64_t total = s.out[0] * s.out[1];
  const std::int64_t band = std::clamp<std::int64_t>(kBandFloats / rows.buffer_step, 1, total);
  const std::int64_t work = std::max<std::int64_t>(1, out_plane * volume(s.kernel) / 2);
  parallel_for(s.batch * s.in_channels, std::max<std::int64_t>(1, 65536 / work), [&](std::int64_t begin, std::int64_t end) {
    PoolRows r = rows;
    if (usual) {
      r.buffer = thread_scratch(2, static_cast<std::size_t>(band * r.buffer_step));
      std::fill_n(r.buffer, band * r.buffer_step, fill);
    }
    for (std::int64_t c = begin; c < end; ++c) {
      r.x = x + c * in_plane;
      if (!usual || (max && !k.finite(r.x, in_plane))) {
        pool_channel(s, r.x, y + c * out_plane, max, scale_of_row,
                     thread_scratch(3, static_cast<std::size_t>(channel_floats(s))));
        continue;
      }
      for (std::int64_t row = 0; row < total; row += band) {
        r.rows = std::min(band, total - row);
        r.first = windows.first.data() + row;
        r.scales = max ? nullptr : windows.scale_of.data() + row;
        r.y = y + c * out_plane + row * s.out[2];
        max ? k.max_rows(r) : k.sum_rows(r);
      }
    }
  });
}

// Whether one window covers exactly the image.
bool takes_all(const ConvShape& s, const std::int64_t (&pad_end)[3]) {
  for (int i = 0; i < 3; ++i) {
    if (s.out[i] != 1 || s.kernel[i] != s.in[i] || s.pad[i] != 0 || pad_end[i] != 0) return false;
    if (s.kernel[i] > 1 && s.dilation[i] != 1) return false;
  }
  return true;
}

// Such a window is contiguous: 2048 channels of 7x7 take 15 microseconds, against 200 row by row.
void average_all(const ConvShape& s, const float* x, float* y) {
  constexpr std::int64_t kParts = 16;  // sums side by side, in a compiler's vectors
  const std::int64_t n = volume(s.in);
  parallel_for(s.batch * s.in_channels, std::max<std::int64_t>(1, 65536 / n), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t c = begin; c < end; ++c) {
      const float* plane = x + c * n;
      float parts[kParts] = {};
      std::int64_t i = 0;
      for (; i + kParts <= n; i += kParts) {
        for (std::int64_t j = 0; j < kParts; ++j) parts[j] += plane[i + j];
      }
      for (std::int64_t j = 0; i < n; ++i, ++j) parts[j] += plane[i];
      for (std::int64_t half = kParts / 2; half > 0; half /= 2) {
        for (std::int64_t j = 0; j < half; ++j) parts[j] += parts[j + half];
      }
      y[c] = parts[0] / static_cast<float>(n);
    }
  });
}

}  // namespace

void max_pool_f32(const ConvShape& shape, const float* x, float* y) {
  pool(shape, x, y, true, [](std::int64_t, std::int64_t, std::int64_t&, float*) {});
}

void average_pool_f32(const ConvShape& s, const std::int64_t (&pad_end)[3], bool count_pad, const float* x, float* y) {
  if (volume(s.in) > 0 && takes_all(s, pad_end)) return average_all(s, x, y);
  const auto count = [&](int axis, std::int64_t o) {
    const std::int64_t lo = count_pad ? -s.pad[axis] : 0;
    const std::int64_t hi = s.in[axis] + (count_pad ? pad_end[axis] : 0);
    return count_inside(o * s.stride[axis] - s.pad[axis], s.kernel[axis], s.dilation[axis], lo, hi);
  };
  pool(s, x, y, false, [&](std::int64_t oz, std::int64_t oy, std::int64_t& last, float* scales) {
    const std::int64_t area = count(0, oz) * count(1, oy);
    if (area == last) return;
    last = area;
    for (std::int64_t ox = 0; ox < s.out[2]; ++ox) {
      const std::int64_t n = area * count(2, ox);
      scales[ox] = n > 0 ? 1.0F / static_cast<float>(n) : std::numeric_limits<float>::quiet_NaN();
    }
  });
}

}  // namespace sdx::cpu
