#include "kernels/cpu/channels_last/windows.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/thread_pool.h"

namespace sdx::cpu {
namespace {

// Calls fn(tap, number of the input's row, beginning of the window in it) for each row of the window that lies inside.
template <class F>
void for_taps(const Windows& w, std::int64_t position, F&& fn) {
  const std::int64_t picture = position / w.out_size(), rest = position % w.out_size();
  const Three at{rest / (w.out[1] * w.out[2]), rest / w.out[2] % w.out[1], rest % w.out[2]};
  Three from;
  for (std::size_t i = 0; i < 3; ++i) from[i] = at[i] * w.stride[i] - w.pad[i];
  const std::int64_t base = picture * w.in_size();
  std::int64_t tap = 0;
  for (std::int64_t d = 0; d < w.kernel[0]; ++d) {
    const std::int64_t z = from[0] + d * w.dilation[0];
    for (std::int64_t h = 0; h < w.kernel[1]; ++h, tap += w.kernel[2]) {
      const std::int64_t y = from[1] + h * w.dilation[1];
      if (z < 0 || z >= w.in[0] || y < 0 || y >= w.in[1]) continue;
      const std::int64_t row = base + (z * w.in[1] + y) * w.in[2];
      fn(tap, row, from[2]);
    }
  }
}

// The taps of one row of a window that lie inside: [low, high).
std::pair<std::int64_t, std::int64_t> inside(const Windows& w, std::int64_t start) {
  const std::int64_t step = w.dilation[2];
  const std::int64_t low = start >= 0 ? 0 : (-start + step - 1) / step;
  const std::int64_t high = start >= w.in[2] ? 0 : std::min(w.kernel[2], (w.in[2] - 1 - start) / step + 1);
  return {std::min(low, w.kernel[2]), std::max(std::min(low, w.kernel[2]), high)};
}

// Calls fn(tap, offset of the input's element, number of elements that are contiguous in both).
template <class F>
void for_runs(const Windows& w, std::int64_t position, std::int64_t g, F&& fn) {
  const std::int64_t each = w.in_each();
  const bool joined = w.groups == 1 && w.dilation[2] == 1;
  for_taps(w, position, [&](std::int64_t tap, std::int64_t row, std::int64_t start) {
    const auto [low, high] = inside(w, start);
    if (joined) {
      if (high > low) fn((tap + low) * each, (row + start + low) * w.in_channels, (high - low) * each);
      return;
    }
    for (std::int64_t k = low; k < high; ++k) {
      fn((tap + k) * each, (row + start + k * w.dilation[2]) * w.in_channels + g * each, each);
    }
  });
}

// Rearranges the weights of each channel to [taps, channels].
template <class T>
std::vector<T> by_taps(const Windows& w, const T* weights) {
  std::vector<T> out(static_cast<std::size_t>(w.taps() * w.in_channels));
  for (std::int64_t c = 0; c < w.in_channels; ++c) {
    for (std::int64_t t = 0; t < w.taps(); ++t) out[static_cast<std::size_t>(t * w.in_channels + c)] = weights[c * w.taps() + t];
  }
  return out;
}

// Calls fn(tap, offset of the input's channels) for each tap of the window that lies inside.
template <class F>
void for_channels(const Windows& w, std::int64_t position, F&& fn) {
  for_taps(w, position, [&](std::int64_t tap, std::int64_t row, std::int64_t start) {
    const auto [low, high] = inside(w, start);
    for (std::int64_t k = low; k < high; ++k) fn(tap + k, (row + start + k * w.dilation[2]) * w.in_channels);
  });
}

}  // namespace

template <class T>
void read_windows(const Windows& w, const T* x, std::int64_t g, std::int64_t first, std::int64_t count, T* windows) {
  for (std::int64_t p = 0; p < count; ++p) {
    T* to = windows + p * w.window();
    std::int64_t done = 0;
    for_runs(w, first + p, g, [&](std::int64_t at, std::int64_t from, std::int64_t run) {
      if (at > done) std::fill_n(to + done, at - done, T{0});
      std::memcpy(to + at, x + from, static_cast<std::size_t>(run) * sizeof(T));
      done = at + run;
    });
    std::fill_n(to + done, w.window() - done, T{0});
  }
}

template <class T>
void add_windows(const Windows& w, const T* windows, std::int64_t g, std::int64_t first, std::int64_t count, T* x) {
  for (std::int64_t p = 0; p < count; ++p) {
    const T* from = windows + p * w.window();
    for_runs(w, first + p, g, [&](std::int64_t at, std::int64_t to, std::int64_t run) {
      for (std::int64_t i = 0; i < run; ++i) x[to + i] += from[at + i];
    });
  }
}

template <class T>
void convolve_depthwise(const Windows& w, const T* x, const T* weights, T* y) {
  const std::vector<T> taps = by_taps(w, weights);
  const std::int64_t c = w.in_channels;
  parallel_for(w.positions(), std::max<std::int64_t>(1, 32768 / (c * w.taps())), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      T* to = y + p * c;
      std::fill_n(to, c, T{0});
      for_channels(w, p, [&](std::int64_t tap, std::int64_t at) {
        const T *a = x + at, *b = taps.data() + tap * c;
        for (std::int64_t i = 0; i < c; ++i) to[i] += a[i] * b[i];
      });
    }
  });
}

template <class T>
void spread_depthwise(const Windows& w, const T* y, const T* weights, T* x) {
  const std::vector<T> taps = by_taps(w, weights);
  const std::int64_t c = w.in_channels;
  parallel_for(w.batch, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin * w.out_size(); p < end * w.out_size(); ++p) {
      for_channels(w, p, [&](std::int64_t tap, std::int64_t at) {
        const T *a = y + p * c, *b = taps.data() + tap * c;
        for (std::int64_t i = 0; i < c; ++i) x[at + i] += a[i] * b[i];
      });
    }
  });
}

template <class T>
void correlate_depthwise(const Windows& w, const T* x, const T* y, std::int64_t first, std::int64_t last, T* weights) {
  const std::int64_t c = w.in_channels;
  std::vector<T> taps(static_cast<std::size_t>(w.taps() * c), T{0});
  for (std::int64_t p = first; p < last; ++p) {
    for_channels(w, p, [&](std::int64_t tap, std::int64_t at) {
      const T *a = x + at, *b = y + p * c;
      T* to = taps.data() + tap * c;
      for (std::int64_t i = 0; i < c; ++i) to[i] += a[i] * b[i];
    });
  }
  for (std::int64_t i = 0; i < c; ++i) {
    for (std::int64_t t = 0; t < w.taps(); ++t) weights[i * w.taps() + t] += taps[static_cast<std::size_t>(t * c + i)];
  }
}

template void read_windows(const Windows&, const float*, std::int64_t, std::int64_t, std::int64_t, float*);
template void read_windows(const Windows&, const double*, std::int64_t, std::int64_t, std::int64_t, double*);
template void add_windows(const Windows&, const float*, std::int64_t, std::int64_t, std::int64_t, float*);
template void add_windows(const Windows&, const double*, std::int64_t, std::int64_t, std::int64_t, double*);
template void convolve_depthwise(const Windows&, const float*, const float*, float*);
template void convolve_depthwise(const Windows&, const double*, const double*, double*);
template void spread_depthwise(const Windows&, const float*, const float*, float*);
template void spread_depthwise(const Windows&, const double*, const double*, double*);
template void correlate_depthwise(const Windows&, const float*, const float*, std::int64_t, std::int64_t, float*);
template void correlate_depthwise(const Windows&, const double*, const double*, std::int64_t, std::int64_t, double*);

}  // namespace sdx::cpu
