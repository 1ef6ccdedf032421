#pragma once
// What builders of networks from weights share: tensors by name, checked, and products with them.

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/tools_api.h"
#include "tensor/gguf/tensor_files.h"
#include "text/model/network/graph_writer.h"
#include "text/model/network/weight_style.h"

namespace sdx::text {

class SDX_TOOLS_API WeightedGraph {
 public:
  WeightedGraph(std::shared_ptr<const TensorFiles> file, WeightStyle& style) : file_(std::move(file)), style_(style) {}

  // Extents below 0 may be any. Throws Error(invalid_model | not_implemented).
  const StoredTensor& tensor(const std::string& name, const std::vector<std::int64_t>& shape);
  bool has(const std::string& name) const { return file_->find_tensor(name) != nullptr; }
  // All values of a tensor, as float32.
  Tensor values(const std::string& name, const std::vector<std::int64_t>& shape);
  ValueId vector(const std::string& name, std::int64_t size);
  ValueId number(const std::string& name, float value);
  ValueId integers(const std::string& name, const std::vector<std::int64_t>& values);
  ValueId reshape(const std::string& name, ValueId x, const std::vector<std::int64_t>& shape);
  // Parts of the last axis.
  std::vector<ValueId> parts(const std::string& name, ValueId x, const std::vector<std::int64_t>& sizes);
  // x * sigmoid(x)
  ValueId silu(const std::string& name, ValueId x);
  // kNoValue where there is none.
  ValueId bias_of(const std::string& weight, std::int64_t size);
  ValueId linear(const std::string& name, ValueId x, const std::string& weight, std::int64_t rows, std::int64_t k);
  // x[batch, rows, width] times weights[batch, rows], summed: [batch, width].
  ValueId weighted_sum(const std::string& name, ValueId x, ValueId weights);
  // A tensor that is left out would make another model of it. `others`: beginnings of names that are no part of the network.
  void refuse_unknown(std::string_view architecture, const std::vector<std::string>& others) const;

  const TensorFiles& files() const { return *file_; }
  WeightStyle& style() { return style_; }
  GraphWriter& writer() { return g_; }

 protected:
  std::shared_ptr<const TensorFiles> file_;
  WeightStyle& style_;
  GraphWriter g_;

 private:
  std::set<std::string> used_;
};

}  // namespace sdx::text
