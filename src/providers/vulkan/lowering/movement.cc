// Moving elements: Transpose, Concat, Slice, Split, Expand, Gather; and views, which cost nothing.

#include <algorithm>

#include "base/error.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/signatures.h"
#include "ops/tensor/slice.h"
#include "providers/vulkan/lowering/strided.h"
#include "providers/vulkan/operators.h"

namespace sdx::vulkan {
namespace {

std::string refuse_data(const NodeFacts& n, std::size_t i) {
  if (!n.type(i).is_tensor() || words_of(n.elem(i)) == 0) return "elements of this type are not moved";
  if (n.rank(i) < 0) return "input " + std::to_string(i) + " has an unknown rank";
  return "";
}

std::string refuse_movement(const NodeFacts& n) { return refuse_data(n, 0); }

// All inputs behind the first one say where elements go.
std::string refuse_unless_known(const NodeFacts& n) {
  for (std::size_t i = 1; i < n.inputs(); ++i) {
    if (n.has(i) && !n.on_host(i)) return "input " + std::to_string(i) + " is not known before the run";
  }
  return refuse_data(n, 0);
}

void emit_transpose(Emitter& e, const Node& node) {
  const Shape in = e.shape(node.inputs[0]), out = e.shape(node.outputs[0]);
  const auto attr = ops::parse<ops::TransposeAttrs>(node);
  const std::vector<std::int64_t> from = ops::strides_of(in), to = ops::strides_of(out);
  std::vector<StridedAxis> axes;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t axis =
        attr.perm ? static_cast<std::size_t>(ops::normalize_axis((*attr.perm)[i], in.size())) : in.size() - 1 - i;
    axes.push_back({out[i], {from[axis], to[i]}});
  }
  const std::vector<StridedAxis> whole = merged(axes);
  if (whole.size() == 1 && whole[0].step[0] == whole[0].step[1]) return e.alias(node.outputs[0], node.inputs[0]);
  emit_copy(e, node.inputs[0], 0, node.outputs[0], 0, words_of(e.type(node.inputs[0])), axes);
}

std::string refuse_concat(const NodeFacts& n) {
  for (std::size_t i = 0; i < n.inputs(); ++i) {
    if (std::string why = refuse_data(n, i); !why.empty()) return why;
  }
  return "";
}

void emit_concat(Emitter& e, const Node& node) {
  const Shape out = e.shape(node.outputs[0]);
  const auto axis = static_cast<std::size_t>(ops::normalize_axis(ops::parse<ops::ConcatAttrs>(node).along(), out.size()));
  const std::vector<std::int64_t> to = ops::strides_of(out);
  std::int64_t at = 0;
  for (const ValueId v : node.inputs) {
    const Shape in = e.shape(v);
    const std::vector<std::int64_t> from = ops::strides_of(in);
    std::vector<StridedAxis> axes;
    for (std::size_t i = 0; i < in.size(); ++i) axes.push_back({in[i], {from[i], to[i]}});
    emit_copy(e, v, 0, node.outputs[0], at * to[axis], words_of(e.type(v)), axes);
    at += in[axis];
  }
}

// Copies a part of a tensor: `start` elements in, with `step` elements from one to the next along each axis. A part that lies
// together is a view.
void emit_part(Emitter& e, ValueId from, ValueId to, std::int64_t start, const std::vector<std::int64_t>& steps) {
  const Shape out = e.shape(to);
  const std::vector<std::int64_t> strides = ops::strides_of(out);
  const std::int64_t words = words_of(e.type(from));
  std::vector<StridedAxis> axes;
  for (std::size_t i = 0; i < out.size(); ++i) axes.push_back({out[i], {steps[i], strides[i]}});
  const std::vector<StridedAxis> whole = merged(axes);
  if (element_count(out) > 0 && whole.size() == 1 &&
      (whole[0].extent == 1 || whole[0].step == std::array<std::int64_t, 2>{1, 1})) {
    return e.alias(to, from, static_cast<std::uint64_t>(start * words) * 4);
  }
  emit_copy(e, from, start, to, 0, words, axes);
}

void emit_slice(Emitter& e, const Node& node) {
  const Shape in = e.shape(node.inputs[0]);
  std::vector<std::int64_t> starts, ends, axes, steps;
  if (node.version < 10) {
    const auto attr = ops::parse<ops::SliceAttrs>(node);
    starts = ops::to_vector(attr.starts);
    ends = ops::to_vector(attr.ends);
    if (attr.axes) axes = ops::to_vector(*attr.axes);
  } else {
    starts = e.ints(node.inputs[1]);
    ends = e.ints(node.inputs[2]);
    if (e.has(node, 3)) axes = e.ints(node.inputs[3]);
    if (e.has(node, 4)) steps = e.ints(node.inputs[4]);
  }
  const bool first = node.version < 10 ? !node.attributes.has("axes") : !e.has(node, 3);
  std::vector<std::int64_t> strides = ops::strides_of(in);
  std::int64_t at = 0;
  std::vector<std::int64_t> moved = strides;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const auto axis = first ? i : static_cast<std::size_t>(ops::normalize_axis(axes.at(i), in.size()));
    const ops::SliceRange r = ops::slice_range(starts[i], ends.at(i), steps.empty() ? 1 : steps.at(i), in.at(axis));
    at += r.start * strides[axis];
    moved[axis] = strides[axis] * r.step;
  }
  if (e.size(node.outputs[0]) == 0) return;
  emit_part(e, node.inputs[0], node.outputs[0], at, moved);
}

