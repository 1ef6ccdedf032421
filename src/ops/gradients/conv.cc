// Gradients of Conv and ConvTranspose: each is the other's, and the weights' is a convolution of the input by the result's
// gradient.

#include "ops/conv/signatures.h"
#include "ops/gradients/windows.h"

namespace sdx::ops {

namespace {

constexpr std::int64_t kMostExtent = std::int64_t{1} << 30;  // products of two stay within 64 bits

Expr swap_first_two(GradientContext& c, Expr e, std::size_t axes) {
  std::vector<std::int64_t> perm{1, 0};
  for (std::size_t i = 0; i < axes; ++i) perm.push_back(static_cast<std::int64_t>(i) + 2);
  return c.emit("Transpose", {e}, {{"perm", perm}});
}

Expr concat(GradientContext& c, const std::vector<Expr>& parts) { return c.emit("Concat", parts, {{"axis", std::int64_t{0}}}); }

// e: [N, G * K, …]; moved so that axis `group_first ? 0 : 1` is the group's: [G * K, N, …] or [K, G * N, …].
Expr regroup(GradientContext& c, Expr e, Expr per_group, std::int64_t group, std::size_t axes, bool group_first) {
  const auto rank = static_cast<std::int64_t>(axes) + 2;
  const Expr n = c.extents(e, 0, 1);
  const Expr groups = c.ints({group});
  const Expr inner = c.extents(e, 2, rank);
  const Expr split = c.reshape(e, concat(c, {n, groups, per_group, inner}));
  std::vector<std::int64_t> perm = group_first ? std::vector<std::int64_t>{1, 2, 0} : std::vector<std::int64_t>{2, 1, 0};
  for (std::size_t i = 0; i < axes; ++i) perm.push_back(static_cast<std::int64_t>(i) + 3);
  const Expr moved = c.emit("Transpose", {split}, {{"perm", perm}});
  const Expr first = group_first ? c.extents(e, 1, 2) : per_group;
  const Expr second = group_first ? n : call("Mul", n, groups);
  return c.reshape(moved, concat(c, {first, second, inner}));
}

// The gradient of weights [M, C / group, …] of a convolution of x, [N, C, …], whose result's gradient is g, [N, M, …]. Where the
// stride skips the input's last positions the product has more taps than the weights: they are cut off.
Expr weight_gradient(GradientContext& c, const Windows& w, std::int64_t group, Expr x, Expr g, Expr weights) {
  const std::size_t axes = w.axes();
  x = padded(c, w, x);
  Expr a;
  Expr b;
  if (group == 1) {
    a = swap_first_two(c, x, axes);
    b = swap_first_two(c, g, axes);
  } else {
    a = regroup(c, x, c.extents(weights, 1, 2), group, axes, false);
    b = regroup(c, g, call("Div", c.extents(g, 1, 2), c.ints({group})), group, axes, true);
  }
  const Expr all =
      c.emit("Conv", {a, b}, {{"strides", w.dilations}, {"dilations", w.strides}, {"pads", w.pads}, {"group", group}});
  const std::vector<std::int64_t> zeros(axes, 0);
  const Expr taps =
      c.emit("Slice", {all, c.ints(zeros), c.extents(weights, 2, static_cast<std::int64_t>(axes) + 2), c.ints(inner_axes(axes))});
  return swap_first_two(c, taps, axes);
}

void bias_gradient(GradientContext& c, std::size_t axes) {
  if (!c.wants(2)) return;
  std::vector<std::int64_t> others = inner_axes(axes);
  others.insert(others.begin(), 0);
  c.set(2, c.sum(c.dy(), others, false));
}

void conv(GradientContext& c) {
  const Windows w = windows_of(c, c.in(0), c.in(1));
  const std::int64_t group = group_of(c.attrs());
  if (group <= 0) c.refuse("group must be positive");
  if (c.wants(0)) c.set(0, spread(c, w, group, c.dy(), c.in(1), c.in(0)));
  if (c.wants(1)) c.set(1, weight_gradient(c, w, group, c.in(0), c.dy(), c.in(1)));
  bias_gradient(c, w.axes());
}

// Source: ONNX ConvTranspose-11: padding from output_shape or auto_pad is what the windows cover beyond the result.
Windows transposed_windows(GradientContext& c, const ConvAttrs& attr) {
  const std::string_view mode = attr.window.auto_pad;
  if (attr.output.output_shape.empty() && mode != "SAME_UPPER" && mode != "SAME_LOWER") return windows_of(c, c.out(0), c.in(1));
  Windows w = unpadded_windows(c, c.out(0));
  const std::int64_t rank = static_cast<std::int64_t>(w.axes()) + 2;
  Expr covered = call("Mul", c.ints(w.strides), call("Sub", c.extents(c.in(0), 2, rank), c.ints({1})));
  covered = call("Add", covered, reach_of(c, w, c.in(1)));
  const IntList more = attr.output.output_padding;
  if (!more.empty()) covered = call("Add", covered, c.ints(to_vector(more)));
  const Expr total = call("Max", call("Sub", covered, c.extents(c.out(0), 2, rank)), c.int_scalar(0));
  share_padding(c, w, total);
  return w;
}

void conv_transpose(GradientContext& c) {
  const auto attr = parse<ConvAttrs>(c);
  const Windows w = transposed_windows(c, attr);
  const std::int64_t group = group_of(c.attrs());
  if (group <= 0) c.refuse("group must be positive");
  if (c.wants(0)) {
    const Expr all = c.emit("Conv", {padded(c, w, c.dy()), c.in(1)},
                            {{"strides", w.strides}, {"dilations", w.dilations}, {"pads", w.pads}, {"group", group}});
    const std::vector<std::int64_t> zeros(w.axes(), 0);
    c.set(0, c.emit("Slice", {all, c.ints(zeros), c.extents(c.in(0), 2, static_cast<std::int64_t>(w.axes()) + 2),
                              c.ints(inner_axes(w.axes()))}));
  }
  if (c.wants(1)) c.set(1, weight_gradient(c, w, group, c.dy(), c.in(0), c.in(1)));
  bias_gradient(c, w.axes());
}

}  // namespace

std::vector<std::int64_t> inner_axes(std::size_t count) {
  std::vector<std::int64_t> axes;
  for (std::size_t i = 0; i < count; ++i) axes.push_back(static_cast<std::int64_t>(i) + 2);
  return axes;
}

namespace {

void check(GradientContext& c, const Windows& w, std::size_t axes) {
  const auto positive = [&](const std::vector<std::int64_t>& v) {
    return v.size() == axes && std::all_of(v.begin(), v.end(), [](std::int64_t e) { return e > 0 && e <= kMostExtent; });
  };
  const auto sane = [](std::int64_t e) { return e >= 0 && e <= kMostExtent; };
  if (!positive(w.strides) || !positive(w.dilations)) c.refuse("strides and dilations must be positive, one for each axis");
  if (w.pads.size() != 2 * axes || !std::all_of(w.pads.begin(), w.pads.end(), sane))
    c.refuse("pads must be two for each axis, none negative");
}

}  // namespace

Windows unpadded_windows(GradientContext& c, Expr x) {
  Windows w;
  if (c.rank(x) < 3) c.refuse("an input without axes behind its channels");
  const auto axes = static_cast<std::size_t>(c.rank(x) - 2);
  const auto attr = parse<WindowFields>(c);
  const auto or_ones = [&](IntList v) { return v.empty() ? std::vector<std::int64_t>(axes, 1) : to_vector(v); };
  w.strides = or_ones(attr.strides);
  w.dilations = or_ones(attr.dilations);
  w.pads.assign(2 * axes, 0);
  check(c, w, axes);
  return w;
}

Expr reach_of(GradientContext& c, const Windows& w, Expr kernel) {
  const IntList given = parse<WindowFields>(c).kernel_shape;
  if (given.empty() && !kernel) c.refuse("kernel_shape is missing");
  const std::int64_t rank = static_cast<std::int64_t>(w.axes()) + 2;
  const Expr taps = given.empty() ? c.extents(kernel, 2, rank) : c.ints(to_vector(given));
  return call("Add", call("Mul", call("Sub", taps, c.ints({1})), c.ints(w.dilations)), c.ints({1}));
}

void share_padding(GradientContext& c, Windows& w, Expr total) {
  const Expr small = call("Div", total, c.int_scalar(2));
  const Expr large = call("Sub", total, small);
  const bool upper = parse<WindowFields>(c).auto_pad == "SAME_UPPER";
  w.begins = upper ? small : large;
  w.ends = upper ? large : small;
}

Expr padded(GradientContext& c, const Windows& w, Expr x, double value) {
  if (!w.begins) return x;
  const Expr none = c.ints({0, 0});
  return c.emit("Pad", {x, concat(c, {none, w.begins, none, w.ends}), c.scalar(value)});
}

Windows windows_of(GradientContext& c, Expr x, Expr kernel) {
  Windows w = unpadded_windows(c, x);
  const std::size_t axes = w.axes();
  const auto attr = parse<WindowFields>(c);
  const std::string_view mode = attr.auto_pad;
  if (mode != "VALID" && !attr.pads.empty()) w.pads = to_vector(attr.pads);
  check(c, w, axes);
  if (mode != "SAME_UPPER" && mode != "SAME_LOWER") return w;
  w.pads.assign(2 * axes, 0);
  std::vector<std::int64_t> taps = to_vector(attr.kernel_shape);
  const SymShape* xs = c.shape(x);
  const SymShape* ks = kernel ? c.shape(kernel) : nullptr;
  for (std::size_t i = 0; i < axes; ++i) {
    if (taps.size() <= i && ks != nullptr && (*ks)[i + 2].is_const()) taps.push_back((*ks)[i + 2].value());
    if (taps.size() <= i || !(*xs)[i + 2].is_const()) {
      const Expr in = c.extents(x, 2, static_cast<std::int64_t>(axes) + 2);
      const Expr strides = c.ints(w.strides);
      const Expr skipped = call("Mul", call("Div", call("Sub", in, c.ints({1})), strides), strides);
      const Expr total = call("Sub", call("Add", skipped, reach_of(c, w, kernel)), in);
      w.pads.assign(2 * axes, 0);
      share_padding(c, w, call("Max", total, c.int_scalar(0)));
      return w;
    }
    const std::int64_t in = (*xs)[i + 2].value();
    if (taps[i] <= 0 || taps[i] > kMostExtent || in > kMostExtent) c.refuse("a kernel or an input that is far too large");
    const std::int64_t reach = (taps[i] - 1) * w.dilations[i] + 1;
    const std::int64_t out = (in + w.strides[i] - 1) / w.strides[i];
    const std::int64_t total = std::max<std::int64_t>((out - 1) * w.strides[i] + reach - in, 0);
    w.pads[i] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
    w.pads[i + axes] = total - w.pads[i];
  }
  return w;
}

// Without padding, and with the most that a stride may have skipped at the ends, the input lies within at the padding's offset.
Expr spread(GradientContext& c, const Windows& w, std::int64_t group, Expr g, Expr kernel, Expr x) {
  const std::size_t axes = w.axes();
  Expr all = c.emit("ConvTranspose", {g, kernel}, {{"strides", w.strides}, {"dilations", w.dilations}, {"group", group}});
  std::vector<std::int64_t> ends(2 * (axes + 2), 0);
  for (std::size_t i = 0; i < axes; ++i) ends[axes + 4 + i] = w.strides[i] - 1;
  if (std::any_of(ends.begin(), ends.end(), [](std::int64_t e) { return e != 0; })) all = c.emit("Pad", {all, c.ints(ends)});
  const std::vector<std::int64_t> begins(w.pads.begin(), w.pads.begin() + static_cast<std::ptrdiff_t>(axes));
  const Expr from = w.begins ? w.begins : c.ints(begins);
  const Expr to = call("Add", from, c.extents(x, 2, static_cast<std::int64_t>(axes) + 2));
  return c.emit("Slice", {all, from, to, c.ints(inner_axes(axes))});
}

void register_gradients_conv(GradientTable& t) {
  t.add("Conv", conv);
  t.add("ConvTranspose", conv_transpose);
}

}  // namespace sdx::ops
