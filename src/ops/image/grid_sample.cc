// GridSample: ai.onnx 16 (two spatial axes), 20 (any number), 22; com.microsoft 1.

#include <algorithm>
#include <array>
#include <cmath>

#include "base/thread_pool.h"
#include "ops/context.h"
#include "ops/image/signatures.h"
#include "ops/op.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/movement.h"
#include "tensor/dispatch.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

enum class Mode { nearest, linear, cubic };
enum class Padding { zeros, border, reflection };

struct Options {
  Mode mode;
  Padding padding;
  bool align;
};

Options options_of(const GridSampleAttrs& attr) {
  Options o{};
  const std::string_view mode = attr.mode;
  if (mode == "nearest") {
    o.mode = Mode::nearest;
  } else if (mode == "linear" || mode == "bilinear") {
    o.mode = Mode::linear;
  } else if (mode == "cubic" || mode == "bicubic") {
    o.mode = Mode::cubic;
  } else {
    fail(ErrorCode::invalid_model, "'mode' must be nearest, linear (bilinear) or cubic (bicubic), received {}", mode);
  }
  const std::string_view padding = attr.padding_mode;
  if (padding == "zeros") {
    o.padding = Padding::zeros;
  } else if (padding == "border") {
    o.padding = Padding::border;
  } else if (padding == "reflection") {
    o.padding = Padding::reflection;
  } else {
    fail(ErrorCode::invalid_model, "'padding_mode' must be zeros, border or reflection, received {}", padding);
  }
  o.align = attr.align_corners;
  return o;
}

void check_ranks(std::size_t x, std::size_t grid) {
  if (x < 3 || x != grid || x > 10) {
    fail(ErrorCode::invalid_model, "X and grid must have one rank of 3 to 10, received {} and {}", x, grid);
  }
}

void infer_grid_sample(InferContext& c) {
  options_of(parse<GridSampleAttrs>(c));
  const SymShape* x = c.shape(0);
  const SymShape* grid = c.shape(1);
  if (x != nullptr && grid != nullptr) check_ranks(x->size(), grid->size());
  if (x == nullptr && grid == nullptr) return c.output(0, c.dtype(0));
  SymShape out(x != nullptr ? x->size() : grid->size());
  if (x != nullptr) {
    out[0] = (*x)[0];
    out[1] = (*x)[1];
  }
  for (std::size_t d = 2; grid != nullptr && d < out.size(); ++d) out[d] = (*grid)[d - 1];
  c.output(0, c.dtype(0), std::move(out));
}

double reflected(double v, double low, double high) {
  const double range = high - low;
  if (!(range > 0)) return low;
  const double distance = v < low ? low - v : v - high;
  if (!(distance > 0)) return v;
  const double folds = std::floor(distance / range);
  const double rest = distance - folds * range;
  const bool even = std::fmod(folds, 2.0) == 0;
  return (v < low) == even ? low + rest : high - rest;
}

// Inputs along one axis that a position weighs; index -1: outside, nothing.
struct AxisTaps {
  int count = 0;
  std::array<std::int64_t, 4> at{};
  std::array<double, 4> weight{};
};

std::int64_t tap_index(std::int64_t i, std::int64_t extent, const Options& o) {
  if (i >= 0 && i < extent) return i;
  if (o.padding == Padding::zeros) return -1;
  if (o.padding == Padding::border) return std::clamp<std::int64_t>(i, 0, extent - 1);
  const double low = o.align ? 0 : -0.5;
  const double r = reflected(static_cast<double>(i), low, static_cast<double>(extent - 1) - low);
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::lround(r)), 0, extent - 1);
}

