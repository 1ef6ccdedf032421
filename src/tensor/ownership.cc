#include "tensor/ownership.h"

#include <algorithm>

#include "base/poison.h"

namespace sdx {
namespace {

bool owns_memory(const Tensor& t) { return !t.defined() || t.owner() != nullptr; }

Tensor owned(const Tensor& t) { return owns_memory(t) ? t : t.clone(); }

}  // namespace

bool owns_memory(const Value& value) {
  if (value.is_tensor()) return owns_memory(value.tensor());
  if (value.is_map()) return owns_memory(value.map().keys) && owns_memory(value.map().values);
  if (!value.is_sequence()) return true;
  const std::vector<Value>& items = value.sequence().items;
  return std::all_of(items.begin(), items.end(), [](const Value& v) { return owns_memory(v); });
}

Value owned(Value value) {
  if (owns_memory(value)) return value;
  if (value.is_tensor()) return value.tensor().clone();
  if (value.is_map()) return Map{owned(value.map().keys), owned(value.map().values)};
  Sequence copy{value.sequence().element_type, {}};
  copy.items.reserve(value.sequence().items.size());
  for (const Value& item : value.sequence().items) copy.items.push_back(owned(item));
  return copy;
}

void poison(Tensor& tensor) {
  void* data = tensor.mutable_data();
  switch (tensor.dtype()) {
    case DataType::float64:
    case DataType::complex128: return poison(data, tensor.bytes(), 0x7FF5A5A5A5A5A5A5, 8);
    case DataType::float16: return poison(data, tensor.bytes(), 0x7DA5, 2);
    case DataType::bfloat16: return poison(data, tensor.bytes(), 0x7FA5, 2);
    case DataType::float32:
    case DataType::complex64: return poison(data, tensor.bytes());
    default: return poison(data, tensor.bytes(), 0xA5, 1);
  }
}

}  // namespace sdx
