// Source: ConvTranspose (ai.onnx 1 to 22) adds x[i] * w[k] into y[i * stride - pad + k * dilation]. With stride 1 that is
// y[o] = sum over k' of x[o + k' * dilation - pad'] * w[K - 1 - k'] with pad' = (K - 1) * dilation - pad: a convolution with
// turned weights, for which there are faster algorithms.

#include <algorithm>
#include <cstring>

#include "graph/edit.h"
#include "ops/conv/signatures.h"
#include "passes/simplify/simplify.h"

namespace sdx::simplify {
namespace {

bool all_are(ops::IntList values, std::int64_t value) {
  return std::all_of(values.begin(), values.end(), [&](std::int64_t v) { return v == value; });
}

// Whether every window of the convolution fits into its padded input, as Conv demands. It does for any extents if the pads that
// are cut off are no wider than the windows' overlap; wider ones leave nothing of a small input.
bool fits(const Graph& g, const Node& n, const std::vector<std::int64_t>& turned, const Shape& w) {
  const auto& y = g.value(n.outputs[0]).type.shape;
  const std::vector<std::int64_t> dilations = ops::to_vector(ops::parse<ops::WindowFields>(n).dilations);
  const std::size_t axes = w.size() - 2;
  for (std::size_t i = 0; i < axes; ++i) {
    const std::int64_t overlap = (w[2 + i] - 1) * (dilations.empty() ? 1 : dilations[i]);
    if (turned[i] + turned[i + axes] >= overlap) continue;
    if (!y || y->size() != axes + 2 || !(*y)[i + 2].is_const() || (*y)[i + 2].value() == 0) return false;
  }
  return true;
}

// The convolution's padding; empty where there is none.
std::vector<std::int64_t> turned_pads(const Node& n, const Shape& w) {
  const std::size_t axes = w.size() - 2;
  const auto window = ops::parse<ops::WindowFields>(n);
  std::vector<std::int64_t> pads = ops::to_vector(window.pads), dilations = ops::to_vector(window.dilations);
  if (pads.empty()) pads.assign(2 * axes, 0);
  if (dilations.empty()) dilations.assign(axes, 1);
  if (pads.size() != 2 * axes || dilations.size() != axes) return {};
  constexpr std::int64_t kMost = 1 << 20;
  for (std::size_t i = 0; i < 2 * axes; ++i) {
    const std::int64_t dilation = dilations[i % axes];
    if (dilation < 1 || dilation > kMost || w[2 + i % axes] > kMost || pads[i] < 0 || pads[i] > kMost) return {};
    pads[i] = (w[2 + i % axes] - 1) * dilation - pads[i];
    if (pads[i] < 0 || pads[i] > kMost) return {};
  }
  return pads;
}

// [C, M / group, kernel...] to [M, C / group, kernel turned...].
Tensor turned_weights(const Tensor& t, std::int64_t group) {
  Shape shape = t.shape();
  const std::int64_t in = shape[0] / group, out = shape[1], area = t.size() / (shape[0] * shape[1]);
  shape[0] = out * group;
  shape[1] = in;
  Tensor w(DataType::float32, shape);
  auto* to = static_cast<float*>(w.mutable_data());
  for (std::int64_t m = 0; m < out * group; ++m) {
    for (std::int64_t c = 0; c < in; ++c) {
      const char* from = static_cast<const char*>(t.data()) + ((m / out * in + c) * out + m % out) * area * 4;
      for (std::int64_t k = area - 1; k >= 0; --k, ++to) std::memcpy(to, from + k * 4, 4);
    }
  }
  return w;
}

}  // namespace

bool transposed_conv(Graph& graph) {
  bool changed = false;
  const std::size_t count = graph.nodes().size();
  for (NodeId id = 0; id < count; ++id) {
    const Node& n = graph.node(id);
    if (n.removed || n.op_type != "ConvTranspose" || !n.domain.empty()) continue;
    const Tensor* w = constant_input(graph, n, 1);
    if (w == nullptr || w->dtype() != DataType::float32 || w->rank() < 3 || w->size() == 0) continue;
    const auto attr = ops::parse<ops::ConvAttrs>(n);
    const std::int64_t group = attr.group;
    const bool plain = attr.window.auto_pad == "NOTSET" && attr.output.output_shape.empty() &&
                       all_are(attr.output.output_padding, 0) && all_are(attr.window.strides, 1);
    if (!plain || group < 1 || w->dim(0) % group != 0) continue;
    const std::vector<std::int64_t> pads = turned_pads(n, w->shape());
    if (pads.empty() || !fits(graph, n, pads, w->shape())) continue;
    const ValueId weights = graph.add_constant(graph.value(n.inputs[1]).name + "_turned", turned_weights(*w, group));
    Node& conv = graph.node(id);
    conv.op_type = "Conv";
    conv.inputs[1] = weights;
    conv.attributes.set("pads", pads);
    conv.attributes.erase("output_padding");
    changed = true;
  }
  return changed;
}

}  // namespace sdx::simplify
