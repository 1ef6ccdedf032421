// Tensors of strings: text as UTF-8 without a 0 behind it, one element after the other.
#include <cstring>

#include "dropin/objects.h"
#include "dropin/status.h"
#include "dropin/table.h"

namespace sdx::dropin {
namespace {

// Returns the strings of a tensor, or the values of a sparse tensor of strings.
const Tensor& strings_of(const OrtValue* value) {
  const OrtValue& v = require(value, "value");
  if (v.sparse && v.sparse->format == ORT_SPARSE_UNDEFINED) {
    fail_ort(ORT_INVALID_ARGUMENT, "Sparse Tensor does not contain sparse data");
  }
  if (!v.sparse && !v.value.is_tensor()) fail_ort(ORT_NOT_IMPLEMENTED, "This API supports Tensors or SparseTensors");
  const Tensor& tensor = v.sparse ? v.sparse->values : v.value.tensor();
  if (tensor.dtype() != DataType::string)
    fail_ort(ORT_INVALID_ARGUMENT, "the tensor must be of strings, received " + tensor.type_string());
  return tensor;
}

std::span<std::string> writable_strings(OrtValue* value) {
  const Tensor& tensor = strings_of(value);
  if (require(value, "value").sparse) fail_ort(ORT_INVALID_ARGUMENT, "OrtValue should contain a Tensor");
  if (!tensor.writable()) value->value.tensor() = tensor.clone();
  return value->value.tensor().mutable_values<std::string>();
}

OrtStatus* fill(OrtValue* value, const char* const* texts, std::size_t count) {
  return guarded([&] {
    const std::span<std::string> strings = writable_strings(value);
    if (strings.size() != count) fail_ort(ORT_INVALID_ARGUMENT, "input array doesn't equal tensor size");
    if (count > 0) require(texts, "s");
    for (std::size_t i = 0; i < count; ++i) strings[i] = &require(texts[i], "a string");
  });
}

OrtStatus* fill_element(OrtValue* value, const char* text, std::size_t index) {
  return guarded([&] {
    const std::span<std::string> strings = writable_strings(value);
    if (index >= strings.size()) fail_ort(ORT_INVALID_ARGUMENT, "element index is out of bounds");
    strings[index] = &require(text, "the string");
  });
}

OrtStatus* resized_element(OrtValue* value, std::size_t index, std::size_t length, char** buffer) {
  return guarded([&] {
    const std::span<std::string> strings = writable_strings(value);
    if (index >= strings.size()) fail_ort(ORT_INVALID_ARGUMENT, "element index is out of bounds");
    strings[index].resize(length);
    require(buffer, "buffer") = strings[index].data();
  });
}

std::size_t total_length(std::span<const std::string> strings) {
  std::size_t total = 0;
  for (const std::string& s : strings) total += s.size();
  return total;
}

OrtStatus* data_length(const OrtValue* value, std::size_t* out) {
  return guarded([&] { require(out, "len") = total_length(strings_of(value).values<std::string>()); });
}

OrtStatus* content(const OrtValue* value, void* buffer, std::size_t size, std::size_t* offsets, std::size_t offset_count) {
  return guarded([&] {
    const std::span<const std::string> strings = strings_of(value).values<std::string>();
    if (offset_count != strings.size()) fail_ort(ORT_FAIL, "offsets buffer is not equal to tensor size");
    if (size < total_length(strings)) fail_ort(ORT_FAIL, "output buffer is too small. Use GetStringTensorDataLength.");
    std::size_t at = 0;
    for (std::size_t i = 0; i < strings.size(); ++i) {
      if (!strings[i].empty()) std::memcpy(static_cast<char*>(buffer) + at, strings[i].data(), strings[i].size());
      offsets[i] = at;
      at += strings[i].size();
    }
  });
}

OrtStatus* element_length(const OrtValue* value, std::size_t index, std::size_t* out) {
  return guarded([&] {
    const std::span<const std::string> strings = strings_of(value).values<std::string>();
    if (index >= strings.size()) fail_ort(ORT_INVALID_ARGUMENT, "index is out of bounds");
    require(out, "out") = strings[index].size();
  });
}

OrtStatus* element(const OrtValue* value, std::size_t size, std::size_t index, void* buffer) {
  return guarded([&] {
    const std::span<const std::string> strings = strings_of(value).values<std::string>();
    if (index >= strings.size()) fail_ort(ORT_INVALID_ARGUMENT, "element index is out of bounds");
    if (size < strings[index].size()) fail_ort(ORT_FAIL, "buffer size is too small for string element");
    if (!strings[index].empty()) std::memcpy(buffer, strings[index].data(), strings[index].size());
  });
}

}  // namespace

void fill_strings(Table& table) {
  table.set(Slot::FillStringTensor, &fill);
  table.set(Slot::FillStringTensorElement, &fill_element);
  table.set(Slot::GetResizedStringTensorElementBuffer, &resized_element);
  table.set(Slot::GetStringTensorDataLength, &data_length);
  table.set(Slot::GetStringTensorContent, &content);
  table.set(Slot::GetStringTensorElementLength, &element_length);
  table.set(Slot::GetStringTensorElement, &element);
}

}  // namespace sdx::dropin
