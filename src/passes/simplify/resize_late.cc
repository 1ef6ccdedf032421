// A 1x1 convolution of pictures, some of which were enlarged: the linear map of channels and the interpolation of pixels can be
// exchanged, so these pictures are convolved before they are enlarged. SegFormer's decoder enlarges three of its four maps 4 to
// 64 times.

#include <algorithm>
#include <vector>

#include "graph/edit.h"
#include "ops/conv/signatures.h"
#include "ops/image/signatures.h"
#include "ops/tensor/signatures.h"
#include "passes/simplify/simplify.h"

namespace sdx::simplify {
namespace {

// Narrower ones are not worth a step more.
constexpr std::int64_t kLeastChannels = 64;

bool is_pointwise(const Graph& g, const Node& n) {
  const bool fused = n.domain == "com.microsoft" && n.op_type == "FusedConv";
  if (n.removed || !(fused || (n.domain.empty() && n.op_type == "Conv"))) return false;
  if (n.inputs.size() > ops::ConvIn::kZ && n.inputs[ops::ConvIn::kZ] != kNoValue) return false;
  const Tensor* w = constant_input(g, n, ops::ConvIn::kW);
  if (w == nullptr || w->dtype() != DataType::float32 || w->rank() != 4 || w->shape()[2] != 1 || w->shape()[3] != 1) return false;
  const auto attr = ops::parse<ops::ConvAttrs>(n);
  const auto all = [](const ops::IntList& list, std::int64_t value) {
    return std::all_of(list.begin(), list.end(), [&](std::int64_t v) { return v == value; });
  };
  return attr.group == 1 && all(attr.window.strides, 1) && all(attr.window.pads, 0) && w->size() > 0;
}

// The shape [N, C, H, W] if all extents but N are constant; null otherwise.
const SymShape* picture(const Graph& g, ValueId v) {
  const SymShape* s = shape_of(g, v);
  const bool fits = s != nullptr && s->size() == 4 && is_f32(g, v) &&
                    std::all_of(s->begin() + 1, s->end(), [](const Dim& d) { return d.is_const() && d.value() > 0; });
  return fits ? s : nullptr;
}

std::int64_t area(const SymShape& s) { return s[2].value() * s[3].value(); }

// The Resize that makes v out of at most half as many pixels, for `reader` alone, if it interpolates pixels linearly and by
// weights whose sum is 1; null otherwise.
const Node* enlarged(const Graph& g, ValueId v, NodeId reader, std::int64_t outputs, const Readers& readers) {
  const NodeId id = g.value(v).producer;
  if (id == kNoNode || readers.only(v) != reader) return nullptr;
  const Node& n = g.node(id);
  if (n.removed || !n.domain.empty() || n.op_type != "Resize" || n.version < 11 || n.inputs.size() < 3) return nullptr;
  const auto attr = ops::parse<ops::ResizeAttrs>(n);
  if (attr.mode != "linear" && attr.mode != "nearest") return nullptr;
  if (attr.coordinate_transformation_mode == "tf_crop_and_resize" || attr.antialias || attr.axes) return nullptr;
  if (attr.keep_aspect_ratio_policy != "stretch") return nullptr;
  const SymShape *from = picture(g, n.inputs[0]), *to = picture(g, v);
  if (from == nullptr || to == nullptr || !((*from)[0] == (*to)[0]) || !((*from)[1] == (*to)[1])) return nullptr;
  const std::int64_t channels = (*from)[1].value();
  if (channels < kLeastChannels || outputs > channels || 2 * area(*from) > area(*to)) return nullptr;
  const Tensor* sizes = constant_input(g, n, 3);
  const bool by_sizes = n.inputs.size() > 3 && n.inputs[3] != kNoValue;
  const Tensor* by = by_sizes ? sizes : constant_input(g, n, 2);
  return by != nullptr && by->size() == 4 ? &n : nullptr;
}

struct Part {
  ValueId value = kNoValue;
  std::int64_t first = 0, channels = 0;  // of the convolution's input
  bool small = false;                    // to be convolved before it is enlarged
};

class Rewrite {
 public:
  Rewrite(Graph& g, const Readers& readers, NodeId id) : g_(g), readers_(readers), id_(id) {}

  bool run() {
    const Node conv = g_.node(id_);
    if (!find_parts(conv)) return false;
    ValueId sum = kNoValue;
    std::vector<Part> rest;
    for (const Part& p : parts_) {
      if (!p.small) {
        rest.push_back(p);
        continue;
      }
      const ValueId y = enlarged_after(conv, p);
      sum = sum == kNoValue ? y : added(conv, sum, y);
    }
    ValueId x = rest[0].value;
    if (rest.size() > 1) {
      Node join = g_.node(concat_);
      join.inputs.clear();
      for (const Part& p : rest) join.inputs.push_back(p.value);
      x = add_node(g_, std::move(join), g_.value(conv.outputs[0]).name + "_rest");
    }
    Node last = conv;
    last.domain = "com.microsoft", last.op_type = "FusedConv", last.version = 1;
    last.inputs.resize(4, kNoValue);
    last.inputs[ops::ConvIn::kX] = x;
    last.inputs[ops::ConvIn::kW] = weights(conv, rest);
    last.inputs[ops::ConvIn::kZ] = sum;
    g_.remove_node(id_);
    g_.remove_node(concat_);
    g_.add_node(std::move(last));
    return true;
  }

