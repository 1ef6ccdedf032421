// Gradients of operators that sample images at computed positions: GridSample, DeformConv, RoiAlign, AffineGrid.
// Each is written as taps, elements of the image with weights; the gradients of what gathers and weighs them follow.

#include "ops/conv/signatures.h"
#include "ops/gradients/windows.h"
#include "ops/image/signatures.h"

namespace sdx::ops {
namespace {

Expr join(GradientContext& c, const std::vector<Expr>& parts) { return c.emit("Concat", parts, {{"axis", std::int64_t{0}}}); }
Expr to_int(GradientContext& c, Expr e) { return c.emit("Cast", {e}, {{"to", static_cast<std::int64_t>(DataType::int64)}}); }
Expr scalar_extent(GradientContext& c, Expr e, std::int64_t axis) { return c.emit("Squeeze", {c.extents(e, axis, axis + 1)}); }
Expr unsqueeze(GradientContext& c, Expr e, const std::vector<std::int64_t>& axes) {
  return c.emit("Unsqueeze", {e, c.ints(axes)});
}
// 0, 1, …, as floats.
Expr count_up(GradientContext& c, Expr end, Expr like) {
  return c.cast_like(c.emit("Range", {c.int_scalar(0), end, c.int_scalar(1)}), like);
}
std::vector<Expr> split_last(GradientContext& c, Expr e, std::int64_t axis, std::int64_t parts) {
  std::vector<Expr> out = c.emit_many("Split", {e}, static_cast<std::size_t>(parts), {{"axis", axis}, {"num_outputs", parts}});
  for (Expr& part : out) part = c.emit("Squeeze", {part, c.ints({axis})});
  return out;
}

// Along one axis, or in the whole plane: which element, always one that exists, and how much of it. [N, positions].
struct Tap {
  Expr at, weight;
};

struct Axis {
  Expr count;  // int64
  Expr size;   // the same as a float
};

Axis axis_of(GradientContext& c, Expr image, std::int64_t axis, Expr like) {
  const Expr n = scalar_extent(c, image, axis);
  return {n, c.cast_like(n, like)};
}

// Outside the axis nothing weighs.
Tap inside(GradientContext& c, Expr at, Expr weight, const Axis& axis) {
  const Expr there = call("And", c.emit("GreaterOrEqual", {at, c.scalar(0)}), call("Less", at, axis.size));
  return {to_int(c, c.emit("Clip", {at, c.scalar(0), axis.size - 1.0})), where(there, weight, c.scalar(0))};
}

// The products of one tap of each axis.
std::vector<Tap> combined(const std::vector<std::vector<Tap>>& by_axis, const std::vector<Axis>& axes) {
  std::vector<Tap> out = by_axis[0];
  for (std::size_t d = 1; d < by_axis.size(); ++d) {
    std::vector<Tap> next;
    for (const Tap& a : out) {
      for (const Tap& b : by_axis[d]) next.push_back({call("Mul", a.at, axes[d].count) + b.at, a.weight * b.weight});
    }
    out = std::move(next);
  }
  return out;
}

// planes: [N, C, cells]; the result: [N, C, positions].
Expr gather(GradientContext& c, Expr planes, const std::vector<Tap>& taps) {
  Expr sum;
  for (const Tap& t : taps) {
    const Expr shape = join(c, {c.extents(planes, 0, 2), c.extents(t.at, 1, 2)});
    const Expr at = call("Expand", unsqueeze(c, t.at, {1}), shape);
    const Expr values = c.emit("GatherElements", {planes, at}, {{"axis", std::int64_t{2}}});
    const Expr weighed = values * unsqueeze(c, t.weight, {1});
    sum = sum ? sum + weighed : weighed;
  }
  return sum;
}

// The two neighbours of v.
std::vector<Tap> linear(GradientContext& c, Expr v, const Axis& axis) {
  const Expr base = call("Floor", v);
  const Expr f = v - base;
  return {inside(c, base, 1.0 - f, axis), inside(c, base + 1.0, f, axis)};
}

// --- GridSample ----------------------------------------------------------------------------------------------------------

// v folded back into [low, high].
Expr reflected(GradientContext& c, Expr v, double low, Expr high) {
  const Expr range = high - low;
  const Expr below = call("Less", v, low);
  const Expr distance = where(below, low - v, v - high);
  const Expr folds = call("Floor", distance / range);
  const Expr rest = distance - folds * range;
  const Expr even = call("Equal", c.emit("Mod", {folds, c.scalar(2)}, {{"fmod", std::int64_t{1}}}), 0.0);
  const Expr folded = where(call("Equal", below, even), rest + low, high - rest);
  return where(call("Greater", distance, 0.0), folded, v);
}

class GridSampler {
 public:
  GridSampler(GradientContext& c, const GridSampleAttrs& attr)
      : c_(c),
        nearest_(attr.mode == "nearest"),
        cubic_(attr.mode == "cubic" || attr.mode == "bicubic"),
        border_(attr.padding_mode == "border"),
        reflect_(attr.padding_mode == "reflection"),
        align_(attr.align_corners) {}

