// Resize and Upsample of NCHW images with constant scales or sizes: float32 in all modes, bytes in all but nearest. The tables
// come from the reference kernel's coordinate rules, so both agree on every mode.

#include "kernels/cpu/image/resize.h"

#include <limits>
#include <optional>

#include "kernels/cpu/image/resample.h"
#include "ops/image/resample.h"
#include "ops/image/signatures.h"
#include "ops/tensor/axes.h"
#include "providers/cpu/kernel_table.h"
#include "tensor/element.h"

namespace sdx::cpu {
namespace {

struct ResizeState : KernelState {
  std::int64_t planes = 0, in_h = 0, in_w = 0, out_h = 0, out_w = 0;
  std::vector<std::int32_t> rows, columns;
  std::vector<LinearTap> row_taps, column_taps;
};

// Returns the resampling of axis i. `scales` has all four axes; if it is empty, the sizes are given.
ops::ResampleAxis axis_of(const std::vector<float>& scales, std::int64_t in, std::int64_t out, std::size_t i) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
  if (in < 1 || in > kMax || out > kMax) fail(ErrorCode::not_implemented, "resizing {} to {} elements", in, out);
  const double scale = scales.empty() ? static_cast<double>(out) / static_cast<double>(in) : static_cast<double>(scales[i]);
  return {in, out, scale};
}

std::vector<std::int32_t> nearest_table(const ops::ResampleAxis& axis, const ops::ResampleOptions& options) {
  std::vector<std::int32_t> table;
  table.reserve(static_cast<std::size_t>(axis.out));
  for (const std::int64_t i : ops::nearest_map(axis, options)) table.push_back(static_cast<std::int32_t>(i));
  return table;
}

std::vector<LinearTap> linear_table(const ops::ResampleAxis& axis, const ops::ResampleOptions& options) {
  const ops::Taps taps = ops::weighted_taps(axis, options);
  std::vector<LinearTap> table(static_cast<std::size_t>(axis.out));
  for (std::size_t i = 0; i < table.size(); ++i) {
    const auto low = static_cast<std::int32_t>(taps.first[i]);
    // An axis of one element has one tap, and a pixel that lies on another one needs one tap: reading a neighbour without weight
    // would give NaN for infinity, since 0 times infinity is NaN.
    const float t = taps.count > 1 ? static_cast<float>(taps.weights[2 * i + 1]) : 0.0F;
    if (t == 0.0F || t == 1.0F) {
      const std::int32_t only = low + static_cast<std::int32_t>(t);
      table[i] = {only, only, 0.0F};
    } else {
      table[i] = {low, low + 1, t};
    }
  }
  return table;
}

// Checks that the number of images stays the same.
void check_planes(const Shape& x, const Shape& y) {
  if (x.size() == 4 && y.size() == 4 && x[0] == y[0] && x[1] == y[1]) return;
  fail(ErrorCode::runtime_failure, "the graph foresees images whose batch and channels stay, received {} for {}", to_string(y),
       to_string(x));
}

class ResizeKernel : public Kernel {
 public:
  ResizeKernel(ops::ResampleOptions options, std::vector<float> scales) : options_(options), scales_(std::move(scales)) {}
  std::string_view name() const override {
    return options_.mode == ops::ResampleMode::nearest ? "resize-nearest-f32" : "resize-linear-f32";
  }

  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    const Shape x = c.input_shape(0), y = c.output_shape(0);
    check_planes(x, y);
    auto s = std::make_unique<ResizeState>();
    s->planes = x.at(0) * x.at(1);
    s->in_h = x.at(2);
    s->in_w = x.at(3);
    s->out_h = y.at(2);
    s->out_w = y.at(3);
    if (element_count(y) == 0) return s;
    const ops::ResampleAxis h = axis_of(scales_, x[2], y[2], 2), w = axis_of(scales_, x[3], y[3], 3);
    if (options_.mode == ops::ResampleMode::nearest) {
      s->rows = nearest_table(h, options_);
      s->columns = nearest_table(w, options_);
    } else {
      s->row_taps = linear_table(h, options_);
      s->column_taps = linear_table(w, options_);
    }
    return s;
  }

