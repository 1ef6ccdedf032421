#pragma once
// Constants in few bits, each kept once however many nodes read it.

#include <map>
#include <optional>
#include <tuple>

#include "quantize/model/edit.h"

namespace sdx::quantize {

// Values of the graph: constants, or results of nodes.
struct StoredWeights {
  ValueId codes = kNoValue, scale = kNoValue, zero = kNoValue;
};

class WeightStore {
 public:
  WeightStore(Editor& edit, const QuantOptions& options) : edit_(edit), options_(options) {}

  // A float constant in the options' type, or in `type`; scales along `axis`.
  StoredWeights store(ValueId weights, std::optional<std::int64_t> axis, std::optional<QuantType> type = {});
  // Of ConvInteger, which ONNX Runtime computes with one zero point alone: where each kernel has a scale, all are symmetric.
  StoredWeights store_kernels(ValueId weights, bool each);
  // A matrix transposed; `axis` is that of the result.
  StoredWeights store_transposed(ValueId weights, std::optional<std::int64_t> axis);
  // [directions, gates * hidden, input] as DynamicQuantizeLSTM takes it: [directions, input, gates * hidden], a scale for each
  // direction or each of its rows. int8.
  StoredWeights store_gates(ValueId weights);
  // The same, and DequantizeLinear: floats.
  ValueId dequantized(ValueId weights, std::optional<std::int64_t> axis);
  // A constant under another shape.
  ValueId reshaped(ValueId constant, const Shape& shape);

 private:
  WeightSettings settings(const std::string& name, QuantType type, std::optional<std::int64_t> axis) const;
  StoredWeights add(const std::string& name, QuantizedTensor tensor);

  Editor& edit_;
  const QuantOptions& options_;
  // Keyed by constant, axis, type, and layout.
  std::map<std::tuple<ValueId, std::int64_t, int, char>, StoredWeights> stored_;
  std::map<std::pair<ValueId, std::int64_t>, ValueId> floats_;
};

// [.., rows, columns] to [.., columns, rows], of types of whole bytes.
Tensor transposed(const Tensor& tensor);

}  // namespace sdx::quantize
