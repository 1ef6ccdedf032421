#include "ops/image/resample.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/thread_pool.h"
#include "ops/tensor/axes.h"

namespace sdx::ops {
namespace {

// T is float for nearest: there, positions that fall between two pixels must round as they do everywhere else, where they
// are computed in float. Weights are better off in double.
template <class T>
T original_position(const ResampleAxis& a, CoordinateMode mode, std::int64_t o) {
  const auto x = static_cast<T>(o);
  const auto scale = static_cast<T>(a.scale);
  const auto in = static_cast<T>(a.in);
  const T half = T(0.5);
  // The target length before rounding; may be fractional. Source: ONNX Resize-19, "output_width".
  const T width = a.scale == static_cast<double>(a.out) / static_cast<double>(a.in) ? static_cast<T>(a.out) : scale * in;
  switch (mode) {
    case CoordinateMode::half_pixel: return (x + half) / scale - half;
    case CoordinateMode::half_pixel_symmetric: {
      const T adjustment = static_cast<T>(a.out) / width;
      // Computed in double from float parts, as in ONNX Runtime: this decides which of two pixels is nearest.
      const double offset = static_cast<double>(in / 2 * (1 - adjustment));
      return static_cast<T>(offset + (static_cast<double>(x) + 0.5) / static_cast<double>(scale) - 0.5);
    }
    case CoordinateMode::pytorch_half_pixel: return a.out > 1 ? (x + half) / scale - half : T(0);
    case CoordinateMode::align_corners: return width == 1 ? T(0) : x * (in - 1) / (width - 1);
    case CoordinateMode::asymmetric: return x / scale;
    case CoordinateMode::tf_half_pixel_for_nn: return (x + half) / scale;
    case CoordinateMode::tf_crop_and_resize: {
      const auto start = static_cast<T>(a.roi_start);
      const auto end = static_cast<T>(a.roi_end);
      if (a.out <= 1) return half * (start + end) * (in - 1);
      return start * (in - 1) + x * (end - start) * (in - 1) / static_cast<T>(a.out - 1);
    }
  }
  return x;
}

// Rounding modes depend on the exact position between two pixels. Dividing by a scale that is no binary fraction misses it: 2 /
// (4 / 7) is 3.4999998 in float. If the scale is the ratio of the lengths, x * in / out is exact.
float rounded_position(const ResampleAxis& a, CoordinateMode mode, std::int64_t o) {
  const auto in = static_cast<double>(a.in);
  const auto out = static_cast<double>(a.out);
  if (static_cast<float>(a.scale) == static_cast<float>(out / in)) {
    const auto x = static_cast<double>(o);
    if (mode == CoordinateMode::asymmetric) return static_cast<float>(x * in / out);
    if (mode == CoordinateMode::half_pixel || (mode == CoordinateMode::pytorch_half_pixel && a.out > 1)) {
      return static_cast<float>((x + 0.5) * in / out - 0.5);
    }
  }
  return original_position<float>(a, mode, o);
}

template <class T>
bool is_outside(const ResampleAxis& a, CoordinateMode mode, T position) {
  return mode == CoordinateMode::tf_crop_and_resize && !(position >= 0 && position <= static_cast<T>(a.in - 1));
}

// Conversion of a position to an index; far outside or not a number, it lands just beyond the nearest edge.
template <class T>
std::int64_t to_index(T floored, std::int64_t in) {
  if (!(floored > static_cast<T>(-in) - 4)) return -in - 4;
  if (!(floored < static_cast<T>(2 * in) + 4)) return 2 * in + 4;
  return static_cast<std::int64_t>(floored);
}

float pick_nearest(float position, NearestMode mode, double scale) {
  switch (mode) {
    case NearestMode::floor: return std::floor(position);
    case NearestMode::ceil: return std::ceil(position);
    case NearestMode::round_prefer_floor: return std::ceil(position - 0.5F);
    case NearestMode::round_prefer_ceil: return std::floor(position + 0.5F);
    case NearestMode::simple: return scale < 1 ? std::ceil(position) : std::floor(position);
  }
  return position;
}

double cubic_weight(double x, double a) {
  x = std::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

// The filter around a position: weights of the inputs floor(position) + [begin, end).
struct Filter {
  std::int64_t begin;
  std::int64_t end;
  double stretch;  // below 1: stretched by 1 / stretch against aliasing
};

Filter filter_of(const ResampleAxis& a, const ResampleOptions& o) {
  const double radius = o.mode == ResampleMode::linear ? 1 : 2;
  const double stretch = o.antialias ? std::min(a.scale, 1.0) : 1.0;
  const double reach = std::floor(-radius / stretch) + 1;
  if (!(reach > -4.0 * static_cast<double>(a.in) - 64)) {
    fail(ErrorCode::runtime_failure, "scale {} is too small for extent {}: the antialiasing filter would reach {} pixels",
         a.scale, a.in, -reach);
  }
  const auto begin = static_cast<std::int64_t>(reach);
  return {begin, 2 - begin, stretch};
}

// Weights of one output position, unnormalised for positions inside and outside the input alike.
void filter_weights(const Filter& f, double fraction, const ResampleOptions& o, std::vector<double>& weights) {
  weights.clear();
  double sum = 0;
  for (std::int64_t i = f.begin; i < f.end; ++i) {
    const double x = (static_cast<double>(i) - fraction) * f.stretch;
    const double w =
        o.mode == ResampleMode::linear ? std::max(0.0, 1 - std::fabs(x)) : cubic_weight(x, static_cast<double>(o.cubic_a));
    weights.push_back(w);
    sum += w;
  }
  if (f.stretch < 1 && sum != 0) {
    for (double& w : weights) w /= sum;
  }
}

// to[i] = sum over k of w[k] * from[k * inner + i]. What has no weight at either end is not read: 0 times infinity is NaN.
template <class T>
void weigh(const T* from, T* to, const T* w, std::int64_t count, std::int64_t inner) {
  while (count > 1 && w[count - 1] == T(0)) --count;
  for (; count > 1 && w[0] == T(0); --count, ++w) from += inner;
  if (count == 2) {  // linear: one pass instead of two
    const T w0 = w[0];
    const T w1 = w[1];
    for (std::int64_t i = 0; i < inner; ++i) to[i] = w0 * from[i] + w1 * from[inner + i];
    return;
  }
  for (std::int64_t i = 0; i < inner; ++i) to[i] = w[0] * from[i];
  for (std::int64_t k = 1; k < count; ++k) {
    const T wk = w[k];
    const T* row = from + k * inner;
    for (std::int64_t i = 0; i < inner; ++i) to[i] += wk * row[i];
  }
}

template <class T>
void weigh_rows(const T* in, T* out, const Ints& first_of, const std::vector<T>& weights, std::int64_t count,
                const ResampleAxis& a, std::int64_t inner, std::int64_t begin, std::int64_t end, T extrapolation) {
  for (std::int64_t r = begin; r < end; ++r) {
    const std::int64_t o = r % a.out;
    const std::int64_t first = first_of[static_cast<std::size_t>(o)];
    if (first < 0) {
      std::fill_n(out + r * inner, inner, extrapolation);
    } else {
      weigh(in + ((r / a.out) * a.in + first) * inner, out + r * inner, weights.data() + o * count, count, inner);
    }
  }
}

template <class T>
Tensor resample_axis(const Tensor& in, std::size_t axis, const ResampleAxis& a, const ResampleOptions& options) {
  Shape shape = in.shape();
  shape[axis] = a.out;
  Tensor out(in.dtype(), shape);
  if (out.size() == 0) return out;
  const Taps taps = weighted_taps(a, options);
  const std::int64_t outer = product(shape, 0, axis);
  const std::int64_t inner = product(shape, axis + 1, shape.size());
  const std::vector<T> weights(taps.weights.begin(), taps.weights.end());
  const auto* from = static_cast<const T*>(in.data());
  auto* to = static_cast<T*>(out.mutable_data());
  const std::int64_t grain = grain_for(inner * taps.count * static_cast<std::int64_t>(sizeof(T)));
  parallel_for(outer * a.out, grain, [&](std::int64_t begin, std::int64_t end) {
    weigh_rows(from, to, taps.first, weights, taps.count, a, inner, begin, end, static_cast<T>(options.extrapolation));
  });
  return out;
}

}  // namespace

bool is_unchanged(const ResampleAxis& a, const ResampleOptions& o) {
  if (a.in != a.out || a.scale != 1) return false;
  if (o.coordinates == CoordinateMode::tf_half_pixel_for_nn) return false;
  return o.coordinates != CoordinateMode::tf_crop_and_resize || (a.roi_start == 0 && a.roi_end == 1);
}

std::int64_t nearest_source(const ResampleAxis& a, const ResampleOptions& o, std::int64_t i) {
  const bool rounds = o.nearest == NearestMode::round_prefer_floor || o.nearest == NearestMode::round_prefer_ceil;
  const float position = rounds ? rounded_position(a, o.coordinates, i) : original_position<float>(a, o.coordinates, i);
  if (is_outside(a, o.coordinates, position)) return -1;
  return std::clamp<std::int64_t>(to_index(pick_nearest(position, o.nearest, a.scale), a.in), 0, a.in - 1);
}

Ints nearest_map(const ResampleAxis& a, const ResampleOptions& o) {
  Ints map(static_cast<std::size_t>(a.out));
  for (std::int64_t i = 0; i < a.out; ++i) map[static_cast<std::size_t>(i)] = nearest_source(a, o, i);
  return map;
}

Taps weighted_taps(const ResampleAxis& a, const ResampleOptions& o) {
  SDX_ASSERT(a.in > 0);
  const Filter filter = filter_of(a, o);
  Taps taps;
  taps.count = std::min(filter.end - filter.begin, a.in);
  taps.first.assign(static_cast<std::size_t>(a.out), 0);
  element_count(Shape{a.out, taps.count});  // refuses what cannot be addressed
  taps.weights.assign(static_cast<std::size_t>(a.out * taps.count), 0.0);
  std::vector<double> weights;
  for (std::int64_t i = 0; i < a.out; ++i) {
    const auto position = original_position<double>(a, o.coordinates, i);
    if (is_outside(a, o.coordinates, position)) {
      taps.first[static_cast<std::size_t>(i)] = -1;
      continue;
    }
    const double floored = std::floor(position);
    filter_weights(filter, std::isfinite(position) ? position - floored : 0.0, o, weights);
    const std::int64_t start = to_index(floored, a.in) + filter.begin;
    const std::int64_t first = std::clamp<std::int64_t>(start, 0, a.in - taps.count);
    taps.first[static_cast<std::size_t>(i)] = first;
    double* out = taps.weights.data() + i * taps.count;
    double sum = 0;
    for (std::size_t k = 0; k < weights.size(); ++k) {
      const std::int64_t source = start + static_cast<std::int64_t>(k);
      if (o.exclude_outside && (source < 0 || source >= a.in)) continue;
      out[std::clamp<std::int64_t>(source, 0, a.in - 1) - first] += weights[k];  // the edge pixel stands for those beyond it
      sum += weights[k];
    }
    if (o.exclude_outside && sum != 0) {
      for (std::int64_t k = 0; k < taps.count; ++k) out[k] /= sum;
    }
  }
  return taps;
}

Tensor resample(const Tensor& in, const std::vector<ResampleAxis>& axes, const ResampleOptions& options,
                const StopCondition& stop) {
  // Shrinking axes first keeps the intermediate results small; of equal ones the innermost, which has the shortest runs.
  std::vector<std::size_t> order(axes.size());
  std::iota(order.rbegin(), order.rend(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t l, std::size_t r) {
    return static_cast<double>(axes[l].out) * static_cast<double>(axes[r].in) <
           static_cast<double>(axes[r].out) * static_cast<double>(axes[l].in);
  });
  Tensor current = in;
  for (const std::size_t axis : order) {
    if (is_unchanged(axes[axis], options)) continue;
    stop.check();
    current = in.dtype() == DataType::float64 ? resample_axis<double>(current, axis, axes[axis], options)
                                              : resample_axis<float>(current, axis, axes[axis], options);
  }
  return current;
}

}  // namespace sdx::ops