  std::vector<Tap> taps(Expr coordinate, const Axis& axis) {
    const Expr v = position(coordinate, axis);
    if (nearest_) return {tap(call("Round", v), call("Expand", c_.scalar(1), c_.shape_of(v)), axis)};
    const Expr base = call("Floor", v);
    const Expr f = v - base;
    if (!cubic_) return {tap(base, 1.0 - f, axis), tap(base + 1.0, f, axis)};
    return {tap(base - 1.0, outer(f + 1.0), axis), tap(base, inner(f), axis), tap(base + 1.0, inner(1.0 - f), axis),
            tap(base + 2.0, outer(2.0 - f), axis)};
  }

 private:
  static constexpr double kA = -0.75;  // of the cubic filter; source: ONNX GridSample-16

  static Expr outer(Expr x) { return ((x * kA - 5 * kA) * x + 8 * kA) * x - 4 * kA; }
  static Expr inner(Expr x) { return (x * (kA + 2) - (kA + 3)) * square(x) + 1.0; }

  Expr position(Expr coordinate, const Axis& axis) {
    Expr v = align_ ? (coordinate + 1.0) * 0.5 * (axis.size - 1.0) : ((coordinate + 1.0) * axis.size - 1.0) * 0.5;
    if (nearest_) v = call("Round", v);
    // A cubic filter near the border weighs several pixels beyond it: only its taps are clamped there.
    if (border_ && !cubic_) return c_.emit("Clip", {v, c_.scalar(0), axis.size - 1.0});
    return reflect_ ? reflected(c_, v, low(), axis.size - 1.0 - low()) : v;
  }

  Tap tap(Expr at, Expr weight, const Axis& axis) {
    if (!border_ && !reflect_) return inside(c_, at, weight, axis);
    const Expr folded = reflect_ ? call("Round", reflected(c_, at, low(), axis.size - 1.0 - low())) : at;
    return {to_int(c_, c_.emit("Clip", {folded, c_.scalar(0), axis.size - 1.0})), weight};
  }

  double low() const { return align_ ? 0 : -0.5; }

