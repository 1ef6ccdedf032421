#pragma once
// Windows of pictures (or rows, or volumes) with channels last; apart from the struct, internal to this folder.

#include <array>
#include <cstdint>

namespace sdx::cpu {

using Three = std::array<std::int64_t, 3>;

// One to three spatial axes; missing ones have extent 1.
struct Windows {
  std::int64_t batch = 0, in_channels = 0, out_channels = 0, groups = 1;
  Three in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1}, pad{0, 0, 0};

  std::int64_t in_each() const { return in_channels / groups; }
  std::int64_t out_each() const { return out_channels / groups; }
  std::int64_t in_size() const { return in[0] * in[1] * in[2]; }
  std::int64_t out_size() const { return out[0] * out[1] * out[2]; }
  std::int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  std::int64_t positions() const { return batch * out_size(); }
  std::int64_t window() const { return taps() * in_each(); }  // elements of one window, of one group
  bool depthwise() const { return groups > 1 && in_each() == 1 && out_each() == 1; }
};

// Copies the windows of positions [first, first + count) of group g, one after the other; zeros beyond the input's edges.
template <class T>
void read_windows(const Windows& w, const T* x, std::int64_t g, std::int64_t first, std::int64_t count, T* windows);
// The reverse: adds to x.
template <class T>
void add_windows(const Windows& w, const T* windows, std::int64_t g, std::int64_t first, std::int64_t count, T* x);

// Convolves each channel separately.
template <class T>
void convolve_depthwise(const Windows& w, const T* x, const T* weights, T* y);
template <class T>
void spread_depthwise(const Windows& w, const T* y, const T* weights, T* x);
// Adds the contributions of positions [first, last) to `weights`.
template <class T>
void correlate_depthwise(const Windows& w, const T* x, const T* y, std::int64_t first, std::int64_t last, T* weights);

}  // namespace sdx::cpu
