// Tensors: made here, in a program's memory, or with a program's allocator.
#include <algorithm>
#include <cstring>

#include "dropin/objects.h"
#include "dropin/status.h"
#include "dropin/table.h"
#include "dropin/values/values.h"

namespace sdx::dropin {

OrtValue* make_value(Value value) {
  auto made = std::make_unique<OrtValue>();
  made->type = onnx_type_of(value);
  made->value = std::move(value);
  return made.release();
}

const Tensor& tensor_of(const OrtValue* value) {
  const OrtValue& v = require(value, "value");
  if (!v.value.is_tensor())
    fail_ort(ORT_RUNTIME_EXCEPTION, "OrtValue is not a tensor: the value must contain a constructed tensor");
  return v.value.tensor();
}

Shape shape_of(const std::int64_t* extents, std::size_t rank) {
  if (rank > 0) require(extents, "shape");
  Shape shape(extents, extents + rank);
  if (std::any_of(shape.begin(), shape.end(), [](std::int64_t e) { return e < 0; })) {
    fail_ort(ORT_INVALID_ARGUMENT, "tried creating tensor with negative value in shape");
  }
  return shape;
}

DataType checked_type(ElementType element) {
  const DataType type = type_of_element(element);
  if (type == DataType::undefined) {
    fail_ort(ORT_NOT_IMPLEMENTED, "Tensor element type " + std::to_string(element) + " is not supported");
  }
  return type;
}

std::shared_ptr<const OrtMemoryInfo> keep_info(const OrtMemoryInfo* info) {
  static const OrtMemoryInfo arena{.type = OrtArenaAllocator};
  if (info == nullptr || *info == *cpu_memory()) return nullptr;
  if (*info == arena) return {std::shared_ptr<const OrtMemoryInfo>(), &arena};
  return std::make_shared<const OrtMemoryInfo>(*info);
}

Tensor allocated_tensor(OrtAllocator* allocator, DataType type, Shape shape) {
  OrtAllocator& from = require(allocator, "allocator");
  if (allocator == default_allocator() || type == DataType::string) return Tensor(type, std::move(shape));
  const std::size_t bytes = byte_size(type, element_count(shape));
  std::shared_ptr<void> memory(allocate(&from, bytes), [allocator](void* p) {
    if (p != nullptr) allocator->Free(allocator, p);
  });
  void* const data = memory.get();
  return Tensor::view_mutable(data, type, std::move(shape), std::move(memory));
}

namespace {

OrtStatus* create(OrtAllocator* allocator, const std::int64_t* extents, std::size_t rank, ElementType element, OrtValue** out) {
  return guarded([&] {
    require(out, "out");
    Tensor tensor = allocated_tensor(allocator, checked_type(element), shape_of(extents, rank));
    auto made = std::unique_ptr<OrtValue>(make_value(std::move(tensor)));
    if (allocator != default_allocator()) made->memory = keep_info(allocator->Info(allocator));
    *out = made.release();
  });
}

std::size_t checked_size(DataType type, const Shape& shape, const void* data, std::size_t size, const char* format) {
  const std::size_t needed = type == DataType::string ? static_cast<std::size_t>(element_count(shape)) * sizeof(std::string)
                                                      : byte_size(type, element_count(shape));
  if (needed > size) {
    char text[96];
    std::snprintf(text, sizeof(text), format, needed, size);
    fail_ort(ORT_INVALID_ARGUMENT, text);
  }
  if (needed > 0) require_memory(data, "p_data");
  return needed;
}

Tensor copy_strings(const void* data, Shape shape) {
  Tensor tensor(DataType::string, std::move(shape));
  const auto* const from = static_cast<const std::string*>(data);
  std::copy_n(from, tensor.size(), tensor.mutable_values<std::string>().begin());
  return tensor;
}

OrtStatus* create_with_data(const OrtMemoryInfo* info, void* data, std::size_t size, const std::int64_t* extents,
                            std::size_t rank, ElementType element, OrtValue** out) {
  return guarded([&] {
    require(out, "out");
    require(info, "info");
    const DataType type = checked_type(element);
    Shape shape = shape_of(extents, rank);
    checked_size(type, shape, data, size, "not enough space: expected %zu, got %zu");
    // Strings are a C++ program's objects, which are copied: the engine moves its own about.
    Tensor tensor =
        type == DataType::string ? copy_strings(data, std::move(shape)) : Tensor::view_mutable(data, type, std::move(shape));
    auto made = std::unique_ptr<OrtValue>(make_value(std::move(tensor)));
    made->memory = keep_info(info);
    *out = made.release();
  });
}

OrtStatus* create_with_deleter(OrtAllocator* deleter, void* data, std::size_t size, const std::int64_t* extents, std::size_t rank,
                               ElementType element, OrtValue** out) {
  return guarded([&] {
    require(out, "out");
    OrtAllocator& from = require(deleter, "deleter");
    const DataType type = checked_type(element);
    Shape shape = shape_of(extents, rank);
    checked_size(type, shape, data, size, "p_data_len was smaller than expected. Expected:%zu Got:%zu");
    if (type == DataType::string) fail_ort(ORT_NOT_IMPLEMENTED, "a tensor of strings cannot lie in memory of the caller's");
    std::shared_ptr<void> owner(data, [&from](void* p) { from.Free(&from, p); });
    auto made = std::unique_ptr<OrtValue>(make_value(Tensor::view_mutable(data, type, std::move(shape), std::move(owner))));
    made->memory = keep_info(from.Info(&from));
    *out = made.release();
  });
}

OrtStatus* is_tensor(const OrtValue* value, int* out) {
  return guarded([&] { require(out, "out") = require(value, "value").value.is_tensor() ? 1 : 0; });
}
OrtStatus* has_value(const OrtValue* value, int* out) {
  return guarded([&] {
    const OrtValue& v = require(value, "value");
    require(out, "out") = v.sparse != nullptr || !v.value.empty() ? 1 : 0;
  });
}
OrtStatus* data_of(const OrtValue* value, const void** out) {
  return guarded([&] { require(out, "out") = tensor_of(value).data(); });
}
OrtStatus* size_of(const OrtValue* value, std::size_t* out) {
  return guarded([&] {
    if (value == nullptr) fail_ort(ORT_INVALID_ARGUMENT, "Input `value` argument must not be null");
    if (out == nullptr) fail_ort(ORT_INVALID_ARGUMENT, "Output `size` argument must not be null");
    if (!value->value.is_tensor()) fail_ort(ORT_INVALID_ARGUMENT, "OrtValue is expected to contain a tensor");
    const Tensor& tensor = value->value.tensor();
    if (tensor.dtype() == DataType::string) fail_ort(ORT_INVALID_ARGUMENT, "String tensors are not supported by this API");
    *out = tensor.bytes();
  });
}

OrtStatus* at(OrtValue* value, const std::int64_t* place, std::size_t rank, void** out) {
  return guarded([&] {
    const Tensor& tensor = tensor_of(value);
    if (tensor.dtype() == DataType::string) fail_ort(ORT_INVALID_ARGUMENT, "this API does not support strings");
    if (rank != tensor.rank()) fail_ort(ORT_INVALID_ARGUMENT, "location dimensions do not match shape size");
    if (rank > 0) require(place, "location_values");
    std::int64_t index = 0;
    for (std::size_t i = 0; i < rank; ++i) {
      if (place[i] < 0 || place[i] >= tensor.shape()[i]) fail_ort(ORT_INVALID_ARGUMENT, "invalid location range");
      index = index * tensor.shape()[i] + place[i];
    }
    const auto bits = static_cast<std::int64_t>(bit_width(tensor.dtype()));
    require(out, "out") = const_cast<char*>(static_cast<const char*>(tensor.data())) + index * bits / 8;
  });
}

OrtStatus* memory_of(const OrtValue* value, const OrtMemoryInfo** out) {
  return guarded([&] {
    const OrtValue& v = require(value, "value");
    if (!v.sparse && !v.value.is_tensor()) fail_ort(ORT_INVALID_ARGUMENT, "OrtValue must contain a tensor or a sparse tensor");
    require(out, "mem_info") = v.where();
  });
}

void release(OrtValue* value) { delete value; }

// An output may refer to a constant (a weight that is an output). Programs get a pointer that they can write through, so such a
// value is copied first.
Tensor& writable(OrtValue* value) {
  tensor_of(value);
  Tensor& tensor = value->value.tensor();
  if (!tensor.writable()) tensor = tensor.clone();
  return tensor;
}

OrtStatus* mutable_data_of(OrtValue* value, void** out) {
  return guarded([&] { require(out, "out") = writable(value).mutable_data(); });
}

// Copies between tensors in the processor's memory, the only memory of our sessions.
OrtStatus* copy_tensors(const OrtEnv*, const OrtValue* const* from, OrtValue* const* to, OrtSyncStream*, std::size_t count) {
  return guarded([&] {
    if (count == 0) fail_ort(ORT_INVALID_ARGUMENT, "num_tensors must be greater than zero");
    require(from, "src_tensors");
    require(to, "dst_tensors");
    for (std::size_t i = 0; i < count; ++i) {
      const Tensor& source = tensor_of(from[i]);
      const Tensor& target = tensor_of(to[i]);
      if (source.dtype() != target.dtype() || source.shape() != target.shape()) {
        fail_ort(ORT_INVALID_ARGUMENT,
                 "tensor " + std::to_string(i) + " is " + source.type_string() + ", its destination " + target.type_string());
      }
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (from[i] == to[i]) continue;
      const Tensor& source = tensor_of(from[i]);
      Tensor& target = writable(to[i]);
      if (source.dtype() == DataType::string) {
        std::ranges::copy(source.values<std::string>(), target.mutable_values<std::string>().begin());
      } else if (source.bytes() > 0) {
        std::memmove(target.mutable_data(), source.data(), source.bytes());
      }
    }
  });
}

}  // namespace

void fill_tensors(Table& table) {
  table.set(Slot::CreateTensorAsOrtValue, &create);
  table.set(Slot::CreateTensorWithDataAsOrtValue, &create_with_data);
  table.set(Slot::CreateTensorWithDataAndDeleterAsOrtValue, &create_with_deleter);
  table.set(Slot::IsTensor, &is_tensor);
  table.set(Slot::HasValue, &has_value);
  table.set(Slot::GetTensorMutableData, &mutable_data_of);
  table.set(Slot::GetTensorData, &data_of);
  table.set(Slot::GetTensorSizeInBytes, &size_of);
  table.set(Slot::TensorAt, &at);
  table.set(Slot::GetTensorMemoryInfo, &memory_of);
  table.set(Slot::CopyTensors, &copy_tensors);
  table.set(Slot::ReleaseValue, &release);
}

}  // namespace sdx::dropin
