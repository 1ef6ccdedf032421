#pragma once
// Values across the border to ONNX Runtime. Numbers are not copied in either direction.

#include <memory>

#include <sdx/tensor.hpp>

#include "providers/ort/library.h"

namespace sdx::ort {

using Handle = std::unique_ptr<c::Value, void (*)(c::Value*)>;

// The result refers to `value`'s memory, which must outlive it (strings, sequences and maps are copied by the library). Throws
// Error(invalid_argument | runtime_failure) for values that the library cannot represent.
Handle to_ort(const Library& library, const Value& value);

// Takes the handle over: tensors of the result view its memory and keep it, and the library, alive.
Value from_ort(const std::shared_ptr<const Library>& library, c::Value* handle);

// The same for a tensor in a device's memory: only device_value() may look at its data.
Value from_device(const std::shared_ptr<const Library>& library, c::Value* handle);
// The library's value behind a tensor that from_device() made; null for any other.
const c::Value* device_value(const Tensor& tensor);

// ONNXTensorElementDataType. Throws Error(not_implemented) for types that the library has no number for.
int element_type(DataType type);

}  // namespace sdx::ort
