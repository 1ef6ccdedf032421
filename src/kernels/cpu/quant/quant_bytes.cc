#include "kernels/cpu/quant/quant_bytes.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/quant/quant_bytes_simd.h"

namespace sdx::cpu {
namespace {

// Calls fn(taps, count, first) for the taps of one output position that lie inside the image, in groups of at most kTaps.
constexpr std::int64_t kTaps = 64;

template <class F>
void over_taps(const ConvShape& s, const std::uint8_t* image, std::int64_t position, F&& fn) {
  const std::uint8_t* taps[kTaps + 1];  // one extra for the result of earlier groups
  std::int64_t count = 0;
  bool first = true;
  const std::int64_t x0 = position % s.out[2] * s.stride[2] - s.pad[2];
  const std::int64_t y0 = position / s.out[2] % s.out[1] * s.stride[1] - s.pad[1];
  const std::int64_t z0 = position / (s.out[2] * s.out[1]) * s.stride[0] - s.pad[0];
  const auto inside = [](std::int64_t v, std::int64_t extent) { return v >= 0 && v < extent; };
  for (std::int64_t kz = 0; kz < s.kernel[0]; ++kz) {
    const std::int64_t z = z0 + kz * s.dilation[0];
    if (!inside(z, s.in[0])) continue;
    for (std::int64_t ky = 0; ky < s.kernel[1]; ++ky) {
      const std::int64_t y = y0 + ky * s.dilation[1];
      if (!inside(y, s.in[1])) continue;
      const std::uint8_t* line = image + (z * s.in[1] + y) * s.in[2] * s.in_channels;
      for (std::int64_t kx = 0; kx < s.kernel[2]; ++kx) {
        const std::int64_t x = x0 + kx * s.dilation[2];
        if (!inside(x, s.in[2])) continue;
        taps[count++] = line + x * s.in_channels;
        if (count < kTaps) continue;
        fn(taps, count, first);
        first = false;
        count = 0;
      }
    }
  }
  if (count > 0 || first) fn(taps, count, first);
}

}  // namespace

void qadd(const QAdd& add, const void* a, const void* b, void* y, std::int64_t n) {
  const QuantBytesKernels& k = quant_bytes_kernels();
  parallel_for(n, 65536, [&](std::int64_t begin, std::int64_t end) {
    k.add(add, static_cast<const std::uint8_t*>(a) + begin, static_cast<const std::uint8_t*>(b) + begin,
          static_cast<std::uint8_t*>(y) + begin, end - begin);
  });
}

void qmul(const QMul& mul, const void* a, const void* b, void* y, std::int64_t n) {
  const QuantBytesKernels& k = quant_bytes_kernels();
  parallel_for(n, 65536, [&](std::int64_t begin, std::int64_t end) {
    k.mul(mul, static_cast<const std::uint8_t*>(a) + begin, static_cast<const std::uint8_t*>(b) + begin,
          static_cast<std::uint8_t*>(y) + begin, end - begin);
  });
}

void qmul_channels(const QMul& mul, const void* a, const void* b, void* y, std::int64_t batch, std::int64_t pixels,
                   std::int64_t channels) {
  if (batch * pixels * channels == 0) return;
  const QuantBytesKernels& k = quant_bytes_kernels();
  // Repeats the factors over several pixels: a few channels do not fill a vector.
  constexpr std::int64_t kLeast = 256;
  const std::int64_t repeats = std::clamp<std::int64_t>((kLeast + channels - 1) / channels, 1, pixels),
                     group = repeats * channels;
  const std::int64_t groups = (pixels + repeats - 1) / repeats;
  parallel_for(batch * groups, std::max<std::int64_t>(1, 65536 / group), [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::uint8_t> factors(static_cast<std::size_t>(group));
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t image = i / groups, first = i % groups * repeats;
      const auto* own = static_cast<const std::uint8_t*>(b) + image * channels;
      if (i == begin || first == 0) {
        for (std::int64_t r = 0; r < repeats; ++r) std::copy(own, own + channels, factors.data() + r * channels);
      }
      const std::int64_t at = (image * pixels + first) * channels, count = std::min(repeats, pixels - first) * channels;
      k.mul(mul, static_cast<const std::uint8_t*>(a) + at, factors.data(), static_cast<std::uint8_t*>(y) + at, count);
    }
  });
}

void map_bytes(const std::uint8_t* table, const void* x, void* y, std::int64_t n) {
  const QuantBytesKernels& k = quant_bytes_kernels();
  parallel_for(n, 65536, [&](std::int64_t begin, std::int64_t end) {
    k.map(table, static_cast<const std::uint8_t*>(x) + begin, static_cast<std::uint8_t*>(y) + begin, end - begin);
  });
}

void map_byte_rows(const std::uint8_t* table, const void* x, void* y, std::int64_t y_step, std::int64_t rows,
                   std::int64_t count) {
  if (count == 0) return;
  if (rows == 1 && table != nullptr) return map_bytes(table, x, y, count);
  const QuantBytesKernels& k = quant_bytes_kernels();
  parallel_for(rows, std::max<std::int64_t>(1, 65536 / count), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const auto* from = static_cast<const std::uint8_t*>(x) + r * count;
      auto* to = static_cast<std::uint8_t*>(y) + r * y_step;
      if (table == nullptr) {
        std::memcpy(to, from, static_cast<std::size_t>(count));
      } else {
        k.map(table, from, to, count);
      }
    }
  });
}