  void run(const KernelContext& c) const override {
    const auto& s = *static_cast<const ResizeState*>(c.state);
    if (c.output(0).size() == 0) return;
    if (options_.mode == ops::ResampleMode::nearest) {
      resize_nearest_f32(c.in<float>(0), c.out<float>(0), s.planes, s.in_h, s.in_w, s.out_h, s.out_w, s.rows.data(),
                         s.columns.data());
    } else {
      resize_linear_f32(c.in<float>(0), c.out<float>(0), s.planes, s.in_h, s.in_w, s.out_h, s.out_w, s.row_taps.data(),
                        s.column_taps.data());
    }
  }

 private:
  ops::ResampleOptions options_;
  std::vector<float> scales_;  // as axis_of() takes them
};

// Weights of one axis. Those of bytes are doubles, because sums are truncated.
template <class W>
struct WeightTable {
  std::int64_t in = 0, out = 0, count = 1;
  std::vector<std::int32_t> first;
  std::vector<W> weights;
  AxisWeights<W> view() const { return {in, out, count, first.data(), weights.data()}; }
};

template <class W>
WeightTable<W> weight_table(const ops::ResampleAxis& axis, const ops::ResampleOptions& options) {
  WeightTable<W> t{axis.in, axis.out, 1, {}, {}};
  if (ops::is_unchanged(axis, options)) {
    for (std::int64_t i = 0; i < axis.out; ++i) t.first.push_back(static_cast<std::int32_t>(i));
    t.weights.assign(static_cast<std::size_t>(axis.out), W{1});
    return t;
  }
  const ops::Taps taps = ops::weighted_taps(axis, options);
  t.count = taps.count;
  t.first.assign(taps.first.begin(), taps.first.end());
  t.weights.assign(taps.weights.begin(), taps.weights.end());
  return t;
}

template <class W>
struct ResampleState : KernelState {
  std::int64_t planes = 0;
  WeightTable<W> rows, columns;
};

// Resizes elements of type T with weights of type W.
template <class T, class W>
class ResampleKernel : public Kernel {
 public:
  ResampleKernel(ops::ResampleOptions options, std::vector<float> scales) : options_(options), scales_(std::move(scales)) {}
  std::string_view name() const override { return std::is_same_v<T, float> ? "resample-f32" : "resample-u8"; }

  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    const Shape x = c.input_shape(0), y = c.output_shape(0);
    check_planes(x, y);
    auto s = std::make_unique<ResampleState<W>>();
    if (element_count(y) == 0) return s;
    s->planes = x.at(0) * x.at(1);
    s->rows = weight_table<W>(axis_of(scales_, x.at(2), y.at(2), 2), options_);
    s->columns = weight_table<W>(axis_of(scales_, x.at(3), y.at(3), 3), options_);
    return s;
  }

  void run(const KernelContext& c) const override {
    const auto& s = *static_cast<const ResampleState<W>*>(c.state);
    if (s.planes == 0) return;
    if constexpr (std::is_same_v<T, float>) {
      resample_f32(c.in<T>(0), c.out<T>(0), s.planes, s.rows.view(), s.columns.view());
    } else {
      resample_u8(c.in<T>(0), c.out<T>(0), s.planes, s.rows.view(), s.columns.view());
    }
  }

 private:
  ops::ResampleOptions options_;
  std::vector<float> scales_;
};

bool read_coordinates(const ops::ResizeAttrs& attr, ops::ResampleOptions& o) {
  using C = ops::CoordinateMode;
  using N = ops::NearestMode;
  constexpr std::pair<std::string_view, C> kCoordinates[] = {{"half_pixel", C::half_pixel},
                                                             {"half_pixel_symmetric", C::half_pixel_symmetric},
                                                             {"pytorch_half_pixel", C::pytorch_half_pixel},
                                                             {"align_corners", C::align_corners},
                                                             {"asymmetric", C::asymmetric}};
  constexpr std::pair<std::string_view, N> kNearest[] = {{"round_prefer_floor", N::round_prefer_floor},
                                                         {"round_prefer_ceil", N::round_prefer_ceil},
                                                         {"floor", N::floor},
                                                         {"ceil", N::ceil}};
  bool coordinates = false, nearest = false;
  for (const auto& [word, value] : kCoordinates) {
    if (attr.coordinate_transformation_mode != word) continue;
    o.coordinates = value;
    coordinates = true;
  }
  for (const auto& [word, value] : kNearest) {
    if (attr.nearest_mode != word) continue;
    o.nearest = value;
    nearest = true;
  }
  return coordinates && nearest;
}

