#include "ops/conv/conv_reference.h"

#include <algorithm>

#include "base/thread_pool.h"
#include "ops/matrix/gemm_reference.h"

namespace sdx::ops {
namespace {

// Splits a row-major index over all axes but the last `skip` ones.
void unflatten(const std::vector<WindowAxis>& axes, std::int64_t WindowAxis::*extent, std::size_t skip, std::int64_t flat,
               std::vector<std::int64_t>& index) {
  for (std::size_t d = axes.size() - skip; d-- > 0;) {
    index[d] = flat % (axes[d].*extent);
    flat /= axes[d].*extent;
  }
}

// Gathers, for output positions [begin, end) of one image, the inputs that each tap of each channel meets:
// col[(c*taps + t)*(end-begin) + (s-begin)]. x points at the group's first channel.
template <class T>
class Im2Col {
 public:
  explicit Im2Col(const ConvGeometry& g)
      : axes_(g.axes),
        channels_(g.in_channels_per_group()),
        in_plane_(g.in_plane()),
        taps_(g.kernel_taps()),
        at_(g.axes.size()),
        tap_(g.axes.size()) {}

  void fill(const T* x, std::int64_t begin, std::int64_t end, T* col) {
    const std::int64_t width = axes_.back().out;
    for (std::int64_t s = begin; s < end;) {
      const std::int64_t row = s / width;
      const std::int64_t o0 = s % width;
      const std::int64_t o1 = std::min(width, o0 + end - s);
      unflatten(axes_, &WindowAxis::out, 1, row, at_);
      for (std::int64_t t = 0; t < taps_; ++t) segment(x, t, o0, o1, col + t * (end - begin) + (s - begin), end - begin);
      s += o1 - o0;
    }
  }

 private:
  // Outputs [o0, o1) of the last axis, one tap, all channels.
  void segment(const T* x, std::int64_t t, std::int64_t o0, std::int64_t o1, T* to, std::int64_t ld) {
    unflatten(axes_, &WindowAxis::kernel, 0, t, tap_);
    std::int64_t base = 0;
    bool inside = true;
    for (std::size_t d = 0; d + 1 < axes_.size(); ++d) {
      const WindowAxis& a = axes_[d];
      const std::int64_t i = a.start(at_[d]) + tap_[d] * a.dilation;
      inside = inside && i >= 0 && i < a.in;
      base = base * a.in + i;
    }
    const WindowAxis& last = axes_.back();
    IndexRange range = outputs_inside(last, tap_.back());
    range.begin = std::clamp(range.begin, o0, o1);
    range.end = inside ? std::clamp(range.end, range.begin, o1) : range.begin;
    const std::int64_t first = inside ? base * last.in + last.start(range.begin) + tap_.back() * last.dilation : 0;
    for (std::int64_t c = 0; c < channels_; ++c) {
      T* out = to + c * taps_ * ld;
      std::fill(out, out + (range.begin - o0), T(0));
      T* mid = out + (range.begin - o0);
      const std::int64_t n = range.size();
      if (n > 0) {
        const T* in = x + c * in_plane_ + first;
        for (std::int64_t i = 0; i < n; ++i) mid[i] = in[i * last.stride];
      }
      std::fill(mid + n, out + (o1 - o0), T(0));
    }
  }

