// Gradients of normalisations. With n = (x - mean) * r, where r = 1 / sqrt(variance + epsilon), and g the gradient of n:
//   dx = r * (g - mean(g) - n * mean(g * n))
// Source: Ioffe and Szegedy, "Batch normalization", arXiv:1502.03167, section 3.

#include "ops/gradients/windows.h"
#include "ops/norm/signatures.h"

namespace sdx::ops {
namespace {

constexpr std::int64_t kMostAxes = 64;

struct Normalised {
  Expr value, scale;
};

Normalised normalise(GradientContext& c, Expr x, const std::vector<std::int64_t>& axes, double epsilon) {
  const Expr centred = x - c.mean(x, axes);
  const Expr scale = 1.0 / call("Sqrt", c.mean(square(centred), axes) + epsilon);
  return {centred * scale, scale};
}

Expr normalise_back(GradientContext& c, const Normalised& n, Expr g, const std::vector<std::int64_t>& axes) {
  return n.scale * (g - c.mean(g, axes) - n.value * c.mean(g * n.value, axes));
}

template <class Attrs>
double epsilon_of(const GradientContext& c) {
  return static_cast<double>(parse<Attrs>(c).epsilon);
}

std::vector<std::int64_t> last_axes(GradientContext& c) {
  std::int64_t axis = parse<LayerNormAttrs>(c).axis;
  std::int64_t end = 0;
  if (axis >= 0) end = c.rank(c.in(0));
  if (axis < -kMostAxes) c.refuse("an axis that does not exist");
  std::vector<std::int64_t> axes;
  for (; axis < end; ++axis) axes.push_back(axis);
  return axes;
}

void only_first_output(GradientContext& c) {
  for (std::size_t i = 1; i < c.node().outputs.size(); ++i) {
    if (c.dy(i)) c.refuse("statistics");
  }
}

void layer_norm(GradientContext& c) {
  only_first_output(c);
  const std::vector<std::int64_t> axes = last_axes(c);
  const Normalised n = normalise(c, c.in(0), axes, epsilon_of<LayerNormAttrs>(c));
  if (c.wants(1)) c.set_broadcast(1, c.dy() * n.value);
  c.set_broadcast(2, c.dy());
  if (c.wants(0)) c.set(0, normalise_back(c, n, c.dy() * c.in(1), axes));
}

void rms_norm(GradientContext& c) {
  only_first_output(c);
  const std::vector<std::int64_t> axes = last_axes(c);
  const Expr x = c.in(0);
  const Expr r = 1.0 / call("Sqrt", c.mean(square(x), axes) + epsilon_of<LayerNormAttrs>(c));
  const Expr n = x * r;
  if (c.wants(1)) c.set_broadcast(1, c.dy() * n);
  if (!c.wants(0)) return;
  const Expr g = c.dy() * c.in(1);
  c.set(0, r * (g - n * c.mean(g * n, axes)));
}

// All axes but the channels'.
std::vector<std::int64_t> per_channel(GradientContext& c, std::int64_t rank) {
  if (rank < 2) c.refuse("an input without channels");
  std::vector<std::int64_t> axes = inner_axes(static_cast<std::size_t>(rank - 2));
  axes.insert(axes.begin(), 0);
  return axes;
}

// [C] as [C, 1, …], which broadcasts along channels.
Expr along_channels(GradientContext& c, Expr e, std::int64_t rank) {
  std::vector<std::int64_t> axes;
  for (std::int64_t i = 1; i + 1 < rank; ++i) axes.push_back(i);
  return axes.empty() ? e : c.emit("Unsqueeze", {e, c.ints(axes)});
}

void instance_norm(GradientContext& c) {
  const std::int64_t rank = c.rank(c.in(0));
  if (rank < 3) c.refuse("an input without axes behind its channels");
  const std::vector<std::int64_t> axes = inner_axes(static_cast<std::size_t>(rank - 2));
  const Normalised n = normalise(c, c.in(0), axes, epsilon_of<GroupNormAttrs>(c));
  if (c.wants(1)) c.set(1, c.sum(c.dy() * n.value, per_channel(c, rank), false));
  if (c.wants(2)) c.set(2, c.sum(c.dy(), per_channel(c, rank), false));
  if (c.wants(0)) c.set(0, normalise_back(c, n, c.dy() * along_channels(c, c.in(1), rank), axes));
}

// Scale and bias are per group in opset 18 to 20, per channel since.
void group_norm(GradientContext& c) {
  const Expr x = c.in(0);
  const std::int64_t rank = c.rank(x);
  const bool by_group = c.version() < 21;
  const std::vector<std::int64_t> axes{2};
  const auto grouped = [&](Expr e) { return c.emit("Reshape", {e, c.ints({0, parse<GroupNormAttrs>(c).num_groups, -1})}); };
  const Normalised n = normalise(c, grouped(x), axes, epsilon_of<GroupNormAttrs>(c));
  const Expr g = by_group ? grouped(c.dy()) : c.dy();
  const Expr value = by_group ? n.value : c.reshape(n.value, c.shape_of(x));
  const std::int64_t inner = by_group ? 3 : rank;
  if (c.wants(1)) c.set(1, c.sum(g * value, per_channel(c, inner), false));
  if (c.wants(2)) c.set(2, c.sum(g, per_channel(c, inner), false));
  if (!c.wants(0)) return;
  const Expr scaled = g * along_channels(c, c.in(1), inner);
  c.set(0, c.reshape(normalise_back(c, n, by_group ? scaled : grouped(scaled), axes), c.shape_of(x)));
}

void batch_norm_training(GradientContext& c, std::int64_t rank) {
  only_first_output(c);
  const std::vector<std::int64_t> axes = per_channel(c, rank);
  const Normalised n = normalise(c, c.in(0), axes, epsilon_of<BatchNormAttrs>(c));
  if (c.wants(1)) c.set(1, c.sum(c.dy() * n.value, axes, false));
  if (c.wants(2)) c.set(2, c.sum(c.dy(), axes, false));
  if (c.wants(0)) c.set(0, normalise_back(c, n, c.dy() * along_channels(c, c.in(1), rank), axes));
}

void batch_norm(GradientContext& c) {
  const auto attr = parse<BatchNormAttrs>(c);
  if (c.version() < 7 || !attr.spatial) c.refuse("semantics of early opsets");
  if (c.version() < 14 && c.node().outputs.size() > 1) c.refuse("training as before opset 14");
  const std::int64_t rank = c.rank(c.in(0));
  if (attr.training_mode) return batch_norm_training(c, rank);
  const std::vector<std::int64_t> axes = per_channel(c, rank);
  const auto wide = [&](Expr e) { return along_channels(c, e, rank); };
  const Expr g = c.dy();
  const Expr r = 1.0 / call("Sqrt", c.in(4) + epsilon_of<BatchNormAttrs>(c));
  const Expr n = (c.in(0) - wide(c.in(3))) * wide(r);
  const Expr factor = c.in(1) * r;
  if (c.wants(0)) c.set(0, g * wide(factor));
  if (c.wants(1)) c.set(1, c.sum(g * n, axes, false));
  if (c.wants(2)) c.set(2, c.sum(g, axes, false));
  if (c.wants(3)) c.set(3, -(c.sum(g, axes, false) * factor));
  if (c.wants(4)) c.set(4, c.sum(g * n, axes, false) * factor * r * -0.5);
}

void mean_variance(GradientContext& c) {
  const std::vector<std::int64_t> axes = parse<MeanVarianceAttrs>(c).of_rank(static_cast<std::size_t>(c.rank(c.in(0))));
  // The operator divides by sqrt(variance) + 1e-9, which where there is no variance is sqrt(1e-18).
  c.set(0, normalise_back(c, normalise(c, c.in(0), axes, 1e-18), c.dy(), axes));
}

// y = x / |x|; 0 where the norm is.
void lp_norm(GradientContext& c) {
  const auto attr = parse<LpNormalizationAttrs>(c);
  const std::vector<std::int64_t> axes{attr.axis};
  const Expr x = c.in(0);
  const bool p1 = attr.p == 1;
  const Expr norm = c.emit(p1 ? "ReduceL1" : "ReduceL2", {x, c.ints(axes)}, {{"keepdims", std::int64_t{1}}});
  const Expr zero = call("Equal", norm, 0.0);
  const Expr along = c.sum(c.dy() * c.out(0), axes);
  const Expr g = (c.dy() - (p1 ? call("Sign", x) : c.out(0)) * along) / where(zero, c.scalar(1), norm);
  c.set(0, where(zero, c.scalar(0), g));
}

// Sums over windows of channels: a convolution of [N, 1, C, rest] with a column of ones.
Expr channel_sums(GradientContext& c, Expr e, std::int64_t before, std::int64_t after) {
  const Expr flat = c.emit("Unsqueeze", {c.emit("Reshape", {e, c.ints({0, 0, -1})}), c.ints({1})});
  const Expr kernel = c.emit("Expand", {c.scalar(1), c.ints({1, 1, before + after + 1, 1})});
  const Expr sums = c.emit("Conv", {flat, kernel}, {{"pads", std::vector<std::int64_t>{before, 0, after, 0}}});
  return c.reshape(sums, c.shape_of(e));
}

// Source: ONNX LRN-1: y = x * s^-beta with s = bias + alpha / size * (sum of squares over a window of channels).
void lrn(GradientContext& c) {
  const auto attr = parse<LrnAttrs>(c);
  const std::int64_t size = attr.size;
  if (size <= 0 || size > (std::int64_t{1} << 30)) c.refuse("size must be positive, and less than 2^30");
  const double alpha = static_cast<double>(attr.alpha) / static_cast<double>(size);
  const double beta = static_cast<double>(attr.beta);
  const double bias = static_cast<double>(attr.bias);
  const std::int64_t before = (size - 1) / 2;
  const std::int64_t after = size - 1 - before;
  const Expr x = c.in(0);
  const Expr s = channel_sums(c, square(x), before, after) * alpha + bias;
  const Expr factor = call("Pow", s, c.scalar(-beta));
  const Expr through = channel_sums(c, c.dy() * x * factor / s, after, before);
  c.set(0, c.dy() * factor - x * through * (2 * alpha * beta));
}

}  // namespace

void register_gradients_normalise(GradientTable& t) {
  t.add({{"LayerNormalization", layer_norm}, {"RMSNormalization", rms_norm}, {"InstanceNormalization", instance_norm}});
  t.add({{"GroupNormalization", group_norm}, {"BatchNormalization", batch_norm}, {"MeanVarianceNormalization", mean_variance}});
  t.add({{"LpNormalization", lp_norm}, {"LRN", lrn}});
  t.add({"SimplifiedLayerNormalization", "com.microsoft.SimplifiedLayerNormalization"}, rms_norm);
  t.add("com.microsoft.LayerNormalization", layer_norm);
}

}  // namespace sdx::ops