namespace {

// Outputs [first, stop) of a line, all of whose taps lie inside the image: their windows are equally far apart.
struct Inner {
  std::int64_t first, stop;
};
Inner inner_outputs(const ConvShape& s, int axis) {
  const std::int64_t reach = (s.kernel[axis] - 1) * s.dilation[axis], last = s.in[axis] - 1 - reach + s.pad[axis];
  const std::int64_t first = std::clamp<std::int64_t>((s.pad[axis] + s.stride[axis] - 1) / s.stride[axis], 0, s.out[axis]);
  return {first, last < 0 ? first : std::clamp<std::int64_t>(last / s.stride[axis] + 1, first, s.out[axis])};
}

// Calls fn(image, position, output, width) for outputs [begin, end), counted over all images: `width` neighbours in a row whose
// windows have the same taps.
template <class F>
void over_rows(const ConvShape& s, const std::uint8_t* x, std::uint8_t* y, std::int64_t begin, std::int64_t end, F&& fn) {
  const std::int64_t channels = s.in_channels, plane = volume(s.out);
  const Inner inner[3] = {inner_outputs(s, 0), inner_outputs(s, 1), inner_outputs(s, 2)};
  const auto inside = [&](int axis, std::int64_t at) { return at >= inner[axis].first && at < inner[axis].stop; };
  for (std::int64_t i = begin; i < end;) {
    const auto* image = x + i / plane * volume(s.in) * channels;
    const std::int64_t column = i % s.out[2], line = i / s.out[2];
    const bool whole = inside(2, column) && inside(1, line % s.out[1]) && inside(0, line / s.out[1] % s.out[0]);
    const std::int64_t width = whole && volume(s.kernel) <= kTaps ? std::min(inner[2].stop - column, end - i) : 1;
    fn(image, i % plane, y + i * channels, width);
    i += width;
  }
}

void max_pool_outputs(const ConvShape& s, const std::uint8_t* x, bool is_signed, std::uint8_t* y, std::int64_t begin,
                      std::int64_t end) {
  const QuantBytesKernels& k = quant_bytes_kernels();
  const std::int64_t channels = s.in_channels;
  over_rows(s, x, y, begin, end, [&](const std::uint8_t* image, std::int64_t position, std::uint8_t* out, std::int64_t width) {
    over_taps(s, image, position, [&](const std::uint8_t** taps, std::int64_t count, bool first) {
      if (count == 0) {
        std::memset(out, is_signed ? 0x80 : 0, static_cast<std::size_t>(channels));
        return;
      }
      if (!first) taps[count++] = out;
      k.largest(taps, count, is_signed, s.stride[2] * channels, width, channels, out);
    });
  });
}

void average_pool_outputs(const QAverage& q, const ConvShape& s, const std::uint8_t* x, std::uint8_t* y, std::int64_t begin,
                          std::int64_t end) {
  const QuantBytesKernels& k = quant_bytes_kernels();
  const std::int64_t channels = s.in_channels;
  std::vector<const std::uint8_t*> all;
  over_rows(s, x, y, begin, end, [&](const std::uint8_t* image, std::int64_t position, std::uint8_t* out, std::int64_t width) {
    all.clear();
    over_taps(s, image, position,
              [&](const std::uint8_t** taps, std::int64_t count, bool) { all.insert(all.end(), taps, taps + count); });
    if (all.empty()) {
      std::memset(out, q.y_zero & 0xFF, static_cast<std::size_t>(channels));
      return;
    }
    const auto count = static_cast<std::int64_t>(all.size());
    k.average(q, all.data(), count, q.all_taps ? volume(s.kernel) : count, s.stride[2] * channels, width, channels, out);
  });
}

// Computes all outputs by outputs(begin, end), in parallel.
template <class F>
void pool_outputs(const ConvShape& s, F&& outputs) {
  const std::int64_t work = std::max<std::int64_t>(1, s.in_channels * volume(s.kernel));
  parallel_for(s.batch * volume(s.out), std::max<std::int64_t>(1, 262144 / work), outputs);
}

}  // namespace

void max_pool_bytes(const ConvShape& s, const void* x, bool is_signed, void* y) {
  pool_outputs(s, [&](std::int64_t begin, std::int64_t end) {
    max_pool_outputs(s, static_cast<const std::uint8_t*>(x), is_signed, static_cast<std::uint8_t*>(y), begin, end);
  });
}

void average_pool_bytes(const QAverage& average, const ConvShape& s, const void* x, void* y) {
  pool_outputs(s, [&](std::int64_t begin, std::int64_t end) {
    average_pool_outputs(average, s, static_cast<const std::uint8_t*>(x), static_cast<std::uint8_t*>(y), begin, end);
  });
}

void sum_pixels(const void* x, bool is_signed, std::int64_t batch, std::int64_t pixels, std::int64_t channels,
                std::int32_t* sums) {
  const QuantBytesKernels& k = quant_bytes_kernels();
  constexpr std::int64_t kChannels = 64;
  const std::int64_t parts = (channels + kChannels - 1) / kChannels;
  std::fill(sums, sums + batch * channels, 0);
  parallel_for(batch * parts, std::max<std::int64_t>(1, 262144 / std::max<std::int64_t>(1, pixels * kChannels)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const std::int64_t n = i / parts;
                   const std::int64_t c = i % parts * kChannels;
                   k.sum(static_cast<const std::uint8_t*>(x) + n * pixels * channels + c, is_signed, pixels, channels,
                         std::min(kChannels, channels - c), sums + n * channels + c);
                 }
               });
}

}  // namespace sdx::cpu
