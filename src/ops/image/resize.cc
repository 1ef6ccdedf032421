// Resize: ai.onnx 10, 11, 13, 18 (axes, antialias, aspect ratio), 19 (half_pixel_symmetric). Upsample: ai.onnx 1, 7, 9.

#include <algorithm>
#include <array>
#include <cmath>

#include "base/thread_pool.h"
#include "ops/context.h"
#include "ops/image/mapped_copy.h"
#include "ops/image/resample.h"
#include "ops/image/signatures.h"
#include "ops/op.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/movement.h"
#include "ops/tensor/shape_values.h"
#include "tensor/dispatch.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

template <class E, std::size_t N>
E choice(std::string_view text, const char* attribute, const std::array<std::pair<const char*, E>, N>& permitted) {
  std::string all;
  for (const auto& [word, value] : permitted) {
    if (text == word) return value;
    all += (all.empty() ? "" : ", ") + std::string(word);
  }
  fail(ErrorCode::invalid_model, "attribute '{}' is '{}'; permitted: {}", attribute, text, all);
}

constexpr std::array<std::pair<const char*, ResampleMode>, 4> kModes = {{{"nearest", ResampleMode::nearest},
                                                                         {"linear", ResampleMode::linear},
                                                                         {"bilinear", ResampleMode::linear},  // Upsample-1
                                                                         {"cubic", ResampleMode::cubic}}};
constexpr std::array<std::pair<const char*, CoordinateMode>, 7> kCoordinates = {
    {{"half_pixel", CoordinateMode::half_pixel},
     {"half_pixel_symmetric", CoordinateMode::half_pixel_symmetric},
     {"pytorch_half_pixel", CoordinateMode::pytorch_half_pixel},
     {"align_corners", CoordinateMode::align_corners},
     {"asymmetric", CoordinateMode::asymmetric},
     {"tf_half_pixel_for_nn", CoordinateMode::tf_half_pixel_for_nn},
     {"tf_crop_and_resize", CoordinateMode::tf_crop_and_resize}}};
constexpr std::array<std::pair<const char*, NearestMode>, 4> kNearest = {{{"round_prefer_floor", NearestMode::round_prefer_floor},
                                                                          {"round_prefer_ceil", NearestMode::round_prefer_ceil},
                                                                          {"floor", NearestMode::floor},
                                                                          {"ceil", NearestMode::ceil}}};

enum class Policy { stretch, not_larger, not_smaller };
constexpr std::array<std::pair<const char*, Policy>, 3> kPolicies = {
    {{"stretch", Policy::stretch}, {"not_larger", Policy::not_larger}, {"not_smaller", Policy::not_smaller}}};

ResampleOptions options_of(const Node& node, const ResizeAttrs& a) {
  ResampleOptions o;
  o.mode = choice(a.mode, "mode", kModes);
  if (node.op_type == "Upsample" || node.version < 11) {
    o.coordinates = CoordinateMode::asymmetric;
    o.nearest = NearestMode::simple;
    return o;
  }
  o.coordinates = choice(a.coordinate_transformation_mode, "coordinate_transformation_mode", kCoordinates);
  o.nearest = choice(a.nearest_mode, "nearest_mode", kNearest);
  o.cubic_a = a.cubic_coeff_a;
  o.extrapolation = a.extrapolation_value;
  o.exclude_outside = a.exclude_outside;
  o.antialias = a.antialias;
  return o;
}

// The node's statements about the target, from attributes and inputs alike. Empty vectors: not given.
struct Target {
  Ints axes;
  std::vector<float> scales;
  Ints sizes;
  std::vector<float> roi;
  Policy policy = Policy::stretch;
};

Ints axes_of(const ResizeAttrs& attr, std::size_t rank) {
  if (attr.axes) return normalize_axes(*attr.axes, rank);
  Ints axes(rank);
  for (std::size_t i = 0; i < rank; ++i) axes[i] = static_cast<std::int64_t>(i);
  return axes;
}