 private:
  bool find_parts(const Node& conv) {
    const ValueId joined = conv.inputs[0];
    concat_ = g_.value(joined).producer;
    if (concat_ == kNoNode || readers_.only(joined) != id_ || picture(g_, conv.outputs.at(0)) == nullptr) return false;
    const Node& concat = g_.node(concat_);
    if (concat.op_type != "Concat" || !concat.domain.empty()) return false;
    const std::int64_t axis = ops::parse<ops::ConcatAttrs>(concat).along();
    if (axis != 1 && axis != -3) return false;
    const Tensor& w = *constant_input(g_, conv, ops::ConvIn::kW);
    std::int64_t at = 0;
    Part* largest = nullptr;
    bool any = false, all = true;
    for (const ValueId v : concat.inputs) {
      if (picture(g_, v) == nullptr) return false;
      const std::int64_t channels = (*picture(g_, v))[1].value();
      const bool small = enlarged(g_, v, concat_, w.shape()[0], readers_) != nullptr;
      parts_.push_back({v, at, channels, small});
      at += channels;
      any = any || small, all = all && small;
    }
    if (at != w.shape()[1] || !any) return false;
    if (!all) return true;
    // One stays: the convolution that applies bias and activation.
    const auto pixels = [&](const Part& p) { return area(*picture(g_, g_.node(g_.value(p.value).producer).inputs[0])); };
    for (Part& p : parts_) {
      if (largest == nullptr || pixels(p) > pixels(*largest)) largest = &p;
    }
    largest->small = false;
    return parts_.size() > 1;
  }

  // The columns of the weights for these parts.
  ValueId weights(const Node& conv, const std::vector<Part>& parts) {
    const Tensor& w = *constant_input(g_, conv, ops::ConvIn::kW);
    std::int64_t columns = 0;
    for (const Part& p : parts) columns += p.channels;
    Tensor out(DataType::float32, {w.shape()[0], columns, 1, 1});
    const auto* from = static_cast<const char*>(w.data());  // which may lie anywhere in a file
    auto* to = static_cast<char*>(out.mutable_data());
    for (std::int64_t row = 0; row < w.shape()[0]; ++row) {
      for (const Part& p : parts) {
        const auto bytes = static_cast<std::size_t>(p.channels) * sizeof(float);
        std::copy_n(from + static_cast<std::size_t>(row * w.shape()[1] + p.first) * sizeof(float), bytes, to);
        to += bytes;
      }
    }
    return g_.add_constant(g_.value(conv.inputs[1]).name + "_part", out);
  }

  ValueId enlarged_after(const Node& conv, const Part& p) {
    Node resize = g_.node(g_.value(p.value).producer);
    const ValueId part = weights(conv, {p});
    const std::int64_t outputs = g_.value(part).constant->shape()[0];
    const ValueId small =
        add_node(g_, make_node(conv.name, "Conv", resize.version, {resize.inputs[0], part}), g_.value(p.value).name + "_small");
    if (resize.inputs.size() > 3 && resize.inputs[3] != kNoValue) {
      const auto sizes = constant_input(g_, resize, 3)->values<std::int64_t>();
      std::vector<std::int64_t> to(sizes.begin(), sizes.end());
      to[1] = outputs;
      resize.inputs[3] = shape_constant(g_, g_.value(p.value).name + "_sizes", to);
    }
    g_.remove_node(g_.value(p.value).producer);
    resize.inputs[0] = small;
    return add_node(g_, std::move(resize), g_.value(p.value).name + "_convolved");
  }

  ValueId added(const Node& conv, ValueId a, ValueId b) {
    return add_node(g_, make_node(conv.name, "Add", 13, {a, b}), g_.value(b).name + "_sum");
  }

  Graph& g_;
  const Readers& readers_;
  NodeId id_, concat_ = kNoNode;
  std::vector<Part> parts_;
};

}  // namespace

bool resize_late(Graph& graph) {
  bool changed = false;
  const std::size_t count = graph.nodes().size();
  const Readers readers(graph);
  for (NodeId id = 0; id < count; ++id) {
    if (!is_pointwise(graph, graph.node(id)) || !Rewrite(graph, readers, id).run()) continue;
    // Nodes that were added read no value that another convolution's inputs depend on.
    changed = true;
  }
  return changed;
}

}  // namespace sdx::simplify
