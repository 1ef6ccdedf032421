// Sequences and maps.
#include "dropin/objects.h"
#include "dropin/status.h"
#include "dropin/table.h"
#include "dropin/values/values.h"

namespace sdx::dropin {
namespace {

OrtStatus* count(const OrtValue* value, std::size_t* out) {
  return guarded([&] {
    const Value& v = require(value, "value").value;
    if (v.is_sequence()) {
      require(out, "out") = v.sequence().items.size();
    } else if (v.is_map()) {
      require(out, "out") = 2;  // keys and values
    } else {
      fail_ort(ORT_FAIL, "Input is not of type sequence or map.");
    }
  });
}

// Items of a sequence are shared; for another allocator than ours, and of maps, they are copied.
Value copy_of(const Value& value, OrtAllocator* allocator) {
  if (!value.is_tensor()) return value;
  const Tensor& from = value.tensor();
  if (from.dtype() == DataType::string || allocator == default_allocator()) return from.clone();
  Tensor to = allocated_tensor(allocator, from.dtype(), from.shape());
  if (from.bytes() > 0) std::copy_n(static_cast<const char*>(from.data()), from.bytes(), static_cast<char*>(to.mutable_data()));
  return to;
}

OrtStatus* get(const OrtValue* value, int index, OrtAllocator* allocator, OrtValue** out) {
  return guarded([&] {
    const Value& v = require(value, "value").value;
    require(allocator, "allocator");
    require(out, "out");
    if (v.is_map()) {
      if (index != 0 && index != 1) fail_ort(ORT_FAIL, "Invalid index requested for map type.");
      *out = make_value(copy_of(index == 0 ? v.map().keys : v.map().values, allocator));
    } else if (v.is_sequence()) {
      const std::vector<Value>& items = v.sequence().items;
      if (index < 0 || static_cast<std::size_t>(index) >= items.size()) fail_ort(ORT_RUNTIME_EXCEPTION, "index out of range");
      const Value& item = items[static_cast<std::size_t>(index)];
      *out = make_value(allocator == default_allocator() ? item : copy_of(item, allocator));
    } else {
      fail_ort(ORT_FAIL, "Input is not of type sequence or map.");
    }
  });
}

Value make_sequence(const OrtValue* const* items, std::size_t number) {
  Sequence sequence;
  const OrtValue& first = require(items[0], "an item of the sequence");
  if (!first.value.is_tensor() && !first.value.is_map()) {
    fail_ort(ORT_FAIL, "Each element of the sequence should be either tensor or map.");
  }
  if (first.value.is_tensor()) sequence.element_type = first.value.tensor().dtype();
  for (std::size_t i = 0; i < number; ++i) {
    const OrtValue& item = require(items[i], "an item of the sequence");
    if (item.value.is_tensor() != first.value.is_tensor() || item.value.is_map() != first.value.is_map()) {
      fail_ort(ORT_FAIL, "At least one element in the sequence is of a type different from others.");
    }
    if (item.value.is_tensor() && item.value.tensor().dtype() != sequence.element_type) {
      fail_ort(
          ORT_FAIL,
          "Sequences must have tensors of the same data type. There was at least one tensor in the input that was different.");
    }
    sequence.items.push_back(item.value);
  }
  return sequence;
}

Value make_map(const OrtValue* const* parts, std::size_t number) {
  if (number != 2) fail_ort(ORT_FAIL, "For map type num_values MUST be 2");
  const Tensor &keys = tensor_of(parts[0]), &values = tensor_of(parts[1]);
  if (keys.rank() > 1 || values.rank() > 1) {
    fail_ort(ORT_FAIL, "Either the key tensor or the value tensor has NumDimensions > 1");
  }
  if (keys.size() != values.size()) fail_ort(ORT_FAIL, "Key and value tensors have unequal number of elements.");
  if (keys.dtype() != DataType::int64 && keys.dtype() != DataType::string) fail_ort(ORT_FAIL, "Key type is not supported yet.");
  switch (values.dtype()) {
    case DataType::float32:
    case DataType::float64:
    case DataType::int64:
    case DataType::string: break;
    default: fail_ort(ORT_FAIL, "Value type is not supported yet.");
  }
  return Map{keys.clone(), values.clone()};
}

OrtStatus* create(const OrtValue* const* parts, std::size_t number, OnnxType type, OrtValue** out) {
  return guarded([&] {
    require(out, "out");
    if (number == 0) fail_ort(ORT_FAIL, "Number of values should be at least 1.");
    require(parts, "in");
    if (type == ONNX_TYPE_MAP) {
      *out = make_value(make_map(parts, number));
    } else if (type == ONNX_TYPE_SEQUENCE) {
      *out = make_value(make_sequence(parts, number));
    } else {
      fail_ort(ORT_FAIL, "Input is not of type sequence or map.");
    }
  });
}

// Opaque types are for operators that take them, and there are none.
OrtStatus* create_opaque(const char* domain, const char* type, const void*, std::size_t, OrtValue**) {
  return make_status(ORT_FAIL, std::string("Specified domain_name: ") + (domain ? domain : "") +
                                   " and type_name: " + (type ? type : "") + " is not a registered opaque type");
}
OrtStatus* get_opaque(const char* domain, const char* type, const OrtValue*, void*, std::size_t) {
  return create_opaque(domain, type, nullptr, 0, nullptr);
}

}  // namespace

void fill_containers(Table& table) {
  table.set(Slot::GetValueCount, &count);
  table.set(Slot::GetValue, &get);
  table.set(Slot::CreateValue, &create);
  table.set(Slot::CreateOpaqueValue, &create_opaque);
  table.set(Slot::GetOpaqueValue, &get_opaque);
}

}  // namespace sdx::dropin