// Sizes per axis under a policy that keeps the aspect ratio; sets the common scale of all resized axes.
void keep_aspect_ratio(const Target& t, std::vector<ResampleAxis>& plan) {
  double scale = t.policy == Policy::not_larger ? HUGE_VAL : 0;
  for (std::size_t i = 0; i < t.axes.size(); ++i) {
    const double ratio = static_cast<double>(t.sizes[i]) / static_cast<double>(plan[static_cast<std::size_t>(t.axes[i])].in);
    scale = t.policy == Policy::not_larger ? std::min(scale, ratio) : std::max(scale, ratio);
  }
  for (const std::int64_t axis : t.axes) {
    ResampleAxis& a = plan[static_cast<std::size_t>(axis)];
    const double out = std::floor(scale * static_cast<double>(a.in) + 0.5);
    if (!(out >= 0 && out < 0x1p62)) fail(ErrorCode::invalid_model, "extent {} cannot be scaled by {}", a.in, scale);
    a.out = static_cast<std::int64_t>(out);
    a.scale = scale;
  }
}

// tf_crop_and_resize has the same length, whatever part is taken. ONNX Runtime and ONNX's reference compute it that way, although
// the specification's text multiplies by the part as well.
void scale_axis(ResampleAxis& a, float scale) {
  if (!(scale > 0) || !std::isfinite(scale)) fail(ErrorCode::invalid_model, "scale {} must be positive", scale);
  // Computed in float, like everywhere else: in double, 0.7F * 10 is below 7.
  const float out = std::floor(static_cast<float>(a.in) * scale);
  if (!(out >= 0 && out < 0x1p62F)) fail(ErrorCode::invalid_model, "extent {} cannot be scaled by {}", a.in, scale);
  a.out = static_cast<std::int64_t>(out);
  a.scale = static_cast<double>(scale);
}

std::vector<ResampleAxis> plan_axes(const Shape& in, const Target& t, const ResampleOptions& o) {
  const std::size_t n = t.axes.size();
  std::vector<ResampleAxis> plan;
  for (const std::int64_t d : in) plan.push_back({d, d});
  const bool crops = o.coordinates == CoordinateMode::tf_crop_and_resize;
  if (crops && t.roi.size() != 2 * n) {
    fail(ErrorCode::invalid_model, "tf_crop_and_resize needs 'roi' with {} numbers, received {}", 2 * n, t.roi.size());
  }
  for (std::size_t i = 0; crops && i < n; ++i) {
    if (!std::isfinite(t.roi[i]) || !std::isfinite(t.roi[i + n])) fail(ErrorCode::invalid_model, "'roi' must be finite");
    plan[static_cast<std::size_t>(t.axes[i])].roi_start = static_cast<double>(t.roi[i]);
    plan[static_cast<std::size_t>(t.axes[i])].roi_end = static_cast<double>(t.roi[i + n]);
  }
  if (t.scales.empty() == t.sizes.empty() && n > 0) {
    fail(ErrorCode::invalid_model, "exactly one of 'scales' and 'sizes' must be given");
  }
  if (t.scales.size() + t.sizes.size() != n) {
    fail(ErrorCode::invalid_model, "'{}' lists {} numbers for {} axes", t.scales.empty() ? "sizes" : "scales",
         t.scales.size() + t.sizes.size(), n);
  }
  for (std::size_t i = 0; i < n; ++i) {
    ResampleAxis& a = plan[static_cast<std::size_t>(t.axes[i])];
    if (!t.scales.empty()) {
      scale_axis(a, t.scales[i]);
    } else {
      if (t.sizes[i] < 0) fail(ErrorCode::invalid_model, "size {} is negative", t.sizes[i]);
      a.out = t.sizes[i];
      a.scale = a.in > 0 ? static_cast<double>(a.out) / static_cast<double>(a.in) : 1;
    }
    if (a.in == 0 && a.out > 0) fail(ErrorCode::invalid_model, "an axis without elements cannot be enlarged to {}", a.out);
  }
  const bool empty = std::find(in.begin(), in.end(), 0) != in.end();
  if (!t.sizes.empty() && t.policy != Policy::stretch && !empty) keep_aspect_ratio(t, plan);
  return plan;
}

// Positions of the inputs; -1: the version has none.
struct Slots {
  int roi = -1;
  int scales = -1;
  int sizes = -1;
};

Slots slots_of(const Node& node) {
  if (node.op_type == "Upsample") return {-1, node.version >= 9 ? 1 : -1, -1};
  return node.version >= 11 ? Slots{1, 2, 3} : Slots{-1, 1, -1};
}

void attribute_scales(const Node& node, const ResizeAttrs& a, Target& t) {
  if (node.op_type != "Upsample" || node.version >= 9) return;
  if (node.version < 7) {  // Source: ONNX Upsample-1: N, C, H, W
    t.scales = {1.0F, 1.0F, a.height_scale, a.width_scale};
  } else {
    t.scales = to_vector(a.scales);
  }
}

