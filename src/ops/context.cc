#include "ops/context.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace sdx::ops {
namespace {

const Type kUnknown{};
const Value kNothing{};

// Whether the integer type holds the number; types that are no integers hold all.
bool fits(DataType type, std::int64_t v) {
  const auto in = [&](auto zero) { return std::in_range<decltype(zero)>(v); };
  switch (type) {
    case DataType::int8: return in(std::int8_t{0});
    case DataType::int16: return in(std::int16_t{0});
    case DataType::int32: return in(std::int32_t{0});
    case DataType::uint8: return in(std::uint8_t{0});
    case DataType::uint16: return in(std::uint16_t{0});
    case DataType::uint32: return in(std::uint32_t{0});
    case DataType::uint64: return v >= 0;
    default: return true;
  }
}

}  // namespace

const Type& InferContext::type(std::size_t i) const { return has_input(i) ? *inputs[i].type : kUnknown; }

const SymShape* InferContext::shape(std::size_t i) const {
  const Type& t = type(i);
  return t.is_tensor() && t.shape ? &*t.shape : nullptr;
}

const Tensor* InferContext::value(std::size_t i) const { return has_input(i) ? inputs[i].value : nullptr; }

const std::vector<Dim>* InferContext::sym(std::size_t i) const { return has_input(i) ? inputs[i].sym : nullptr; }

void InferContext::output(std::size_t i, DataType elem, SymShape shape) { output(i, Type::tensor(elem, std::move(shape))); }

void InferContext::output(std::size_t i, DataType elem) { output(i, Type::tensor(elem)); }

void InferContext::output(std::size_t i, Type type) {
  if (i < outputs.size()) outputs[i] = std::move(type);
}

void InferContext::output_sym(std::size_t i, std::vector<Dim> elements) {
  if (i >= output_syms.size()) return;
  const DataType type = i < outputs.size() && outputs[i].is_tensor() ? outputs[i].elem : DataType::undefined;
  // Dims are 64 bits wide: what a narrower type would wrap is left to the run.
  const auto leaves = [&](const Dim& d) { return d.is_const() && !fits(type, d.value()); };
  if (std::none_of(elements.begin(), elements.end(), leaves)) output_syms[i] = std::move(elements);
}

std::vector<Type> InferContext::infer_subgraph(std::size_t index, std::span<const Type> formal_inputs) {
  return services_->infer_subgraph(index, formal_inputs);
}

const Value& OpContext::input_value(std::size_t i) const {
  return i < inputs_.size() && inputs_[i] != nullptr ? *inputs_[i] : kNothing;
}

const Tensor& OpContext::input(std::size_t i) const {
  const Value& v = input_value(i);
  if (!v.is_tensor()) {
    throw Error(ErrorCode::invalid_model, fmt::format("input {} must be a tensor, received {}", i, v.type_string()));
  }
  return v.tensor();
}

const Tensor* OpContext::optional_input(std::size_t i) const { return has_input(i) ? &input(i) : nullptr; }

Tensor& OpContext::output(std::size_t i, DataType dtype, const Shape& shape) {
  Value* slot = wants_output(i) ? outputs_[i] : scratch_.emplace_back(std::make_unique<Value>()).get();
  if (slot->is_tensor()) {
    Tensor& planned = slot->tensor();
    if (planned.writable() && planned.dtype() == dtype && planned.shape() == shape) return planned;
  }
  *slot = Tensor(dtype, shape);
  return slot->tensor();
}

void OpContext::set_output(std::size_t i, Value value) {
  if (wants_output(i)) *outputs_[i] = std::move(value);
}

std::uint64_t OpContext::seed() const {
  if (const AttributeValue* seed = attrs().find("seed")) {
    if (const float* f = std::get_if<float>(seed)) return std::bit_cast<std::uint32_t>(*f);
    return static_cast<std::uint64_t>(attrs().get_int("seed"));
  }
  return services_.next_seed();
}

}  // namespace sdx::ops
