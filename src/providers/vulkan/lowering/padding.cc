// Pad with a constant, Tile, DepthToSpace, SpaceToDepth, BatchNormalization: made of fills, copies and broadcast arithmetic.

#include <bit>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "ops/norm/signatures.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/signatures.h"
#include "providers/vulkan/lowering/arithmetic.h"
#include "providers/vulkan/lowering/strided.h"
#include "providers/vulkan/operators.h"
#include "tensor/element.h"

namespace sdx::vulkan {
namespace {

std::string refuse_moved(const NodeFacts& n, std::size_t first_known) {
  for (std::size_t i = first_known; i < n.inputs(); ++i) {
    if (n.has(i) && !n.on_host(i)) return "input " + std::to_string(i) + " is not known before the run";
  }
  if (words_of(n.elem(0)) == 0) return "elements of this type are not moved";
  return n.rank(0) < 0 ? "input 0 has an unknown rank" : "";
}

std::string refuse_pad(const NodeFacts& n) {
  if (ops::parse<ops::PadAttrs>(n.node()).mode != "constant") return "only the mode constant";
  if (n.node().version < 11 || !n.node().domain.empty()) return "only since opset 11";
  if (!n.is_float(0)) return "input 0 is not float32";
  return refuse_moved(n, 1);
}

void emit_pad(Emitter& e, const Node& node) {
  const Shape in = e.shape(node.inputs[0]), out = e.shape(node.outputs[0]);
  const std::vector<std::int64_t> pads = e.ints(node.inputs[1]);
  std::vector<std::int64_t> axes;
  if (e.has(node, 3)) axes = ops::normalize_axes(e.ints(node.inputs[3]), in.size());
  for (std::size_t i = 0; axes.size() < in.size() && !e.has(node, 3); ++i) axes.push_back(static_cast<std::int64_t>(i));
  float value = 0;
  if (e.has(node, 2)) {
    const Tensor* t = e.known(node.inputs[2]);
    if (t == nullptr) fail(ErrorCode::runtime_failure, "vulkan: the value of Pad is not known before the run");
    if (t->size() > 0) value = static_cast<float>(element_as_double(t->aligned(), 0));
  }
  const std::vector<std::int64_t> from = ops::strides_of(in), to = ops::strides_of(out);
  std::vector<StridedAxis> inside;
  std::int64_t from_at = 0, to_at = 0;
  for (std::size_t i = 0; i < in.size(); ++i) inside.push_back({in[i], {from[i], to[i]}});
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(axes[i]);
    const std::int64_t before = pads.at(i), after = pads.at(i + axes.size());
    const std::int64_t first = std::max<std::int64_t>(0, -before), end = in[axis] - std::max<std::int64_t>(0, -after);
    inside[axis].extent = std::max<std::int64_t>(0, end - first);
    from_at += first * from[axis];
    to_at += std::max<std::int64_t>(0, before) * to[axis];
  }
  const std::int64_t count = element_count(out);
  if (count == 0) return;
  Dispatch d(Shader::fill, {});
  d.write(node.outputs[0]).word(count).number(value);
  e.dispatch(std::move(d), count);
  for (const StridedAxis& a : inside) {
    if (a.extent == 0) return;
  }
  emit_copy(e, node.inputs[0], from_at, node.outputs[0], to_at, 1, inside);
}

std::string refuse_tile(const NodeFacts& n) {
  if (n.node().version < 6) return "only since opset 6";
  return refuse_moved(n, 1);
}

void emit_tile(Emitter& e, const Node& node) {
  const Shape in = e.shape(node.inputs[0]), out = e.shape(node.outputs[0]);
  if (element_count(out) == 0) return;
  const std::vector<std::int64_t> from = ops::strides_of(in), to = ops::strides_of(out);
  std::vector<StridedAxis> axes;
  for (std::size_t i = 0; i < in.size(); ++i) {
    axes.push_back({out[i] / in[i], {0, in[i] * to[i]}});
    axes.push_back({in[i], {from[i], to[i]}});
  }
  emit_copy(e, node.inputs[0], 0, node.outputs[0], 0, words_of(e.type(node.inputs[0])), axes);
}

std::string refuse_blocks(const NodeFacts& n) {
  if (n.rank(0) != 4) return "not known to have 4 axes";
  return refuse_moved(n, 1);
}

void emit_blocks(Emitter& e, const Node& node) {
  const bool deep = node.op_type == "DepthToSpace";
  const std::int64_t b = node.attributes.get_int("blocksize");
  const Shape large = e.shape(deep ? node.outputs[0] : node.inputs[0]), small = e.shape(deep ? node.inputs[0] : node.outputs[0]);
  if (element_count(large) == 0) return;
  const std::vector<std::int64_t> l = ops::strides_of(large), s = ops::strides_of(small);
  const std::int64_t channels = large[1];
  // Of the small picture's channels: (row in the block, column, channel), or, in the mode CRD, (channel, row, column).
  const bool crd = deep && node.attributes.get_string("mode", "DCR") == "CRD";
  const std::int64_t of_channel = crd ? b * b : 1, of_row = crd ? b : b * channels, of_column = crd ? 1 : channels;
  std::vector<StridedAxis> axes{{large[0], {s[0], l[0]}},   {channels, {of_channel * s[1], l[1]}}, {small[2], {s[2], b * l[2]}},
                                {b, {of_row * s[1], l[2]}}, {small[3], {s[3], b * l[3]}},          {b, {of_column * s[1], l[3]}}};
  if (!deep) {
    for (StridedAxis& a : axes) std::swap(a.step[0], a.step[1]);
  }
  emit_copy(e, node.inputs[0], 0, node.outputs[0], 0, words_of(e.type(node.inputs[0])), axes);
}

std::string refuse_batch_norm(const NodeFacts& n) {
  for (std::size_t i = 1; i < n.node().outputs.size(); ++i) {
    if (n.wants(i)) return "only the first result is computed";
  }
  const auto attr = ops::parse<ops::BatchNormAttrs>(n.node());
  if (n.node().version < 9 || attr.training_mode) return "training, or statistics per element";
  for (std::size_t i = 1; i < n.inputs(); ++i) {
    if (!n.on_host(i)) return "statistics that are computed by other nodes";
  }
  if (n.rank(0) < 2) return "rank unknown or less than 2";
  return n.all_floats_of_rank();
}

void emit_batch_norm(Emitter& e, const Node& node) {
  using enum ops::BatchNormIn::Slot;
  const Shape shape = e.shape(node.inputs[kX]);
  const double epsilon = static_cast<double>(ops::parse<ops::BatchNormAttrs>(node).epsilon);
  for (std::size_t i = kScale; i <= kVariance; ++i) e.check_size(node, i, shape.at(1));
  const auto floats = [&](std::size_t i) { return to_floats(e.known(node.inputs[i])->aligned()); };
  const std::vector<float> scale = floats(kScale), bias = floats(kB), mean = floats(kMean), variance = floats(kVariance);
  std::vector<std::uint32_t> factors, terms;
  for (std::size_t c = 0; c < scale.size(); ++c) {
    const double factor = static_cast<double>(scale[c]) / std::sqrt(static_cast<double>(variance.at(c)) + epsilon);
    factors.push_back(std::bit_cast<std::uint32_t>(static_cast<float>(factor)));
    terms.push_back(std::bit_cast<std::uint32_t>(
        static_cast<float>(static_cast<double>(bias.at(c)) - static_cast<double>(mean.at(c)) * factor)));
  }
  Shape channels(shape.size() - 1, 1);
  channels[0] = shape[1];
  const Operand scaled = e.temporary(e.bytes(node.outputs[0]));
  emit_two(e, Pair::mul, node.inputs[kX], shape, e.table(std::move(factors)), channels, scaled, shape);
  emit_two(e, Pair::add, scaled, shape, e.table(std::move(terms)), channels, node.outputs[0], shape);
}

}  // namespace

void add_padding(Operators& all) {
  all.push_back({"", "Pad", refuse_pad, emit_pad});
  all.push_back({"", "Tile", refuse_tile, emit_tile});
  all.push_back({"", "DepthToSpace", refuse_blocks, emit_blocks});
  all.push_back({"", "SpaceToDepth", refuse_blocks, emit_blocks});
  all.push_back({"", "BatchNormalization", refuse_batch_norm, emit_batch_norm});
}

}  // namespace sdx::vulkan
