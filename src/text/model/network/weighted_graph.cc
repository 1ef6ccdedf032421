#include "text/model/network/weighted_graph.h"

#include <algorithm>

#include "base/error.h"

namespace sdx::text {

const StoredTensor& WeightedGraph::tensor(const std::string& name, const std::vector<std::int64_t>& shape) {
  const StoredTensor* t = file_->find_tensor(name);
  if (t == nullptr) fail(ErrorCode::invalid_model, "the model lacks the tensor '{}'", file_->shown(name));
  used_.insert(name);
  bool fits = t->shape.size() == shape.size();
  for (std::size_t i = 0; fits && i < shape.size(); ++i) fits = shape[i] < 0 ? t->shape[i] > 0 : t->shape[i] == shape[i];
  if (!fits)
    fail(ErrorCode::invalid_model, "tensor '{}' is {}, expected {}", file_->shown(name), to_string(t->shape), to_string(shape));
  if (find_ggml(t->type) == nullptr) {
    const std::string_view type = ggml_type_name(t->type);
    fail(ErrorCode::not_implemented,
         "tensor '{}' is of type {}, which is not supported; those that are: F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K "
         "Q4_K Q5_K Q6_K IQ4_NL IQ4_XS TQ1_0 TQ2_0 MXFP4 NVFP4",
         name, type.empty() ? std::to_string(t->type) : std::string(type));
  }
  return *t;
}

Tensor WeightedGraph::values(const std::string& name, const std::vector<std::int64_t>& shape) {
  const StoredTensor& t = tensor(name, shape);
  const GgmlFormat& format = *find_ggml(t.type);
  if (format.type == GgmlType::f32) {
    return Tensor::view(t.data.data(), DataType::float32, Shape(t.shape.begin(), t.shape.end()), file_->owner(t.file)).aligned();
  }
  Tensor out(DataType::float32, Shape(t.shape.begin(), t.shape.end()));
  ggml_dequantize(format, t.data.data(), t.elements() / format.block, out.mutable_values<float>().data());
  return out;
}

ValueId WeightedGraph::vector(const std::string& name, std::int64_t size) {
  return g_.constant(name, with_type(values(name, {size}), style_.type()));
}

ValueId WeightedGraph::number(const std::string& name, float value) {
  return g_.constant(name, with_type(Tensor::scalar(value), style_.type()));
}

ValueId WeightedGraph::integers(const std::string& name, const std::vector<std::int64_t>& values) {
  return g_.constant(name,
                     Tensor::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, std::span<const std::int64_t>(values)));
}

ValueId WeightedGraph::reshape(const std::string& name, ValueId x, const std::vector<std::int64_t>& shape) {
  return g_.node("Reshape", name, {x, integers(name + ".shape", shape)});
}

std::vector<ValueId> WeightedGraph::parts(const std::string& name, ValueId x, const std::vector<std::int64_t>& sizes) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < sizes.size(); ++i) names.push_back(name + "/part." + std::to_string(i));
  return g_.nodes("Split", name, {x, integers(name + ".sizes", sizes)}, names, {{"axis", std::int64_t{-1}}});
}

ValueId WeightedGraph::silu(const std::string& name, ValueId x) {
  return g_.node("Mul", name + "/Mul", {x, g_.node("Sigmoid", name + "/Sigmoid", {x})});
}

ValueId WeightedGraph::bias_of(const std::string& weight, std::int64_t size) {
  const std::string name = weight.substr(0, weight.rfind('.')) + ".bias";
  return has(name) ? vector(name, size) : kNoValue;
}

ValueId WeightedGraph::linear(const std::string& name, ValueId x, const std::string& weight, std::int64_t rows, std::int64_t k) {
  return style_.product(g_, name, x, tensor(weight, {rows, k}), 0, rows, bias_of(weight, rows));
}

ValueId WeightedGraph::weighted_sum(const std::string& name, ValueId x, ValueId weights) {
  const ValueId axis = integers(name + ".axis", {1});
  const ValueId row = g_.node("Unsqueeze", name + "/Unsqueeze", {weights, axis});
  return g_.node("Squeeze", name + "/Squeeze", {g_.node("MatMul", name + "/MatMul", {row, x}), axis});
}

void WeightedGraph::refuse_unknown(std::string_view architecture, const std::vector<std::string>& others) const {
  for (const StoredTensor& t : file_->tensors()) {
    const bool other = std::any_of(others.begin(), others.end(), [&](const std::string& o) { return t.name.starts_with(o); });
    if (used_.contains(t.name) || other) continue;
    fail(ErrorCode::not_implemented, "tensor '{}' is not known to architecture '{}'", t.name, architecture);
  }
}

}  // namespace sdx::text
