#include "passes/fuse/qdq_parts.h"

#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "ops/math/signatures.h"
#include "ops/quant/signatures.h"
#include "tensor/element.h"

namespace sdx::fuse {
namespace {

// Relu's or Clip's bounds when they are constant.
std::optional<std::pair<double, double>> bounds_of(const Graph& g, const Node& n) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  if (!n.domain.empty() || n.removed || n.outputs.size() != 1) return std::nullopt;
  if (n.op_type == "Relu") return std::pair(0.0, kInf);
  if (n.op_type != "Clip") return std::nullopt;
  if (n.version < 11) {
    const auto attr = ops::parse<ops::ClipAttrs>(n);
    return std::pair(static_cast<double>(attr.min.value_or(std::numeric_limits<float>::lowest())),
                     static_cast<double>(attr.max.value_or(std::numeric_limits<float>::max())));
  }
  const auto bound = [&](std::size_t i, double otherwise) -> std::optional<double> {
    if (input_of(n, i) == kNoValue) return otherwise;
    const Tensor* t = constant_of(g, n.inputs[i]);
    if (t == nullptr || t->size() != 1) return std::nullopt;
    return element_as_double(*t, 0);
  };
  const auto low = bound(1, -kInf), high = bound(2, kInf);
  if (!low || !high || !(*low <= *high)) return std::nullopt;
  return std::pair(*low, *high);
}

// Whether clamping to `bounds` changes nothing after the quantizer has rounded and clamped. The tolerance is a quarter of a step;
// rounding changes at half a step.
bool implied(const Graph& g, const Node& quantizer, std::pair<double, double> bounds) {
  const double scale = element_as_double(*constant_of(g, quantizer.inputs[1]), 0);
  const Tensor& zero = *constant_of(g, quantizer.inputs[2]);
  const auto zp = static_cast<double>(element_as_int(zero, 0));
  const double lowest = zero.dtype() == DataType::int8 ? -128 : 0;
  return bounds.first / scale <= lowest - zp + 0.25 && bounds.second / scale >= lowest + 255 - zp - 0.25;
}

}  // namespace

const Tensor* scale_of(const Graph& g, const Node& n, std::int64_t channels) {
  const Tensor* t = constant_of(g, input_of(n, 1));
  if (t == nullptr || t->dtype() != DataType::float32 || (t->size() != 1 && t->size() != channels) || t->rank() > 1)
    return nullptr;
  for (std::int64_t i = 0; i < t->size(); ++i) {
    const double s = element_as_double(*t, i);
    if (!std::isfinite(s) || s <= 0) return nullptr;
  }
  return t;
}

bool zero_fits(const Graph& g, const Node& n, std::int64_t channels) {
  const ValueId v = input_of(n, 2);
  if (v == kNoValue) return true;
  const Tensor* t = constant_of(g, v);
  return t != nullptr && t->rank() <= 1 && (t->size() == 1 || t->size() == channels);
}

std::int64_t zero_value(const Graph& g, const Node& n) {
  const Tensor* t = constant_of(g, input_of(n, 2));
  return t == nullptr ? 0 : element_as_int(*t, 0);
}

NodeId dequantizer(const Graph& g, const Node& n, std::size_t i) {
  const ValueId v = input_of(n, i);
  if (v == kNoValue) return kNoNode;
  const NodeId id = g.value(v).producer;
  if (id == kNoNode) return kNoNode;
  const Node& d = g.node(id);
  if (d.op_type != "DequantizeLinear" || !d.domain.empty()) return kNoNode;
  const auto attr = ops::parse<ops::QuantizeAttrs>(d);
  const std::int64_t to = attr.output_dtype;
  return attr.block_size == 0 && (to == 0 || to == static_cast<std::int64_t>(DataType::float32)) ? id : kNoNode;
}

NodeId byte_dequantizer(const Graph& g, const Node& n, std::size_t i) {
  const NodeId id = dequantizer(g, n, i);
  if (id == kNoNode) return kNoNode;
  const Node& d = g.node(id);
  const bool fits = is_byte(g.value(d.inputs[0]).type.elem) && scale_of(g, d, 1) != nullptr && zero_fits(g, d, 1);
  return fits ? id : kNoNode;
}

NodeId only_quantizer(const Graph& g, ValueId v, const Readers& readers) {
  if (is_output(g, v) || readers.of(v).size() != 1) return kNoNode;
  const Node& q = g.node(readers.of(v)[0]);
  if (q.removed || q.op_type != "QuantizeLinear" || !q.domain.empty() || q.inputs[0] != v) return kNoNode;
  const Tensor* zero = constant_of(g, input_of(q, 2));
  if (zero == nullptr || !is_byte(zero->dtype()) || scale_of(g, q, 1) == nullptr || !zero_fits(g, q, 1)) return kNoNode;
  return ops::parse<ops::QuantizeAttrs>(q).block_size == 0 ? readers.of(v)[0] : kNoNode;
}

Quantizer clamping_quantizer(const Graph& g, ValueId v, const Readers& readers) {
  const NodeId direct = only_quantizer(g, v, readers);
  if (direct != kNoNode) return {direct, kNoNode};
  if (is_output(g, v) || readers.of(v).size() != 1) return {};
  const NodeId between = readers.of(v)[0];
  const auto bounds = bounds_of(g, g.node(between));
  if (!bounds || g.node(between).inputs[0] != v) return {};
  const NodeId after = only_quantizer(g, g.node(between).outputs[0], readers);
  if (after == kNoNode || !implied(g, g.node(after), *bounds)) return {};
  return {after, between};
}

ValueId zero_point(Graph& g, const Node& n, DataType type) {
  const ValueId v = input_of(n, 2);
  if (v != kNoValue) return v;
  Tensor zero(type, {});
  set_element(zero, 0, 0.0);
  return g.add_constant(n.name + "_zero", std::move(zero));
}

}  // namespace sdx::fuse
