#include "quantize/fixed/qdq_constants.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "tensor/element.h"

namespace sdx::quantize {
namespace {

constexpr double kLargestBias = std::numeric_limits<std::int32_t>::max();

std::vector<QuantParams> params_in(const QuantizedTensor& q) {
  std::vector<QuantParams> out;
  for (std::int64_t i = 0; i < q.scale.size(); ++i) {
    out.push_back({static_cast<float>(element_as_double(q.scale, i)),
                   q.zero.dtype() == DataType::float8e4m3fn ? 0 : element_as_int(q.zero, i)});
  }
  return out;
}

// Counted from the front.
std::int64_t axis_of(const std::string& name, std::int64_t axis, const Tensor& weights) {
  const auto rank = static_cast<std::int64_t>(weights.rank());
  if (axis < -rank || axis >= rank) {
    fail(ErrorCode::invalid_argument, "scales of '{}' must lie along axis {}, but it is {}", name, axis, weights.type_string());
  }
  return axis < 0 ? axis + rank : axis;
}

}  // namespace

ValueId ConstantWriter::dequantize(const std::string& name, std::vector<ValueId> inputs, std::optional<std::int64_t> axis,
                                   DataType to) {
  Attributes attributes;
  if (axis) attributes.set("axis", *axis);
  const ValueId out = edit_.value(name + "_DequantizeLinear_Output", to);
  edit_.node(name + "_DequantizeLinear", "DequantizeLinear", std::move(inputs), {out}, std::move(attributes),
             o_.extra.use_qdq_contrib_ops ? "com.microsoft" : "");
  return out;
}

StoredFloats ConstantWriter::write(ValueId constant, const QuantizedTensor& q) {
  const std::string name = edit_.graph().value(constant).name;
  const Tensor floats = *fixed_value(edit_.graph(), constant);
  const ValueId scale = edit_.constant(name + "_scale", q.scale), zero = edit_.constant(name + "_zero_point", q.zero);
  StoredFloats out;
  for (const QuantParams& p : params_in(q)) out.scales.push_back(p.scale);
  ValueId codes = kNoValue;
  if (o_.extra.add_qdq_pair_to_weight) {
    codes = edit_.value(name + "_quantized", q.codes.dtype());
    Attributes attributes;
    if (q.axis) attributes.set("axis", *q.axis);
    const ValueId source = edit_.constant(name + "_float", floats);
    edit_.node(name + "_QuantizeLinear", "QuantizeLinear", {source, scale, zero}, {codes}, std::move(attributes),
               o_.extra.use_qdq_contrib_ops ? "com.microsoft" : "");
  } else {
    codes = edit_.constant(name + "_quantized", q.codes);
  }
  out.floats = dequantize(name, {codes, scale, zero}, q.axis, floats.dtype());
  return out;
}

// Enlarges scales that are too small for the bias; returns whether there were any.
bool ConstantWriter::grow(std::vector<QuantParams>& params, const Tensor& bias, float x_scale) const {
  const Tensor floats = to_float32(bias).aligned();
  const auto b = floats.values<float>();
  const auto x = static_cast<double>(x_scale);
  bool changed = false;
  for (std::size_t i = 0; i < b.size(); ++i) {
    QuantParams& p = params[params.size() == 1 ? 0 : i];
    const double least = std::fabs(static_cast<double>(b[i])) * 1.0001 / (kLargestBias * x);
    if (static_cast<double>(p.scale) >= least || !std::isfinite(least)) continue;
    p.scale = static_cast<float>(least);
    changed = true;
  }
  return changed;
}

StoredFloats ConstantWriter::weights(ValueId constant, std::optional<std::int64_t> axis, const Tensor* bias, float x_scale) {
  const Tensor floats = *fixed_value(edit_.graph(), constant);
  WeightSettings s;
  s.type = o_.weight_type;
  s.axis = axis;
  s.reduce_range = o_.reduce_range;
  s.least_range = o_.extra.minimum_real_range;
  std::vector<QuantParams> params;
  const auto own = o_.extra.tensor_quant_overrides.find(edit_.graph().value(constant).name);
  const TensorQuantOverride* over = own == o_.extra.tensor_quant_overrides.end() ? nullptr : &own->second;
  if (over != nullptr) {
    s.type = over->quant_type.value_or(s.type);
    s.axis = over->axis;  // an override without it describes the whole tensor
    s.reduce_range = over->reduce_range.value_or(s.reduce_range);
    for (std::size_t i = 0; i < over->rmin.size(); ++i) {
      s.ranges.push_back({static_cast<double>(over->rmin[i]), static_cast<double>(over->rmax[i])});
    }
    for (std::size_t i = 0; i < over->scale.size(); ++i) {
      params.push_back({over->scale[i], i < over->zero_point.size() ? over->zero_point[i] : 0});
    }
  }
  if (s.axis) s.axis = axis_of(edit_.graph().value(constant).name, *s.axis, floats);
  s.symmetric = o_.extra.weight_symmetric.value_or(s.type != QuantType::quint8 && s.type != QuantType::quint16 &&
                                                   s.type != QuantType::quint4);
  // Channels that the caller describes share a zero point unless told otherwise: integer convolutions have one for all.
  if (over != nullptr) s.symmetric = over->symmetric.value_or(s.symmetric || over->axis.has_value());
  const auto [at, added] = stored_.try_emplace({constant, s.axis.value_or(-1), static_cast<int>(s.type)});
  QuantizedTensor q;
  if (added || bias != nullptr) {
    q = params.empty() ? quantize_tensor(floats, s) : quantize_tensor(floats, s.type, s.axis, params);
    std::vector<QuantParams> grown = params_in(q);
    const bool fits = bias == nullptr || x_scale <= 0 || o_.extra.qdq_disable_weight_adjust_for_int32_bias ||
                      (grown.size() != 1 && grown.size() != static_cast<std::size_t>(bias->size())) ||
                      !grow(grown, *bias, x_scale);
    // Scales of this node's own.
    if (!fits) {
      StoredFloats alone = write(constant, quantize_tensor(floats, s.type, s.axis, grown));
      if (added) stored_.erase(at);
      return alone;
    }
  }
  if (added) at->second = write(constant, q);
  return at->second;
}

StoredFloats ConstantWriter::operand(ValueId constant) {
  const auto [at, added] = stored_.try_emplace({constant, -2, static_cast<int>(o_.activation_type)});
  if (!added) return at->second;
  WeightSettings s;
  s.type = o_.activation_type;
  s.symmetric = o_.extra.activation_symmetric.value_or(s.type == QuantType::qfloat8e4m3fn);
  s.least_range = o_.extra.minimum_real_range;
  at->second = write(constant, quantize_tensor(*fixed_value(edit_.graph(), constant), s));
  return at->second;
}

ValueId ConstantWriter::bias(ValueId constant, const Tensor& values, float x_scale, const std::vector<float>& scales) {
  const DataType type = values.dtype();
  const Tensor floats = to_float32(values).aligned();
  const std::int64_t count = floats.size();
  const bool one = scales.size() == 1;
  Tensor codes(DataType::int32, {count}), scale(type, {one ? 1 : count});
  Tensor zero(DataType::int32, scale.shape());
  for (std::size_t i = 0; i < scales.size(); ++i) {
    set_element(scale, static_cast<std::int64_t>(i), static_cast<double>(scale_in(type, x_scale * scales[i])));
    zero.mutable_values<std::int32_t>()[i] = 0;
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const double step = element_as_double(scale, one ? 0 : static_cast<std::int64_t>(i));
    const double code = step > 0 ? std::nearbyint(static_cast<double>(floats.values<float>()[i]) / step) : 0;
    codes.mutable_values<std::int32_t>()[i] = static_cast<std::int32_t>(std::clamp(code, -kLargestBias, kLargestBias));
  }
  const std::string name = edit_.graph().value(constant).name;
  const ValueId c = edit_.constant(name + "_quantized", std::move(codes)), s = edit_.constant(name + "_scale", std::move(scale)),
                z = edit_.constant(name + "_zero_point", std::move(zero));
  return dequantize(name, {c, s, z}, one ? std::nullopt : std::optional<std::int64_t>(0), type);
}

}  // namespace sdx::quantize
