// Conv, FusedConv in one or two dimensions; pooling.

#include <algorithm>

#include "base/error.h"
#include "ops/conv/conv_geometry.h"
#include "ops/conv/signatures.h"
#include "ops/tensor/axes.h"
#include "providers/vulkan/lowering/activation.h"
#include "providers/vulkan/lowering/tile.h"
#include "providers/vulkan/operators.h"

namespace sdx::vulkan {
namespace {

using enum ops::ConvIn::Slot;

std::string refuse_spatial(const NodeFacts& n) {
  if (n.rank(0) < 0) return "input 0 has an unknown rank";
  if (n.rank(0) != 3 && n.rank(0) != 4) return "neither one nor two spatial axes";
  return "";
}

std::string refuse_conv(const NodeFacts& n) {
  if (n.node().op_type == "FusedConv") {
    if (std::string why = refuse_activation(n.node()); !why.empty()) return why;
  }
  if (std::string why = refuse_spatial(n); !why.empty()) return why;
  if (n.rank(kW) != n.rank(kX)) return "the weights have an unknown rank";
  return n.all_floats();
}

// The spatial axes as two.
std::pair<ops::WindowAxis, ops::WindowAxis> two_axes(const std::vector<ops::WindowAxis>& axes) {
  ops::WindowAxis one;
  one.in = one.out = 1;
  return axes.size() == 1 ? std::pair{one, axes[0]} : std::pair{axes[0], axes[1]};
}

void add_geometry(Dispatch& d, const ops::ConvGeometry& g, std::int64_t k) {
  const auto [y, x] = two_axes(g.axes);
  d.word(g.out_channels_per_group()).word(g.out_plane()).word(k).word(g.groups);
  d.word(g.in_channels_per_group()).word(y.in).word(x.in).word(y.kernel).word(x.kernel).word(x.out);
  d.word(y.stride).word(x.stride).word(y.dilation).word(x.dilation).word(y.pad_begin).word(x.pad_begin);
}

void emit_conv(Emitter& e, const Node& node) {
  const ops::ConvGeometry g = ops::conv_geometry(node.attributes, e.shape(node.inputs[kX]), e.shape(node.inputs[kW]));
  const std::int64_t count = e.size(node.outputs[0]);
  if (count == 0) return;
  e.check_size(node, kB, g.out_channels);
  e.check_size(node, kZ, count);
  const FunctionSpec f = node.op_type == "FusedConv" ? fused_function(node) : FunctionSpec{};
  const std::int64_t m = g.out_channels_per_group(), n = g.out_plane(), k = g.in_channels_per_group() * g.kernel_taps();
  const bool direct = m < 4 || k < 4;  // a tile would be empty for the most part
  const Tile tile = tile_for(m, n);
  const std::uint32_t bias = e.has(node, kB) ? 1 : 0, residual = e.has(node, kZ) ? 1 : 0;
  Dispatch d(direct ? Shader::depthwise : Shader::conv,
             {direct ? 0 : tile.rows, direct ? 0 : tile.columns, static_cast<std::uint32_t>(f.function), bias, residual});
  d.read(node.inputs[kX]).read(node.inputs[kW]).write(node.outputs[0]);
  bias != 0 ? d.read(node.inputs[kB]) : d.no_address();
  residual != 0 ? d.read(node.inputs[kZ]) : d.no_address();
  add_geometry(d, g, k);
  d.number(f.alpha).number(f.beta);
  if (direct) {
    d.word(count);
    return e.dispatch(std::move(d), count, 2 * static_cast<std::uint64_t>(k));
  }
  e.dispatch_groups(std::move(d), tiles(n, tile.columns), tiles(m, tile.rows), g.batch * g.groups,
                    2 * static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(k));
}

std::string refuse_transposed(const NodeFacts& n) {
  if (std::string why = refuse_spatial(n); !why.empty()) return why;
  if (n.rank(kW) != n.rank(kX)) return "the weights have an unknown rank";
  return n.all_floats();
}

void emit_transposed(Emitter& e, const Node& node) {
  const ops::ConvGeometry g = ops::conv_transpose_geometry(node.attributes, e.shape(node.inputs[kX]), e.shape(node.inputs[kW]));
  const std::int64_t count = e.size(node.outputs[0]);
  e.check_size(node, kB, g.out_channels);
  const auto [y, x] = two_axes(g.axes);
  Dispatch d(Shader::deconv, {e.has(node, kB) ? 1U : 0U});
  d.read(node.inputs[kX]).read(node.inputs[kW]).write(node.outputs[0]);
  e.has(node, kB) ? d.read(node.inputs[kB]) : d.no_address();
  d.word(count).word(g.out_channels_per_group()).word(g.groups).word(g.in_channels_per_group());
  d.word(y.in).word(x.in).word(y.out).word(x.out).word(y.kernel).word(x.kernel);
  d.word(y.stride).word(x.stride).word(y.dilation).word(x.dilation).word(y.pad_begin).word(x.pad_begin);
  e.dispatch(std::move(d), count, 2 * static_cast<std::uint64_t>(g.in_channels_per_group() * g.kernel_taps()));
}

std::string refuse_pool(const NodeFacts& n) {
  if (n.wants(1)) return "indices are not computed";
  if (std::string why = refuse_spatial(n); !why.empty()) return why;
  return n.all_floats();
}

void emit_pool(Emitter& e, const Node& node) {
  const auto [y, x] = two_axes(ops::pool_axes(node.attributes, e.shape(node.inputs[0])));
  const std::int64_t count = e.size(node.outputs[0]);
  const bool mean = node.op_type == "AveragePool";
  const bool padding = mean && ops::parse<ops::PoolAttrs>(node).count_include_pad;
  Dispatch d(Shader::pool, {mean ? 1U : 0U, padding ? 1U : 0U});
  d.read(node.inputs[0]).write(node.outputs[0]);
  d.word(count).word(y.in).word(x.in).word(y.out).word(x.out).word(y.kernel).word(x.kernel);
  d.word(y.stride).word(x.stride).word(y.dilation).word(x.dilation);
  d.word(y.pad_begin).word(x.pad_begin).word(y.in + y.pad_end).word(x.in + x.pad_end);
  e.dispatch(std::move(d), count, static_cast<std::uint64_t>(y.kernel * x.kernel));
}

std::string refuse_global(const NodeFacts& n) {
  if (n.rank(0) < 3) return "rank unknown or less than 3";
  return n.all_floats();
}

void emit_global(Emitter& e, const Node& node) {
  const Shape shape = e.shape(node.inputs[0]);
  const std::int64_t rows = shape[0] * shape[1], extent = ops::product(shape, 2, shape.size());
  const std::uint32_t lanes = lanes_for(rows, extent, 1);
  const Reduction how = node.op_type == "GlobalMaxPool" ? Reduction::max : Reduction::mean;
  Dispatch d(Shader::reduce, {lanes, static_cast<std::uint32_t>(how)});
  d.read(node.inputs[0]).write(node.outputs[0]).word(rows).word(extent).word(1);
  e.dispatch_rows(std::move(d), rows, lanes, extent);
}

}  // namespace

void add_convolutions(Operators& all) {
  all.push_back({"", "Conv", refuse_conv, emit_conv});
  all.push_back({"com.microsoft", "FusedConv", refuse_conv, emit_conv});
  all.push_back({"", "ConvTranspose", refuse_transposed, emit_transposed});
}

void add_pools(Operators& all) {
  for (const char* name : {"MaxPool", "AveragePool"}) all.push_back({"", name, refuse_pool, emit_pool});
  for (const char* name : {"GlobalMaxPool", "GlobalAveragePool"}) all.push_back({"", name, refuse_global, emit_global});
}

}  // namespace sdx::vulkan
