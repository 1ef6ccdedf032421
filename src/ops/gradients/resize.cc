// Gradient of Resize and Upsample. Every mode is linear, apart from what it fills in, and goes axis by axis: resizing an identity
// matrix along one axis gives the matrix of that axis, whose transpose takes the gradient back.

#include <utility>

#include "ops/gradient.h"
#include "ops/image/signatures.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

constexpr std::size_t kRoi = 1, kScales = 2, kSizes = 3;  // inputs since opset 11

Expr concat(GradientContext& c, Expr a, Expr b) { return c.emit("Concat", {a, b}, {{"axis", std::int64_t{0}}}); }
Expr element(GradientContext& c, Expr e, std::int64_t i) { return c.emit("Slice", {e, c.ints({i}), c.ints({i + 1})}); }

// The part of axis `k` of `axes` that tf_crop_and_resize takes, and the whole of a second axis; null in other modes.
Expr region(GradientContext& c, std::int64_t axes, std::int64_t k) {
  if (parse<ResizeAttrs>(c).coordinate_transformation_mode != "tf_crop_and_resize") return {};
  const Expr roi = c.in(kRoi);
  const auto fixed = [&](double v) { return c.emit("CastLike", {c.emit("Reshape", {c.scalar(v), c.ints({1})}), roi}); };
  return concat(c, concat(c, element(c, roi, k), fixed(0)), concat(c, element(c, roi, axes + k), fixed(1)));
}

// [extent after, extent before] of axis `axis`, which belongs to element `k` of scales or sizes with `axes` elements.
Expr axis_matrix(GradientContext& c, std::int64_t axis, std::int64_t axes, std::int64_t k) {
  const Expr n = c.extents(c.in(0), axis, axis + 1);
  const Expr eye = c.emit("EyeLike", {c.emit("Expand", {c.scalar(0), concat(c, n, n)})});
  const auto scales = [&](Expr all) {
    return concat(c, element(c, all, k), c.emit("Cast", {c.ints({1})}, {{"to", static_cast<std::int64_t>(DataType::float32)}}));
  };
  if (c.version() < 11) return c.repeat({eye, scales(c.in(1))});
  const bool by_size = c.has_input(kSizes);
  const Expr roi = region(c, axes, k);
  const std::vector<Expr> inputs = by_size ? std::vector<Expr>{eye, roi, {}, concat(c, element(c, c.in(kSizes), k), n)}
                                           : std::vector<Expr>{eye, roi, scales(c.in(kScales))};
  if (c.version() < 18) return c.repeat(inputs, {{"extrapolation_value", 0.0F}});
  return c.repeat(inputs, {{"axes", std::vector<std::int64_t>{0, 1}}, {"extrapolation_value", 0.0F}});
}

// g's axis, of the extent after, times the matrix.
Expr apply(GradientContext& c, Expr g, Expr matrix, std::int64_t axis, std::int64_t rank) {
  std::vector<std::int64_t> perm;
  for (std::int64_t i = 0; i < rank; ++i) perm.push_back(i);
  std::swap(perm[static_cast<std::size_t>(axis)], perm.back());  // its own inverse
  const Expr moved = c.emit("Transpose", {g}, {{"perm", perm}});
  return c.emit("Transpose", {call("MatMul", moved, matrix)}, {{"perm", perm}});
}

// Batch and channels, most of the time: their matrix would be the identity.
bool scale_is_one(GradientContext& c, std::size_t k) {
  if (c.version() >= 11 && c.has_input(kSizes)) return false;
  const Tensor* scales = c.value(c.version() < 11 ? 1 : kScales);
  if (scales == nullptr || scales->dtype() != DataType::float32 || static_cast<std::int64_t>(k) >= scales->size()) return false;
  return element_as_double(scales->aligned(), static_cast<std::int64_t>(k)) == 1;
}

void resize(GradientContext& c) {
  const auto attr = parse<ResizeAttrs>(c);
  if (attr.keep_aspect_ratio_policy != "stretch") c.refuse("keep_aspect_ratio_policy");
  if (c.num_inputs() < 2) c.refuse("scales as an attribute");
  const std::int64_t rank = c.rank(c.in(0));
  std::vector<std::int64_t> axes = to_vector(attr.axes.value_or(IntList()));
  if (axes.empty()) {
    for (std::int64_t k = 0; k < rank; ++k) axes.push_back(k);
  }
  const bool crops = attr.coordinate_transformation_mode == "tf_crop_and_resize";
  Expr g = c.dy();
  for (std::size_t k = 0; k < axes.size(); ++k) {
    const std::int64_t axis = axes[k] < 0 ? axes[k] + rank : axes[k];
    if (axis < 0 || axis >= rank) c.refuse("an axis that does not exist");
    if (!crops && scale_is_one(c, k)) continue;
    g = apply(c, g, axis_matrix(c, axis, static_cast<std::int64_t>(axes.size()), static_cast<std::int64_t>(k)), axis, rank);
  }
  c.set(0, g);
}

}  // namespace

void register_gradients_resize(GradientTable& t) { t.add({"Resize", "Upsample"}, resize); }

}  // namespace sdx::ops
