#pragma once
// How weights enter a graph.

#include <string>
#include <vector>

#include "tensor/gguf/tensor_files.h"
#include "text/model/network/decoder_config.h"
#include "text/model/network/graph_writer.h"

namespace sdx::text {

// The matrices of a layer's experts: one tensor [rows, k] with those of all experts, one behind the other, or one for each.
struct ExpertTensors {
  std::vector<StoredTensor> gate, up, down;
  Tensor gate_bias, up_bias, down_bias;  // float32[experts, rows]; undefined: none
  Tensor choice_bias;                    // float32[experts]: is added for the choice alone
};

// The form in which weights enter the graph. Every call names a tensor of the files, and its rows [first, first + rows).
class WeightStyle {
 public:
  virtual ~WeightStyle() = default;
  // x[.., k] times the rows' transpose, plus bias (kNoValue: none).
  virtual ValueId product(GraphWriter& g, const std::string& name, ValueId x, const StoredTensor& weight, std::int64_t first,
                          std::int64_t rows, ValueId bias) = 0;
  // x[.., groups * k], each part times the transpose of its share of the rows.
  virtual ValueId grouped(GraphWriter& g, const std::string& name, ValueId x, const StoredTensor& weight,
                          std::int64_t groups) = 0;
  // Rows by index.
  virtual ValueId rows(GraphWriter& g, const std::string& name, const StoredTensor& weight, ValueId indices) = 0;
  // The sum of the chosen experts' answers for x[.., k], by scores[.., experts].
  virtual ValueId experts(GraphWriter& g, const std::string& name, ValueId x, ValueId scores, const ExpertTensors& tensors,
                          const ExpertConfig& config) = 0;
  // The type in which the network computes: float32, or float16, with caches and logits of that type.
  virtual DataType type() const { return DataType::float32; }
};

}  // namespace sdx::text
