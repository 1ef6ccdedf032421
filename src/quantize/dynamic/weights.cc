#include "quantize/dynamic/weights.h"

#include <cstring>

#include "base/error.h"
#include "tensor/element.h"

namespace sdx::quantize {

Tensor transposed(const Tensor& tensor) {
  Shape shape = tensor.shape();
  const std::size_t rank = shape.size();
  const std::int64_t rows = shape.at(rank - 2), columns = shape.at(rank - 1);
  std::swap(shape[rank - 2], shape[rank - 1]);
  Tensor out(tensor.dtype(), shape);
  const std::size_t element = byte_size(tensor.dtype(), 1);
  const auto* from = static_cast<const std::byte*>(tensor.data());
  auto* to = static_cast<std::byte*>(out.mutable_data());
  const std::int64_t matrices = rows * columns == 0 ? 0 : tensor.size() / (rows * columns);
  for (std::int64_t m = 0; m < matrices; ++m) {
    for (std::int64_t c = 0; c < columns; ++c) {
      for (std::int64_t r = 0; r < rows; ++r, to += element) {
        std::memcpy(to, from + static_cast<std::size_t>((m * rows + r) * columns + c) * element, element);
      }
    }
  }
  return out;
}

WeightSettings WeightStore::settings(const std::string& name, QuantType type, std::optional<std::int64_t> axis) const {
  WeightSettings s;
  s.type = type;
  s.axis = axis;
  s.symmetric = options_.extra.weight_symmetric.value_or(type == QuantType::qint8);
  s.reduce_range = options_.reduce_range;
  s.least_range = options_.extra.minimum_real_range;
  const auto own = options_.extra.tensor_quant_overrides.find(name);
  if (own == options_.extra.tensor_quant_overrides.end()) return s;
  s.symmetric = own->second.symmetric.value_or(s.symmetric);
  s.reduce_range = own->second.reduce_range.value_or(s.reduce_range);
  return s;
}

StoredWeights WeightStore::add(const std::string& name, QuantizedTensor tensor) {
  return {edit_.constant(name + "_quantized", std::move(tensor.codes)), edit_.constant(name + "_scale", std::move(tensor.scale)),
          edit_.constant(name + "_zero_point", std::move(tensor.zero))};
}

StoredWeights WeightStore::store(ValueId weights, std::optional<std::int64_t> axis, std::optional<QuantType> type) {
  const QuantType t = type.value_or(options_.weight_type);
  const auto [at, added] = stored_.try_emplace({weights, axis.value_or(-1), static_cast<int>(t), '='});
  if (!added) return at->second;
  const std::string name = edit_.graph().value(weights).name;
  at->second = add(name, quantize_tensor(*fixed_value(edit_.graph(), weights), settings(name, t, axis)));
  return at->second;
}

StoredWeights WeightStore::store_kernels(ValueId weights, bool each) {
  const QuantType t = options_.weight_type;
  const auto [at, added] = stored_.try_emplace({weights, each ? 0 : -1, static_cast<int>(t), 'K'});
  if (!added) return at->second;
  const std::string name = edit_.graph().value(weights).name;
  WeightSettings s = settings(name, t, each ? std::optional<std::int64_t>(0) : std::nullopt);
  s.symmetric = s.symmetric || each;
  QuantizedTensor q = quantize_tensor(*fixed_value(edit_.graph(), weights), s);
  if (each) q.zero = code_scalar(t, q.zero.size() == 0 ? 0 : element_as_int(q.zero, 0));
  at->second = add(name, std::move(q));
  return at->second;
}

StoredWeights WeightStore::store_transposed(ValueId weights, std::optional<std::int64_t> axis) {
  const auto [at, added] = stored_.try_emplace({weights, axis.value_or(-1), static_cast<int>(options_.weight_type), 'T'});
  if (!added) return at->second;
  const std::string name = edit_.graph().value(weights).name;
  const auto across = axis ? std::optional<std::int64_t>(1 - *axis) : std::nullopt;
  QuantizedTensor q = quantize_tensor(*fixed_value(edit_.graph(), weights), settings(name, options_.weight_type, across));
  q.codes = transposed(q.codes);
  at->second = add(name, std::move(q));
  return at->second;
}

StoredWeights WeightStore::store_gates(ValueId weights) {
  const bool rows = options_.per_channel;
  const auto [at, added] = stored_.try_emplace({weights, rows ? 1 : -1, static_cast<int>(QuantType::qint8), 'G'});
  if (!added) return at->second;
  const std::string name = edit_.graph().value(weights).name;
  const Tensor& w = *fixed_value(edit_.graph(), weights);
  const std::int64_t directions = w.dim(0), gates = w.dim(1), width = w.dim(2);
  const Shape flat = rows ? Shape{directions * gates, width} : Shape{directions, gates * width};
  QuantizedTensor q = quantize_tensor(w.reshaped(flat), settings(name, QuantType::qint8, 0));
  q.codes = transposed(q.codes.reshaped({directions, gates, width}));
  if (rows) {
    q.scale = q.scale.reshaped({directions, gates});
    q.zero = q.zero.reshaped({directions, gates});
  }
  at->second = add(name, std::move(q));
  return at->second;
}

ValueId WeightStore::dequantized(ValueId weights, std::optional<std::int64_t> axis) {
  const auto [at, added] = floats_.try_emplace({weights, axis.value_or(-1)});
  if (!added) return at->second;
  const StoredWeights w = store(weights, axis);
  Attributes attributes;
  if (axis) attributes.set("axis", *axis);
  at->second = edit_.op("DequantizeLinear", {w.codes, w.scale, w.zero}, edit_.graph().value(weights).name + "_dequantized",
                        std::move(attributes));
  edit_.graph().value(at->second).type.elem = DataType::float32;
  return at->second;
}

ValueId WeightStore::reshaped(ValueId constant, const Shape& shape) {
  const Tensor t = fixed_value(edit_.graph(), constant)->reshaped(shape);
  return edit_.constant(edit_.graph().value(constant).name + "_spread", t);
}

}  // namespace sdx::quantize