// The position of a normalised coordinate among the pixels: finite, and at most four outside.
double pixel_position(double normalized, std::int64_t extent, const Options& o) {
  const auto n = static_cast<double>(extent);
  double v = o.align ? (normalized + 1) / 2 * (n - 1) : ((normalized + 1) * n - 1) / 2;
  if (!std::isfinite(v)) v = -2;
  if (o.mode == Mode::nearest) v = std::nearbyint(v);
  const double low = o.align ? 0 : -0.5;
  const double high = n - 1 - low;
  if (v < low || v > high) {
    // A cubic filter beyond the border still weighs several pixels: there only its taps are clamped.
    if (o.padding == Padding::border && o.mode != Mode::cubic) v = std::clamp(v, 0.0, n - 1);
    if (o.padding == Padding::reflection) v = reflected(v, low, high);
  }
  return std::clamp(v, -4.0, n + 4);  // further outside nothing changes, and conversions to integers stay in range
}

// floor() without a call; |v| is small.
std::int64_t floor_of(double v) {
  const auto towards_zero = static_cast<std::int64_t>(v);
  return towards_zero - (static_cast<double>(towards_zero) > v ? 1 : 0);
}

AxisTaps axis_taps(double normalized, std::int64_t extent, const Options& o) {
  const double v = pixel_position(normalized, extent, o);
  AxisTaps t;
  if (o.mode == Mode::nearest) {
    t.count = 1;
    t.at[0] = tap_index(static_cast<std::int64_t>(std::nearbyint(v)), extent, o);
    t.weight[0] = 1;
    return t;
  }
  const std::int64_t base = floor_of(v);
  const double f = v - static_cast<double>(base);
  if (o.mode == Mode::linear) {
    t.count = 2;
    t.weight = {1 - f, f};
  } else {
    constexpr double a = -0.75;
    const auto outer = [](double x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
    const auto inner = [](double x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
    t.count = 4;
    t.weight = {outer(f + 1), inner(f), inner(1 - f), outer(2 - f)};
  }
  const std::int64_t first = o.mode == Mode::linear ? base : base - 1;
  for (int k = 0; k < t.count; ++k) t.at[static_cast<std::size_t>(k)] = tap_index(first + k, extent, o);
  return t;
}

// All inputs of one output position: offsets within a channel, and weights.
struct Taps {
  Ints at;
  std::vector<double> weight;
};

void combine(const std::vector<AxisTaps>& axes, const Ints& strides, Taps& out, Taps& scratch) {
  out.at.assign(1, 0);
  out.weight.assign(1, 1.0);
  for (std::size_t d = 0; d < axes.size(); ++d) {
    scratch.at.clear();
    scratch.weight.clear();
    for (std::size_t i = 0; i < out.at.size(); ++i) {
      for (int k = 0; k < axes[d].count; ++k) {
        const auto j = static_cast<std::size_t>(k);
        if (axes[d].at[j] < 0) continue;
        scratch.at.push_back(out.at[i] + axes[d].at[j] * strides[d]);
        scratch.weight.push_back(out.weight[i] * axes[d].weight[j]);
      }
    }
    std::swap(out, scratch);
  }
}

template <class T>
T weighed(const T* plane, const Taps& taps) {
  double sum = 0;
  for (std::size_t i = 0; i < taps.at.size(); ++i) {
    sum += taps.weight[i] * static_cast<double>(static_cast<ComputeType<T>>(plane[taps.at[i]]));
  }
  if constexpr (std::is_integral_v<T>) {
    constexpr auto low = static_cast<double>(std::numeric_limits<T>::min());
    constexpr auto high = static_cast<double>(std::numeric_limits<T>::max());
    return sum <= low ? std::numeric_limits<T>::min() : (sum >= high ? std::numeric_limits<T>::max() : static_cast<T>(sum));
  } else {
    return T(static_cast<ComputeType<T>>(sum));
  }
}

// fn(Taps, output position, batch item) for each position of the grid.
template <class F>
void for_each_position(const OpContext& c, const Options& o, F&& fn) {
  const Tensor& x = c.input(0);
  const Tensor& grid = c.input(1);
  const std::size_t spatial = x.rank() - 2;
  const Shape extents(x.shape().begin() + 2, x.shape().end());
  const Ints strides = strides_of(extents);
  const std::int64_t per_item = product(grid.shape(), 1, grid.rank() - 1);
  const Tensor* positions = &grid;
  parallel_for(x.dim(0) * per_item, 64, [&](std::int64_t begin, std::int64_t end) {
    std::vector<AxisTaps> axes(spatial);
    Taps taps, scratch;
    for (std::int64_t p = begin; p < end; ++p) {
      for (std::size_t d = 0; d < spatial; ++d) {
        // The last coordinate of the grid belongs to the first spatial axis.
        const auto at = p * static_cast<std::int64_t>(spatial) + static_cast<std::int64_t>(spatial - 1 - d);
        axes[d] = axis_taps(element_as_double(*positions, at), extents[d], o);
      }
      combine(axes, strides, taps, scratch);
      fn(taps, p % per_item, p / per_item);
    }
  });
}

// Positions of a plane that are prepared together and then serve each channel: 256 * 4 * 8 bytes stay in the first-level cache.
constexpr std::int64_t kBlock = 256;

// Taps of a block of positions, in float where the elements are float or narrower. Linear: two neighbours in each of two rows,
// at[0] and at[1] the left ones. Nearest: at[0], or -1 outside.
template <class W>
struct PlaneTaps {
  std::array<std::array<std::int64_t, 2>, kBlock> at;
  std::array<std::array<W, 4>, kBlock> weight;  // upper left, upper right, lower left, lower right
};

// Two taps of an axis as neighbours [first, first + 1] inside it; outside positions have weight 0. extent > 1.
struct Pair {
  std::int64_t first;
  double weight[2];
};

Pair linear_pair(double normalized, std::int64_t extent, const Options& o) {
  const double v = pixel_position(normalized, extent, o);
  const std::int64_t base = floor_of(v);
  const double f = v - static_cast<double>(base);
  if (base >= 0 && base + 1 < extent) return {base, {1 - f, f}};
  const std::int64_t at[2] = {tap_index(base, extent, o), tap_index(base + 1, extent, o)};
  const double weight[2] = {1 - f, f};
  const std::int64_t least = at[0] < 0 ? at[1] : (at[1] < 0 ? at[0] : std::min(at[0], at[1]));
  Pair pair{std::clamp<std::int64_t>(least, 0, extent - 2), {0, 0}};
  for (std::size_t k = 0; k < 2; ++k) {
    if (at[k] >= 0) pair.weight[at[k] > pair.first ? 1 : 0] += weight[k];
  }
  return pair;
}

template <class W>
void prepare_linear(const std::array<double, 2 * kBlock>& grid, std::size_t count, const Shape& x, const Options& o,
                    PlaneTaps<W>& taps) {
  for (std::size_t p = 0; p < count; ++p) {
    const Pair down = linear_pair(grid[2 * p + 1], x[2], o), across = linear_pair(grid[2 * p], x[3], o);
    taps.at[p] = {down.first * x[3] + across.first, (down.first + 1) * x[3] + across.first};
    for (std::size_t j = 0; j < 4; ++j) taps.weight[p][j] = static_cast<W>(down.weight[j / 2] * across.weight[j % 2]);
  }
}

template <class W>
void prepare_nearest(const std::array<double, 2 * kBlock>& grid, std::size_t count, const Shape& x, const Options& o,
                     PlaneTaps<W>& taps) {
  for (std::size_t p = 0; p < count; ++p) {
    const std::int64_t row = axis_taps(grid[2 * p + 1], x[2], o).at[0], column = axis_taps(grid[2 * p], x[3], o).at[0];
    taps.at[p][0] = row >= 0 && column >= 0 ? row * x[3] + column : -1;
  }
}

template <class W>
void prepare(const Tensor& grid, std::int64_t first, std::int64_t count, const Shape& x, const Options& o, PlaneTaps<W>& taps) {
  std::array<double, 2 * kBlock> positions;
  if (grid.dtype() == DataType::float32) {
    const auto* from = static_cast<const float*>(grid.data()) + first * 2;
    std::copy_n(from, count * 2, positions.begin());
  } else {
    for (std::int64_t i = 0; i < count * 2; ++i) positions[static_cast<std::size_t>(i)] = element_as_double(grid, first * 2 + i);
  }
  if (o.mode == Mode::nearest) {
    prepare_nearest(positions, static_cast<std::size_t>(count), x, o, taps);
  } else {
    prepare_linear(positions, static_cast<std::size_t>(count), x, o, taps);
  }
}

// Returns whether all sums are numbers. A sum can be NaN although no pixel that counts is: next to a tap that lies outside, a tap
// of weight 0 on an infinite or NaN pixel gives NaN.
template <class W, class T>
bool sample_linear(const T* plane, const PlaneTaps<W>& taps, std::int64_t count, T* to) {
  const auto value = [](T v) { return static_cast<W>(static_cast<ComputeType<T>>(v)); };
  bool numbers = true;
  for (std::size_t p = 0; p < static_cast<std::size_t>(count); ++p) {
    const T* const upper = plane + taps.at[p][0];
    const T* const lower = plane + taps.at[p][1];
    const std::array<W, 4>& w = taps.weight[p];
    const W left = w[0] * value(upper[0]) + w[2] * value(lower[0]);
    const W right = w[1] * value(upper[1]) + w[3] * value(lower[1]);
    const W sum = left + right;
    numbers &= sum == sum;
    to[p] = T(static_cast<ComputeType<T>>(sum));
  }
  return numbers;
}

template <class W, class T>
void sample_nearest(const T* plane, const PlaneTaps<W>& taps, std::int64_t count, T* to) {
  for (std::size_t p = 0; p < static_cast<std::size_t>(count); ++p) {
    to[p] = taps.at[p][0] >= 0 ? plane[taps.at[p][0]] : T{};
  }
}

// Two spatial axes: blocks of positions, each prepared once for all channels.
// sample(plane, taps, first of the grid's positions, count, destination)
template <class T, class W, class F>
void sample_planes(const OpContext& c, const Options& o, Tensor& out, F&& sample) {
  const Tensor& x = c.input(0);
  const Tensor& grid = c.input(1);
  const std::int64_t plane = x.dim(2) * x.dim(3), positions = grid.dim(1) * grid.dim(2), channels = x.dim(1);
  const auto* from = static_cast<const T*>(x.data());
  auto* to = static_cast<T*>(out.mutable_data());
  const std::int64_t blocks = (positions + kBlock - 1) / kBlock;
  parallel_for(x.dim(0) * blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    PlaneTaps<W> taps;
    for (std::int64_t b = begin; b < end; ++b) {
      const std::int64_t n = b / blocks, first = b % blocks * kBlock;
      const std::int64_t count = std::min(kBlock, positions - first);
      prepare(grid, n * positions + first, count, x.shape(), o, taps);
      for (std::int64_t k = n * channels; k < (n + 1) * channels; ++k) {
        sample(from + k * plane, taps, n * positions + first, count, to + k * positions + first);
      }
    }
  });
}

// Samples results that are NaN again, without the taps that lie outside.
template <class T>
void sample_again(const OpContext& c, const Options& o, const T* plane, std::int64_t first, std::int64_t count, T* to) {
  const Shape& x = c.input(0).shape();
  Taps taps, scratch;
  for (std::int64_t p = 0; p < count; ++p) {
    if (!std::isnan(static_cast<ComputeType<T>>(to[p]))) continue;
    const auto along = [&](std::size_t axis, std::int64_t k) {
      return axis_taps(element_as_double(c.input(1), (first + p) * 2 + k), x[axis], o);
    };
    combine({along(2, 1), along(3, 0)}, {x[3], 1}, taps, scratch);
    to[p] = weighed(plane, taps);
  }
}

template <class T, class W>
void sample_planes_linear(const OpContext& c, const Options& o, Tensor& out) {
  sample_planes<T, W>(c, o, out, [&](const T* plane, const PlaneTaps<W>& taps, std::int64_t first, std::int64_t count, T* to) {
    if (!sample_linear(plane, taps, count, to)) sample_again(c, o, plane, first, count, to);
  });
}

// False where sample_planes does not serve.
bool sample_quickly(const OpContext& c, const Options& o, Tensor& out) {
  const Tensor& x = c.input(0);
  if (x.rank() != 4 || o.mode == Mode::cubic) return false;
  if (o.mode == Mode::nearest) {
    dispatch_unit(x.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      sample_planes<T, float>(c, o, out, [](const T* plane, const auto& taps, std::int64_t, std::int64_t count, T* to) {
        sample_nearest(plane, taps, count, to);
      });
    });
    return true;
  }
  if (x.dim(2) < 2 || x.dim(3) < 2) return false;
  switch (x.dtype()) {  // integers round and saturate otherwise: weighed()
    case DataType::float32: sample_planes_linear<float, float>(c, o, out); return true;
    case DataType::float64: sample_planes_linear<double, double>(c, o, out); return true;
    case DataType::float16: sample_planes_linear<Float16, float>(c, o, out); return true;
    case DataType::bfloat16: sample_planes_linear<BFloat16, float>(c, o, out); return true;
    default: return false;
  }
}

