// Products, convolutions, pools, norms, losses, recurrent layers.

#include "gradients/generator.h"

namespace sdx::gradient_tests {
namespace {

using Ints = std::vector<std::int64_t>;

void add_matmul(Generator& g) {
  const std::string a = g.pick();
  if (g.rank(a) == 0) return;
  const std::int64_t inner = g.shape(a).back();
  if (g.chance(0.2)) {
    g.add("MatMul", {a, g.fresh({inner})});
    return;
  }
  Shape shape{inner, 1 + g.below(3)};
  if (g.rank(a) > 2 && g.chance(0.4)) shape.insert(shape.begin(), g.shape(a)[g.shape(a).size() - 3]);
  if (g.chance(0.2)) shape.insert(shape.begin(), shape.size() > 2 ? 2 : 1);
  g.add("MatMul", {a, g.fresh(shape)});
}

void add_gemm(Generator& g) {
  const std::string a = g.pick(2);
  if (a.empty()) return;
  const std::int64_t ta = g.below(2), tb = g.below(2);
  const std::int64_t rows = g.shape(a)[ta == 0 ? 0 : 1], inner = g.shape(a)[ta == 0 ? 1 : 0], columns = 1 + g.below(3);
  std::vector<std::string> inputs{a, g.fresh(tb == 0 ? Shape{inner, columns} : Shape{columns, inner})};
  if (g.chance(0.7)) inputs.push_back(g.fresh(g.one_of<Shape>({{columns}, {}, {1, columns}, {rows, 1}, {rows, columns}})));
  g.add("Gemm", inputs, fmt::format("transA={}, transB={}, alpha=0.7, beta=1.3", ta, tb));
}

void add_einsum(Generator& g) {
  const std::string a = g.pick(3);
  if (a.empty()) return;
  const Shape& s = g.shape(a);
  switch (g.below(3)) {
    case 0: g.add("Einsum", {a, g.fresh({s[0], s[2], 2})}, "equation=\"bij,bjk->bik\""); return;
    case 1: g.add("Einsum", {a, g.fresh({s[1]})}, "equation=\"abc,b->ca\""); return;
    default: g.add("Einsum", {a}, "equation=\"abc->b\""); return;
  }
}

}  // namespace

void add_product(Generator& g) {
  switch (g.below(5)) {
    case 0: return add_gemm(g);
    case 1: return add_einsum(g);
    default: return add_matmul(g);
  }
}

namespace {

// A picture of `spatial` axes that windows of 2 or 3 fit into.
std::string picture(Generator& g, std::int64_t spatial, std::int64_t channels) {
  std::string x = g.pick(spatial + 2);
  if (!x.empty() && g.chance(0.5)) {
    const Shape& s = g.shape(x);
    bool fits = channels == 0 || s[1] % channels == 0;
    for (std::size_t i = 2; i < s.size(); ++i) fits = fits && s[i] >= 2;
    if (fits) return x;
  }
  Shape shape{1 + g.below(2), channels == 0 ? 1 + g.below(3) : channels * (1 + g.below(2))};
  for (std::int64_t i = 0; i < spatial; ++i) shape.push_back(3 + g.below(spatial == 1 ? 4 : 2));
  return g.fresh(shape);
}

std::string windows(Generator& g, std::int64_t spatial, bool dilated) {
  Ints strides, dilations, pads;
  for (std::int64_t i = 0; i < spatial; ++i) {
    strides.push_back(1 + g.below(2));
    dilations.push_back(dilated ? 1 + g.below(2) : 1);
  }
  for (std::int64_t i = 0; i < 2 * spatial; ++i) pads.push_back(g.below(2));
  std::string out = "strides=" + list(strides);
  if (dilated) out += ", dilations=" + list(dilations);
  if (g.chance(0.2)) return out + ", auto_pad=\"" + g.one_of<const char*>({"SAME_UPPER", "SAME_LOWER", "VALID"}) + "\"";
  return out + ", pads=" + list(pads);
}

void add_conv(Generator& g, bool transposed) {
  const std::int64_t spatial = 1 + g.below(2);
  const std::int64_t group = 1 + g.below(2);
  const std::string x = picture(g, spatial, group);
  const std::int64_t channels = g.shape(x)[1], out = 1 + g.below(2);
  Shape w = transposed ? Shape{channels, out} : Shape{out * group, channels / group};
  for (std::int64_t i = 0; i < spatial; ++i) w.push_back(1 + g.below(3));
  std::vector<std::string> inputs{x, g.fresh(w)};
  if (g.chance(0.5)) inputs.push_back(g.fresh({out * group}));
  std::string attributes = fmt::format("group={}, {}", group, windows(g, spatial, g.chance(0.4)));
  if (transposed && g.chance(0.3)) attributes += ", output_padding=" + list(Ints(static_cast<std::size_t>(spatial), 1));
  g.add(transposed ? "ConvTranspose" : "Conv", inputs, attributes);
}

void add_pool(Generator& g) {
  const std::int64_t spatial = 1 + g.below(2);
  const std::string x = picture(g, spatial, 0);
  const std::string op =
      g.one_of<const char*>({"MaxPool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"});
  if (op.starts_with("Global")) {
    g.add(op, {x});
    return;
  }
  std::string attributes = "kernel_shape=" + list(Ints(static_cast<std::size_t>(spatial), 2)) + ", ";
  attributes += windows(g, spatial, op != "LpPool" && g.chance(0.3)) + fmt::format(", ceil_mode={}", g.below(2));
  if (op == "AveragePool") attributes += fmt::format(", count_include_pad={}", g.below(2));
  g.add(op, {x}, attributes);
}

void add_resize(Generator& g) {
  const std::string x = picture(g, 2, 0);
  const Shape& s = g.shape(x);
  const std::string mode = g.one_of<const char*>({"nearest", "linear", "cubic"});
  const std::string way = g.one_of<const char*>({"half_pixel", "align_corners", "asymmetric"});
  g.add("Resize", {x, "_", "_", g.ints({4}, {s[0], s[1], s[2] + g.below(3) - 1, 2 * s[3] - g.below(2)})},
        fmt::format("mode=\"{}\", coordinate_transformation_mode=\"{}\"", mode, way));
}

}  // namespace

void add_convolution(Generator& g) {
  switch (g.below(6)) {
    case 0: return add_conv(g, true);
    case 1:
    case 2: return add_pool(g);
    case 3: return add_resize(g);
    default: return add_conv(g, false);
  }
}

void add_normalisation(Generator& g) {
  const std::string op = g.one_of<const char*>({"Softmax", "Softmax", "LogSoftmax", "LayerNormalization", "LayerNormalization",
                                                "RMSNormalization", "BatchNormalization", "InstanceNormalization",
                                                "GroupNormalization", "LpNormalization", "LRN", "MeanVarianceNormalization"});
  if (op == "Softmax" || op == "LogSoftmax" || op == "LpNormalization") {
    const std::string x = g.pick();
    if (g.rank(x) == 0) return;
    g.add(op, {x}, fmt::format("axis={}", g.axis_of(x)));
  } else if (op == "LayerNormalization" || op == "RMSNormalization") {
    const std::string x = g.pick();
    if (g.rank(x) == 0) return;
    const std::int64_t axis = g.below(g.rank(x));
    const Shape rest(g.shape(x).begin() + axis, g.shape(x).end());
    std::vector<std::string> inputs{x, g.fresh(rest)};
    if (op[0] == 'L' && g.chance(0.7)) inputs.push_back(g.fresh(rest));
    g.add(op, inputs, fmt::format("axis={}, epsilon=0.1", g.chance(0.3) ? axis - g.rank(x) : axis));
  } else if (op == "MeanVarianceNormalization") {
    g.add(op, {g.pick(4)});
  } else {
    const std::string x = picture(g, 1, 2);
    const std::int64_t channels = g.shape(x)[1];
    if (op == "LRN") {
      g.add(op, {x}, "size=3, alpha=0.2, beta=0.6");
    } else if (op == "BatchNormalization") {
      const std::string mean = g.fresh({channels}), variance = g.fresh({channels}, 0.5, 1.5);
      g.add(op, {x, g.fresh({channels}), g.fresh({channels}), mean, variance}, "epsilon=0.1");
    } else if (op == "GroupNormalization") {
      g.add(op, {x, g.fresh({channels}), g.fresh({channels})}, "num_groups=2, epsilon=0.1");
    } else {
      g.add(op, {x, g.fresh({channels}), g.fresh({channels})}, "epsilon=0.1");
    }
  }
}

void add_loss(Generator& g) {
  const std::string x = g.pick(2 + g.below(2));
  if (x.empty()) return;
  Shape labels = g.shape(x);
  const std::int64_t classes = labels[1];
  labels.erase(labels.begin() + 1);
  std::int64_t n = 1;
  for (const std::int64_t extent : labels) n *= extent;
  Ints values;
  for (std::int64_t i = 0; i < n; ++i) values.push_back(g.below(classes));
  std::string attributes = fmt::format("reduction=\"{}\"", g.one_of<const char*>({"mean", "sum", "none"}));
  if (g.chance(0.3)) attributes += ", ignore_index=0";
  const std::string of = g.ints(labels, values);
  if (g.chance(0.6)) {
    g.add("SoftmaxCrossEntropyLoss", {x, of}, attributes);
  } else {
    g.add("NegativeLogLikelihoodLoss", {g.add("LogSoftmax", {x}, "axis=1"), of}, attributes);
  }
}

void add_recurrent(Generator& g) {
  const std::string op = g.one_of<const char*>({"LSTM", "GRU", "RNN"});
  const std::int64_t gates = op == "LSTM" ? 4 : op == "GRU" ? 3 : 1;
  const std::string x = g.pick(3);
  if (x.empty()) return;
  const Shape s = g.shape(x);
  const bool batch_first = g.chance(0.3);
  const std::int64_t hidden = 1 + g.below(2);
  const std::string direction = g.one_of<const char*>({"forward", "reverse", "bidirectional"});
  const std::int64_t d = direction == "bidirectional" ? 2 : 1, batch = s[batch_first ? 0 : 1], steps = s[batch_first ? 1 : 0];
  std::vector<std::string> inputs{x, g.fresh({d, gates * hidden, s[2]}), g.fresh({d, gates * hidden, hidden})};
  inputs.push_back(g.chance(0.6) ? g.fresh({d, 2 * gates * hidden}) : "_");
  Ints lengths;
  for (std::int64_t i = 0; i < batch; ++i) lengths.push_back(1 + g.below(steps));
  inputs.push_back(g.chance(0.4) ? g.ints({batch}, lengths, "int32") : "_");
  const Shape state = batch_first ? Shape{batch, d, hidden} : Shape{d, batch, hidden};
  inputs.push_back(g.chance(0.5) ? g.fresh(state) : "_");
  while (inputs.back() == "_") inputs.pop_back();
  std::string attributes = fmt::format("hidden_size={}, direction=\"{}\", layout={}", hidden, direction, batch_first ? 1 : 0);
  if (op == "GRU") attributes += fmt::format(", linear_before_reset={}", g.below(2));
  g.add_many(op, inputs, op == "LSTM" ? 3 : 2, attributes);
}

}  // namespace sdx::gradient_tests
