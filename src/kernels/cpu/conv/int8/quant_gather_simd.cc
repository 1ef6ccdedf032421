#include "kernels/cpu/conv/int8/quant_gather_simd.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/int8/quant_gather_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

// Widens n bytes to int16 and subtracts the zero point. May overwrite up to 15 elements after the last one, and read as many
// bytes after the last one if they lie before `end`.
HWY_INLINE void widen(const std::uint8_t* HWY_RESTRICT x, [[maybe_unused]] const std::uint8_t* end, bool is_signed,
                      std::int32_t zero, std::int64_t n, std::int16_t* HWY_RESTRICT out) {
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::CappedTag<std::int16_t, 16> dc;
  const auto step = static_cast<std::int64_t>(hn::Lanes(dc));
  const auto z = hn::Set(dc, static_cast<std::int16_t>(zero));
  const std::int64_t safe = std::min(n, end - x - (step - 1));
  if (is_signed) {
    const hn::Rebind<std::int8_t, decltype(dc)> d8;
    for (; i < safe; i += step) {
      hn::StoreU(hn::Sub(hn::PromoteTo(dc, hn::LoadU(d8, reinterpret_cast<const std::int8_t*>(x + i))), z), dc, out + i);
    }
  } else {
    const hn::Rebind<std::uint8_t, decltype(dc)> d8;
    for (; i < safe; i += step) hn::StoreU(hn::Sub(hn::PromoteTo(dc, hn::LoadU(d8, x + i)), z), dc, out + i);
  }
#endif
  for (; i < n; ++i) {
    out[i] = static_cast<std::int16_t>((is_signed ? static_cast<std::int8_t>(x[i]) : x[i]) - zero);
  }
}

struct Position {
  std::int64_t batch, z, y, x;
};

void gather_pixel(const QSource& q, const Position& at, std::int16_t* out) {
  const ConvShape& s = *q.shape;
  const std::int64_t channels = s.in_channels / s.groups;
  const std::int64_t row = s.in[2] * s.in_channels;
  const std::int64_t ix = at.x * s.stride[2] - s.pad[2];
  const bool whole = s.dilation[2] == 1 && s.groups == 1;
  for (std::int64_t kz = 0; kz < s.kernel[0]; ++kz) {
    const std::int64_t iz = at.z * s.stride[0] - s.pad[0] + kz * s.dilation[0];
    for (std::int64_t ky = 0; ky < s.kernel[1]; ++ky) {
      const std::int64_t iy = at.y * s.stride[1] - s.pad[1] + ky * s.dilation[1];
      const std::int64_t taps = s.kernel[2] * channels;
      if (iz < 0 || iz >= s.in[0] || iy < 0 || iy >= s.in[1]) {
        std::fill(out, out + taps, std::int16_t{0});
        out += taps;
        continue;
      }
      const std::uint8_t* line = q.x + ((at.batch * s.in[0] + iz) * s.in[1] + iy) * row + q.group * channels;
      if (whole) {
        const std::int64_t begin = std::clamp<std::int64_t>(-ix, 0, s.kernel[2]);
        const std::int64_t stop = std::clamp<std::int64_t>(s.in[2] - ix, begin, s.kernel[2]);
        std::fill(out, out + begin * channels, std::int16_t{0});
        if (stop > begin) {
          widen(line + (ix + begin) * channels, q.end, q.is_signed, q.zero, (stop - begin) * channels, out + begin * channels);
        }
        std::fill(out + stop * channels, out + taps, std::int16_t{0});
        out += taps;
        continue;
      }
      for (std::int64_t kx = 0; kx < s.kernel[2]; ++kx, out += channels) {
        const std::int64_t tx = ix + kx * s.dilation[2];
        if (tx < 0 || tx >= s.in[2]) {
          std::fill(out, out + channels, std::int16_t{0});
        } else {
          widen(line + tx * s.in_channels, q.end, q.is_signed, q.zero, channels, out);
        }
      }
    }
  }
}

// Visits `rows` positions from `first` on, one row of outputs at a time: fn(position of the row's first, its offset from `first`,
// count).
template <class F>
void over_lines(const ConvShape& s, std::int64_t first, std::int64_t rows, F&& fn) {
  Position at{};
  at.x = first % s.out[2];
  at.y = first / s.out[2] % s.out[1];
  at.z = first / (s.out[2] * s.out[1]) % s.out[0];
  at.batch = first / (s.out[2] * s.out[1] * s.out[0]);
  for (std::int64_t i = 0; i < rows;) {
    const std::int64_t count = std::min(rows - i, s.out[2] - at.x);
    fn(at, i, count);
    i += count;
    at.x = 0;
    if (++at.y < s.out[1]) continue;
    at.y = 0;
    if (++at.z < s.out[0]) continue;
    at.z = 0;
    ++at.batch;
  }
}

constexpr std::int64_t kLine = 4096;  // int16 of a widened image: 8 KB
constexpr std::int64_t kFewChannels = 16;

