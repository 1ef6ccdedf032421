// Resize and Upsample of NCHW float32 images, nearest and linear, with constant scales or sizes. The tables come from the
// reference's coordinate rules, so both agree on every mode.

#include "kernels/cpu/image/resize.h"

#include <limits>

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
    // An axis of one element has one tap, which both neighbours share.
    const bool pair = taps.count > 1;
    table[i] = {low, pair ? low + 1 : low, pair ? static_cast<float>(taps.weights[2 * i + 1]) : 0.0F};
  }
  return table;
}

class ResizeKernel : public Kernel {
 public:
  ResizeKernel(ops::ResampleOptions options, std::vector<float> scales) : options_(options), scales_(std::move(scales)) {}
  std::string_view name() const override {
    return options_.mode == ops::ResampleMode::nearest ? "resize-nearest-f32" : "resize-linear-f32";
  }

  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    const Shape x = c.input_shape(0), y = c.output_shape(0);
    auto s = std::make_unique<ResizeState>();
    s->planes = x.at(0) * x.at(1);
    s->in_h = x.at(2);
    s->in_w = x.at(3);
    s->out_h = y.at(2);
    s->out_w = y.at(3);
    if (element_count(y) == 0) return s;
    const ops::ResampleAxis h = axis(x[2], y[2], 2), w = axis(x[3], y[3], 3);
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
  ops::ResampleAxis axis(std::int64_t in, std::int64_t out, std::size_t i) const {
    constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
    if (in < 1 || in > kMax || out > kMax) fail(ErrorCode::not_implemented, "resizing {} to {} elements", in, out);
    const double scale = scales_.empty() ? static_cast<double>(out) / static_cast<double>(in) : static_cast<double>(scales_[i]);
    return {in, out, scale};
  }

  ops::ResampleOptions options_;
  std::vector<float> scales_;  // empty: sizes are given
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

std::unique_ptr<Kernel> make_resize(LowerContext& c) {
  if (c.dtype(0) != DataType::float32) return c.refuse("not float32");
  const SymShape *x = c.shape(0), *y = c.output(0).shape ? &*c.output(0).shape : nullptr;
  if (x == nullptr || x->size() != 4 || y == nullptr || y->size() != 4) return c.refuse("not known to have rank 4");
  if (!((*x)[0] == (*y)[0]) || !((*x)[1] == (*y)[1])) return c.refuse("batch or channels may change");
  const auto attr = ops::parse<ops::ResizeAttrs>(c);
  const bool old = c.node().op_type == "Upsample" || c.node().version < 11;
  ops::ResampleOptions o;
  const std::string_view mode = attr.mode;
  if (mode == "linear" || mode == "bilinear") o.mode = ops::ResampleMode::linear;
  if (mode != "nearest" && o.mode != ops::ResampleMode::linear) return c.refuse("mode " + std::string(mode));
  if (old) {
    o.coordinates = ops::CoordinateMode::asymmetric;
    o.nearest = ops::NearestMode::simple;
  } else if (!read_coordinates(attr, o)) {
    return c.refuse("coordinate or nearest mode");
  }
  if (attr.axes || attr.antialias || attr.exclude_outside || attr.keep_aspect_ratio_policy != "stretch") {
    return c.refuse("axes, antialias, exclude_outside or an aspect ratio policy");
  }
  std::vector<float> scales;
  if (c.node().op_type == "Upsample" && c.node().version < 7) {
    scales = {1.0F, 1.0F, attr.height_scale, attr.width_scale};
  } else if (c.node().op_type == "Upsample" && c.node().version < 9) {
    scales = ops::to_vector(attr.scales);
  } else {
    const std::size_t slot = old ? 1 : 2;
    const Tensor* t = c.constant(slot);
    if (c.has_input(slot) && t == nullptr) return c.refuse("the scales are not constant");
    for (std::int64_t i = 0; t != nullptr && i < t->size(); ++i) scales.push_back(static_cast<float>(element_as_double(*t, i)));
    const bool sizes = !old && c.has_input(3);
    if (sizes == !scales.empty()) return c.refuse("not exactly one of scales and sizes");
  }
  if (!scales.empty() && (scales.size() != 4 || scales[0] != 1 || scales[1] != 1)) return c.refuse("scales batch or channels");
  return std::make_unique<ResizeKernel>(o, std::move(scales));
}

}  // namespace

void register_kernels_resize(KernelTable& t) {
  t.add("", "Resize", "resize-f32", 10, make_resize);
  t.add("", "Upsample", "resize-f32", 10, make_resize);
}

}  // namespace sdx::cpu
