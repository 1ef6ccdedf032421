#pragma once
// Convolutions for the kernels' unit tests: their shapes, and plain loops to compare with.

#include <cstdint>
#include <vector>

#include "kernels/cpu/conv/conv_shape.h"

namespace sdx::cpu::test {

// One axis of an image and of the windows on it.
struct Axis {
  std::int64_t in, kernel, stride = 1, dilation = 1, pad = 0, pad_end = 0;
};
inline constexpr Axis kNone{1, 1};

inline ConvShape conv_shape(std::int64_t batch, std::int64_t in_channels, std::int64_t out_channels, std::int64_t groups,
                            const Axis& d, const Axis& h, const Axis& w) {
  ConvShape s;
  s.batch = batch, s.in_channels = in_channels, s.out_channels = out_channels, s.groups = groups;
  const Axis axes[3] = {d, h, w};
  for (int i = 0; i < 3; ++i) {
    const Axis& a = axes[i];
    s.in[i] = a.in, s.kernel[i] = a.kernel, s.stride[i] = a.stride, s.dilation[i] = a.dilation, s.pad[i] = a.pad;
    s.out[i] = (a.in + a.pad + a.pad_end - (a.kernel - 1) * a.dilation - 1) / a.stride + 1;
  }
  return s;
}

inline ConvShape conv_shape(std::int64_t batch, std::int64_t in_channels, std::int64_t out_channels, std::int64_t groups,
                            const Axis& h, const Axis& w) {
  return conv_shape(batch, in_channels, out_channels, groups, kNone, h, w);
}

// Calls use(place in x, place in w) for every product of one output.
template <class F>
void for_each_product(const ConvShape& s, std::int64_t n, std::int64_t m, const std::int64_t (&out)[3], F&& use) {
  const std::int64_t cg = s.in_channels / s.groups, mg = s.out_channels / s.groups;
  std::int64_t in[3], k = m * cg * volume(s.kernel);
  for (std::int64_t c = 0; c < cg; ++c) {
    const std::int64_t channel = n * s.in_channels + m / mg * cg + c;
    for (std::int64_t kz = 0; kz < s.kernel[0]; ++kz) {
      for (std::int64_t ky = 0; ky < s.kernel[1]; ++ky) {
        for (std::int64_t kx = 0; kx < s.kernel[2]; ++kx, ++k) {
          const std::int64_t at[3] = {kz, ky, kx};
          bool inside = true;
          for (int i = 0; i < 3; ++i) {
            in[i] = out[i] * s.stride[i] - s.pad[i] + at[i] * s.dilation[i];
            inside = inside && in[i] >= 0 && in[i] < s.in[i];
          }
          if (inside) use(((channel * s.in[0] + in[0]) * s.in[1] + in[1]) * s.in[2] + in[2], k);
        }
      }
    }
  }
}

// Calls use(place in x, place in w, place in y) for every product of the convolution.
template <class F>
void for_each_product(const ConvShape& s, F&& use) {
  std::int64_t y = 0, out[3];
  for (std::int64_t i = 0; i < s.batch * s.out_channels; ++i) {
    for (out[0] = 0; out[0] < s.out[0]; ++out[0]) {
      for (out[1] = 0; out[1] < s.out[1]; ++out[1]) {
        for (out[2] = 0; out[2] < s.out[2]; ++out[2], ++y) {
          for_each_product(s, i / s.out_channels, i % s.out_channels, out, [&](std::int64_t x, std::int64_t w) { use(x, w, y); });
        }
      }
    }
  }
}

inline std::vector<double> plain_conv(const ConvShape& s, const std::vector<float>& x, const std::vector<float>& w) {
  std::vector<double> y(static_cast<std::size_t>(s.batch * s.out_channels * volume(s.out)));
  for_each_product(s, [&](std::int64_t xi, std::int64_t wi, std::int64_t yi) {
    y[static_cast<std::size_t>(yi)] += static_cast<double>(x[static_cast<std::size_t>(xi)]) * w[static_cast<std::size_t>(wi)];
  });
  return y;
}

}  // namespace sdx::cpu::test