void run_grid_sample(OpContext& c) {
  const Options o = options_of(parse<GridSampleAttrs>(c));
  const Tensor& x = c.input(0);
  const Tensor& grid = c.input(1);
  check_ranks(x.rank(), grid.rank());
  if (grid.dim(0) != x.dim(0) || grid.shape().back() != static_cast<std::int64_t>(x.rank()) - 2) {
    c.fail("the grid {} does not suit the input {}", grid.type_string(), x.type_string());
  }
  Shape shape(grid.shape().begin(), grid.shape().end() - 1);
  shape.insert(shape.begin() + 1, x.dim(1));
  Tensor& out = c.output(0, x.dtype(), shape);
  if (out.size() == 0) return;
  if (x.size() == 0) c.fail("the input {} has no pixels", x.type_string());
  if (sample_quickly(c, o, out)) return;
  const std::int64_t plane = product(x.shape(), 2, x.rank());
  const std::int64_t positions = product(shape, 2, shape.size());
  const std::int64_t channels = x.dim(1);
  const auto sample = [&](auto tag, auto value) {
    using T = typename decltype(tag)::type;
    const auto* from = static_cast<const T*>(x.data());
    auto* to = static_cast<T*>(out.mutable_data());
    for_each_position(c, o, [&](const Taps& taps, std::int64_t p, std::int64_t n) {
      for (std::int64_t k = n * channels; k < (n + 1) * channels; ++k) to[k * positions + p] = value(from + k * plane, taps);
    });
  };
  if (o.mode == Mode::nearest) {
    dispatch_unit(x.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      sample(tag, [](const T* from, const Taps& taps) { return taps.at.empty() ? T{} : from[taps.at[0]]; });
    });
  } else {
    dispatch(x.dtype(), NumericTypes{}, "GridSample (linear, cubic)", [&](auto tag) {
      using T = typename decltype(tag)::type;
      sample(tag, [](const T* from, const Taps& taps) { return weighed(from, taps); });
    });
  }
}

}  // namespace

void register_grid_sample(OpTable& t) {
  for (const char* domain : {"", "com.microsoft"}) {
    t.add(OpDef(domain, "GridSample", *domain == '\0' ? 16 : 1)
              .in("X", "T1", types::any_tensor)
              .in("grid", "T2", types::floats)
              .out("Y", "T1", types::any_tensor)
              .attrs<GridSampleAttrs>()
              .infer_with(infer_grid_sample)
              .run_with(run_grid_sample));
  }
}

}  // namespace sdx::ops