// The extents when some are symbols: scaling by whole numbers and their reciprocals stays exact.
Dim scaled(const Dim& extent, float scale) {
  if (scale == 1.0F) return extent;
  if (scale > 1 && scale < 0x1p20F && scale == std::floor(scale)) return extent * Dim(static_cast<std::int64_t>(scale));
  const float inverse = 1.0F / scale;
  // Powers of two only: the float product of other reciprocals may fall just below the exact quotient.
  if (scale > 0x1p-20F && scale < 1 && inverse == std::floor(inverse) && std::exp2(std::round(std::log2(inverse))) == inverse) {
    return floor_div(extent, Dim(static_cast<std::int64_t>(inverse)));
  }
  return Dim::unknown();
}

void infer_symbolic(InferContext& c, const SymShape& in, const Target& t, const Slots& slots) {
  SymShape out = in;
  for (const std::int64_t axis : t.axes) out[static_cast<std::size_t>(axis)] = Dim::unknown();
  const auto* sizes = slots.sizes < 0 ? nullptr : c.sym(static_cast<std::size_t>(slots.sizes));
  for (std::size_t i = 0; i < t.axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(t.axes[i]);
    if (!t.scales.empty() && t.scales.size() == t.axes.size()) {
      out[axis] = scaled(in[axis], t.scales[i]);
    } else if (sizes != nullptr && sizes->size() == t.axes.size() && t.policy == Policy::stretch) {
      out[axis] = (*sizes)[i];
    }
  }
  c.output(0, c.dtype(0), std::move(out));
}

void infer_resize(InferContext& c) {
  const auto attr = parse<ResizeAttrs>(c);
  ResampleOptions o = options_of(c.node(), attr);
  const Slots slots = slots_of(c.node());
  const SymShape* in = c.shape(0);
  if (in == nullptr) return c.output(0, c.dtype(0));
  Target t;
  t.axes = axes_of(attr, in->size());
  t.policy = choice(attr.keep_aspect_ratio_policy, "keep_aspect_ratio_policy", kPolicies);
  attribute_scales(c.node(), attr, t);
  bool known = true;
  const auto value_at = [&](int slot) -> const Tensor* {
    if (slot < 0 || !c.has_input(static_cast<std::size_t>(slot))) return nullptr;
    const Tensor* v = c.value(static_cast<std::size_t>(slot));
    if (v == nullptr) known = false;
    return v;
  };
  if (const Tensor* v = value_at(slots.scales)) t.scales = to_floats(*v);
  if (const Tensor* v = value_at(slots.sizes)) t.sizes = to_ints(*v);
  if (!known || !all_const(*in)) return infer_symbolic(c, *in, t, slots);
  // The part that is taken changes no extent.
  if (o.coordinates == CoordinateMode::tf_crop_and_resize) o.coordinates = CoordinateMode::align_corners;
  SymShape out;
  for (const ResampleAxis& a : plan_axes(to_shape(*in), t, o)) out.emplace_back(a.out);
  c.output(0, c.dtype(0), std::move(out));
}

void run_nearest(OpContext& c, const Shape& shape, const std::vector<ResampleAxis>& plan, const ResampleOptions& o) {
  const DataType dtype = c.input(0).dtype();
  const Tensor in = widened(c.input(0));
  Tensor fill(dtype, Shape{1});
  fill_zero(fill);
  if (dtype != DataType::string) set_element(fill, 0, static_cast<double>(o.extrapolation));
  produce(c, 0, dtype, shape, [&](Tensor& out) {
    if (out.size() == 0) return;
    std::vector<SourceOf> sources;
    for (const ResampleAxis& a : plan) {
      if (is_unchanged(a, o)) {
        sources.emplace_back();
      } else {
        sources.emplace_back([&](std::int64_t i) { return nearest_source(a, o, i); });
      }
    }
    copy_mapped(in, out, sources, widened(fill));
  });
}

