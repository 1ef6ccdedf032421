// Gradients of Range, OneHot, Unique, TensorScatter, MaxUnpool, Crop, and of the operators that quantise.

#include "ops/gradient.h"
#include "ops/quant/signatures.h"
#include "ops/tensor/signatures.h"

namespace sdx::ops {
namespace {

Expr total(GradientContext& c, Expr e, std::size_t i) {
  return c.reshape_like(c.emit("ReduceSum", {e}, {{"keepdims", std::int64_t{0}}}), c.in(i));
}

Expr to_type(GradientContext& c, Expr e, DataType t) { return c.emit("Cast", {e}, {{"to", static_cast<std::int64_t>(t)}}); }

// start + i * delta; how many there are does not change.
void range(GradientContext& c) {
  const Expr g = c.dy();
  if (c.wants(0)) c.set(0, total(c, g, 0));
  if (c.wants(1)) c.set(1, c.zeros_like(c.in(1)));
  if (!c.wants(2)) return;
  const Expr count = c.emit("Range", {c.int_scalar(0), c.emit("Size", {g}), c.int_scalar(1)});
  c.set(2, total(c, g * c.cast_like(count, g), 2));
}

// Sets the gradients of the two values, off and on.
void one_hot(GradientContext& c) {
  const Expr g = c.dy();
  const Expr marks =
      c.emit("Concat", {c.emit("Reshape", {c.scalar(0), c.ints({1})}), c.emit("Reshape", {c.scalar(1), c.ints({1})})},
             {{"axis", std::int64_t{0}}});
  const Expr on = c.repeat({c.in(0), c.in(1), marks});
  const auto sum = [&](Expr e) {
    return c.emit("Reshape", {c.emit("ReduceSum", {e}, {{"keepdims", std::int64_t{0}}}), c.ints({1})});
  };
  c.set(2, c.emit("Concat", {sum(g * (1.0 - on)), sum(g * on)}, {{"axis", std::int64_t{0}}}));
}

// If values are equal, the first one has the gradient.
void unique(GradientContext& c) {
  const auto axis = parse<UniqueAttrs>(c).axis;
  const Expr first = c.out(1);
  c.set(0, c.by_position(c.in(0), c.dy(), [&](Expr positions) {
    const Expr from = axis ? positions : c.emit("Reshape", {positions, c.ints({-1})});
    return c.emit("Gather", {from, first}, {{"axis", axis.value_or(0)}});
  }));
}

// The cache, but for the rows that the update replaces.
void tensor_scatter(GradientContext& c) {
  const auto with = [&](Expr cache, Expr update) {
    return c.has_input(2) ? c.repeat({cache, update, c.in(2)}) : c.repeat({cache, update});
  };
  const auto none = [&](Expr e) {
    return c.emit("ConstantOfShape", {c.shape_of(e)}, {{"value", Tensor::of<std::int64_t>({1}, {0})}});
  };
  const auto kept = [&](Expr p) { return with(p, none(c.in(1))); };
  const auto taken = [&](Expr p) { return with(none(c.in(0)), p); };
  if (c.wants(0)) c.set(0, c.by_position(c.in(0), c.dy(), kept));
  if (c.wants(1)) c.set(1, c.by_position(c.in(1), c.dy(), taken));
}

// These move floats alone: positions as float64, which holds any of them exactly.
void moved_floats(GradientContext& c) {
  c.set(0, c.by_position(c.in(0), c.dy(), [&](Expr positions) {
    std::vector<Expr> inputs{to_type(c, positions, DataType::float64)};
    for (std::size_t i = 1; i < c.num_inputs(); ++i) inputs.push_back(c.in(i));
    return to_type(c, c.repeat(inputs), DataType::int64);
  }));
}

// Results that depend only on the shape or on random numbers, and nodes that stop gradients.
void independent(GradientContext&) {}

// --- quantising: rounding counts as the identity, and nothing goes where values are cut off. Source: Bengio, Leonard and
// Courville, "Estimating or propagating gradients", arXiv:1308.3432; of scales, Esser et al., "Learned step size quantization",
// arXiv:1902.08153 --------------------------------------------------------------------------------------------------------

struct Scale {
  Expr value;                      // broadcasts to the tensor
  std::vector<std::int64_t> axes;  // over which it is the same
  bool all = false;
};

Scale scale_of(GradientContext& c, Expr like) {
  const Expr s = c.in(1);
  const std::int64_t rank = c.rank(like);
  const std::int64_t scales = c.rank(s);
  if (parse<QuantizeAttrs>(c).block_size != 0) c.refuse("scales of blocks");
  if (scales == 0 || (scales == 1 && (*c.shape(s))[0] == Dim(1))) return {c.emit("Reshape", {s, c.ints({})}), {}, true};
  std::int64_t axis = parse<QuantizeAttrs>(c).axis;
  if (axis < 0) axis += rank;
  std::vector<std::int64_t> others, behind;
  for (std::int64_t i = 0; i < rank; ++i) {
    if (i != axis) others.push_back(i);
    if (i != axis) behind.push_back(i);
  }
  return {behind.empty() ? s : c.emit("Unsqueeze", {s, c.ints(behind)}), others};
}

Expr sum_by_scale(GradientContext& c, const Scale& s, Expr e) {
  return s.all ? total(c, e, 1) : c.reshape_like(c.sum(e, s.axes, false), c.in(1));
}

void dequantize(GradientContext& c) {
  const Scale s = scale_of(c, c.in(0));
  const Expr g = c.dy();
  if (c.wants(0)) c.set(0, g * c.cast_like(s.value, g));
  if (!c.wants(1)) return;
  const Expr steps = c.out(0) / s.value;
  c.set(1, sum_by_scale(c, s, g * steps));
}

// A value that comes back more than half a step off was cut off.
void quantize(GradientContext& c) {
  const Expr x = c.in(0);
  const Scale s = scale_of(c, x);
  std::vector<Expr> inputs{c.out(0), c.in(1)};
  if (c.has_input(2)) inputs.push_back(c.in(2));
  const Expr back = c.emit_with("DequantizeLinear", inputs, {"axis"})[0];
  const Expr inside = c.emit("LessOrEqual", {call("Abs", x - back), call("Abs", s.value) * 0.5001});
  const Expr g = where(inside, c.dy() / s.value, c.scalar(0));
  if (c.wants(0)) c.set(0, g);
  if (c.wants(1)) c.set(1, sum_by_scale(c, s, -(g * x / s.value)));
}

}  // namespace

void register_gradients_values(GradientTable& t) {
  t.add({{"Range", range}, {"OneHot", one_hot}, {"Unique", unique}, {"TensorScatter", tensor_scatter}});
  t.add({"EyeLike", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "sdx.StopGradient"}, independent);
  t.add({"MaxUnpool", "Crop"}, moved_floats);
  t.add({{"QuantizeLinear", quantize}, {"DequantizeLinear", dequantize}});
}

}  // namespace sdx::ops
