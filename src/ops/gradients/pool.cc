// Gradients of pooling.

#include "ops/conv/signatures.h"
#include "ops/gradients/windows.h"
#include "ops/pool/lp_norm_sum.h"

namespace sdx::ops {
namespace {

Expr concat(GradientContext& c, const std::vector<Expr>& parts) { return c.emit("Concat", parts, {{"axis", std::int64_t{0}}}); }

// [1, 1, kernel…] of ones.
Expr ones_kernel(GradientContext& c) {
  std::vector<std::int64_t> shape = to_vector(parse<WindowFields>(c).kernel_shape);
  shape.insert(shape.begin(), {1, 1});
  return c.emit("Expand", {c.scalar(1), c.ints(shape)});
}

// Channels are windows of their own: [N, C, …] as [N * C, 1, …].
Expr single_channel(GradientContext& c, Expr e, std::size_t axes) {
  const Expr count = call("Mul", c.extents(e, 0, 1), c.extents(e, 1, 2));
  return c.reshape(e, concat(c, {count, c.ints({1}), c.extents(e, 2, static_cast<std::int64_t>(axes) + 2)}));
}

// [1, 1, …]: over how many elements each window averages.
Expr counts(GradientContext& c, const Windows& w, Expr kernel) {
  const auto rank = static_cast<std::int64_t>(w.axes()) + 2;
  Expr image = c.emit("Expand", {c.scalar(1), concat(c, {c.ints({1, 1}), c.extents(c.in(0), 2, rank)})});
  std::vector<std::int64_t> pads = w.pads;
  const bool all_count = parse<PoolAttrs>(c).count_include_pad;
  if (w.begins) {
    image = padded(c, w, image, all_count ? 1 : 0);
  } else if (all_count) {
    std::vector<std::int64_t> full{0, 0};
    full.insert(full.end(), pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(w.axes()));
    full.insert(full.end(), {0, 0});
    full.insert(full.end(), pads.begin() + static_cast<std::ptrdiff_t>(w.axes()), pads.end());
    image = c.emit("Pad", {image, c.ints(full), c.scalar(1)});
    std::fill(pads.begin(), pads.end(), 0);
  }
  if (parse<WindowFields>(c).ceil_mode) {
    for (std::size_t i = 0; i < w.axes(); ++i) pads[w.axes() + i] += w.strides[i] - 1;
  }
  const Expr all = c.emit("Conv", {image, kernel}, {{"strides", w.strides}, {"dilations", w.dilations}, {"pads", pads}});
  const std::vector<std::int64_t> zeros(w.axes(), 0);
  return c.emit("Slice", {all, c.ints(zeros), c.extents(c.out(0), 2, rank), c.ints(inner_axes(w.axes()))});
}

void average_pool(GradientContext& c) {
  const Expr x = c.in(0);
  const Windows w = windows_of(c, x, {});
  const Expr kernel = ones_kernel(c);
  const Expr g = single_channel(c, c.dy(), w.axes()) / counts(c, w, kernel);
  c.set(0, c.reshape_like(spread(c, w, 1, g, kernel, x), x));
}

// The gradient goes to the element that was chosen.
void max_pool(GradientContext& c) {
  if (c.version() < 8) c.refuse("it reports which elements it chose only since opset 8");
  if (c.dy(1)) c.refuse("indices");
  const std::vector<Expr> again = c.repeat_many({c.in(0)}, {{"storage_order", std::int64_t{0}}}, 2);
  c.set(0, c.add_by_position(c.in(0), c.dy(), call("Add", again[1], c.int_scalar(1))));
}

// |x|^(p - 1) with x's sign: the slope of |x|^p / p.
Expr power_slope(GradientContext& c, Expr x, double p) {
  if (p == 1) return call("Sign", x);
  if (p == 2) return x;
  return call("Sign", x) * call("Pow", call("Abs", x), c.scalar(p - 1));
}

// g * y^(1 - p), 0 where the norm is.
Expr norm_slope(GradientContext& c, Expr g, Expr y, double p) {
  if (p == 1) return g;
  const Expr zero = call("Equal", y, 0.0);
  const Expr safe = where(zero, c.scalar(1), y);
  return where(zero, c.scalar(0), g / call("Pow", safe, c.scalar(p - 1)));
}

double exponent(GradientContext& c) { return static_cast<double>(parse<PNormAttrs>(c).p); }

void lp_pool(GradientContext& c) {
  const Expr x = c.in(0);
  const double p = exponent(c);
  const Windows w = windows_of(c, x, {});
  const Expr g = single_channel(c, norm_slope(c, c.dy(), c.out(0), p), w.axes());
  c.set(0, c.reshape_like(spread(c, w, 1, g, ones_kernel(c), x), x) * power_slope(c, x, p));
}

std::vector<std::int64_t> global_axes(GradientContext& c) {
  const std::int64_t rank = c.rank(c.in(0));
  if (rank < 2) c.refuse("an input without channels");
  return inner_axes(static_cast<std::size_t>(rank - 2));
}

void global_average_pool(GradientContext& c) {
  const Expr x = c.in(0);
  const SymShape* s = c.shape(x);
  if (s != nullptr && s->size() > 2) {
    const SymShape plane(s->begin() + 2, s->end());
    const std::int64_t n = all_const(plane) ? element_count(to_shape(plane)) : 0;
    if (n != 0) return c.set(0, call("Expand", c.dy() * (1.0 / static_cast<double>(n)), c.shape_of(x)));
  }
  const Expr part = c.cast_like(call("Size", c.out(0)), x) / c.cast_like(call("Size", x), x);
  c.set(0, call("Expand", c.dy() * part, c.shape_of(x)));
}

void global_max_pool(GradientContext& c) {
  const Expr x = c.in(0);
  const Expr chosen = c.cast_like(call("Equal", x, c.out(0)), x);
  c.set(0, chosen * (c.dy() / c.sum(chosen, global_axes(c))));
}

void global_lp_pool(GradientContext& c) {
  const double p = exponent(c);
  c.set(0, norm_slope(c, c.dy(), c.out(0), p) * power_slope(c, c.in(0), p));
}

}  // namespace

void register_gradients_pool(GradientTable& t) {
  t.add("AveragePool", average_pool);
  t.add("MaxPool", max_pool);
  t.add("LpPool", lp_pool);
  t.add("GlobalAveragePool", global_average_pool);
  t.add("GlobalMaxPool", global_max_pool);
  t.add("GlobalLpPool", global_lp_pool);
}

}  // namespace sdx::ops
