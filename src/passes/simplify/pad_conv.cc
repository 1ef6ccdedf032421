// Conv of a picture that Pad has surrounded with zeros pads by itself. Networks from TensorFlow pad more at the end than at the
// beginning, which PyTorch's convolutions cannot say: a tenth of EfficientNet-Lite0's time was copying into larger pictures,
// another changing the order of their channels before and after.

#include <algorithm>

#include "graph/edit.h"
#include "ops/conv/signatures.h"
#include "ops/tensor/signatures.h"
#include "passes/simplify/simplify.h"
#include "tensor/element.h"

namespace sdx::simplify {
namespace {

using Ints = std::vector<std::int64_t>;

constexpr std::int64_t kMost = 1 << 20;  // of a padding; far from what overflows

Ints ints(const Tensor& t) {
  Ints values;
  for (std::int64_t i = 0; i < t.size(); ++i) values.push_back(element_as_int(t, i));
  return values;
}

// The pads that the Pad node adds, begins of all axes first; empty: it does not pad with zeros, or the pads are unknown.
Ints zeros_added(const Graph& g, const Node& pad, std::size_t rank) {
  const auto attrs = ops::parse<ops::PadAttrs>(pad);
  if (attrs.mode != "constant") return {};
  if (pad.version < 11) return attrs.value == 0 && attrs.pads.size() == 2 * rank ? ops::to_vector(attrs.pads) : Ints{};
  const Tensor* amounts = constant_input(g, pad, 1);
  if (amounts == nullptr || amounts->size() > static_cast<std::int64_t>(2 * rank)) return {};
  if (has_input(pad, 2)) {
    const Tensor* value = constant_input(g, pad, 2);
    if (value == nullptr || value->size() != 1 || element_as_double(*value, 0) != 0) return {};
  }
  Ints axes(rank);
  for (std::size_t i = 0; i < rank; ++i) axes[i] = static_cast<std::int64_t>(i);
  if (has_input(pad, 3)) {
    const Tensor* listed = constant_input(g, pad, 3);
    if (listed == nullptr) return {};
    axes = ints(*listed);
  }
  const Ints of_axes = ints(*amounts);
  if (of_axes.size() != 2 * axes.size()) return {};
  Ints all(2 * rank);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t axis = axes[i] < 0 ? axes[i] + static_cast<std::int64_t>(rank) : axes[i];
    if (axis < 0 || axis >= static_cast<std::int64_t>(rank)) return {};
    all[static_cast<std::size_t>(axis)] += of_axes[i];
    all[rank + static_cast<std::size_t>(axis)] += of_axes[axes.size() + i];
  }
  return all;
}

// The convolution's padding and the zeros together; empty: they cannot be added.
Ints together(const ops::WindowFields& window, const Ints& zeros) {
  const std::size_t rank = zeros.size() / 2, spatial = rank - 2;
  if (window.auto_pad != "NOTSET" && window.auto_pad != "VALID") return {};
  if (!std::ranges::all_of(zeros, [](std::int64_t v) { return v >= 0 && v <= kMost; })) return {};  // negative: it cuts
  if (zeros[0] != 0 || zeros[1] != 0 || zeros[rank] != 0 || zeros[rank + 1] != 0) return {};
  Ints pads = window.auto_pad == "VALID" ? Ints{} : ops::to_vector(window.pads);
  if (pads.empty()) pads.assign(2 * spatial, 0);
  if (pads.size() != 2 * spatial) return {};
  for (std::size_t i = 0; i < spatial; ++i) {
    for (const std::size_t end : {std::size_t{0}, std::size_t{1}}) {
      std::int64_t& p = pads[end * spatial + i];
      if (p < 0 || p > kMost) return {};
      p += zeros[end * rank + 2 + i];
    }
  }
  return pads;
}

bool take_padding(Graph& g, NodeId id) {
  const Node& conv = g.node(id);
  if (conv.removed || conv.op_type != "Conv" || !conv.domain.empty() || !has_input(conv, 0)) return false;
  const NodeId producer = g.value(conv.inputs[0]).producer;
  if (producer == kNoNode) return false;
  const Node& pad = g.node(producer);
  if (pad.removed || pad.op_type != "Pad" || !pad.domain.empty() || pad.version < 2 || !has_input(pad, 0)) return false;
  const Type& type = g.value(conv.inputs[0]).type;
  if (!type.is_tensor() || !type.shape || type.shape->size() < 3) return false;
  const Ints zeros = zeros_added(g, pad, type.shape->size());
  const Ints pads = zeros.empty() ? Ints{} : together(ops::parse<ops::ConvAttrs>(conv).window, zeros);
  if (pads.empty()) return false;
  const ValueId image = pad.inputs[0];
  Node& changed = g.node(id);
  changed.inputs[0] = image;
  changed.attributes.erase("auto_pad");
  changed.attributes.set("pads", pads);
  return true;
}

}  // namespace

bool pad_conv(Graph& graph) {
  bool changed = false;
  for (NodeId id = 0; id < graph.nodes().size(); ++id) changed = take_padding(graph, id) || changed;
  return changed;
}

}  // namespace sdx::simplify
