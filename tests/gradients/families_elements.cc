// Elements, reductions, shapes, indices.

#include <numeric>

#include "gradients/generator.h"

namespace sdx::gradient_tests {
namespace {

using Ints = std::vector<std::int64_t>;

Ints some_axes(Generator& g, const std::string& v) {
  Ints axes;
  for (std::int64_t i = 0; i < g.rank(v); ++i) {
    if (g.chance(0.5)) axes.push_back(g.chance(0.3) ? i - g.rank(v) : i);
  }
  if (axes.empty() && g.rank(v) > 0) axes.push_back(g.axis_of(v));
  return axes;
}

std::int64_t count(const Ints& values) { return static_cast<std::int64_t>(values.size()); }

void add_unary(Generator& g) {
  const std::string op = g.one_of<const char*>(
      {"Tanh",     "Sigmoid", "Sin",  "Cos",  "Erf",       "Softplus", "Softsign", "Atan",  "Abs",         "Relu",
       "Neg",      "Exp",     "Gelu", "Mish", "HardSwish", "Elu",      "Selu",     "Celu",  "LeakyRelu",   "Asinh",
       "Identity", "Sinh",    "Cosh", "Clip", "Tan",       "Atanh",    "Sign",     "Floor", "HardSigmoid", "ThresholdedRelu",
       "Shrink"});
  if (op == "Clip") {
    g.add(op, {g.pick(), g.chance(0.8) ? g.number(-0.6) : "_", g.number(0.7)});
  } else if (op == "Tan" || op == "Atanh") {
    g.add(op, {g.add("Mul", {g.add("Tanh", {g.pick()}), g.number(0.8)})});
  } else if (op == "Gelu" && g.chance(0.5)) {
    g.add(op, {g.pick()}, "approximate=\"tanh\"");
  } else if (op == "Elu" || op == "LeakyRelu" || op == "Celu" || op == "ThresholdedRelu") {
    g.add(op, {g.pick()}, "alpha=0.3");
  } else {
    g.add(op, {g.pick()});
  }
}

void add_of_positive(Generator& g) {
  const std::string op = g.one_of<const char*>({"Log", "Sqrt", "Reciprocal", "Pow", "Div", "Mod", "ReduceLogSum", "Acosh"});
  const std::string x = g.positive(g.pick());
  if (x.empty()) return;
  if (op == "Pow") {
    g.add(op, {x, g.chance(0.5) ? g.number(g.one_of({2.0, 0.5, -1.0, 3.0})) : g.partner(x)});
  } else if (op == "Div") {
    g.add(op, {g.partner(x), x});
  } else if (op == "Mod") {
    g.add(op, {g.partner(x), x}, "fmod=1");
  } else if (op == "ReduceLogSum") {
    g.add(op, {x}, g.chance(0.5) ? "keepdims=0" : "");
  } else if (op == "Acosh") {
    g.add(op, {g.add("Add", {x, g.number(1)})});
  } else {
    g.add(op, {x});
  }
}

void add_binary(Generator& g) {
  const std::string a = g.pick();
  const std::string b = g.partner(a);
  const std::string op =
      g.one_of<const char*>({"Add", "Sub", "Mul", "Mul", "Max", "Min", "Sum", "Mean", "PRelu", "Where", "Pow"});
  if (op == "Where") {
    const std::string condition = g.add(g.one_of<const char*>({"Less", "GreaterOrEqual"}), {a, g.number(0.1)});
    g.add(op, {condition, a, b});
  } else if (op == "Sum" || op == "Mean" || op == "Max" || op == "Min") {
    g.add(op, g.chance(0.4) ? std::vector<std::string>{a, b, g.partner(a)} : std::vector<std::string>{a, b});
  } else if (op == "Pow") {
    g.add(op, {a, g.number(g.one_of({2.0, 3.0}))});
  } else {
    g.add(op, {a, b});
  }
}

}  // namespace

void add_elementwise(Generator& g) {
  switch (g.below(5)) {
    case 0:
    case 1: return add_unary(g);
    case 2: return add_of_positive(g);
    default: return add_binary(g);
  }
}

void add_reduction(Generator& g) {
  const std::string op = g.one_of<const char*>({"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1",
                                                "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp", "CumSum", "ReduceSum"});
  const std::string x = g.pick();
  if (g.rank(x) == 0) return;
  if (op == "CumSum") {
    const std::string axis = g.ints({}, {g.axis_of(x)});
    g.add(op, {x, axis}, fmt::format("exclusive={}, reverse={}", g.below(2), g.below(2)));
    return;
  }
  const Ints axes = some_axes(g, x);
  const std::string attributes = fmt::format("keepdims={}", g.below(2));
  if (g.chance(0.2)) {
    g.add(op, {x}, attributes + ", noop_with_empty_axes=" + std::to_string(g.below(2)));
  } else {
    g.add(op, {x, g.ints({count(axes)}, axes)}, attributes);
  }
}

namespace {

void add_reshape(Generator& g) {
  const std::string x = g.pick();
  Ints shape = g.shape(x);
  if (shape.size() > 1 && g.chance(0.6)) {
    const auto at = static_cast<std::size_t>(g.below(count(shape) - 1));
    shape[at] *= shape[at + 1];
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  } else {
    shape.insert(shape.begin() + g.below(count(shape) + 1), 1);
  }
  if (g.chance(0.4)) shape[static_cast<std::size_t>(g.below(count(shape)))] = -1;
  g.add("Reshape", {x, g.ints({count(shape)}, shape)});
}

void add_transpose(Generator& g) {
  const std::string x = g.pick();
  Ints perm(static_cast<std::size_t>(g.rank(x)));
  std::iota(perm.begin(), perm.end(), 0);
  for (std::size_t i = perm.size(); i > 1; --i)
    std::swap(perm[i - 1], perm[static_cast<std::size_t>(g.below(static_cast<std::int64_t>(i)))]);
  g.add("Transpose", {x}, g.chance(0.2) ? "" : "perm=" + list(perm));
}

void add_concat(Generator& g) {
  const std::string x = g.pick();
  if (g.rank(x) == 0) return;
  const std::int64_t axis = g.axis_of(x);
  Shape shape = g.shape(x);
  shape[static_cast<std::size_t>(axis < 0 ? axis + g.rank(x) : axis)] = 1 + g.below(2);
  std::vector<std::string> parts{x, g.chance(0.5) ? x : g.fresh(shape)};
  if (g.chance(0.3)) parts.push_back(x);
  g.add("Concat", parts, fmt::format("axis={}", axis));
}

void add_split(Generator& g) {
  const std::string x = g.pick();
  if (g.rank(x) == 0) return;
  const std::int64_t axis = g.axis_of(x);
  const std::int64_t extent = g.shape(x)[static_cast<std::size_t>(axis < 0 ? axis + g.rank(x) : axis)];
  const std::int64_t first = extent > 1 ? 1 + g.below(extent - 1) : 1;
  if (extent < 2) return;
  if (g.chance(0.5)) {
    g.add_many("Split", {x, g.ints({2}, {first, extent - first})}, 2, fmt::format("axis={}", axis));
  } else {
    g.add_many("Split", {x}, 2, fmt::format("axis={}, num_outputs=2", axis));
  }
}

void add_pad(Generator& g) {
  const std::string x = g.pick();
  if (g.rank(x) == 0) return;
  const std::string mode = g.one_of<const char*>({"constant", "edge", "reflect", "wrap"});
  Ints pads;
  for (std::int64_t i = 0; i < 2 * g.rank(x); ++i)
    pads.push_back(g.below(mode == "constant" ? 4 : 2) - (mode == "constant" ? 1 : 0));
  std::vector<std::string> inputs{x, g.ints({count(pads)}, pads)};
  if (mode == "constant" && g.chance(0.4)) inputs.push_back(g.chance(0.5) ? g.fresh({}) : g.number(0.5));
  g.add("Pad", inputs, "mode=\"" + mode + "\"");
}

void add_slice(Generator& g) {
  const std::string x = g.pick();
  if (g.rank(x) == 0) return;
  const std::int64_t axis = g.axis_of(x);
  const bool back = g.chance(0.3);
  const std::int64_t step = 1 + g.below(2);
  g.add("Slice", {x, g.ints({1}, {back ? -1 : g.below(2)}), g.ints({1}, {back ? -100 : 100 - g.below(2) * 101}),
                  g.ints({1}, {axis}), g.ints({1}, {back ? -step : step})});
}

}  // namespace

void add_shape_operation(Generator& g) {
  const std::string x = g.pick();
  switch (g.below(12)) {
    case 0: return add_reshape(g);
    case 1: return add_transpose(g);
    case 2: return add_concat(g);
    case 3: return add_split(g);
    case 4: return add_pad(g);
    case 5: return add_slice(g);
    case 6: g.add("Flatten", {x}, fmt::format("axis={}", g.below(g.rank(x) + 1))); return;
    case 7: g.add("Unsqueeze", {x, g.ints({1}, {g.below(g.rank(x) + 1)})}); return;
    case 8: {
      for (std::int64_t i = 0; i < g.rank(x); ++i) {
        if (g.shape(x)[static_cast<std::size_t>(i)] != 1) continue;
        g.add("Squeeze", {x, g.ints({1}, {g.chance(0.5) ? i : i - g.rank(x)})});
        return;
      }
      return;
    }
    case 9: {
      Shape to = g.shape(x);
      for (std::int64_t& extent : to) extent = extent == 1 && g.chance(0.7) ? 3 : extent;
      if (g.chance(0.3)) to.insert(to.begin(), 2);
      g.add("Expand", {x, g.ints({count(to)}, to)});
      return;
    }
    case 10: {
      Ints repeats;
      for (std::int64_t i = 0; i < g.rank(x); ++i) repeats.push_back(1 + g.below(2));
      if (!repeats.empty()) g.add("Tile", {x, g.ints({count(repeats)}, repeats)});
      return;
    }
    default: g.add("Trilu", {g.pick(2)}, fmt::format("upper={}", g.below(2))); return;
  }
}

namespace {

Ints drawn(Generator& g, std::int64_t n, std::int64_t below) {
  Ints out;
  for (std::int64_t i = 0; i < n; ++i) out.push_back(g.below(below) - (g.chance(0.2) ? below : 0));
  return out;
}

std::int64_t extent_at(Generator& g, const std::string& x, std::int64_t axis) {
  return g.shape(x)[static_cast<std::size_t>(axis < 0 ? axis + g.rank(x) : axis)];
}

void add_gather(Generator& g, const std::string& x) {
  const std::int64_t axis = g.axis_of(x);
  const Shape shape = g.one_of<Shape>({{}, {3}, {2, 2}});
  const std::int64_t n = shape.empty() ? 1 : shape.size() == 1 ? 3 : 4;
  g.add("Gather", {x, g.ints(shape, drawn(g, n, extent_at(g, x, axis)))}, fmt::format("axis={}", axis));
}

void add_gather_elements(Generator& g, const std::string& x) {
  const std::int64_t axis = g.axis_of(x);
  Shape shape = g.shape(x);
  shape[static_cast<std::size_t>(axis < 0 ? axis + g.rank(x) : axis)] = 1 + g.below(3);
  std::int64_t n = 1;
  for (const std::int64_t extent : shape) n *= extent;
  g.add("GatherElements", {x, g.ints(shape, drawn(g, n, extent_at(g, x, axis)))}, fmt::format("axis={}", axis));
}

void add_scatter_elements(Generator& g, const std::string& x) {
  const std::int64_t axis = g.axis_of(x);
  const std::int64_t extent = extent_at(g, x, axis);
  Shape shape = g.shape(x);
  shape[static_cast<std::size_t>(axis < 0 ? axis + g.rank(x) : axis)] = 1;  // so that no element is written twice
  std::int64_t n = 1;
  for (const std::int64_t e : shape) n *= e;
  const std::string mode = g.one_of<const char*>({"none", "add"});
  g.add("ScatterElements", {x, g.ints(shape, drawn(g, n, extent)), g.fresh(shape)},
        fmt::format("axis={}, reduction=\"{}\"", axis, mode));
}

void add_nd(Generator& g, const std::string& x) {
  const std::int64_t extent = g.shape(x)[0];
  Shape rest = g.shape(x);
  rest[0] = 1;
  if (g.chance(0.5)) {
    g.add("GatherND", {x, g.ints({3, 1}, drawn(g, 3, extent))});
  } else {
    g.add("ScatterND", {x, g.ints({1, 1}, drawn(g, 1, extent)), g.fresh(rest)},
          fmt::format("reduction=\"{}\"", g.one_of<const char*>({"none", "add"})));
  }
}

}  // namespace

void add_indexing(Generator& g) {
  const std::string x = g.pick();
  if (g.rank(x) == 0) return;
  switch (g.below(8)) {
    case 0: return add_gather(g, x);
    case 1: return add_gather_elements(g, x);
    case 2: return add_scatter_elements(g, x);
    case 3: return add_nd(g, x);
    case 4: {
      const std::int64_t axis = g.axis_of(x);
      g.add_many("TopK", {x, g.ints({1}, {1 + g.below(extent_at(g, x, axis))})}, 2,
                 fmt::format("axis={}, largest={}", axis, g.below(2)));
      return;
    }
    case 5: {
      const std::int64_t axis = g.axis_of(x);
      const std::int64_t n = extent_at(g, x, axis);
      Ints chosen(static_cast<std::size_t>(n), 1);
      chosen[static_cast<std::size_t>(g.below(n))] = g.below(2);
      g.add("Compress", {x, g.ints({n}, chosen, "bool")}, fmt::format("axis={}", axis));
      return;
    }
    case 6: {
      const std::string y = g.pick(3);
      if (y.empty()) return;
      g.add("ReverseSequence", {y, g.ints({g.shape(y)[1]}, Ints(static_cast<std::size_t>(g.shape(y)[1]), g.shape(y)[0]))});
      return;
    }
    default: {
      const std::string y = g.fresh({1, 4, 1 + g.below(2), 2});
      g.add("DepthToSpace", {y}, fmt::format("blocksize=2, mode=\"{}\"", g.one_of<const char*>({"DCR", "CRD"})));
      return;
    }
  }
}

}  // namespace sdx::gradient_tests
