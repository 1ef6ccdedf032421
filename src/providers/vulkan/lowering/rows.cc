// What works on rows: Softmax, normalisations, reductions.

#include <algorithm>

#include "base/error.h"
#include "ops/norm/signatures.h"
#include "ops/reduce/signatures.h"
#include "ops/tensor/axes.h"
#include "providers/vulkan/lowering/strided.h"
#include "providers/vulkan/operators.h"

namespace sdx::vulkan {
namespace {

std::string refuse_rows(const NodeFacts& n) {
  if (n.rank(0) < 0) return "input 0 has an unknown rank";
  return n.all_floats();
}

void emit_softmax(Emitter& e, const Node& node) {
  const Shape shape = e.shape(node.inputs[0]);
  const auto attr = ops::parse<ops::SoftmaxAttrs>(node);
  const std::int64_t count = element_count(shape);
  if (count == 0) return;
  const auto axis = static_cast<std::size_t>(attr.flattened && attr.axis == static_cast<std::int64_t>(shape.size())
                                                 ? attr.axis
                                                 : ops::normalize_axis(attr.axis, std::max<std::size_t>(shape.size(), 1)));
  std::int64_t extent = 1, inner = 1;
  if (attr.flattened) {
    extent = ops::product(shape, axis, shape.size());
  } else if (!shape.empty()) {
    extent = shape[axis];
    inner = ops::product(shape, axis + 1, shape.size());
  }
  const std::int64_t rows = count / extent;
  const std::uint32_t lanes = lanes_for(rows, extent, inner);
  Dispatch d(Shader::softmax, {lanes, node.op_type == "LogSoftmax" ? 1U : 0U});
  d.read(node.inputs[0]).write(node.outputs[0]).word(rows).word(extent).word(inner);
  e.dispatch_rows(std::move(d), rows, lanes, 4 * extent);
}

struct Norm {
  ValueId x, y;
  std::optional<ValueId> scale, bias, skip, skip_bias, sum;
  bool centered = true;
  std::int64_t rows = 0, extent = 0;
  std::int64_t row_modulus = 1, row_factor = 0, run = 1;  // which element of scale and bias: norm.comp
  float epsilon = 0;
};

void emit_norm(Emitter& e, const Norm& n) {
  if (n.rows * n.extent == 0) return;
  const std::uint32_t lanes = lanes_for(n.rows, n.extent, 1);
  const auto flag = [](const std::optional<ValueId>& v) { return v ? 1U : 0U; };
  Dispatch d(Shader::norm,
             {lanes, n.centered ? 1U : 0U, flag(n.scale), flag(n.bias), flag(n.skip), flag(n.skip_bias), flag(n.sum)});
  d.read(n.x).write(n.y);
  for (const auto& v : {n.scale, n.bias, n.skip, n.skip_bias}) v ? d.read(*v) : d.no_address();
  n.sum ? d.write(*n.sum) : d.no_address();
  d.word(n.rows).word(n.extent).word(n.row_modulus).word(n.row_factor).word(n.run);
  d.word(n.skip ? e.size(*n.skip) : 1).number(n.epsilon);
  e.dispatch_rows(std::move(d), n.rows, lanes, 4 * n.extent);
}

std::optional<ValueId> given(const Node& node, std::size_t i) {
  return i < node.inputs.size() && node.inputs[i] != kNoValue ? std::optional(node.inputs[i]) : std::nullopt;
}

bool is_root_mean_square(const Node& node) {
  return node.op_type == "RMSNormalization" || node.op_type.find("Simplified") != std::string::npos;
}

// The extents of a vector and of the axes that it is spread over must be known and agree: shaders do not repeat it.
std::string refuse_layer_norm(const NodeFacts& n) {
  if (n.wants(1) || n.wants(2)) return "the mean and the deviation are not returned";
  if (n.rank(0) < 0) return "input 0 has an unknown rank";
  const auto axis = static_cast<std::size_t>(
      ops::normalize_axis(ops::parse<ops::LayerNormAttrs>(n.node()).axis, static_cast<std::size_t>(n.rank(0))));
  for (std::size_t i = 1; i < n.inputs(); ++i) {
    if (!n.has(i)) continue;
    const std::size_t axes = static_cast<std::size_t>(n.rank(0)) - axis;
    if (n.rank(i) < 0 || static_cast<std::size_t>(n.rank(i)) != axes)
      return "input " + std::to_string(i) + " has other axes than those normalised";
    for (std::size_t k = 0; k < axes; ++k) {
      if ((*n.type(i).shape)[k] != (*n.type(0).shape)[axis + k])
        return "input " + std::to_string(i) + " is not known to cover the axes normalised";
    }
  }
  return n.all_floats();
}

void emit_layer_norm(Emitter& e, const Node& node) {
  using enum ops::LayerNormIn::Slot;
  const Shape shape = e.shape(node.inputs[kX]);
  const auto attr = ops::parse<ops::LayerNormAttrs>(node);
  const auto axis = static_cast<std::size_t>(ops::normalize_axis(attr.axis, shape.size()));
  Norm n{node.inputs[kX], node.outputs[0], given(node, kScale), given(node, kBias), {}, {}, {}};
  n.centered = !is_root_mean_square(node);
  n.rows = ops::product(shape, 0, axis);
  n.extent = ops::product(shape, axis, shape.size());
  n.epsilon = attr.epsilon;
  e.check_size(node, kScale, n.extent);
  if (n.centered) e.check_size(node, kBias, n.extent);
  emit_norm(e, n);
}

std::string refuse_skip_norm(const NodeFacts& n) {
  if (n.wants(1) || n.wants(2)) return "the mean and the deviation are not returned";
  if (n.rank(0) < 1) return "rank unknown or 0";
  return n.all_floats();
}

void emit_skip_norm(Emitter& e, const Node& node) {
  using enum ops::SkipNormIn::Slot;
  const Shape shape = e.shape(node.inputs[kInput]);
  const bool simplified = is_root_mean_square(node);
  Norm n{node.inputs[kInput],
         node.outputs[0],
         given(node, kGamma),
         simplified ? std::nullopt : given(node, kBeta),
         given(node, kSkip),
         given(node, simplified ? kSimplifiedBias : kBias),
         {}};
  if (node.outputs.size() > 3 && node.outputs[3] != kNoValue) n.sum = node.outputs[3];
  n.centered = !simplified;
  n.extent = shape.back();
  n.rows = n.extent == 0 ? 0 : element_count(shape) / n.extent;
  n.epsilon = ops::parse<ops::SkipNormAttrs>(node).epsilon;
  for (std::size_t i = kGamma; i < node.inputs.size(); ++i) e.check_size(node, i, n.extent);
  const std::int64_t whole = element_count(shape), skip = e.size(node.inputs[kSkip]);
  if (skip == 0 || whole % skip != 0) fail(ErrorCode::runtime_failure, "a skip of {} elements for an input of {}", skip, whole);
  emit_norm(e, n);
}

std::string refuse_group_norm(const NodeFacts& n) {
  if (n.rank(0) < 3) return "rank unknown or less than 3";
  if (n.node().op_type == "GroupNormalization" && n.node().version < 21) return "scales per group are not supported";
  return n.all_floats();
}

void emit_group_norm(Emitter& e, const Node& node) {
  using enum ops::GroupNormIn::Slot;
  const Shape shape = e.shape(node.inputs[kX]);
  const auto attr = ops::parse<ops::GroupNormAttrs>(node);
  const std::int64_t groups = node.op_type == "InstanceNormalization" ? shape[1] : attr.num_groups;
  Norm n{node.inputs[kX], node.outputs[0], given(node, kScale), given(node, kBias), {}, {}, {}};
  n.run = ops::product(shape, 2, shape.size());
  if (groups == 0 || n.run == 0 || shape[0] == 0) return;
  e.check_size(node, kScale, shape[1]);
  e.check_size(node, kBias, shape[1]);
  n.rows = shape[0] * groups;
  n.row_modulus = groups;
  n.row_factor = shape[1] / groups;
  n.extent = n.row_factor * n.run;
  n.epsilon = attr.epsilon;
  emit_norm(e, n);
}

struct NamedReduction {
  std::string_view name;
  Reduction reduction;
};
constexpr NamedReduction kReductions[] = {{"ReduceSum", Reduction::sum},
                                          {"ReduceMean", Reduction::mean},
                                          {"ReduceMax", Reduction::max},
                                          {"ReduceMin", Reduction::min},
                                          {"ReduceL1", Reduction::l1},
                                          {"ReduceL2", Reduction::l2},
                                          {"ReduceSumSquare", Reduction::sum_square},
                                          {"ReduceLogSum", Reduction::log_sum}};

std::string refuse_reduce(const NodeFacts& n) {
  if (!n.is_float(0)) return "input 0 is not float32";
  if (n.rank(0) < 0) return "input 0 has an unknown rank";
  if (n.has(1) && !n.on_host(1)) return "the axes are not known before the run";
  return "";
}

// The axes that go, by axis.
std::vector<bool> reduced_axes(Emitter& e, const Node& node, const ops::ReduceAttrs& attr, std::size_t rank) {
  std::vector<std::int64_t> axes;
  if (!attr.axes_are_input) {
    axes = ops::to_vector(attr.axes);
  } else if (e.has(node, 1)) {
    axes = e.ints(node.inputs[1]);
  }
  std::vector<bool> reduced(rank, axes.empty() && !attr.noop_with_empty_axes);
  for (const std::int64_t axis : ops::normalize_axes(axes, rank)) reduced[static_cast<std::size_t>(axis)] = true;
  return reduced;
}

// Axes that are neighbours are rows where they lie; others are brought together first.
void emit_reduce(Emitter& e, const Node& node) {
  const Shape shape = e.shape(node.inputs[0]);
  const std::vector<bool> reduced = reduced_axes(e, node, ops::parse<ops::ReduceAttrs>(node), shape.size());
  std::int64_t extent = 1, rows = 1, inner = 1;
  std::size_t parts = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    (reduced[i] ? extent : rows) *= shape[i];
    if (reduced[i]) inner = 1;
    if (reduced[i] && (i == 0 || !reduced[i - 1])) ++parts;
    if (!reduced[i]) inner *= shape[i];
  }
  if (parts == 0) inner = 1;
  Operand from = node.inputs[0];
  if (parts > 1) {
    const Operand together = e.temporary(e.bytes(node.inputs[0]));
    const std::vector<std::int64_t> strides = ops::strides_of(shape);
    std::vector<StridedAxis> axes;
    for (const bool last : {false, true}) {
      for (std::size_t i = 0; i < shape.size(); ++i) {
        if (reduced[i] == last) axes.push_back({shape[i], {strides[i], 0}});
      }
    }
    std::int64_t step = 1;
    for (std::size_t i = axes.size(); i-- > 0; step *= axes[i].extent) axes[i].step[1] = step;
    if (rows * extent > 0) emit_copy(e, from, 0, together, 0, 1, axes);
    from = together;
    inner = 1;
  }
  Reduction how = Reduction::sum;
  for (const NamedReduction& r : kReductions) {
    if (r.name == node.op_type) how = r.reduction;
  }
  const std::uint32_t lanes = lanes_for(rows, extent, inner);
  Dispatch d(Shader::reduce, {lanes, static_cast<std::uint32_t>(how)});
  d.read(from).write(node.outputs[0]).word(rows).word(extent).word(inner);
  e.dispatch_rows(std::move(d), rows, lanes, extent);
}

}  // namespace

void add_rows(Operators& all) {
  for (const char* name : {"Softmax", "LogSoftmax"}) all.push_back({"", name, refuse_rows, emit_softmax});
  for (const char* domain : {"", "com.microsoft"}) {
    for (const char* name : {"LayerNormalization", "SimplifiedLayerNormalization"}) {
      all.push_back({domain, name, refuse_layer_norm, emit_layer_norm});
    }
  }
  all.push_back({"", "RMSNormalization", refuse_layer_norm, emit_layer_norm});
  for (const char* name : {"SkipLayerNormalization", "SkipSimplifiedLayerNormalization"}) {
    all.push_back({"com.microsoft", name, refuse_skip_norm, emit_skip_norm});
  }
  for (const char* name : {"InstanceNormalization", "GroupNormalization"})
    all.push_back({"", name, refuse_group_norm, emit_group_norm});
  for (const NamedReduction& r : kReductions) all.push_back({"", r.name, refuse_reduce, emit_reduce});
}

}  // namespace sdx::vulkan
