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
    out.push_back({q.scale.values<float>()[static_cast<std::size_t>(i)],
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

ValueId ConstantWriter::dequantize(const std::string& name, std::vector<ValueId> inputs, std::optional<std::int64_t> axis) {
  Attributes attributes;
  if (axis) attributes.set("axis", *axis);
  const ValueId out = edit_.value(name + "_DequantizeLinear_Output", DataType::float32);
  edit_.node(name + "_DequantizeLinear", "DequantizeLinear", std::move(inputs), {out}, std::move(attributes),
             o_.extra.use_qdq_contrib_ops ? "com.microsoft" : "");
  return out;
}

StoredFloats ConstantWriter::write(ValueId constant, const Tensor& floats, const QuantizedTensor& q) {
  const std::string name = edit_.graph().value(constant).name;
  const ValueId scale = edit_.constant(name + "_scale", q.scale), zero = edit_.constant(name + "_zero_point", q.zero);
  StoredFloats out;
  for (const float s : q.scale.values<float>()) out.scales.push_back(s);
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
  out.floats = dequantize(name, {codes, scale, zero}, q.axis);
  return out;
}

// Whether any scale had to.
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
  const Tensor floats = to_float32(*constant_of(edit_.graph(), constant));
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
    if (over->axis) s.axis = over->axis;
    s.reduce_range = over->reduce_range.value_or(s.reduce_range);
    for (std::size_t i = 0; i < over->scale.size(); ++i) {
      params.push_back({over->scale[i], i < over->zero_point.size() ? over->zero_point[i] : 0});
    }
  }
  if (s.axis) s.axis = axis_of(edit_.graph().value(constant).name, *s.axis, floats);
  s.symmetric = o_.extra.weight_symmetric.value_or(s.type != QuantType::quint8 && s.type != QuantType::quint16 &&
                                                   s.type != QuantType::quint4);
  if (over != nullptr) s.symmetric = over->symmetric.value_or(s.symmetric);
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
      const StoredFloats alone = write(constant, floats, quantize_tensor(floats, s.type, s.axis, grown));
      if (added) stored_.erase(at);
      return alone;
    }
  }
  if (added) at->second = write(constant, floats, q);
  return at->second;
}

StoredFloats ConstantWriter::operand(ValueId constant) {
  const auto [at, added] = stored_.try_emplace({constant, -2, static_cast<int>(o_.activation_type)});
  if (!added) return at->second;
  WeightSettings s;
  s.type = o_.activation_type;
  s.symmetric = o_.extra.activation_symmetric.value_or(s.type == QuantType::qfloat8e4m3fn);
  s.least_range = o_.extra.minimum_real_range;
  const Tensor floats = to_float32(*constant_of(edit_.graph(), constant));
  at->second = write(constant, floats, quantize_tensor(floats, s));
  return at->second;
}

ValueId ConstantWriter::bias(ValueId constant, const Tensor& values, float x_scale, const std::vector<float>& scales) {
  const Tensor floats = to_float32(values).aligned();
  const std::int64_t count = floats.size();
  const bool one = scales.size() == 1;
  Tensor codes(DataType::int32, {count}), scale(DataType::float32, one ? Shape{} : Shape{count});
  Tensor zero(DataType::int32, scale.shape());
  for (std::size_t i = 0; i < scales.size(); ++i) {
    scale.mutable_values<float>()[i] = x_scale * scales[i];
    zero.mutable_values<std::int32_t>()[i] = 0;
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const auto step = static_cast<double>(scale.values<float>()[one ? 0 : i]);
    const double code = step > 0 ? std::nearbyint(static_cast<double>(floats.values<float>()[i]) / step) : 0;
    codes.mutable_values<std::int32_t>()[i] = static_cast<std::int32_t>(std::clamp(code, -kLargestBias, kLargestBias));
  }
  const std::string name = edit_.graph().value(constant).name;
  const ValueId c = edit_.constant(name + "_quantized", std::move(codes)), s = edit_.constant(name + "_scale", std::move(scale)),
                z = edit_.constant(name + "_zero_point", std::move(zero));
  return dequantize(name, {c, s, z}, one ? std::nullopt : std::optional<std::int64_t>(0));
}

}  // namespace sdx::quantize