void emit_split(Emitter& e, const Node& node) {
  const Shape in = e.shape(node.inputs[0]);
  const auto axis = static_cast<std::size_t>(ops::normalize_axis(ops::parse<ops::SplitAttrs>(node).axis, in.size()));
  const std::vector<std::int64_t> strides = ops::strides_of(in);
  std::int64_t all = 0;
  for (const ValueId v : node.outputs) all += v == kNoValue ? 0 : e.size(v);
  e.check_size(node, 0, all);
  std::int64_t at = 0;
  for (const ValueId v : node.outputs) {
    if (v == kNoValue) fail(ErrorCode::not_implemented, "vulkan: a part of Split is left out");
    if (e.size(v) > 0) emit_part(e, node.inputs[0], v, at * strides[axis], strides);
    at += e.shape(v)[axis];
  }
}

std::string refuse_split(const NodeFacts& n) {
  for (std::size_t i = 0; i < n.node().outputs.size(); ++i) {
    if (!n.wants(i)) return "a part is left out";
  }
  return refuse_unless_known(n);
}

void emit_expand(Emitter& e, const Node& node) {
  const Shape in = e.shape(node.inputs[0]), out = e.shape(node.outputs[0]);
  if (element_count(in) == element_count(out)) return e.alias(node.outputs[0], node.inputs[0]);
  const std::vector<std::int64_t> from = broadcast_steps(in, out), to = ops::strides_of(out);
  std::vector<StridedAxis> axes;
  for (std::size_t i = 0; i < out.size(); ++i) axes.push_back({out[i], {from[i], to[i]}});
  emit_copy(e, node.inputs[0], 0, node.outputs[0], 0, words_of(e.type(node.inputs[0])), axes);
}

std::string refuse_gather(const NodeFacts& n) {
  if (std::string why = refuse_data(n, 0); !why.empty()) return why;
  if (n.elem(1) != DataType::int32 && n.elem(1) != DataType::int64) return "the indices are neither int32 nor int64";
  return n.rank(1) < 0 ? "input 1 has an unknown rank" : "";
}

void emit_gather(Emitter& e, const Node& node) {
  const Shape data = e.shape(node.inputs[0]);
  const auto axis = static_cast<std::size_t>(ops::normalize_axis(ops::parse<ops::GatherAttrs>(node).axis, data.size()));
  const std::int64_t words = words_of(e.type(node.inputs[0]));
  const std::int64_t inner = ops::product(data, axis + 1, data.size()) * words;
  const std::int64_t count = e.size(node.outputs[0]) * words;
  if (count == 0) return;
  const Operand status =
      e.status("an index of Gather is outside of the axis, which has " + std::to_string(data[axis]) + " elements");
  Dispatch d(Shader::gather, {});
  d.read(node.inputs[0]).read(node.inputs[1]).write(node.outputs[0]).write(status);
  d.word(count).word(inner).word(e.size(node.inputs[1])).word(data[axis]).word(words_of(e.type(node.inputs[1])));
  e.dispatch(std::move(d), count);
}

// Views: another shape of the same elements, of any type.
std::string refuse_view(const NodeFacts& n) {
  for (std::size_t i = 1; i < n.inputs(); ++i) {
    if (n.has(i) && !n.on_host(i)) return "its shape is not known before the run";
  }
  if (!n.type(0).is_tensor() || n.elem(0) == DataType::string) return "not a tensor of numbers";
  return "";
}

void emit_view(Emitter& e, const Node& node) {
  e.check_size(node, 0, e.size(node.outputs[0]));
  e.alias(node.outputs[0], node.inputs[0]);
}

}  // namespace

void add_movement(Operators& all) {
  all.push_back({"", "Transpose", refuse_movement, emit_transpose});
  all.push_back({"", "Concat", refuse_concat, emit_concat});
  all.push_back({"", "Slice", refuse_unless_known, emit_slice});
  all.push_back({"", "Split", refuse_split, emit_split});
  all.push_back({"", "Expand", refuse_unless_known, emit_expand});
  all.push_back({"", "Gather", refuse_gather, emit_gather});
}

void add_views(Operators& all) {
  for (const char* name : {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"}) {
    all.push_back({"", name, refuse_view, emit_view});
  }
}

}  // namespace sdx::vulkan