template <class To, class From>
void convert(const Tensor& from, Tensor& to) {
  const auto* in = static_cast<const From*>(from.data());
  auto* out = static_cast<To*>(to.mutable_data());
  parallel_for(from.size(), 1 << 14, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      if constexpr (std::is_integral_v<To>) {
        // Integers truncate as the specification's reference does; the tiny step keeps weights that add up to one only up to
        // rounding from turning 3 into 2.
        const auto v = static_cast<double>(in[i]);
        const double t = std::trunc(v + (v < 0 ? -1e-9 : 1e-9));
        constexpr auto low = static_cast<double>(std::numeric_limits<To>::min());
        constexpr auto high = static_cast<double>(std::numeric_limits<To>::max());
        out[i] = t <= low ? std::numeric_limits<To>::min() : (t >= high ? std::numeric_limits<To>::max() : static_cast<To>(t));
      } else if constexpr (std::is_arithmetic_v<From>) {
        out[i] = To(static_cast<ComputeType<To>>(in[i]));
      } else {
        out[i] = static_cast<To>(static_cast<float>(in[i]));
      }
    }
  });
}

void run_weighted(OpContext& c, const Shape& shape, const std::vector<ResampleAxis>& plan, const ResampleOptions& o) {
  const Tensor& in = c.input(0);
  Tensor& out = c.output(0, in.dtype(), shape);
  if (out.size() == 0) return;
  dispatch(in.dtype(), NumericTypes{}, c.node().op_type + " (linear, cubic)", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = std::conditional_t<std::is_integral_v<T> || std::is_same_v<T, double>, double, float>;
    if constexpr (std::is_same_v<T, C>) {
      copy_all(resample(in, plan, o, c.stop()), out);
    } else {
      Tensor wide(DataTypeOf<C>::value, in.shape());
      convert<C, T>(in, wide);
      convert<T, C>(resample(wide, plan, o, c.stop()), out);
    }
  });
}

// If no axis is scaled, ONNX Runtime copies, whatever the coordinates are, and whatever part `roi` takes.
bool is_copy(const std::vector<ResampleAxis>& plan) {
  return std::all_of(plan.begin(), plan.end(), [](const ResampleAxis& a) { return a.scale == 1 && a.in == a.out; });
}

void run_resize(OpContext& c) {
  const auto attr = parse<ResizeAttrs>(c);
  ResampleOptions o = options_of(c.node(), attr);
  const Slots slots = slots_of(c.node());
  Target t;
  t.axes = axes_of(attr, c.input(0).rank());
  t.policy = choice(attr.keep_aspect_ratio_policy, "keep_aspect_ratio_policy", kPolicies);
  attribute_scales(c.node(), attr, t);
  const auto at = [&](int slot) { return slot < 0 ? nullptr : c.optional_input(static_cast<std::size_t>(slot)); };
  if (const Tensor* v = at(slots.scales)) t.scales = to_floats(*v);
  if (const Tensor* v = at(slots.sizes)) t.sizes = to_ints(*v);
  if (const Tensor* v = at(slots.roi)) t.roi = to_floats(*v);
  const std::vector<ResampleAxis> plan = plan_axes(c.input(0).shape(), t, o);
  Shape shape;
  for (const ResampleAxis& a : plan) shape.push_back(a.out);
  if (is_copy(plan)) o.coordinates = CoordinateMode::asymmetric;
  if (o.mode == ResampleMode::nearest) {
    run_nearest(c, shape, plan, o);
  } else {
    run_weighted(c, shape, plan, o);
  }
}

void add_resize(OpTable& t, int since) {
  OpDef def("Resize", since);
  def.in("X", "T1", types::any_tensor);
  if (since >= 11) def.in("roi", "T2", types::floats, Arity::optional);
  def.in("scales", "", bit(DataType::float32), since >= 11 ? Arity::optional : Arity::required);
  if (since >= 11) def.in("sizes", "", types::int64, Arity::optional);
  def.out("Y", "T1", types::any_tensor).attrs<ResizeAttrs>();
  t.add(std::move(def).infer_with(infer_resize).run_with(run_resize));
}

void add_upsample(OpTable& t, int since) {
  OpDef def("Upsample", since);
  def.in("X", "T", types::any_tensor);
  if (since >= 9) def.in("scales", "", bit(DataType::float32));
  def.out("Y", "T", types::any_tensor).attrs<ResizeAttrs>();
  def.deprecated_at = 10;
  t.add(std::move(def).infer_with(infer_resize).run_with(run_resize));
}

}  // namespace

void register_resize(OpTable& t) {
  for (const int since : {10, 11, 18}) add_resize(t, since);
  for (const int since : {1, 7, 9}) add_upsample(t, since);
}

}  // namespace sdx::ops
