// GridSample: ai.onnx 16 (two spatial axes), 20 (any number), 22; com.microsoft 1. AffineGrid: ai.onnx 20.

#include <algorithm>
#include <array>
#include <cmath>

#include "base/thread_pool.h"
#include "ops/context.h"
#include "ops/op.h"
#include "ops/util/axes.h"
#include "ops/util/movement.h"
#include "ops/util/shape_values.h"
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

Options options_of(const Attributes& attrs) {
  Options o{};
  const std::string mode = attrs.get_string("mode", "linear");
  if (mode == "nearest") {
    o.mode = Mode::nearest;
  } else if (mode == "linear" || mode == "bilinear") {
    o.mode = Mode::linear;
  } else if (mode == "cubic" || mode == "bicubic") {
    o.mode = Mode::cubic;
  } else {
    fail(ErrorCode::invalid_model, "'mode' must be nearest, linear (bilinear) or cubic (bicubic), received {}", mode);
  }
  const std::string padding = attrs.get_string("padding_mode", "zeros");
  if (padding == "zeros") {
    o.padding = Padding::zeros;
  } else if (padding == "border") {
    o.padding = Padding::border;
  } else if (padding == "reflection") {
    o.padding = Padding::reflection;
  } else {
    fail(ErrorCode::invalid_model, "'padding_mode' must be zeros, border or reflection, received {}", padding);
  }
  o.align = attrs.get_int("align_corners", 0) != 0;
  return o;
}

void check_ranks(std::size_t x, std::size_t grid) {
  if (x < 3 || x != grid || x > 10) {
    fail(ErrorCode::invalid_model, "X and grid must have one rank of 3 to 10, received {} and {}", x, grid);
  }
}