bool is_old(const LowerContext& c) { return c.node().op_type == "Upsample" || c.node().version < 11; }

// Reads the options; returns false if these kernels do not have them.
bool read_options(const LowerContext& c, const ops::ResizeAttrs& attr, ops::ResampleOptions& o) {
  const std::string_view mode = attr.mode;
  if (mode == "linear" || mode == "bilinear") o.mode = ops::ResampleMode::linear;
  if (mode == "cubic") o.mode = ops::ResampleMode::cubic;
  if (mode != "nearest" && o.mode == ops::ResampleMode::nearest) return false;
  o.cubic_a = attr.cubic_coeff_a;
  o.exclude_outside = attr.exclude_outside;
  o.antialias = attr.antialias;
  if (!is_old(c)) return read_coordinates(attr, o);
  o.coordinates = ops::CoordinateMode::asymmetric;
  o.nearest = ops::NearestMode::simple;
  return true;
}

// Returns the scales of all four axes from those that the node lists, or nothing if it scales other axes than rows and columns.
std::optional<std::vector<float>> for_all_axes(const ops::ResizeAttrs& attr, const std::vector<float>& scales) {
  std::vector<float> all(4, 1.0F);
  std::vector<std::int64_t> axes{0, 1, 2, 3};
  if (attr.axes) axes = ops::normalize_axes(*attr.axes, all.size());
  if (scales.size() != axes.size()) return std::nullopt;
  for (std::size_t i = 0; i < axes.size(); ++i) all[static_cast<std::size_t>(axes[i])] = scales[i];
  if (all[0] != 1 || all[1] != 1) return std::nullopt;
  return all;
}

std::unique_ptr<Kernel> make_resize(LowerContext& c) {
  const bool bytes = c.dtype(0) == DataType::uint8;
  if (c.dtype(0) != DataType::float32 && !bytes) return c.refuse("neither float32 nor uint8");
  const SymShape *x = c.shape(0), *y = c.output(0).shape ? &*c.output(0).shape : nullptr;
  if (x == nullptr || x->size() != 4 || y == nullptr || y->size() != 4) return c.refuse("not known to have rank 4");
  if (!((*x)[0] == (*y)[0]) || !((*x)[1] == (*y)[1])) return c.refuse("batch or channels may change");
  const auto attr = ops::parse<ops::ResizeAttrs>(c);
  ops::ResampleOptions o;
  if (!read_options(c, attr, o)) return c.refuse("mode, coordinate or nearest mode");
  if (attr.keep_aspect_ratio_policy != "stretch") return c.refuse("an aspect ratio policy");
  std::vector<float> scales;
  if (c.node().op_type == "Upsample" && c.node().version < 7) {
    scales = {1.0F, 1.0F, attr.height_scale, attr.width_scale};
  } else if (c.node().op_type == "Upsample" && c.node().version < 9) {
    scales = ops::to_vector(attr.scales);
  } else {
    const std::size_t slot = is_old(c) ? 1 : 2;
    const Tensor* t = c.constant(slot);
    if (c.has_input(slot) && t == nullptr) return c.refuse("the scales are not constant");
    for (std::int64_t i = 0; t != nullptr && i < t->size(); ++i) scales.push_back(static_cast<float>(element_as_double(*t, i)));
    const bool sizes = !is_old(c) && c.has_input(3);
    if (sizes == !scales.empty()) return c.refuse("not exactly one of scales and sizes");
  }
  if (!scales.empty()) {
    std::optional<std::vector<float>> all = for_all_axes(attr, scales);
    if (!all) return c.refuse("scales batch or channels");
    scales = std::move(*all);
  }
  const bool nearest = o.mode == ops::ResampleMode::nearest;
  if (bytes && nearest) return c.refuse("nearest bytes are copied");
  if (bytes) return std::make_unique<ResampleKernel<std::uint8_t, double>>(o, std::move(scales));
  const bool pairs = o.mode == ops::ResampleMode::linear && !o.antialias && !o.exclude_outside;
  if (nearest || pairs) return std::make_unique<ResizeKernel>(o, std::move(scales));
  return std::make_unique<ResampleKernel<float, float>>(o, std::move(scales));
}

}  // namespace

void register_kernels_resize(KernelTable& t) {
  t.add("", "Resize", "resize", 10, make_resize);
  t.add("", "Upsample", "resize", 10, make_resize);
}

}  // namespace sdx::cpu