  GradientContext& c_;
  bool nearest_, cubic_, border_, reflect_, align_;
};

std::vector<Expr> grid_sample_formula(GradientContext& c) {
  const Expr x = c.in(0);
  const Expr grid = c.in(1);
  const std::int64_t rank = c.rank(x);
  if (rank < 3) c.refuse("an image without axes behind its channels");
  const Expr flat = c.emit("Reshape", {grid, c.ints({0, -1, rank - 2})});
  const std::vector<Expr> coordinates = split_last(c, flat, 2, rank - 2);
  GridSampler sampler(c, parse<GridSampleAttrs>(c));
  std::vector<Axis> axes;
  std::vector<std::vector<Tap>> taps;
  for (std::int64_t d = 2; d < rank; ++d) {
    axes.push_back(axis_of(c, x, d, grid));
    taps.push_back(sampler.taps(coordinates[static_cast<std::size_t>(rank - 1 - d)], axes.back()));
  }
  const Expr planes = c.emit("Reshape", {x, c.ints({0, 0, -1})});
  const Expr y = gather(c, planes, combined(taps, axes));
  return {c.reshape(y, join(c, {c.extents(x, 0, 2), c.extents(grid, 1, rank - 1)}))};
}

// --- DeformConv: each tap of the kernel meets the image where its offset says -----------------------------------------------

// [taps, rows, 1] or [taps, 1, columns]: where the kernel's taps lie without offsets.
Expr window_positions(GradientContext& c, const Windows& w, std::size_t axis, Expr offset) {
  const Expr kernel[2] = {scalar_extent(c, c.in(1), 2), scalar_extent(c, c.in(1), 3)};
  const Expr out = scalar_extent(c, offset, static_cast<std::int64_t>(axis) + 2);
  const auto at = [&](std::int64_t v) { return c.scalar(static_cast<double>(v)); };
  const Expr starts = count_up(c, out, offset) * at(w.strides[axis]) - at(w.pads[axis]);
  const Expr steps = count_up(c, kernel[axis], offset) * at(w.dilations[axis]);
  const Expr grid =
      call("Expand", unsqueeze(c, steps, {axis == 0 ? 1 : 0}), join(c, {c.extents(c.in(1), 2, 3), c.extents(c.in(1), 3, 4)}));
  const Expr taps = unsqueeze(c, c.emit("Reshape", {grid, c.ints({-1})}), {1, 2});
  return taps + unsqueeze(c, starts, {axis == 0 ? 1 : 0});
}

std::vector<Expr> deform_formula(GradientContext& c) {
  const auto attr = parse<ConvAttrs>(c);
  const Expr x = c.in(0);
  const Expr weights = c.in(1);
  const Expr offset = c.in(2);
  if (c.rank(x) != 4) c.refuse("an input that is not an image");
  if (attr.offset_group <= 0 || attr.group <= 0) c.refuse("groups must be positive");
  const Windows w = windows_of(c, x, weights);
  const Expr groups = c.ints({attr.offset_group});
  const Expr taps = call("Mul", c.extents(weights, 2, 3), c.extents(weights, 3, 4));
  const Expr out = c.extents(offset, 2, 4);
  const Expr shifts = c.reshape(offset, join(c, {c.extents(offset, 0, 1), groups, taps, c.ints({2}), out}));
  const std::vector<Expr> parts = split_last(c, shifts, 3, 2);  // [N, offset groups, taps, rows, columns]
  std::vector<Axis> axes;
  std::vector<std::vector<Tap>> by_axis;
  const Expr batch = call("Mul", c.extents(x, 0, 1), groups);
  for (std::size_t d = 0; d < 2; ++d) {
    const Expr at = parts[d] + window_positions(c, w, d, offset);
    axes.push_back(axis_of(c, x, static_cast<std::int64_t>(d) + 2, offset));
    by_axis.push_back(linear(c, c.reshape(at, join(c, {batch, c.ints({-1})})), axes.back()));
  }
  const Expr planes = c.emit("Reshape", {x, join(c, {batch, call("Div", c.extents(x, 1, 2), groups), c.ints({-1})})});
  Expr columns = gather(c, planes, combined(by_axis, axes));  // [N * offset groups, channels of each, taps * positions]
  if (c.has_input(4)) {
    columns = columns * unsqueeze(c, c.emit("Reshape", {c.in(4), join(c, {batch, c.ints({-1})})}), {1});
  }
  const Expr group = c.ints({attr.group});
  const Expr depth = call("Mul", c.extents(weights, 1, 2), taps);
  const Expr wide = c.reshape(
      columns, join(c, {c.extents(x, 0, 1), group, depth, call("Mul", c.extents(offset, 2, 3), c.extents(offset, 3, 4))}));
  const Expr matrix = c.reshape(weights, join(c, {group, call("Div", c.extents(weights, 0, 1), group), depth}));
  const Expr y = c.reshape(call("MatMul", matrix, wide), join(c, {c.extents(x, 0, 1), c.extents(weights, 0, 1), out}));
  return {c.has_input(3) ? y + unsqueeze(c, c.in(3), {1, 2}) : y};
}

// --- RoiAlign ------------------------------------------------------------------------------------------------------------

// Samples along one axis of every region: [regions, bins * samples].
Expr region_samples(GradientContext& c, const RoiAlignAttrs& attr, Expr low, Expr high, std::int64_t bins) {
  const double shift = attr.coordinate_transformation_mode == "half_pixel" ? 0.5 : 0;
  const auto scale = static_cast<double>(attr.spatial_scale);
  const Expr start = low * scale - shift;
  Expr length = high * scale - shift - start;
  if (shift == 0) length = call("Max", length, c.scalar(1));
  const auto count = static_cast<double>(bins * attr.sampling_ratio);
  const Expr steps = (count_up(c, c.int_scalar(bins * attr.sampling_ratio), low) + 0.5) / count;
  return unsqueeze(c, start, {1}) + unsqueeze(c, length, {1}) * unsqueeze(c, steps, {0});
}

// Up to one pixel outside counts as the edge; beyond, nothing weighs.
std::vector<Tap> clamped(GradientContext& c, Expr v, const Axis& axis) {
  const Expr there = call("And", c.emit("GreaterOrEqual", {v, c.scalar(-1)}), c.emit("LessOrEqual", {v, axis.size}));
  std::vector<Tap> taps = linear(c, c.emit("Clip", {v, c.scalar(0), axis.size - 1.0}), axis);
  for (Tap& t : taps) t.weight = where(there, t.weight, c.scalar(0));
  return taps;
}

std::vector<Expr> roi_align_formula(GradientContext& c) {
  const auto attr = parse<RoiAlignAttrs>(c);
  if (attr.mode != "avg") c.refuse("mode max");
  if (attr.sampling_ratio <= 0) c.refuse("a sampling_ratio that depends on the regions");
  constexpr std::int64_t kMost = 1 << 15;
  if (attr.output_height <= 0 || attr.output_width <= 0 || attr.sampling_ratio > kMost || attr.output_height > kMost ||
      attr.output_width > kMost) {
    c.refuse("output extents and sampling_ratio must be 1 to 32768");
  }
  const Expr x = c.in(0);
  const std::vector<Expr> box = split_last(c, c.in(1), 1, 4);  // x1, y1, x2, y2
  const std::vector<Axis> axes{axis_of(c, x, 2, x), axis_of(c, x, 3, x)};
  const Expr down = region_samples(c, attr, box[1], box[3], attr.output_height);
  const Expr across = region_samples(c, attr, box[0], box[2], attr.output_width);
  // Every row of samples with every column: [regions, rows, columns], flat.
  const Expr grid = join(c, {c.extents(down, 0, 1), c.extents(down, 1, 2), c.extents(across, 1, 2)});
  const auto flat = [&](Expr e, std::int64_t axis) {
    return c.emit("Reshape", {call("Expand", unsqueeze(c, e, {axis}), grid), c.ints({0, -1})});
  };
  const std::vector<std::vector<Tap>> taps{clamped(c, flat(down, 2), axes[0]), clamped(c, flat(across, 1), axes[1])};
  const Expr planes = c.emit("Gather", {c.emit("Reshape", {x, c.ints({0, 0, -1})}), c.in(2)}, {{"axis", std::int64_t{0}}});
  const Expr samples = gather(c, planes, combined(taps, axes));
  const std::int64_t n = attr.sampling_ratio;
  const Expr bins = c.emit("Reshape", {samples, c.ints({0, 0, attr.output_height, n, attr.output_width, n})});
  return {c.mean(bins, {3, 5}, false)};
}

// --- AffineGrid: linear in theta, so that matrices of zeros and a single one give what each element is multiplied by ----------

void affine_grid(GradientContext& c) {
  const Expr g = c.dy();
  const std::int64_t spatial = c.rank(c.out(0)) - 2;
  if (spatial != 2 && spatial != 3) c.refuse("grids of other than two and three axes");
  const std::int64_t columns = spatial + 1;
  const Expr eye = c.emit("EyeLike", {c.emit("Expand", {c.scalar(0), c.ints({columns, columns})})});
  const Expr rest = c.emit("Expand", {c.scalar(0), c.ints({columns, spatial - 1, columns})});
  const Expr basis = c.emit("Concat", {unsqueeze(c, eye, {1}), rest}, {{"axis", std::int64_t{1}}});
  const Expr size = join(c, {c.ints({columns}), c.emit("Slice", {c.in(1), c.ints({1}), c.ints({spatial + 2})})});
  const Expr all = c.repeat({basis, size});  // [columns, spatial…, spatial]: what belongs to the first row alone counts
  const Expr first = c.emit("Gather", {all, c.int_scalar(0)}, {{"axis", spatial + 1}});
  const Expr flat = c.emit("Reshape", {first, c.ints({columns, -1})});
  const Expr gradients = c.emit("Reshape", {g, c.ints({0, -1, spatial})});
  c.set(0, c.emit("Einsum", {gradients, flat}, {{"equation", std::string("npi,jp->nij")}}));
}

}  // namespace

void register_gradients_sampling(GradientTable& t) {
  const auto grid_sample = [](GradientContext& c) { c.through(grid_sample_formula); };
  t.add({"GridSample", "com.microsoft.GridSample"}, grid_sample);
  t.add("DeformConv", [](GradientContext& c) { c.through(deform_formula); });
  t.add("RoiAlign", [](GradientContext& c) { c.through(roi_align_formula); });
  t.add("AffineGrid", affine_grid);
}

}  // namespace sdx::ops
