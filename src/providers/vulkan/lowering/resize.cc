// Resize and Upsample of the last two of four axes. The tables come from the reference kernel's rules.

#include <bit>
#include <limits>

#include "base/error.h"
#include "ops/image/resample.h"
#include "ops/image/signatures.h"
#include "ops/tensor/axes.h"
#include "providers/vulkan/operators.h"
#include "tensor/element.h"

namespace sdx::vulkan {
namespace {

bool is_old(const Node& node) { return node.op_type == "Upsample" || node.version < 11; }

bool read_coordinates(const ops::ResizeAttrs& attr, ops::ResampleOptions& o) {
  using enum ops::CoordinateMode;
  const std::string_view c = attr.coordinate_transformation_mode, n = attr.nearest_mode;
  if (c == "half_pixel") {
    o.coordinates = half_pixel;
  } else if (c == "half_pixel_symmetric") {
    o.coordinates = half_pixel_symmetric;
  } else if (c == "pytorch_half_pixel") {
    o.coordinates = pytorch_half_pixel;
  } else if (c == "align_corners") {
    o.coordinates = align_corners;
  } else if (c == "asymmetric") {
    o.coordinates = asymmetric;
  } else {
    return false;
  }
  using enum ops::NearestMode;
  if (n == "round_prefer_floor") {
    o.nearest = round_prefer_floor;
  } else if (n == "round_prefer_ceil") {
    o.nearest = round_prefer_ceil;
  } else if (n == "floor") {
    o.nearest = floor;
  } else if (n == "ceil") {
    o.nearest = ceil;
  } else {
    return false;
  }
  return true;
}

bool read_options(const Node& node, ops::ResampleOptions& o) {
  const auto attr = ops::parse<ops::ResizeAttrs>(node);
  if (attr.mode == "linear" || attr.mode == "bilinear") {
    o.mode = ops::ResampleMode::linear;
  } else if (attr.mode == "cubic") {
    o.mode = ops::ResampleMode::cubic;
  } else if (attr.mode != "nearest") {
    return false;
  }
  o.cubic_a = attr.cubic_coeff_a;
  o.exclude_outside = attr.exclude_outside;
  o.antialias = attr.antialias;
  if (!is_old(node)) return read_coordinates(attr, o);
  o.coordinates = ops::CoordinateMode::asymmetric;
  o.nearest = ops::NearestMode::simple;
  return true;
}

std::size_t scales_slot(const Node& node) { return is_old(node) ? 1 : 2; }

std::string refuse_resize(const NodeFacts& n) {
  if (n.node().op_type == "Upsample" && n.node().version < 9) return "scales that are attributes";
  if (!n.is_float(0)) return "input 0 is not float32";
  if (n.rank(0) != 4) return "not known to have 4 axes";
  ops::ResampleOptions o;
  if (!read_options(n.node(), o)) return "this mode is not supported";
  if (ops::parse<ops::ResizeAttrs>(n.node()).keep_aspect_ratio_policy != "stretch") return "an aspect ratio policy";
  for (std::size_t i = scales_slot(n.node()); i < n.inputs(); ++i) {
    if (n.has(i) && !n.on_host(i)) return "input " + std::to_string(i) + " is not known before the run";
  }
  return "";
}

// The scales of all axes; empty where sizes are given.
std::vector<double> scales_of(Emitter& e, const Node& node) {
  const std::size_t slot = scales_slot(node);
  const Tensor* t = e.has(node, slot) ? e.known(node.inputs[slot]) : nullptr;
  if (t == nullptr || t->size() == 0) return {};
  const Tensor aligned = t->aligned();
  const auto attr = ops::parse<ops::ResizeAttrs>(node);
  std::vector<double> all(4, 1.0);
  std::vector<std::int64_t> axes{0, 1, 2, 3};
  if (attr.axes) axes = ops::normalize_axes(*attr.axes, all.size());
  if (axes.size() != static_cast<std::size_t>(aligned.size()))
    fail(ErrorCode::runtime_failure, "Resize has as many scales as axes");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    all[static_cast<std::size_t>(axes[i])] = element_as_double(aligned, static_cast<std::int64_t>(i));
  }
  return all;
}

struct AxisTable {
  std::vector<std::uint32_t> first, weights;
  std::int64_t taps = 1;
};

AxisTable table_of(const ops::ResampleAxis& axis, const ops::ResampleOptions& o) {
  AxisTable t;
  const bool unchanged = ops::is_unchanged(axis, o);
  if (unchanged || o.mode == ops::ResampleMode::nearest) {
    const ops::Ints map = unchanged ? ops::Ints{} : ops::nearest_map(axis, o);
    for (std::int64_t i = 0; i < axis.out; ++i) {
      t.first.push_back(static_cast<std::uint32_t>(unchanged ? i : map[static_cast<std::size_t>(i)]));
      t.weights.push_back(std::bit_cast<std::uint32_t>(1.0F));
    }
    return t;
  }
  const ops::Taps taps = ops::weighted_taps(axis, o);
  t.taps = taps.count;
  for (const std::int64_t i : taps.first) t.first.push_back(static_cast<std::uint32_t>(i));
  for (const double w : taps.weights) t.weights.push_back(std::bit_cast<std::uint32_t>(static_cast<float>(w)));
  return t;
}

void emit_resize(Emitter& e, const Node& node) {
  const Shape x = e.shape(node.inputs[0]), y = e.shape(node.outputs[0]);
  if (y.size() != 4 || x[0] != y[0] || x[1] != y[1]) fail(ErrorCode::not_implemented, "vulkan: batch or channels change");
  const std::int64_t count = element_count(y);
  if (count == 0) return;
  if (x[2] < 1 || x[3] < 1) fail(ErrorCode::not_implemented, "vulkan: an empty picture is resized");
  ops::ResampleOptions o;
  read_options(node, o);
  const std::vector<double> scales = scales_of(e, node);
  const auto axis = [&](std::size_t i) {
    const double scale = scales.empty() ? static_cast<double>(y[i]) / static_cast<double>(x[i]) : scales[i];
    return table_of({x[i], y[i], scale}, o);
  };
  AxisTable rows = axis(2);
  const AxisTable columns = axis(3);
  std::vector<std::uint32_t> words = std::move(rows.first);
  const std::vector<std::uint32_t>* const rest[] = {&columns.first, &rows.weights, &columns.weights};
  for (const auto* part : rest) words.insert(words.end(), part->begin(), part->end());
  Dispatch d(Shader::resize, {});
  d.read(node.inputs[0]).write(node.outputs[0]).read(e.table(std::move(words)));
  d.word(count).word(x[2]).word(x[3]).word(y[2]).word(y[3]).word(rows.taps).word(columns.taps);
  e.dispatch(std::move(d), count, static_cast<std::uint64_t>(rows.taps * columns.taps));
}

}  // namespace

void add_resize(Operators& all) {
  for (const char* name : {"Resize", "Upsample"}) all.push_back({"", name, refuse_resize, emit_resize});
}

}  // namespace sdx::vulkan