void infer_grid_sample(InferContext& c) {
  options_of(c.attrs());
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

AxisTaps axis_taps(double normalized, std::int64_t extent, const Options& o) {
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
  v = std::clamp(v, -4.0, n + 4);  // further outside nothing changes, and the conversion below stays in range
  AxisTaps t;
  if (o.mode == Mode::nearest) {
    t.count = 1;
    t.at[0] = tap_index(static_cast<std::int64_t>(std::nearbyint(v)), extent, o);
    t.weight[0] = 1;
    return t;
  }
  const double floored = std::floor(v);
  const double f = v - floored;
  const auto base = static_cast<std::int64_t>(floored);
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

void combine(const std::vector<AxisTaps>& axes, const Ints& strides, Taps& out) {
  out.at.assign(1, 0);
  out.weight.assign(1, 1.0);
  for (std::size_t d = 0; d < axes.size(); ++d) {
    Taps next;
    for (std::size_t i = 0; i < out.at.size(); ++i) {
      for (int k = 0; k < axes[d].count; ++k) {
        const auto j = static_cast<std::size_t>(k);
        if (axes[d].at[j] < 0) continue;
        next.at.push_back(out.at[i] + axes[d].at[j] * strides[d]);
        next.weight.push_back(out.weight[i] * axes[d].weight[j]);
      }
    }
    out = std::move(next);
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
    Taps taps;
    for (std::int64_t p = begin; p < end; ++p) {
      for (std::size_t d = 0; d < spatial; ++d) {
        // The last coordinate of the grid belongs to the first spatial axis.
        const auto at = p * static_cast<std::int64_t>(spatial) + static_cast<std::int64_t>(spatial - 1 - d);
        axes[d] = axis_taps(element_as_double(*positions, at), extents[d], o);
      }
      combine(axes, strides, taps);
      fn(taps, p % per_item, p / per_item);
    }
  });
}

void run_grid_sample(OpContext& c) {
  const Options o = options_of(c.attrs());
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

// size: N, C, [D,] H, W
void check_size(const Ints& size) {
  if (size.size() != 4 && size.size() != 5) {
    fail(ErrorCode::invalid_model, "'size' must hold 4 or 5 numbers, received {}", to_string(size));
  }
  element_count(size);
}

void infer_affine_grid(InferContext& c) {
  const auto* size = c.sym(1);
  if (size == nullptr) {
    const auto rank = known_length(c, 1);
    if (!rank || *rank < 4 || *rank > 5) return c.output(0, c.dtype(0));
    SymShape out(static_cast<std::size_t>(*rank));
    out.back() = Dim(*rank - 2);
    return c.output(0, c.dtype(0), std::move(out));
  }
  if (size->size() != 4 && size->size() != 5) c.fail("'size' must hold 4 or 5 numbers, received {}", size->size());
  SymShape out{(*size)[0]};
  out.insert(out.end(), size->begin() + 2, size->end());
  out.emplace_back(static_cast<std::int64_t>(size->size()) - 2);
  c.output(0, c.dtype(0), std::move(out));
}

double grid_position(std::int64_t i, std::int64_t extent, bool align) {
  if (align) return extent > 1 ? -1 + 2 * static_cast<double>(i) / static_cast<double>(extent - 1) : 0;
  return (2 * static_cast<double>(i) + 1) / static_cast<double>(extent) - 1;
}

void run_affine_grid(OpContext& c) {
  const Tensor& theta = c.input(0);
  const Ints size = to_ints(c.input(1));
  check_size(size);
  const std::size_t spatial = size.size() - 2;
  const auto r = static_cast<std::int64_t>(spatial);
  if (theta.shape() != Shape{size[0], r, r + 1}) {
    c.fail("'theta' must be of shape {}, received {}", to_string(Shape{size[0], r, r + 1}), theta.type_string());
  }
  const bool align = c.attrs().get_int("align_corners", 0) != 0;
  Shape shape{size[0]};
  shape.insert(shape.end(), size.begin() + 2, size.end());
  shape.push_back(r);
  Tensor& out = c.output(0, theta.dtype(), shape);
  const std::int64_t per_item = product(shape, 1, spatial + 1);
  dispatch(theta.dtype(), FloatTypes{}, "AffineGrid", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto* m = static_cast<const T*>(theta.data());
    auto* to = static_cast<T*>(out.mutable_data());
    parallel_for(size[0] * per_item, 256, [&](std::int64_t begin, std::int64_t end) {
      std::array<double, 4> at{};
      for (std::int64_t p = begin; p < end; ++p) {
        std::int64_t rest = p % per_item;
        for (std::size_t d = spatial; d-- > 0;) {
          at[spatial - 1 - d] = grid_position(rest % size[d + 2], size[d + 2], align);  // x first
          rest /= size[d + 2];
        }
        at[spatial] = 1;
        for (std::int64_t row = 0; row < r; ++row) {
          const T* coefficients = m + ((p / per_item) * r + row) * (r + 1);
          double sum = 0;
          for (std::size_t k = 0; k <= spatial; ++k) {
            sum += static_cast<double>(static_cast<ComputeType<T>>(coefficients[k])) * at[k];
          }
          to[p * r + row] = T(static_cast<ComputeType<T>>(sum));
        }
      }
    });
  });
}

}  // namespace

void register_grid_sample(OpTable& t) {
  for (const char* domain : {"", "com.microsoft"}) {
    t.add(OpDef(domain, "GridSample", *domain == '\0' ? 16 : 1)
              .in("X", "T1", types::any_tensor)
              .in("grid", "T2", types::floats)
              .out("Y", "T1", types::any_tensor)
              .attr("mode", AttrKind::s)
              .attr("padding_mode", AttrKind::s)
              .attr("align_corners", AttrKind::i)
              .infer_with(infer_grid_sample)
              .run_with(run_grid_sample));
  }
  t.add(OpDef("AffineGrid", 20)
            .in("theta", "T1", types::floats)
            .in("size", "T2", types::int64)
            .out("grid", "T1", types::floats)
            .attr("align_corners", AttrKind::i)
            .infer_with(infer_affine_grid)
            .run_with(run_affine_grid));
}

}  // namespace sdx::ops