// Whether windows are so short that it pays to widen a whole line of the image and copy them from there. A first convolution,
// with three channels, has windows of 9 or 21 values.
bool copies_windows(const ConvShape& s) {
  const std::int64_t window = s.kernel[2] * s.in_channels;
  return s.groups == 1 && s.dilation[2] == 1 && s.in_channels < kFewChannels && s.kernel[2] > 1 && window <= kLine / 4 &&
         s.stride[2] * s.in_channels <= kLine / 4;
}

// Copies n values of each window. Also overwrites up to 15 values after them, which are not filled yet.
void copy_windows(const std::int16_t* HWY_RESTRICT line, std::int64_t step, std::int64_t count, std::int64_t n,
                  std::int16_t* HWY_RESTRICT out, std::int64_t stride) {
#if HWY_TARGET == HWY_SCALAR
  for (std::int64_t i = 0; i < count; ++i, line += step, out += stride) std::copy(line, line + n, out);
#else
  const hn::CappedTag<std::int16_t, 16> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < count; ++i, line += step, out += stride) {
    for (std::int64_t j = 0; j < n; j += lanes) {
      hn::StoreU(hn::LoadU(d, line + j), d, out + j);
      __asm__("" ::: "memory");  // else GCC calls memcpy, which took a fifth of such a convolution
    }
  }
#endif
}

// Gathers the windows of `count` neighbouring outputs from `at` on.
void gather_windows(const QSource& q, const Position& at, std::int64_t count, std::int16_t* out, std::int64_t stride) {
  const ConvShape& s = *q.shape;
  const std::int64_t channels = s.in_channels;
  const std::int64_t window = s.kernel[2] * channels;
  const std::int64_t step = s.stride[2] * channels;
  HWY_ALIGN std::int16_t line[kLine + 32];
  const std::int64_t most = (kLine - window) / step + 1;
  for (std::int64_t done = 0; done < count; done += most, out += most * stride) {
    const std::int64_t outputs = std::min(most, count - done);
    const std::int64_t ix = (at.x + done) * s.stride[2] - s.pad[2];
    const std::int64_t pixels = (outputs - 1) * s.stride[2] + s.kernel[2];
    const std::int64_t begin = std::clamp<std::int64_t>(-ix, 0, pixels);
    const std::int64_t stop = std::clamp<std::int64_t>(s.in[2] - ix, begin, pixels);
    std::int16_t* to = out;
    for (std::int64_t kz = 0; kz < s.kernel[0]; ++kz) {
      const std::int64_t iz = at.z * s.stride[0] - s.pad[0] + kz * s.dilation[0];
      for (std::int64_t ky = 0; ky < s.kernel[1]; ++ky, to += window) {
        const std::int64_t iy = at.y * s.stride[1] - s.pad[1] + ky * s.dilation[1];
        const bool inside = iz >= 0 && iz < s.in[0] && iy >= 0 && iy < s.in[1];
        std::fill(line, line + (inside ? begin : pixels) * channels, std::int16_t{0});
        if (inside) {
          const std::uint8_t* x = q.x + (((at.batch * s.in[0] + iz) * s.in[1] + iy) * s.in[2] + ix + begin) * channels;
          if (stop > begin) widen(x, q.end, q.is_signed, q.zero, (stop - begin) * channels, line + begin * channels);
          std::fill(line + stop * channels, line + pixels * channels, std::int16_t{0});
        }
        copy_windows(line, step, outputs, window, to, stride);
      }
    }
  }
}

void gather(const QSource& q, std::int64_t first, std::int64_t rows, std::int16_t* out, std::int64_t stride) {
  // Clears the rest of the last quad. Writing four values always is harmless, and a fixed size avoids a call of memset.
  const bool whole = q.k % 4 == 0;
  const auto fill_up = [&](std::int16_t* row) {
    if (!whole) std::memset(row + q.k, 0, 4 * sizeof(std::int16_t));
  };
  if (q.shape == nullptr) {
    for (std::int64_t i = 0; i < rows; ++i, out += stride) {
      widen(q.x + (first + i) * q.lda, q.end, q.is_signed, q.zero, q.k, out);
      fill_up(out);
    }
    return;
  }
  const ConvShape& s = *q.shape;
  const bool windows = copies_windows(s);
  over_lines(s, first, rows, [&](Position at, std::int64_t i, std::int64_t count) {
    std::int16_t* to = out + i * stride;
    if (windows) gather_windows(q, at, count, to, stride);
    if (windows && whole) return;
    for (std::int64_t j = 0; j < count; ++j, ++at.x, to += stride) {
      if (!windows) gather_pixel(q, at, to);
      fill_up(to);
    }
  });
}

}  // namespace

const QGatherKernels& qgather_table() {
  static const QGatherKernels table{gather};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const QGatherKernels&, qgather_kernels, qgather_table)
#endif