  const std::vector<WindowAxis>& axes_;
  std::int64_t channels_, in_plane_, taps_;
  std::vector<std::int64_t> at_, tap_;
};

bool is_pointwise(const ConvGeometry& g) {
  return std::all_of(g.axes.begin(), g.axes.end(), [](const WindowAxis& a) {
    return a.kernel == 1 && a.stride == 1 && a.pad_begin == 0 && a.pad_end == 0 && a.in == a.out;
  });
}

template <class T>
void add_bias(T* y, std::int64_t n, T b) {
  for (std::int64_t i = 0; i < n; ++i) y[i] += b;
}

// Adds one tap's products, one per input position, into the output plane.
template <class T>
void scatter(const ConvGeometry& g, const T* from, std::int64_t t, std::vector<std::int64_t>& tap, std::vector<std::int64_t>& at,
             T* plane) {
  unflatten(g.axes, &WindowAxis::kernel, 0, t, tap);
  const WindowAxis& last = g.axes.back();
  const std::int64_t shift = tap.back() * last.dilation - last.pad_begin;
  const std::int64_t i0 = std::min(last.in, shift < 0 ? ceil_div(-shift, last.stride) : 0);
  const std::int64_t i1 = last.out > shift ? std::min(last.in, ceil_div(last.out - shift, last.stride)) : 0;
  if (i0 >= i1) return;
  const std::int64_t rows = g.in_plane() / last.in;
  for (std::int64_t row = 0; row < rows; ++row) {
    unflatten(g.axes, &WindowAxis::in, 1, row, at);
    std::int64_t base = 0;
    bool inside = true;
    for (std::size_t d = 0; d + 1 < g.axes.size(); ++d) {
      const WindowAxis& a = g.axes[d];
      const std::int64_t o = a.start(at[d]) + tap[d] * a.dilation;
      inside = inside && o >= 0 && o < a.out;
      base = base * a.out + o;
    }
    if (!inside) continue;
    T* out = plane + base * last.out + shift;
    const T* in = from + row * last.in;
    for (std::int64_t i = i0; i < i1; ++i) out[i * last.stride] += in[i];
  }
}

}  // namespace

template <class T>
void conv_reference(const ConvGeometry& g, const T* x, const T* w, const T* bias, T* y, const StopCondition& stop) {
  const std::int64_t plane = g.out_plane();
  if (g.batch == 0 || g.out_channels == 0 || plane == 0) return;
  const std::int64_t channels = g.in_channels_per_group();
  const std::int64_t m = g.out_channels_per_group();
  const std::int64_t depth = channels * g.kernel_taps();
  const std::int64_t in_plane = g.in_plane();
  const bool direct = is_pointwise(g);
  // A gathered tile is at most 2^18 elements (1 MiB of floats), unless one position alone is larger.
  const std::int64_t tile = std::min(plane, std::clamp<std::int64_t>((1 << 18) / std::max<std::int64_t>(depth, 1), 16, 256));
  const std::int64_t tiles = (plane + tile - 1) / tile;
  parallel_for(g.batch * g.groups * tiles, 1, [&](std::int64_t begin, std::int64_t end) {
    Im2Col<T> gather(g);
    std::vector<T> col(direct ? 0 : static_cast<std::size_t>(depth * tile));
    for (std::int64_t job = begin; job < end; ++job) {
      stop.check();
      const std::int64_t s0 = job % tiles * tile;
      const std::int64_t s1 = std::min(plane, s0 + tile);
      const std::int64_t group = job / tiles % g.groups;
      const std::int64_t image = job / tiles / g.groups;
      const T* from = x + (image * g.in_channels + group * channels) * in_plane;
      T* to = y + (image * g.out_channels + group * m) * plane + s0;
      if (!direct && depth > 0) gather.fill(from, s0, s1, col.data());
      GemmArgs<T> args{m, s1 - s0, depth, w + group * m * depth, depth, 1, col.data(), s1 - s0, to, plane};
      if (direct) {
        args.b = from + s0;
        args.ldb = plane;
      }
      gemm_serial(args);
      if (bias == nullptr) continue;
      for (std::int64_t r = 0; r < m; ++r) add_bias(to + r * plane, s1 - s0, bias[group * m + r]);
    }
  });
}

template <class T>
void conv_transpose_reference(const ConvGeometry& g, const T* x, const T* w, const T* bias, T* y, const StopCondition& stop) {
  const std::int64_t plane = g.out_plane();
  if (g.batch == 0 || g.out_channels == 0 || plane == 0) return;
  const std::int64_t channels = g.in_channels_per_group();
  const std::int64_t m = g.out_channels_per_group();
  const std::int64_t taps = g.kernel_taps();
  const std::int64_t in_plane = g.in_plane();
  constexpr std::int64_t kTaps = 4;  // taps multiplied at once: they share the pass over x
  parallel_for(g.batch * g.out_channels, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<T> products(static_cast<std::size_t>(std::min(kTaps, taps) * in_plane));
    std::vector<std::int64_t> tap(g.axes.size()), at(g.axes.size());
    for (std::int64_t job = begin; job < end; ++job) {
      stop.check();
      const std::int64_t channel = job % g.out_channels;
      const std::int64_t group = channel / m;
      T* out = y + job * plane;
      std::fill_n(out, plane, bias == nullptr ? T(0) : bias[channel]);
      if (in_plane == 0 || channels == 0) continue;
      const T* from = x + (job / g.out_channels * g.in_channels + group * channels) * in_plane;
      const T* weights = w + (group * channels * m + channel % m) * taps;
      for (std::int64_t t = 0; t < taps; t += kTaps) {
        const std::int64_t count = std::min(kTaps, taps - t);
        gemm_serial(GemmArgs<T>{count, in_plane, channels, weights + t, 1, m * taps, from, in_plane, products.data(), in_plane});
        for (std::int64_t i = 0; i < count; ++i) scatter(g, products.data() + i * in_plane, t + i, tap, at, out);
      }
    }
  });
}

template void conv_reference<float>(const ConvGeometry&, const float*, const float*, const float*, float*, const StopCondition&);
template void conv_reference<double>(const ConvGeometry&, const double*, const double*, const double*, double*,
                                     const StopCondition&);
template void conv_reference<std::uint32_t>(const ConvGeometry&, const std::uint32_t*, const std::uint32_t*, const std::uint32_t*,
                                            std::uint32_t*, const StopCondition&);
template void conv_transpose_reference<float>(const ConvGeometry&, const float*, const float*, const float*, float*,
                                              const StopCondition&);
template void conv_transpose_reference<double>(const ConvGeometry&, const double*, const double*, const double*, double*,
                                               const StopCondition&);

}  // namespace sdx::ops
