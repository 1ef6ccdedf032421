#include "providers/ort/values.h"

#include <vector>

#include "base/error.h"

namespace sdx::ort {
namespace {

// ONNXType
constexpr int kTensor = 1, kSequence = 2, kMap = 3, kOptional = 6;
// ONNXTensorElementDataType agrees with ONNX's numbers up to FLOAT4E2M1 (23); then come UINT2 and INT2, without FLOAT8E8M0.
constexpr int kUint2 = 24, kInt2 = 25;

DataType data_type(int type) {
  if (type == kUint2) return DataType::uint2;
  if (type == kInt2) return DataType::int2;
  if (type > 0 && type < kUint2) return static_cast<DataType>(type);
  fail(ErrorCode::not_implemented, "ONNX Runtime returned a tensor of element type {}, which is not supported", type);
}

Handle own(const Library& library, c::Value* v) { return {v, library.f().release_value}; }

Handle tensor_to_ort(const Library& library, const Tensor& t) {
  const Functions& f = library.f();
  c::Value* made = nullptr;
  if (t.dtype() == DataType::string) {
    library.check(f.create_tensor(library.allocator(), t.shape().data(), t.rank(), element_type(t.dtype()), &made),
                  ErrorCode::runtime_failure);
    Handle handle = own(library, made);
    std::vector<const char*> texts;
    for (const std::string& s : t.values<std::string>()) texts.push_back(s.c_str());
    library.check(f.fill_strings(made, texts.data(), texts.size()), ErrorCode::runtime_failure);
    return handle;
  }
  static std::int64_t nothing = 0;  // an empty tensor's address must not be null
  void* data = t.bytes() == 0 ? &nothing : const_cast<void*>(t.data());
  library.check(f.wrap_tensor(library.cpu(), data, t.bytes(), t.shape().data(), t.rank(), element_type(t.dtype()), &made),
                ErrorCode::runtime_failure);
  return own(library, made);
}

Tensor strings_from_ort(const Library& library, const c::Value* v, Shape shape) {
  Tensor t(DataType::string, std::move(shape));
  const auto count = static_cast<std::size_t>(t.size());
  std::size_t bytes = 0;
  library.check(library.f().strings_length(v, &bytes), ErrorCode::runtime_failure);
  std::string text(bytes, '\0');
  std::vector<std::size_t> at(count + 1, bytes);
  if (count != 0) library.check(library.f().strings_content(v, text.data(), bytes, at.data(), count), ErrorCode::runtime_failure);
  at[count] = bytes;
  auto out = t.mutable_values<std::string>();
  for (std::size_t i = 0; i < count; ++i) out[i] = text.substr(at[i], at[i + 1] - at[i]);
  return t;
}

// Keeps a value, and tells that its data lie on a device.
struct DeviceOwner {
  std::shared_ptr<const Library> library;
  void operator()(void* v) const { library->f().release_value(static_cast<c::Value*>(v)); }
};

Tensor tensor_from_ort(const std::shared_ptr<const Library>& library, Handle handle, bool on_device = false) {
  const Functions& f = library->f();
  c::TypeAndShape* info = nullptr;
  library->check(f.type_and_shape(handle.get(), &info), ErrorCode::runtime_failure);
  const std::unique_ptr<c::TypeAndShape, void (*)(c::TypeAndShape*)> release(info, f.release_type_and_shape);
  int type = 0;
  std::size_t rank = 0;
  library->check(f.element_type(info, &type), ErrorCode::runtime_failure);
  library->check(f.rank(info, &rank), ErrorCode::runtime_failure);
  Shape shape(rank);
  library->check(f.extents(info, shape.data(), rank), ErrorCode::runtime_failure);
  const DataType dtype = data_type(type);
  if (dtype == DataType::string) return strings_from_ort(*library, handle.get(), std::move(shape));
  void* data = nullptr;
  library->check(f.tensor_data(handle.get(), &data), ErrorCode::runtime_failure);
  std::shared_ptr<void> owner;
  if (on_device) {
    owner = std::shared_ptr<void>(handle.release(), DeviceOwner{library});
  } else {
    owner =
        std::shared_ptr<void>(handle.release(), [library](void* v) { library->f().release_value(static_cast<c::Value*>(v)); });
  }
  if (element_count(shape) == 0) return Tensor(dtype, std::move(shape));
  return Tensor::view_mutable(data, dtype, std::move(shape), std::move(owner));
}

Value element_from_ort(const std::shared_ptr<const Library>& library, const c::Value* from, int index) {
  c::Value* item = nullptr;
  library->check(library->f().get_value(from, index, library->allocator(), &item), ErrorCode::runtime_failure);
  return from_ort(library, item);
}

}  // namespace

int element_type(DataType type) {
  if (type <= DataType::float4e2m1) return static_cast<int>(type);
  if (type == DataType::uint2) return kUint2;
  if (type == DataType::int2) return kInt2;
  fail(ErrorCode::not_implemented, "ONNX Runtime has no element type {}", name(type));
}

Handle to_ort(const Library& library, const Value& value) {
  if (value.is_tensor()) return tensor_to_ort(library, value.tensor());
  std::vector<Handle> parts;
  if (value.is_sequence()) {
    for (const Value& v : value.sequence().items) parts.push_back(to_ort(library, v));
  } else if (value.is_map()) {
    parts.push_back(tensor_to_ort(library, value.map().keys));
    parts.push_back(tensor_to_ort(library, value.map().values));
  }
  if (parts.empty()) {
    fail(ErrorCode::not_implemented, "ONNX Runtime's C interface cannot take {} as an input",
         value.empty() ? "an empty optional" : "an empty sequence");
  }
  std::vector<const c::Value*> pointers;
  for (const Handle& h : parts) pointers.push_back(h.get());
  c::Value* made = nullptr;
  library.check(library.f().create_value(pointers.data(), pointers.size(), value.is_map() ? kMap : kSequence, &made),
                ErrorCode::runtime_failure);
  return own(library, made);
}

Value from_ort(const std::shared_ptr<const Library>& library, c::Value* raw) {
  if (raw == nullptr) return {};
  const Functions& f = library->f();
  Handle handle = own(*library, raw);
  int present = 1;
  library->check(f.has_value(raw, &present), ErrorCode::runtime_failure);
  if (present == 0) return {};
  int type = 0;
  library->check(f.value_type(raw, &type), ErrorCode::runtime_failure);
  if (type == kTensor) return tensor_from_ort(library, std::move(handle));
  if (type == kMap) {
    return Map{element_from_ort(library, raw, 0).tensor(), element_from_ort(library, raw, 1).tensor()};
  }
  if (type != kSequence)
    fail(ErrorCode::not_implemented, "ONNX Runtime returned a value of kind {}", type == kOptional ? -1 : type);
  std::size_t count = 0;
  library->check(f.value_count(raw, &count), ErrorCode::runtime_failure);
  Sequence sequence;
  for (std::size_t i = 0; i < count; ++i) sequence.items.push_back(element_from_ort(library, raw, static_cast<int>(i)));
  if (!sequence.items.empty() && sequence.items[0].is_tensor()) sequence.element_type = sequence.items[0].tensor().dtype();
  return sequence;
}

Value from_device(const std::shared_ptr<const Library>& library, c::Value* raw) {
  return tensor_from_ort(library, own(*library, raw), true);
}

const c::Value* device_value(const Tensor& tensor) {
  const std::shared_ptr<const void>& owner = tensor.owner();
  return std::get_deleter<DeviceOwner>(owner) == nullptr ? nullptr : static_cast<const c::Value*>(owner.get());
}

}  // namespace sdx::ort
